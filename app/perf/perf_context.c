/* SPDX-License-Identifier: BSD-3-Clause */
/* What the measuring loops share. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "perf_context.h"

#define CHECK_MS 20
#define STALL_S 10

int
perf_set_error(struct perf_context *ctx, const char *format, ...)
{
	va_list args;

	if (ctx->reason[0] != '\0')
		return -1;
	va_start(args, format);
	vsnprintf(ctx->reason, sizeof(ctx->reason), format, args);
	va_end(args);
	return -1;
}

int
perf_reap(struct perf_context *ctx)
{
	struct ibv_wc wc[POLL_MAX];
	int n = perf_poll_cq(ctx, ctx->verbs.send_cq, POLL_MAX, wc);

	for (int i = 0; i < n; i++) {
		struct conn *conn = &ctx->conns[wc[i].wr_id >> CONN_SHIFT];

		if (unlikely(wc[i].status != IBV_WC_SUCCESS))
			return perf_set_error(ctx,
				"request of QP 0x%x failed: %s (vendor_err %u)",
				wc[i].qp_num, ibv_wc_status_str(wc[i].status),
				wc[i].vendor_err);
		ctx->watch.progress += (uint32_t)wc[i].wr_id - conn->acked;
		conn->acked = (uint32_t)wc[i].wr_id;
	}
	return n < 0 ? -1 : 0;
}

/* Posts a list of receives to the SRQ or to the receive queue of one QP. */
static int
post_receive_list(struct perf_context *ctx, struct ibv_recv_wr *first)
{
	uint64_t since = perf_cycles_now();
	struct ibv_recv_wr *bad;
	int rc;

	if (ctx->verbs.srq != NULL)
		rc = ibv_post_srq_recv(ctx->verbs.srq, first, &bad);
	else
		rc = ibv_post_recv(
			ctx->conns[first->wr_id / ctx->plan.depth].qp, first, &bad);
	ctx->repost_cycles += perf_cycles_now() - since;
	if (unlikely(rc != 0))
		perf_set_error(ctx, "posting a receive failed: %s", strerror(rc));
	return rc == 0 ? 0 : -1;
}

int
perf_repost(struct perf_context *ctx, const struct ibv_wc *wc, int n)
{
	struct ibv_recv_wr *first = NULL, *last = NULL;
	uint32_t qpn = 0;

	for (int i = 0; i < n; i++) {
		struct ibv_recv_wr *wr = &ctx->buffers.recv_wr[wc[i].wr_id];

		if (unlikely(wc[i].status != IBV_WC_SUCCESS)) {
			/* A flushed receive has no cause of its own: report a failed
			 * request first, if there is one. */
			perf_reap(ctx);
			return perf_set_error(ctx, "receive failed: %s (vendor_err %u)",
				ibv_wc_status_str(wc[i].status), wc[i].vendor_err);
		}
		if (last != NULL && (ctx->verbs.srq != NULL || wc[i].qp_num == qpn)) {
			last->next = wr;
		} else {
			if (first != NULL && post_receive_list(ctx, first) != 0)
				return -1;
			first = wr;
		}
		qpn = wc[i].qp_num;
		last = wr;
		wr->next = NULL;
	}
	ctx->watch.progress += (unsigned)n;
	return first != NULL ? post_receive_list(ctx, first) : 0;
}

/* Returns whether a request has failed, or nothing has completed for STALL_S. */
static bool
run_has_failed(struct perf_context *ctx, uint64_t now)
{
	if (perf_reap(ctx) < 0)
		return true;
	if (ctx->watch.progress != ctx->watch.counted || ctx->watch.progress_tsc == 0) {
		ctx->watch.counted = ctx->watch.progress;
		ctx->watch.progress_tsc = now;
		return false;
	}
	if (ctx->conf->server ||
		now - ctx->watch.progress_tsc <= STALL_S * rte_get_tsc_hz())
		return false;
	perf_set_error(ctx, "no completion for %d s", STALL_S);
	return true;
}

bool
perf_check(struct perf_context *ctx, struct msg *msg)
{
	uint64_t now = rte_rdtsc();

	if (now < ctx->watch.check_tsc)
		return false;
	ctx->watch.check_tsc = now + rte_get_tsc_hz() / 1000 * CHECK_MS;
	if (!link_poll(ctx->link, msg)) {
		if (!run_has_failed(ctx, now))
			return false;
		msg->kind = MSG_DISCONNECTED;
	}
	ctx->disconnected |= msg->kind == MSG_DISCONNECTED;
	return true;
}
