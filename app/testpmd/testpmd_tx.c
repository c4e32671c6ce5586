/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tx_flush.h"
#include "tx_op.h"
#include "verify.h"

/* Limit of the send buffers of all QPs, unless one message for each QP needs more. */
#define MEM_MAX (UINT64_C(256) << 20)
#define REAP_BATCH 64

int
tx_init(struct host *host)
{
	const struct conf *conf = host->conf;
	struct tx *tx = &host->tx;
	uint64_t stride = (conf->size_max + 63) & ~UINT64_C(63);

	if (stride == 0)
		stride = 64;
	tx->depth = (uint32_t)conf->sq_depth;
	tx->slots = 1;
	tx->len = stride;
	if (!conf->no_verify) {
		/* A buffer belongs to its message until that is acknowledged, so fewer
		 * buffers mean fewer outstanding messages. */
		uint64_t fit = MEM_MAX / stride / conf->qps;

		if (fit < tx->depth)
			tx->depth = fit == 0 ? 1 : (uint32_t)fit;
		tx->slots = tx->depth;
		tx->stride = stride;
		tx->len = stride * tx->slots * host->n_conns;
	}
	tx->mem = buffer_map(tx->len);
	if (tx->mem == NULL)
		return ENOMEM;
	tx->mr = ibv_reg_mr(host->verbs.pd, tx->mem, tx->len, IBV_ACCESS_LOCAL_WRITE);
	if (tx->mr == NULL) {
		int rc = errno;

		tx_fini(tx);
		return rc;
	}
	for (unsigned i = 0; i < host->n_conns; i++)
		host->conns[i].tx = (uint8_t *)tx->mem + i * tx->stride * tx->slots;
	for (unsigned i = 0; i < BURST_MAX; i++) {
		tx->sge[i].lkey = tx->mr->lkey;
		tx->wr[i] = (struct ibv_send_wr){
			.sg_list = &tx->sge[i], .num_sge = 1, .opcode = IBV_WR_SEND};
	}
	return 0;
}

void
tx_fini(struct tx *tx)
{
	if (tx->mr != NULL)
		ibv_dereg_mr(tx->mr);
	buffer_unmap(tx->mem, tx->len);
	*tx = (struct tx){0};
}

uint32_t
tx_signal_every(const struct host *host)
{
	/* With --rate each message has a latency. */
	uint64_t every = host->rate.on ? 1 : host->conf->signal_every;

	return (uint32_t)(every < host->tx.depth ? every : host->tx.depth);
}

uint64_t
tx_bytes(const struct host *host, uint64_t first, uint64_t n)
{
	const struct conf *conf = host->conf;
	uint64_t bytes = 0;

	if (conf->n_sizes == 1)
		return n * conf->sizes[0];
	for (uint64_t i = 0; i < n; i++)
		bytes += conf->sizes[(first + i) % conf->n_sizes];
	return bytes;
}

/* Builds request i of the list: the next message of the QP. */
static void
tx_build(struct host *host, struct conn *conn, unsigned i, uint64_t msg, uint32_t every)
{
	const struct conf *conf = host->conf;
	struct tx *tx = &host->tx;
	uint32_t len = (uint32_t)conf->sizes[conn->size_i];
	uint8_t *buf = conn->tx + conn->slot * tx->stride;
	bool last = msg + 1 == conn->limit; /* no later completion would cover it */
	unsigned flags =
		len <= conf->inline_max && conf->inline_max != 0 ? IBV_SEND_INLINE : 0;

	if (host->exchange.on)
		last |= tx_op_build(host, conn, &tx->wr[i], buf, msg, &len, &flags);
	else if (!conf->no_verify)
		verify_fill(buf, len, verify_seed(conn->flow_out, msg));
	if (++conn->slot == tx->slots)
		conn->slot = 0;
	if (++conn->size_i >= conf->n_sizes)
		conn->size_i = 0;
	if (++conn->unsignaled == every || last) {
		conn->unsignaled = 0;
		flags |= IBV_SEND_SIGNALED;
	}
	tx->sge[i].addr = (uintptr_t)buf;
	tx->sge[i].length = len;
	tx->wr[i].wr_id = msg + 1; /* messages acknowledged when this completes */
	tx->wr[i].send_flags = flags;
	tx->wr[i].next = &tx->wr[i + 1];
}

