/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "qp/claim.h"
#include "qp/qp_state.h"

static bool
message_takes(const struct op_row *op)
{
	return op->kind == OP_SEND ? op_is_first(op) : (op->hdrs & HDR_IMM) != 0;
}

/* Returns how many messages take a receive behind packet v of the burst, without a packet of another
 * QP between, as far as recv_ring_claim() goes. */
static uint32_t
messages_behind(const struct rx_burst *burst, struct qp *qp, const struct pkt_view *v)
{
	const struct rx_packet *packet = rx_burst_packet(burst, v);
	uint32_t most, psn = v->psn, messages = 0;

	/* With mbufs a message may have to wait for one, and its receive with it. */
	if (packet == NULL || ++packet == burst->end || packet->qp != qp ||
		!burst->checked || qp->type != IBV_QPT_RC || qp->resp.hold != 0 ||
		srq_has_mbufs(qp->srq))
		return 0;
	most = recv_ring_outstanding(&qp->srq->ring) / 2;
	for (; messages < most && packet < burst->end && packet->qp == qp; packet++) {
		const struct op_row *op = packet->view.op;

		psn = psn_add(psn, 1);
		if ((op->kind != OP_SEND && op->kind != OP_WRITE) ||
			packet->view.psn != psn ||
			qp_admit(qp, &packet->view) != DROP_none)
			break;
		messages += message_takes(op);
	}
	return messages;
}

int
claim_take(struct qp *qp, const struct pkt_view *v)
{
	struct qp_claim *c = qp->shared->claim;
	struct port_stats *stats = qp->shared->stats;
	uint32_t more;
	int rc;

	if (c->qp == qp) {
		rc = srq_claim_take(qp->srq, &c->claim, qp->wqe);
		stats->srq_claimed += rc == 0;
	} else {
		more = likely(c->qp == NULL && !c->off)
			       ? messages_behind(&qp->shared->burst, qp, v)
			       : 0;
		if (more == 0) {
			rc = srq_take_shared(qp->srq, qp->wqe);
			stats->srq_claim_missed += rc == 0;
			return rc;
		}
		rc = srq_claim(qp->srq, more, &c->claim, qp->wqe);
	}
	c->qp = c->claim.next != c->claim.count ? qp : NULL;
	return rc;
}

void RARE
claim_flush(struct qp *qp)
{
	struct qp_claim *c = qp->shared->claim;

	if (c->qp != qp)
		return;
	c->qp = NULL;
	while (c->claim.next != c->claim.count) {
		(void)recv_claim_take(&c->claim, qp->wqe);
		qp_complete_recv_error(
			qp, qp->wqe->wr_id, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
	}
}

void
claim_forget(struct qp *qp)
{
	struct qp_claim *c = qp->shared != NULL ? qp->shared->claim : NULL;

	/* No engine: it has no claim. */
	if (c == NULL || c->qp != qp)
		return;
	c->qp = NULL;
	c->claim.next = c->claim.count = 0;
}
