/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Drafts: the packet of a SEND that has not been posted yet, but most likely will be, complete
 * but for its payload. Between post and port there is then little more than a copy and its part
 * of the ICRC. What a request must be for that is checked when it is there; anything else takes
 * the way of all requests (requester.c, req_build.c), which packs the same bytes.
 */
#include "qp/ball.h"
#include "qp/qp_internal.h"

bool
qp_draft(struct qp *qp, struct qp_draft *draft, uint32_t len)
{
	struct bth_fields bth = {
		.dest_qpn = qp->dest_qpn,
		.psn = qp->req.next_psn,
		.pkey = qp->pkey,
		.opcode = OPCODE_RC_SEND_ONLY,
		.ack_req = true,
	};

	if (qp->type != IBV_QPT_RC || len == 0 || len > qp_pmtu(qp))
		return false;
	frame_begin(&qp->hdr, &draft->pkt, &bth, len);
	draft->crc = frame_head_end(&qp->hdr, &draft->pkt);
	draft->payload = frame_payload(&qp->hdr, &draft->pkt, OPCODE_RC_SEND_ONLY);
	draft->psn = bth.psn;
	draft->len = len;
	return true;
}

/* Whether the QP would send one packet now, for the first time, which is the draft's. */
static bool
is_next(const struct qp *qp, const struct qp_draft *draft)
{
	const struct requester *req = &qp->req;

	return qp->state == IBV_QPS_RTS && req->next_psn == draft->psn &&
	       req->sent_psn == draft->psn && req->next_idx == req->started_idx &&
	       sq_posted(&qp->sq) == req->next_idx + 1 &&
	       (req->reads | req->tlp_state | req->fail_status) == 0 &&
	       req->rnr_deadline == TIME_NEVER && req_below_max_unacked(qp) &&
	       !qp_peer_full(qp) && !qp_peer_has_many_qps(qp);
}

/* Whether the request is the one that was expected. Its flags: in every draft an
 * acknowledgement is asked for, in none an event. */
static bool
is_expected(const struct send_wqe *wqe, const struct qp_draft *draft)
{
	return wqe->opcode == IBV_WR_SEND && wqe->len == draft->len &&
	       (wqe->flags & ~(IBV_SEND_SIGNALED | IBV_SEND_INLINE)) == 0;
}

/* Its payload into the draft; -EACCES. */
static int
copy_payload(
	const struct qp *qp, const struct send_wqe *wqe, const struct qp_draft *draft)
{
	struct sge_pos pos = {0};

	if (wqe->flags & IBV_SEND_INLINE) {
		memcpy(draft->payload, wqe->inline_data, draft->len);
		return 0;
	}
	return sge_gather(qp->shared->keys, qp->pd, wqe->sge, wqe->num_sge, &pos,
		draft->payload, draft->len, NULL);
}

bool
qp_draft_fill(const struct qp *qp, struct qp_draft *draft)
{
	const struct send_wqe *wqe = sq_slot(&qp->sq, qp->req.next_idx);

	if (unlikely(!is_next(qp, draft) || !is_expected(wqe, draft) ||
		     copy_payload(qp, wqe, draft) != 0))
		return false;
	frame_payload_end(&draft->pkt, draft->len, draft->crc);
	return true;
}

void
qp_draft_sent(struct qp *qp, const struct qp_draft *draft, uint64_t now)
{
	struct requester *req = &qp->req;

	req_take_psns(qp, sq_slot(&qp->sq, req->next_idx), 1);
	req->next_idx++;
	req->next_psn = req->pos_psn = req->sent_psn = psn_add(draft->psn, 1);
	req->ackreq_sent = true;
	qp->stats.tx_packets++;
	req_sent(qp, draft->psn, now);
}