static void
tx_refused(struct host *host, struct conn *conn, int rc)
{
	conn->failed = true;
	if (rc == ENOMEM && host->conf->signal_every == 0)
		host_fail(host,
			"the send queue of QP 0x%x is full of unsignaled requests, and "
			"without a signaled one no slot is ever freed: expected at "
			"least 1 for --signal-every",
			conn->qpn);
	else
		host_fail(host, "posting to QP 0x%x failed: %s", conn->qpn, strerror(rc));
}

unsigned
tx_post(struct host *host, struct conn *conn, unsigned n)
{
	uint32_t every = tx_signal_every(host);
	uint64_t msg = conn->posted;
	int rc;

	for (unsigned i = 0; i < n; i++)
		tx_build(host, conn, i, msg + i, every);
	rc = host->conf->flushes ? flush_post_list(conn->qp, host->tx.wr, &n)
				 : send_post_list(conn->qp, host->tx.wr, &n);
	if (rc != 0)
		tx_refused(host, conn, rc);
	conn->posted = msg + n;
	return n;
}

uint64_t
tx_room(const struct host *host, const struct conn *conn)
{
	uint64_t left = conn->limit - conn->posted;
	uint64_t room = host->tx.depth - (conn->posted - conn->acked);

	if (host->exchange.on && tx_op_room(host, conn) < room)
		room = tx_op_room(host, conn);
	return left < room ? left : room;
}

unsigned
tx_post_burst(struct host *host, struct conn *conn)
{
	uint64_t under_way = conn->posted - conn->acked;
	uint64_t left = conn->limit - conn->posted;
	uint64_t burst =
		host->conf->burst < host->tx.depth ? host->conf->burst : host->tx.depth;
	uint64_t room = host->tx.depth - under_way;
	uint64_t n = left < burst ? left : burst;

	if (host->conf->signal_every == 0)
		room = burst; /* ibv_post_send() refuses what exceeds the queue */
	if (host->exchange.on && tx_op_room(host, conn) < room)
		room = tx_op_room(host, conn);
	if (room < n) {
		/* Wait for room for a whole list. Exception: all outstanding requests are
		 * unsignaled, so that only posting more makes room. */
		if (room == 0 || under_way != conn->unsignaled)
			return 0;
		n = room;
	}
	return n == 0 ? 0 : tx_post(host, conn, (unsigned)n);
}

static void
tx_failed(struct host *host, struct conn *conn, const struct ibv_wc *wc)
{
	if (conn->failed || conn->resetting)
		/* a flush after the completion that has the cause, or by a reset of this
		 * end */
		return;
	conn->failed = true;
	if ((host->state != HOST_RUNNING && host->state != HOST_DRAINING) ||
		host->passive)
		return; /* retried until --wait is over */
	if (wc->status == IBV_WC_RETRY_EXC_ERR)
		host_fail(host,
			"%s stopped answering (QP 0x%x, message %" PRIu64 ": no answer "
			"after %" PRIu64 " retries): it stopped or was restarted "
			"(`start` reconnects)",
			host_peer(host), conn->qpn, wc->wr_id - 1, host->conf->retry_cnt);
	else
		host_fail(host, "send to %s failed: QP 0x%x, message %" PRIu64 ": %s",
			host_peer(host), conn->qpn, wc->wr_id - 1,
			ibv_wc_status_str(wc->status));
}

static void
tx_acked(struct host *host, struct conn *conn, uint64_t acked)
{
	uint64_t n = acked - conn->acked;

	if (host->rate.on)
		rate_acked(host, conn, conn->acked, acked);
	host->tally.sent += n;
	host->tally.sent_bytes += host->exchange.on ? tx_op_acked(host, conn, acked)
						    : tx_bytes(host, conn->acked, n);
	conn->acked = acked;
	if (!conn->answered) {
		conn->answered = true;
		host->n_answered++;
	}
}

unsigned
tx_reap(struct host *host)
{
	struct ibv_wc wc[REAP_BATCH];
	int n = host_poll_cq(host, host->verbs.send_cq, REAP_BATCH, wc);

	if (n < 0) {
		host_fail(host, "the send CQ is in error");
		return 0;
	}
	for (int i = 0; i < n; i++) {
		struct conn *conn = host_conn(host, wc[i].qp_num);

		if (conn == NULL)
			host_fail(host, "completion for unknown QP 0x%x", wc[i].qp_num);
		else if ((wc[i].wr_id & MWS_WR_ID) != 0)
			mws_bind_done(host, conn, &wc[i]);
		else if (wc[i].status != IBV_WC_SUCCESS)
			tx_failed(host, conn, &wc[i]);
		else
			tx_acked(host, conn, wc[i].wr_id);
	}
	return (unsigned)n;
}
