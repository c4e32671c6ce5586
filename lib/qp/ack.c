/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The responder's acknowledgements. At most one is pending, the newest: it covers all
 * before it (IBA 9.7.5.1). */
#include "qp/flight.h"
#include "qp/hold.h"
#include "qp/multipath.h"
#include "qp/resp.h"

void
resp_hole(struct qp *qp)
{
	struct responder *resp = &qp->resp;

	resp->wait = RESP_SEQ_NAK;
	resp->nak_high_psn = psn_add(resp->epsn, PSN_MASK);
	qp->aeth_pending = AETH_PENDING_SEQ_NAK;
	qp->stats.seq_nak_sent++;
	qp->shared->stats->seq_nak_sent++;
	flight_note(qp, FLIGHT_SEQ_NAK_DUE, resp->epsn, 0);
	qp_ext_ask(qp);
}

/* A PSN after ePSN: packets are missing (C9-108, C9-114). */
void
resp_out_of_sequence(struct qp *qp, const struct pkt_view *v)
{
	struct responder *resp = &qp->resp;

	if (resp->wait == RESP_RNR) {
		qp->shared->stats->drop[DROP_rnr_wait]++;
		return;
	}
	if (resp->wait != RESP_SEQ_NAK)
		resp_hole(qp);
	if (hold_add(qp, v)) {
		hold_sack_owe(qp, v->psn);
		return;
	}
	qp->shared->stats->drop[DROP_psn_gap]++;
	if (psn_diff(v->psn, resp->nak_high_psn) > 0)
		resp->nak_high_psn = v->psn;
}

/* A duplicate is not executed again but acknowledged again (C9-105). That is left to a
 * pending NAK, or to a pending acknowledgement or response with a later PSN. */
void
resp_duplicate(struct qp *qp, uint32_t psn)
{
	struct responder *resp = &qp->resp;
	uint32_t limit;

	qp->stats.duplicates++;
	qp->shared->stats->duplicates++;
	flight_note(qp, FLIGHT_DUPLICATE, psn, 0);
	if (unlikely(qp->multipath != 0))
		multipath_duplicate(qp);
	if (qp->aeth_pending != 0 && qp->aeth_pending != AETH_PENDING_ACK)
		return;
	limit = resp_ack_limit(qp, psn);
	if (qp->aeth_pending == AETH_PENDING_ACK && psn_diff(resp->ack_psn, limit) >= 0)
		return;
	if (resp_res_cover(qp, limit))
		return;
	qp->aeth_pending = AETH_PENDING_ACK;
	resp->ack_psn = limit;
}

void
resp_ack_build(struct qp *qp, struct pkt *pkt)
{
	struct responder *resp = &qp->resp;
	bool seq_nak = qp->aeth_pending == AETH_PENDING_SEQ_NAK;
	struct bth_fields bth =
		qp_bth(qp, seq_nak ? resp->epsn : resp->ack_psn, OPCODE_RC_ACKNOWLEDGE);

	aeth_put(frame_begin(&qp->hdr, pkt, &bth, 0), (uint8_t)(qp->aeth_pending - 1),
		resp->msn);
	frame_end(&qp->hdr, pkt, 0);
	qp->aeth_pending = 0;
}

/* Behind a pending NAK: what that acknowledges is not to be taken for missing. */
void RARE
resp_sack_build(struct qp *qp, struct pkt *pkt)
{
	struct bth_fields bth = {.dest_qpn = qp->dest_qpn,
		.psn = qp->resp.epsn,
		.pkey = qp->pkey,
		.opcode = OPCODE_SACK};
	struct seth *seth = (struct seth *)frame_begin(&qp->hdr, pkt, &bth, 0);

	hold_sack_take(qp, seth);
	frame_end(&qp->hdr, pkt, 0);
	qp->shared->stats->sack_sent++;
}
