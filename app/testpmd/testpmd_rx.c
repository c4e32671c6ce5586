/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <string.h>

#include "testpmd_rx.h"

#define REAP_BATCH 64

static void
rx_failed(struct host *host, struct conn *conn, const struct ibv_wc *wc)
{
	bool told = conn->failed, lossy = type_is_lossy(host->conf->type);

	/* Flushed by a reset of this end, or after the completion that has the cause. */
	if (conn->resetting || told || wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	/* UC: the receive of an SRQ that an incomplete message has used. */
	if (lossy && wc->status == IBV_WC_REM_INV_REQ_ERR)
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

static void
rx_take_op(struct host *host, struct conn *conn, const struct ibv_wc *wc)
{
	uint32_t grh = host->conf->type == TYPE_UD ? GRH_LEN : 0;
	struct ibv_wc payload = *wc;

	payload.byte_len -= grh;
	if (!rx_op_take(host, conn, &payload, conn->rxq->bufs[wc->wr_id].data + grh))
		return;
	conn->received++;
	host->tally.messages++;
	host->tally.bytes += payload.byte_len;
}

static inline void
rx_take(struct host *host, struct conn *conn, const struct ibv_wc *wc)
{
	const struct conf *conf = host->conf;

	if (host->exchange.on) {
		rx_take_op(host, conn, wc);
		return;
	}
	if (!conf->no_verify) {
		rx_len_check(host, conn, conn->received, wc->byte_len,
			conf->sizes[conn->rx_size_i]);
		(void)host_verify(host, conn, "send", conn->received,
			conn->rxq->bufs[wc->wr_id].data, wc->byte_len,
			verify_seed(conn->flow_in, conn->received));
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
	int n = host_poll_cq(host, host->verbs.recv_cq, REAP_BATCH, wc);

	if (n < 0) {
		host_fail(host, "the receive CQ is in error");
		return 0;
	}
	/* Another core may take what completes next. */
	if (n == 0 && host->verbs.srq != NULL && host->rxqs[0].refused)
		rx_refill(host, &host->conns[0]);
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
	host->drains = true;
	/* Each call takes a batch of each kind, if there is one. */
	for (uint64_t calls = left / REAP_BATCH + 1; calls != 0; calls--) {
		if (host->ops->reap(host) == 0)
			break;
	}
	host->drains = false;
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
