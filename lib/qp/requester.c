/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending half of the requester (IBA 9.7.3, 9.7.5): gives requests their PSNs and
 * turns them into packets. A packet is a function of its request and PSN, so a retry only
 * moves next_psn back.
 */
#include <string.h>

#include <rte_byteorder.h>

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
		.probe_deadline = TIME_NEVER,
		.rtt_start = TIME_NEVER,
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
	/* Nothing behind una_psn is under way any more (psn is una_psn, but for a
	 * refusal). */
	if (psn == req->una_psn) {
		req->reads = 0;
		req->resync = true;
		req->rtt_start = TIME_NEVER;
	}
	req_account(qp);
}

/* What kinds of request there are: what they send, and how they are answered. */
enum wr_kind { WR_NONE, WR_SEND, WR_WRITE, WR_READ, WR_ATOMIC };

static const struct wr_row {
	uint8_t kind;
	bool imm;
} wr_rows[] = {
	[IBV_WR_SEND] = {WR_SEND, false},
	[IBV_WR_SEND_WITH_IMM] = {WR_SEND, true},
	[IBV_WR_RDMA_WRITE] = {WR_WRITE, false},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {WR_WRITE, true},
	[IBV_WR_RDMA_READ] = {WR_READ, false},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {WR_ATOMIC, false},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {WR_ATOMIC, false},
};

static const struct wr_row *
wr_row(const struct send_wqe *wqe)
{
	return &wr_rows[wqe->opcode];
}

/* A READ asks for so many packets at once: a part of the window, so that the next part is
 * under way while this one is answered, where the peer answers several. A power of two.
 */
uint32_t
req_read_chunk(const struct qp *qp)
{
	if (qp->max_rd_atomic < 2)
		return QP_WINDOW;
	return qp->max_rd_atomic < 4 ? QP_WINDOW / 2 : QP_WINDOW / 4;
}

/* Whether the request at next_idx may start or go on now (IBA 10.8.3.3, C9-91): a fence
 * waits for every READ and atomic before, and their number is limited. */
static bool
order_allows(const struct qp *qp)
{
	const struct requester *req = &qp->req;
	const struct send_wqe *wqe = sq_slot(&qp->sq, req->next_idx);

	if (likely(req->reads == 0))
		return true;
	if (wqe->flags & IBV_SEND_FENCE &&
		(req->next_idx == req->started_idx ||
			sq_note(&qp->sq, req->next_idx)->first_psn == req->next_psn))
		return false;
	return wr_row(wqe)->kind < WR_READ || req->reads < qp->max_rd_atomic;
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
	return has_request(qp, qp->req.next_idx) && order_allows(qp);
}

/* The request at next_idx cannot be sent: fails once those before it are done (C10-83).
 */
static void
refuse(struct qp *qp, enum ibv_wc_status status, enum qp_vendor_err vendor)
{
	struct requester *req = &qp->req;

	req->fail_status = (uint8_t)status;
	req->fail_idx = req->next_idx;
	req->fail_vendor = (uint8_t)vendor;
	if (req->next_idx == req->una_idx)
		comp_fail(qp, status, vendor);
}

/* Whether the memory of a request is ours to read, or to write the response to. */
static bool
memory_fits(
	const struct qp *qp, const struct send_wqe *wqe, unsigned kind, uint32_t packets)
{
	if (kind >= WR_READ)
		return sge_check(qp->env->keys, qp->pd, wqe->sge, wqe->num_sge,
			       IBV_ACCESS_LOCAL_WRITE) == 0;
	/* A message of several packets is checked whole before its first leaves; one of a
	 * single packet is checked by its copy. */
	return packets == 1 || (wqe->flags & IBV_SEND_INLINE) != 0 ||
	       sge_check(qp->env->keys, qp->pd, wqe->sge, wqe->num_sge, 0) == 0;
}

/* Gives the request at next_idx its PSNs, or says why it can never be sent. */
static enum ibv_wc_status
start(struct qp *qp)
{
	struct requester *req = &qp->req;
	const struct send_wqe *wqe = sq_slot(&qp->sq, req->next_idx);
	struct sq_note *note = sq_note(&qp->sq, req->next_idx);
	uint32_t packets = RTE_MAX((wqe->len + qp_pmtu(qp) - 1) >> qp->pmtu_shift, 1u);
	unsigned kind = wr_row(wqe)->kind;

	if (kind >= WR_READ && qp->max_rd_atomic == 0)
		return IBV_WC_LOC_QP_OP_ERR;
	if (kind == WR_ATOMIC)
		packets = 1;
	if (!memory_fits(qp, wqe, kind, packets))
		return IBV_WC_LOC_PROT_ERR;
	note->first_psn = req->next_psn;
	note->end_psn = psn_add(req->next_psn, packets);
	note->signaled = (wqe->flags & IBV_SEND_SIGNALED) != 0;
	note->answered = kind >= WR_READ;
	req->started_idx++;
	return IBV_WC_SUCCESS;
}

