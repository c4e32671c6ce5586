/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "testpmd_rx.h"
#include "verify.h"

#define REAP_BATCH 64

static void
rx_len_check(struct host *host, const struct conn *conn, uint64_t msg, uint32_t len,
	uint64_t want)
{
	if (len == want)
		return;
	host->tally.bad_messages++;
	host_set_error(host,
		"message %" PRIu64 " of QP 0x%x has %" PRIu32 " bytes, "
		"expected %" PRIu64 " (--size must be the same on both ends)",
		msg, conn->qpn, len, want);
}

/* A message of a mix of operations. The content of a WRITE is checked in the ring. */
static void
rx_take_op(struct host *host, struct conn *conn, const struct ibv_wc *wc)
{
	const struct conf *conf = host->conf;
	const struct op_row *op =
		walk_find(&conn->take, &conf->mix, conf->n_sizes, OP_RECEIVED);
	uint64_t msg = conn->take.msg, seed = verify_seed(conn->qpn, msg);
	bool write = (op->flags & OP_RING) != 0, imm = (op->flags & OP_IMM) != 0;
	uint32_t found =
		(wc->wc_flags & IBV_WC_WITH_IMM) != 0 ? be32toh(wc->imm_data) : 0;

	if (write != (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) ||
		imm != ((wc->wc_flags & IBV_WC_WITH_IMM) != 0))
		host_fail(host,
			"message %" PRIu64
			" of QP 0x%x is another operation than %s: messages "
			"are out of order",
			msg, conn->qpn, op->name);
	else if (imm && found != (uint32_t)seed)
		host_fail(host,
			"the immediate of message %" PRIu64
			" (%s) of QP 0x%x is 0x%08" PRIx32 ", expected 0x%08" PRIx32,
			msg, op->name, conn->qpn, found, (uint32_t)seed);
	rx_len_check(host, conn, msg, wc->byte_len, op_len(conf, op, conn->take.size_i));
	if (!conf->no_verify && !write)
		(void)host_verify(host, conn, op->name, msg,
			conn->rxq->bufs[wc->wr_id].data, wc->byte_len, seed);
	walk_next(&conn->take, &conf->mix, conf->n_sizes);
}

static void
rx_take_unexpected(struct host *host)
{
	char own[EXCHANGE_TEXT];

	(void)exchange_options(host, own);
	host_fail(host,
		"%s sends messages that this end with '%s' does not expect: both ends need the "
		"same",
		host->pc->peer, own);
}

static void
rx_failed(struct host *host, struct conn *conn, const struct ibv_wc *wc)
{
	bool told = conn->failed;

	/* Flushed by a reset of this end, or after the completion that has the cause. */
	if (conn->resetting || told || wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	conn->failed = true;
	if (wc->status == IBV_WC_LOC_LEN_ERR)
		host_fail(host,
			"message for QP 0x%x is longer than --size %" PRIu64 " (--size "
			"must be the same on both ends)",
			conn->qpn, host->conf->size_max);
	else
		host_fail(host, "receive of QP 0x%x failed: %s", conn->qpn,
			ibv_wc_status_str(wc->status));
}

static inline void
rx_take(struct host *host, struct conn *conn, const struct ibv_wc *wc)
{
	const struct conf *conf = host->conf;

	if (host->exchange.on && !host->exchange.receives) {
		rx_take_unexpected(host);
		return;
	}
	if (host->exchange.on) {
		rx_take_op(host, conn, wc);
	} else if (!conf->no_verify) {
		rx_len_check(host, conn, conn->received, wc->byte_len,
			conf->sizes[conn->rx_size_i]);
		(void)host_verify(host, conn, "send", conn->received,
			conn->rxq->bufs[wc->wr_id].data, wc->byte_len,
			verify_seed(conn->qpn, conn->received));
	}
	if (++conn->rx_size_i >= conf->n_sizes)
		conn->rx_size_i = 0;
	conn->received++;
	host->tally.messages++;
	host->tally.bytes += wc->byte_len;
}

static void
rx_refill(struct host *host, struct conn *conn)
{
	int rc = rxq_refill(conn->rxq);
	if (rc != 0)
		host_fail(host, "cannot post receives: %s", strerror(rc));
}

unsigned
rx_reap(struct host *host, void (*taken)(struct host *host, struct conn *conn))
{
	struct ibv_wc wc[REAP_BATCH];
	int n = ibv_poll_cq(host->verbs.recv_cq, REAP_BATCH, wc);

	if (n < 0) {
		host_fail(host, "the receive CQ is in error");
		return 0;
	}
	for (int i = 0; i < n; i++) {
		struct conn *conn = host_conn(host, wc[i].qp_num);

		if (conn == NULL || wc[i].wr_id >= conn->rxq->n_bufs) {
			host_fail(host, "completion for unknown QP 0x%x", wc[i].qp_num);
			continue;
		}
		rxq_return(conn->rxq, (uint32_t)wc[i].wr_id);
		if (wc[i].status != IBV_WC_SUCCESS) {
			rx_failed(host, conn, &wc[i]);
			continue;
		}
		if (conn->resetting)
			continue; /* a message of the connection that ends */
		rx_take(host, conn, &wc[i]);
		rx_refill(host, conn);
		if (taken != NULL)
			taken(host, conn);
	}
	return (unsigned)n;
}

void
rx_drain(struct host *host)
{
	uint64_t left =
		0; /* completions that the CQs may hold, of receives and of sends */

	for (unsigned i = 0; i < host->n_rxqs; i++)
		left += rxq_posted(&host->rxqs[i]);
	for (unsigned i = 0; i < host->n_conns; i++)
		left += host->conns[i].posted - host->conns[i].acked;
	/* Each call takes a batch of each kind, if there is one. */
	for (uint64_t calls = left / REAP_BATCH + 1; calls != 0; calls--) {
		if (host->ops->reap(host) == 0)
			return;
	}
}

void
rx_start(struct host *host)
{
	struct ibv_srq_attr attr = {.srq_limit = (uint32_t)host->conf->srq_limit};
	int rc = 0;

	if (host->verbs.srq != NULL) {
		host->rxqs[0].refill_on_limit = false;
		rc = rxq_post(&host->rxqs[0]);
		host->rxqs[0].refill_on_limit = attr.srq_limit != 0;
		if (rc == 0)
			rc = ibv_modify_srq(host->verbs.srq, &attr, IBV_SRQ_LIMIT);
	}
	/* Receive queues were filled when their QPs were connected. After a stop they
	 * hold what rx_refill() left. */
	for (unsigned i = 0; i < host->n_rxqs && host->verbs.srq == NULL && rc == 0; i++)
		rc = rxq_post(&host->rxqs[i]);
	if (rc != 0)
		host_fail(host, "cannot post receives: %s", strerror(rc));
}
