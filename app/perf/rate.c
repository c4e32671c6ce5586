/* SPDX-License-Identifier: BSD-3-Clause */
/* send, write, read: as many messages as possible. Counts receives polled by the server
 * (send) or requests that completed (write, read), never posts. */
#include <string.h>

#include <rte_prefetch.h>

#include "perf_context.h"
#include "result.h"

#define PASS_POSTS 64  /* requests posted per pass */
#define PASS_VISITS 64 /* QPs visited per pass */
/* prefetch distance in QPs; a QP whose queue is full takes less time than a cache miss */
#define CONN_PREFETCH_DISTANCE 16
#define END_S 5 /* time that the server has to report */

enum phase { PHASE_WARM, PHASE_WINDOW, PHASE_END };

/* The measurement at the client. */
struct window {
	enum phase phase;
	uint64_t next_tsc; /* when the next phase begins */
	/* TSC and ctx->watch.progress when the measurement began */
	uint64_t from_tsc, from;
};

/* Posts one list per QP, round robin. */
static int
requests_post(struct perf_context *ctx, uint64_t *next_qp)
{
	uint64_t burst = ctx->plan.burst, depth = ctx->plan.sq_depth;
	unsigned visits =
		ctx->plan.qps < PASS_VISITS ? (unsigned)ctx->plan.qps : PASS_VISITS;
	unsigned posts = 0;

	for (unsigned i = 0; i < visits && posts < PASS_POSTS; i++) {
		struct conn *conn = &ctx->conns[*next_qp];

		rte_prefetch0(conn + CONN_PREFETCH_DISTANCE);
		if (++*next_qp == ctx->plan.qps)
			*next_qp = 0;
		if (depth - conn_outstanding(conn) < burst)
			continue;
		if (unlikely(!perf_post(ctx, conn, (unsigned)burst)))
			return -1;
		posts += (unsigned)burst;
	}
	return 0;
}

/* Advances the phase by the clock. */
static void
window_step(struct perf_context *ctx, struct window *w, struct result *result)
{
	uint64_t now = rte_rdtsc(), hz = rte_get_tsc_hz();
	struct msg msg = {.kind = w->phase == PHASE_WARM ? MSG_BEGIN : MSG_END};

	if (now < w->next_tsc)
		return;
	if (w->phase == PHASE_END) {
		perf_set_error(ctx, "the server did not report its result");
		ctx->disconnected = true;
		return;
	}
	if (w->phase == PHASE_WARM) {
		w->from_tsc = now;
		w->from = ctx->watch.progress;
		w->next_tsc = now + ctx->plan.seconds * hz;
	} else {
		result->client.messages = ctx->watch.progress - w->from;
		result->client.seconds = (double)(now - w->from_tsc) / (double)hz;
		w->next_tsc = now + END_S * hz;
	}
	w->phase++;
	ctx->disconnected |= link_send(ctx->link, &msg) != 0;
}

int
rate_client(struct perf_context *ctx, struct result *result)
{
	struct window w = {
		.next_tsc = rte_rdtsc() + ctx->plan.warmup_ms * rte_get_tsc_hz() / 1000};
	uint64_t next_qp = 0;
	struct msg msg;

	while (!ctx->disconnected) {
		perf_poll_engines(ctx);
		if (unlikely(perf_reap(ctx) < 0 || requests_post(ctx, &next_qp) != 0))
			return -1;
		if (unlikely(ctx->watch.passes % 64 == 0))
			window_step(ctx, &w, result);
		if (unlikely(perf_tick(ctx, &msg)) && msg.kind == MSG_TALLY)
			break;
	}
	if (ctx->disconnected)
		return perf_set_error(ctx, "the server disconnected");
	result->server = msg.tally;
	perf_fill_tally(ctx, &result->client);
	result->tally = ctx->plan.mode == MODE_SEND ? result->server : result->client;
	return 0;
}

/* When the measurement began at the server, and ctx->watch.progress at that time. */
struct window_start {
	uint64_t tsc, count;
};

/* Measures between MSG_BEGIN and MSG_END. Returns true after MSG_END, when the result was
 * sent. */
static bool
server_window(struct perf_context *ctx, const struct msg *msg,
	struct window_start *window_start)
{
	struct window_start now = {.tsc = rte_rdtsc(), .count = ctx->watch.progress};
	struct tally tally = {.messages = now.count - window_start->count};

	if (msg->kind == MSG_BEGIN)
		*window_start = now;
	if (msg->kind != MSG_END)
		return false;
	tally.seconds = (double)(now.tsc - window_start->tsc) / (double)rte_get_tsc_hz();
	perf_send_tally(ctx, &tally);
	return true;
}

int
rate_server(struct perf_context *ctx)
{
	struct ibv_wc wc[POLL_MAX];
	struct window_start window_start = {0, 0};
	struct msg msg;
	bool got_msg;

	while (!ctx->disconnected) {
		perf_poll_engines(ctx);
		int n = perf_poll_cq(ctx, ctx->verbs.recv_cq, POLL_MAX, wc);

		if (n != 0 && unlikely(n < 0 || perf_repost(ctx, wc, n) != 0))
			return -1;
		got_msg = perf_tick(ctx, &msg);
		if (n == 0 && ctx->verbs.channel != NULL && !got_msg)
			got_msg = events_sleep(ctx, &msg);
		if (unlikely(got_msg) && server_window(ctx, &msg, &window_start))
			return 0;
	}
	return perf_set_error(ctx, "the client disconnected");
}
