/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending half of the requester (IBA 9.7.3, 9.7.5): gives requests their PSNs and
 * turns them into packets. A packet is a function of its request and PSN, so a retry only
 * moves next_psn back.
 */
#include <string.h>

#include "qp/internal.h"

#define ACK_EVERY (QP_WINDOW / 4) /* packets: AckReq inside long messages */

void
req_reset(struct qp *qp, uint32_t psn)
{
	/* The SQ's indices live on: requests posted in SQD survive no RESET, but RTS with
	 * a new PSN follows RTR, where nothing can have been posted. */
	uint32_t idx = sq_posted(&qp->sq);

	assert(qp->req.unacked == 0);
	qp->req = (struct requester){
		.una_idx = idx,
		.next_idx = idx,
		.started_idx = idx,
		.una_psn = psn,
		.next_psn = psn,
		.sent_psn = psn,
		.pos_psn = psn,
		.ack_deadline = TIME_NEVER,
		.rnr_deadline = TIME_NEVER,
		.retry_left = qp->retry_cnt,
		.rnr_left = qp->rnr_retry,
	};
}

void
req_account(struct qp *qp)
{
	uint32_t unacked = (qp->req.next_psn - qp->req.una_psn) & PSN_MASK;

	if (qp->peer != NULL)
		qp->peer->inflight += unacked - qp->req.unacked;
	qp->req.unacked = unacked;
}

/* Tr = 4.096 us * 2^timeout (C9-141). */
uint64_t
req_timeout_ns(const struct qp *qp)
{
	return UINT64_C(4096) << qp->timeout;
}

void
req_rollback(struct qp *qp, uint32_t psn)
{
	struct requester *req = &qp->req;
	uint32_t idx = req->una_idx;

	while (idx != req->started_idx && note_before(sq_note(&qp->sq, idx), psn))
		idx++;
	req->next_idx = idx;
	req->next_psn = psn;
	req_account(qp);
}

/* Whether there is a request at idx (next_idx or the one behind it) to be sent. */
static bool
has_request(const struct qp *qp, uint32_t idx)
{
	const struct requester *req = &qp->req;

	if (req->fail_status != 0 && idx == req->fail_idx)
		return false;
	if (idx != req->started_idx)
		return true;
	/* SQD finishes what was started and begins nothing (IBA 10.3.1.5). */
	return qp->state == IBV_QPS_RTS && idx != sq_posted(&qp->sq);
}

bool
req_has_next(const struct qp *qp)
{
	return has_request(qp, qp->req.next_idx);
}

/* The request at next_idx cannot be sent: fails once those before it are done (C10-83).
 */
static void
refuse(struct qp *qp, enum ibv_wc_status status, enum qp_vendor_err vendor)
{
	struct requester *req = &qp->req;

	req->fail_status = (uint8_t)status;
	req->fail_idx = req->next_idx;
	req->fail_vendor = vendor;
	if (req->next_idx == req->una_idx)
		comp_fail(qp, status, vendor);
}

/* Gives the request at next_idx its PSNs; false when its memory is not ours to read. */
static bool
start(struct qp *qp)
{
	struct requester *req = &qp->req;
	const struct send_wqe *wqe = sq_slot(&qp->sq, req->next_idx);
	struct sq_note *note = sq_note(&qp->sq, req->next_idx);
	uint32_t packets = RTE_MAX((wqe->len + qp_pmtu(qp) - 1) >> qp->pmtu_shift, 1u);

	/* A message of several packets is checked whole before its first leaves; one of a
	 * single packet is checked by its copy. */
	if (packets > 1 && (wqe->flags & IBV_SEND_INLINE) == 0 &&
		sge_check(qp->env->keys, qp->pd, wqe->sge, wqe->num_sge, 0) != 0)
		return false;
	note->first_psn = req->next_psn;
	note->end_psn = psn_add(req->next_psn, packets);
	note->signaled = (wqe->flags & IBV_SEND_SIGNALED) != 0;
	req->started_idx++;
	return true;
}

static uint8_t
send_opcode(const struct send_wqe *wqe, bool first, bool last)
{
	static const uint8_t plain[2][2] = {
		{OPCODE_RC_SEND_MIDDLE, OPCODE_RC_SEND_LAST},
		{OPCODE_RC_SEND_FIRST, OPCODE_RC_SEND_ONLY},
	};
	bool imm = wqe->opcode == IBV_WR_SEND_WITH_IMM;

	if (imm && last)
		return first ? OPCODE_RC_SEND_ONLY_IMM : OPCODE_RC_SEND_LAST_IMM;
	return plain[first][last];
}

/* Payload bytes [offset, offset + len) of the message to dst, adding to the ICRC. */
static int
copy_payload(struct qp *qp, const struct send_wqe *wqe, uint64_t offset, uint8_t *dst,
	uint32_t len, uint32_t *crc)
{
	struct requester *req = &qp->req;

	if (wqe->flags & IBV_SEND_INLINE) {
		memcpy(dst, wqe->inline_data + offset, len);
		*crc = icrc_update(*crc, dst, len);
		return 0;
	}
	if (offset == 0)
		req->pos = (struct sge_pos){0};
	else if (req->pos_psn != req->next_psn)
		req->pos = sge_seek(wqe->sge, wqe->num_sge, offset);
	return sge_gather(
		qp->env->keys, qp->pd, wqe->sge, wqe->num_sge, &req->pos, dst, len, crc);
}