/* By kind, and whether the packet is the first and the last of its message. */
static uint8_t
data_opcode(const struct wr_row *row, bool first, bool last)
{
	static const uint8_t plain[2][2][2] = {
		{{OPCODE_RC_SEND_MIDDLE, OPCODE_RC_SEND_LAST},
			{OPCODE_RC_SEND_FIRST, OPCODE_RC_SEND_ONLY}},
		{{OPCODE_RC_WRITE_MIDDLE, OPCODE_RC_WRITE_LAST},
			{OPCODE_RC_WRITE_FIRST, OPCODE_RC_WRITE_ONLY}},
	};
	/* "With immediate" follows the plain one. */
	return plain[row->kind == WR_WRITE][first][last] + (row->imm && last ? 1 : 0);
}

static void
reth_fill(uint8_t *ext, const struct send_wqe *wqe, uint64_t offset, uint32_t len)
{
	struct reth *reth = (struct reth *)ext;

	reth->va = rte_cpu_to_be_64(wqe->remote_va + offset);
	reth->rkey = rte_cpu_to_be_32(wqe->rkey);
	reth->len = rte_cpu_to_be_32(len);
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

/* The packet next_psn has been built, and takes so many PSNs. */
static void
advance(struct qp *qp, uint32_t packets)
{
	struct requester *req = &qp->req;

	if (psn_diff(req->next_psn, req->sent_psn) < 0) {
		qp->stats.retransmitted++;
		qp->env->stats->retransmitted++;
	}
	req->next_psn = psn_add(req->next_psn, packets);
	req->pos_psn = req->next_psn;
	if (psn_diff(req->next_psn, req->sent_psn) > 0)
		req->sent_psn = req->next_psn;
	if (req->next_psn == sq_note(&qp->sq, req->next_idx)->end_psn)
		req->next_idx++;
}

/* A packet of a SEND or WRITE; see build(). */
static bool
build_data(struct qp *qp, const struct send_wqe *wqe, uint32_t index, struct pkt *pkt,
	bool final)
{
	struct requester *req = &qp->req;
	uint64_t offset = (uint64_t)index << qp->pmtu_shift;
	uint32_t left = (uint32_t)(wqe->len - offset);
	uint32_t len = RTE_MIN(left, qp_pmtu(qp));
	bool last = left == len;
	bool rc = qp->type == IBV_QPT_RC;
	uint8_t service = rc ? 0 : SERVICE_UC << 5; /* the opcodes are RC's but for it */
	struct bth_fields bth = {
		.dest_qpn = qp->dest_qpn,
		.psn = req->next_psn,
		.pkey = qp->pkey,
		.opcode = data_opcode(wr_row(wqe), index == 0, last) | service,
		.solicited = last && (wqe->flags & IBV_SEND_SOLICITED) != 0 &&
			     wqe->opcode != IBV_WR_RDMA_WRITE,
		.ack_req =
			rc && (final || (last && (wqe->flags & IBV_SEND_SIGNALED)) ||
				      (req->next_psn & (ACK_EVERY - 1)) == ACK_EVERY - 1),
	};
	uint8_t *ext = frame_begin(&qp->hdr, pkt, &bth, len);
	const struct op_row *op = &op_rows[bth.opcode];
	uint32_t crc;

	if (op->hdrs & HDR_RETH)
		reth_fill(ext, wqe, 0, wqe->len);
	if (op->hdrs & HDR_IMM)
		memcpy(ext + op->ext_len - sizeof(wqe->imm), &wqe->imm, sizeof(wqe->imm));
	crc = frame_crc(&qp->hdr, pkt);
	if (len != 0 && copy_payload(qp, wqe, offset,
				frame_payload(&qp->hdr, pkt, bth.opcode), len, &crc) != 0)
		return false;
	frame_end(pkt, len, crc);
	advance(qp, 1);
	if (unlikely(!rc))
		uc_sent(qp);
	return true;
}

/* The READ request for the packets from index on to the end of its chunk. */
static void
build_read(struct qp *qp, const struct send_wqe *wqe, uint32_t index, struct pkt *pkt)
{
	struct requester *req = &qp->req;
	uint32_t chunk = req_read_chunk(qp);
	uint64_t offset = (uint64_t)index << qp->pmtu_shift;
	uint64_t end = (uint64_t)((index | (chunk - 1)) + 1) << qp->pmtu_shift;
	uint32_t len = (uint32_t)(RTE_MIN(end, (uint64_t)wqe->len) - offset);
	struct bth_fields bth = {
		.dest_qpn = qp->dest_qpn,
		.psn = req->next_psn,
		.pkey = qp->pkey,
		.opcode = OPCODE_RC_READ_REQUEST,
		.ack_req = true,
	};

	reth_fill(frame_begin(&qp->hdr, pkt, &bth, 0), wqe, offset, len);
	frame_end(pkt, 0, frame_crc(&qp->hdr, pkt));
	req->reads++;
	advance(qp, RTE_MAX((len + qp_pmtu(qp) - 1) >> qp->pmtu_shift, 1u));
}

static void
build_atomic(struct qp *qp, const struct send_wqe *wqe, struct pkt *pkt)
{
	struct requester *req = &qp->req;
	bool add = wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct bth_fields bth = {
		.dest_qpn = qp->dest_qpn,
		.psn = req->next_psn,
		.pkey = qp->pkey,
		.opcode = add ? OPCODE_RC_FETCH_ADD : OPCODE_RC_COMPARE_SWAP,
		.ack_req = true,
	};
	struct atomic_eth *eth = (struct atomic_eth *)frame_begin(&qp->hdr, pkt, &bth, 0);

	eth->va = rte_cpu_to_be_64(wqe->remote_va);
	eth->rkey = rte_cpu_to_be_32(wqe->rkey);
	/* ibv_post_send(3): compare_add is what to compare with, or what to add. */
	eth->swap_add = rte_cpu_to_be_64(add ? wqe->compare_add : wqe->swap);
	eth->compare = rte_cpu_to_be_64(add ? 0 : wqe->compare_add);
	frame_end(pkt, 0, frame_crc(&qp->hdr, pkt));
	req->reads++;
	advance(qp, 1);
}

/* Builds the packet next_psn of the started request next_idx. final: the pull ends with
 * it, so it asks for an acknowledgement of all before. False when its memory is not ours
 * to read. */
static bool
build(struct qp *qp, struct pkt *pkt, bool final)
{
	const struct requester *req = &qp->req;
	const struct send_wqe *wqe = sq_slot(&qp->sq, req->next_idx);
	uint32_t index =
		(req->next_psn - sq_note(&qp->sq, req->next_idx)->first_psn) & PSN_MASK;
	unsigned kind = wr_row(wqe)->kind;

	if (likely(kind < WR_READ))
		return build_data(qp, wqe, index, pkt, final);
	if (kind == WR_READ)
		build_read(qp, wqe, index, pkt);
	else
		build_atomic(qp, wqe, pkt);
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

/* Whether the windows still allow one: a READ takes many PSNs at once, and may exceed
 * them by what is left of it. */
static bool
window_open(const struct qp *qp)
{
	uint32_t used = (qp->req.next_psn - qp->req.una_psn) & PSN_MASK;

	return used < QP_WINDOW &&
	       (qp->peer == NULL ||
		       qp->peer->inflight + used - qp->req.unacked < qp->peer->window);
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
 * need. A READ or an atomic is answered anyway. */
static void
ask_after_all(struct qp *qp, struct pkt *pkt)
{
	struct requester *req = &qp->req;
	uint32_t psn = psn_add(req->next_psn, PSN_MASK);
	uint32_t idx = req->next_idx;

	if (idx == req->started_idx || sq_note(&qp->sq, idx)->first_psn == req->next_psn)
		idx--;
	if (sq_note(&qp->sq, idx)->answered)
		return;
	if (req->sent_psn == req->next_psn)
		req->sent_psn = psn; /* it has not been sent yet */
	req_rollback(qp, psn);
	build(qp, pkt, true); /* works again: nothing has changed since */
}

/* A copy of the packet una_psn, of a SEND or WRITE; the one at next_psn stays the next.
 * How many packets that made: none where its memory is gone, which the resending finds
 * out. */
static unsigned
resend_oldest(struct qp *qp, struct pkt *pkt)
{
	struct requester *req = &qp->req;
	uint32_t idx = req->next_idx, psn = req->next_psn;
	bool built;

	req->next_idx = req->una_idx;
	req->next_psn = req->una_psn;
	built = build(qp, pkt, true);
	req->next_idx = idx;
	req->next_psn = psn;
	req->probe = built ? PROBE_SENT : PROBE_OFF;
	return built;
}

unsigned
req_tx(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now)
{
	struct requester *req = &qp->req;
	uint32_t sent = req->sent_psn;
	unsigned built = 0;

	if ((qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD) ||
		req->rnr_deadline != TIME_NEVER || n == 0)
		return 0;
	if (unlikely(req->probe == PROBE_DUE))
		built = resend_oldest(qp, pkts);
	n = RTE_MIN(n, built + window_left(qp));
	while (built < n && window_open(qp) && req_has_next(qp)) {
		enum ibv_wc_status status = IBV_WC_SUCCESS;

		if (req->next_idx == req->started_idx)
			status = start(qp);
		if (status == IBV_WC_SUCCESS &&
			!build(qp, &pkts[built], built + 1 == n || is_tail(qp)))
			status = IBV_WC_LOC_PROT_ERR;
		if (unlikely(status != IBV_WC_SUCCESS)) {
			if (built != 0 && qp->type == IBV_QPT_RC)
				ask_after_all(qp, &pkts[built - 1]);
			refuse(qp, status,
				status == IBV_WC_LOC_PROT_ERR ? VENDOR_SEND_SGE
							      : VENDOR_DEPTH);
			break;
		}
		built++;
	}
	req_account(qp);
	if (built == 0 || qp->type != IBV_QPT_RC)
		return built;
	if (req->ack_deadline == TIME_NEVER && qp->timeout != 0)
		req->ack_deadline = now + req_timeout_ns(qp);
	probe_sent(qp, sent, now);
	return built;
}