static void
advance(struct qp *qp, bool last)
{
	struct requester *req = &qp->req;

	if (psn_diff(req->next_psn, req->sent_psn) < 0) {
		qp->stats.retransmitted++;
		qp->env->stats->retransmitted++;
	}
	req->next_psn = psn_add(req->next_psn, 1);
	req->pos_psn = req->next_psn;
	if (psn_diff(req->next_psn, req->sent_psn) > 0)
		req->sent_psn = req->next_psn;
	if (last)
		req->next_idx++;
}

/* Builds the packet next_psn of the started request next_idx. final: the pull ends with
 * it, so it asks for an acknowledgement of all before. False when its memory is not ours
 * to read. */
static bool
build(struct qp *qp, struct pkt *pkt, bool final)
{
	struct requester *req = &qp->req;
	const struct send_wqe *wqe = sq_slot(&qp->sq, req->next_idx);
	uint32_t index =
		(req->next_psn - sq_note(&qp->sq, req->next_idx)->first_psn) & PSN_MASK;
	uint64_t offset = (uint64_t)index << qp->pmtu_shift;
	uint32_t left = (uint32_t)(wqe->len - offset);
	uint32_t len = RTE_MIN(left, qp_pmtu(qp));
	bool last = left == len;
	struct bth_fields bth = {
		.dest_qpn = qp->dest_qpn,
		.psn = req->next_psn,
		.pkey = qp->pkey,
		.opcode = send_opcode(wqe, index == 0, last),
		.solicited = last && (wqe->flags & IBV_SEND_SOLICITED) != 0,
		.ack_req = final || (last && (wqe->flags & IBV_SEND_SIGNALED) != 0) ||
			   (req->next_psn & (ACK_EVERY - 1)) == ACK_EVERY - 1,
	};
	uint8_t *ext = frame_begin(&qp->hdr, pkt, &bth, len);
	uint32_t crc;

	if (op_rows[bth.opcode].hdrs & HDR_IMM)
		memcpy(ext, &wqe->imm, sizeof(wqe->imm));
	crc = frame_crc(&qp->hdr, pkt);
	if (len != 0 && copy_payload(qp, wqe, offset,
				frame_payload(&qp->hdr, pkt, bth.opcode), len, &crc) != 0)
		return false;
	frame_end(pkt, len, crc);
	advance(qp, last);
	return true;
}

/* How many packets the windows allow now. */
static unsigned
window_left(const struct qp *qp)
{
	uint32_t used = (qp->req.next_psn - qp->req.una_psn) & PSN_MASK;
	uint32_t left = used < QP_WINDOW ? QP_WINDOW - used : 0;

	if (qp->peer != NULL) {
		uint32_t peer = qp->peer->inflight < qp->peer->window
					? qp->peer->window - qp->peer->inflight
					: 0;

		left = RTE_MIN(left, peer);
	}
	return left;
}

/* Whether nothing can follow the packet about to be built, but for limits. */
static bool
is_tail(const struct qp *qp)
{
	const struct requester *req = &qp->req;

	return psn_add(req->next_psn, 1) == sq_note(&qp->sq, req->next_idx)->end_psn &&
	       !has_request(qp, req->next_idx + 1);
}

/* The packet before next_psn, built last, once more: it did not know that nothing
 * follows, so it did not ask for the acknowledgement that the requests before a bad one
 * need. */
static void
ask_after_all(struct qp *qp, struct pkt *pkt)
{
	struct requester *req = &qp->req;
	uint32_t psn = psn_add(req->next_psn, PSN_MASK);

	if (req->sent_psn == req->next_psn)
		req->sent_psn = psn; /* it has not been sent yet */
	req_rollback(qp, psn);
	build(qp, pkt, true); /* works again: nothing has changed since */
}

unsigned
req_tx(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now)
{
	struct requester *req = &qp->req;
	unsigned built = 0;

	if ((qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD) ||
		req->rnr_deadline != TIME_NEVER)
		return 0;
	n = RTE_MIN(n, window_left(qp));
	while (built < n && req_has_next(qp)) {
		if ((req->next_idx == req->started_idx && !start(qp)) ||
			!build(qp, &pkts[built], built + 1 == n || is_tail(qp))) {
			if (built != 0)
				ask_after_all(qp, &pkts[built - 1]);
			refuse(qp, IBV_WC_LOC_PROT_ERR, VENDOR_SEND_SGE);
			break;
		}
		built++;
	}
	req_account(qp);
	if (built != 0 && req->ack_deadline == TIME_NEVER && qp->timeout != 0)
		req->ack_deadline = now + req_timeout_ns(qp);
	return built;
}
