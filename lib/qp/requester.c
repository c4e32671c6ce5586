/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending half of the requester (IBA 9.7.3, 9.7.5): assigns PSNs to requests and
 * decides what may be sent when. A packet is a function of its request and PSN
 * (req_build.c), so a retry only moves next_psn back.
 */
#include "qp/qp_internal.h"

void
req_reset(struct qp *qp, uint32_t psn)
{
	/* Starts at the SQ's present index. That skips no posted request: RESET has
	 * discarded them all, and RTR -> RTS, which sets a new PSN, follows a state in
	 * which nothing can be posted. */
	uint32_t idx = sq_posted(&qp->sq);

	assert(qp->req.unacked == 0 && qp->req.piggybacked == 0);
	qp->req = (struct requester){
		.una_idx = idx,
		.next_idx = idx,
		.started_idx = idx,
		.una_psn = psn,
		.next_psn = psn,
		.sent_psn = psn,
		.pos_psn = psn,
		.suppressed_psn = psn,
		.ack_deadline = TIME_NEVER,
		.rnr_deadline = TIME_NEVER,
		.tlp_deadline = TIME_NEVER,
		.rtt_start = TIME_NEVER,
		.retry_left = qp->params.retry_cnt,
		.rnr_left = qp->params.rnr_retry,
	};
}

void
req_account(struct qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t unacked = req_charge(qp);

	if (qp->peer != NULL)
		peer_charge(qp->peer, req->unacked, unacked);
	req->unacked = (uint16_t)unacked;
	/* Keeps the difference of the two far below half of the PSN space. */
	if (likely(psn_diff(req->suppressed_psn, req->una_psn) <= 0))
		req->suppressed_psn = req->una_psn;
	if (unlikely(req->piggybacked != 0) &&
		psn_diff(req->piggyback_psn, req->una_psn) <= 0)
		ackreq_release(qp);
}

void
qp_set_peer(struct qp *qp, struct peer *peer)
{
	if (qp->peer != NULL) {
		if (qp->req.piggybacked != 0)
			ackreq_release(qp);
		peer_charge(qp->peer, qp->req.unacked, 0);
	}
	qp->peer = peer;
	if (peer != NULL)
		peer_charge(peer, 0, qp->req.unacked);
}

/* Tr = 4.096 us * 2^timeout (C9-141). */
uint64_t
req_timeout_ns(const struct qp *qp)
{
	return UINT64_C(4096) << qp->params.timeout;
}

void
req_rollback(struct qp *qp, uint32_t psn)
{
	struct requester *req = &qp->req;
	uint32_t idx = req->una_idx;

	while (idx != req->started_idx &&
		psn_range_before(sq_psn_range(&qp->sq, idx), psn))
		idx++;
	req->next_idx = idx;
	req->next_psn = psn;
	ackreq_count_all(qp);
	/* Packets sent from una_psn on no longer count as sent. Only
	 * rebuild_with_ackreq() rolls back to another PSN than una_psn. */
	if (psn == req->una_psn) {
		req->reads = 0;
		req->read_restart = true;
		req->rtt_start = TIME_NEVER;
	}
	req_account(qp);
}

/* Packets that one READ request asks for, a power of two. If the peer answers several
 * READs at once it is a part of QP_MAX_UNACKED, so that the next part is requested while
 * the peer answers this one. */
uint32_t
req_read_chunk(const struct qp *qp)
{
	if (qp->params.max_rd_atomic < 2)
		return QP_MAX_UNACKED;
	return qp->params.max_rd_atomic < 4 ? QP_MAX_UNACKED / 2 : QP_MAX_UNACKED / 4;
}

/* True if the request at next_idx may start or continue now. A fenced request starts only
 * when every READ and atomic before it is answered, and the number of those is limited
 * (IBA 10.8.3.3, C9-91). */
static bool
order_allows(const struct qp *qp)
{
	const struct requester *req = &qp->req;
	const struct send_wqe *wqe = sq_slot(&qp->sq, req->next_idx);

	if (likely(req->reads == 0))
		return true;
	if (wqe->flags & IBV_SEND_FENCE &&
		(req->next_idx == req->started_idx ||
			sq_psn_range(&qp->sq, req->next_idx)->first_psn == req->next_psn))
		return false;
	return !wr_has_response(wr_row(wqe)->kind) ||
	       req->reads < qp->params.max_rd_atomic;
}

/* True if there is a request to send at idx (next_idx or the one after it). */
static bool
has_request(const struct qp *qp, uint32_t idx)
{
	const struct requester *req = &qp->req;

	if (req->fail_status != 0 && idx == req->fail_idx)
		return false;
	if (idx != req->started_idx)
		return true;
	/* SQD finishes started requests and starts none (IBA 10.3.1.5). */
	return qp->state == IBV_QPS_RTS && idx != sq_posted(&qp->sq);
}

bool
req_has_next(const struct qp *qp)
{
	return has_request(qp, qp->req.next_idx) && order_allows(qp);
}

/* The request at next_idx cannot be sent: it fails once those before it are done
 * (C10-83). */
static void RARE
req_mark_failed(struct qp *qp, enum ibv_wc_status status, enum qp_vendor_err vendor)
{
	struct requester *req = &qp->req;

	req->fail_status = (uint8_t)status;
	req->fail_idx = req->next_idx;
	req->fail_vendor = (uint8_t)vendor;
	if (req->next_idx == req->una_idx)
		comp_fail(qp, status, vendor);
}

static enum qp_vendor_err
vendor_err_of(unsigned status)
{
	if (status == IBV_WC_MW_BIND_ERR)
		return VENDOR_MEMORY_WINDOW;
	return status == IBV_WC_LOC_PROT_ERR ? VENDOR_SEND_SGE : VENDOR_DEPTH;
}

/* True if the QP may read the memory of a request, or write its response there. */
static bool
memory_granted(
	const struct qp *qp, const struct send_wqe *wqe, unsigned kind, uint32_t packets)
{
	if (kind == WR_READ || kind == WR_ATOMIC)
		return sge_check(qp->shared->keys, qp->pd, wqe->sge, wqe->num_sge,
			       IBV_ACCESS_LOCAL_WRITE) == 0;
	/* A message of several packets is checked as a whole before its first packet is
	 * sent. A single packet is checked by its copy. */
	return packets == 1 || (wqe->flags & IBV_SEND_INLINE) != 0 ||
	       sge_check(qp->shared->keys, qp->pd, wqe->sge, wqe->num_sge, 0) == 0;
}

/* Assigns this number of PSNs to the request at next_idx. */
static void
req_take_psns(struct qp *qp, const struct send_wqe *wqe, uint32_t packets)
{
	struct requester *req = &qp->req;
	struct psn_range *range = sq_psn_range(&qp->sq, req->next_idx);
	uint32_t end = psn_add(req->next_psn, packets);

	if (wqe->flags & IBV_SEND_SIGNALED)
		end |= PSN_RANGE_SIGNALED;
	if (wr_has_response(wr_row(wqe)->kind))
		end |= PSN_RANGE_NEEDS_RESPONSE;
	range->first_psn = req->next_psn;
	/* Atomic, so that the compiler does not merge both members into one vector store:
	 * the next load of this one would stall on it. */
	__atomic_store_n(&range->end, end, __ATOMIC_RELAXED);
	req->started_idx++;
}

/* Returned by req_start() instead of a status: the request was a local operation, and was
 * executed. */
#define START_LOCAL 0x100

/* Executes the local operation at next_idx. It completes in queue order. */
static unsigned RARE
req_start_local(struct qp *qp, const struct send_wqe *wqe)
{
	struct requester *req = &qp->req;
	enum ibv_wc_status status = local_execute(qp, wqe);

	if (status != IBV_WC_SUCCESS)
		return status;
	req_take_psns(qp, wqe, 0);
	req->next_idx++;
	if (req->una_idx + 1 == req->next_idx && !comp_oldest(qp))
		qp_error(qp);
	return START_LOCAL;
}

/* Assigns PSNs to the request at next_idx. Returns IBV_WC_SUCCESS, START_LOCAL, or the
 * status with which the request fails. */
static unsigned
req_start(struct qp *qp)
{
	struct requester *req = &qp->req;
	const struct send_wqe *wqe = sq_slot(&qp->sq, req->next_idx);
	uint32_t packets = RTE_MAX((wqe->len + qp_pmtu(qp) - 1) >> qp->pmtu_shift, 1u);
	unsigned kind = wr_row(wqe)->kind;

	if (kind >= WR_READ) {
		if (kind >= WR_LOCAL_INV)
			return req_start_local(qp, wqe);
		if (qp->params.max_rd_atomic == 0)
			return IBV_WC_LOC_QP_OP_ERR;
		if (kind != WR_READ)
			packets = 1;
	}
	if (!memory_granted(qp, wqe, kind, packets))
		return IBV_WC_LOC_PROT_ERR;
	req_take_psns(qp, wqe, packets);
	return IBV_WC_SUCCESS;
}

/* Packets that the limit of the QP and the peer window allow now. */
static unsigned
window_left(const struct qp *qp)
{
	uint32_t used = (qp->req.next_psn - qp->req.una_psn) & PSN_MASK;
	uint32_t left = used < QP_MAX_UNACKED ? QP_MAX_UNACKED - used : 0;

	return qp->peer != NULL ? RTE_MIN(left, peer_room(qp->peer)) : left;
}

/* True if both limits allow another packet. A READ takes many PSNs at once and may exceed
 * them by the rest of its PSNs. */
static bool
window_open(const struct qp *qp)
{
	return req_below_max_unacked(qp) &&
	       (qp->peer == NULL ||
		       peer_has_room_after(qp->peer, qp->req.unacked, req_charge(qp)));
}

/* True if nothing follows the packet about to be built, whatever the limits allow. */
static bool
is_tail(const struct qp *qp)
{
	const struct requester *req = &qp->req;
	uint32_t idx = req->next_idx + 1;

	if (psn_add(req->next_psn, 1) !=
		psn_range_end(sq_psn_range(&qp->sq, req->next_idx)))
		return false;
	/* During a resend: local operations that follow were executed before and only
	 * wait for this request. */
	while (unlikely(idx != req->started_idx) &&
		psn_range_is_local(sq_psn_range(&qp->sq, idx)))
		idx++;
	return !has_request(qp, idx);
}

/* Rebuilds the packet before next_psn, which was built last, with AckReq. An invalid
 * request, a local operation or a fenced request follows and waits for an acknowledgement
 * of this packet. That was not known when it was built. A READ or an atomic is answered
 * anyway. */
static void RARE
rebuild_with_ackreq(struct qp *qp, struct pkt *pkt)
{
	struct requester *req = &qp->req;
	uint32_t psn = psn_add(req->next_psn, PSN_MASK); /* next_psn - 1 */
	uint32_t idx = req->next_idx;

	if (idx == req->started_idx ||
		sq_psn_range(&qp->sq, idx)->first_psn == req->next_psn) {
		do
			idx--;
		while (psn_range_is_local(sq_psn_range(&qp->sq, idx)));
	}
	if (psn_range_needs_response(sq_psn_range(&qp->sq, idx)))
		return;
	if (req->sent_psn == req->next_psn)
		req->sent_psn = psn; /* it has not been sent yet */
	req_rollback(qp, psn);
	req_build(qp, pkt, true); /* cannot fail: nothing has changed since */
}

/* Builds a copy of packet una_psn, of a SEND or WRITE. next_psn does not move. Returns 1,
 * or 0 if the QP may no longer read the packet's memory. A resend then reports the error:
 * the one after the ACK timeout, or, if no AckReq is outstanding, one that starts
 * here. */
static unsigned RARE
tlp_build(struct qp *qp, struct pkt *pkt)
{
	struct requester *req = &qp->req;
	uint32_t idx = req->next_idx, psn = req->next_psn;
	bool built;

	assert(!psn_range_needs_response(sq_psn_range(&qp->sq, req->una_idx)));
	req->next_idx = req->una_idx;
	req->next_psn = req->una_psn;
	built = req_build(qp, pkt, true);
	req->next_idx = idx;
	req->next_psn = psn;
	req->tlp_state = built ? TLP_SENT : TLP_OFF;
	if (!built && req_awaits_no_ack(qp))
		req_rollback(qp, req->una_psn);
	return built;
}

/* Accounts for the packets sent and starts the timers. sent_psn: its value before they
 * were built. */
static void
req_sent(struct qp *qp, uint32_t sent_psn, uint64_t now)
{
	struct requester *req = &qp->req;

	if (unlikely(!req->ackreq_sent)) {
		ackreq_suppress(qp, now);
		return;
	}
	if (qp->peer != NULL && unlikely(qp->peer->suppressed != 0))
		ackreq_piggyback(qp);
	req_account(qp);
	if (req->ack_deadline == TIME_NEVER && qp->params.timeout != 0)
		req->ack_deadline = now + req_timeout_ns(qp);
	tlp_sent(qp, sent_psn, now);
}

/* The request at next_idx needs an acknowledgement of all packets sent before it. pkt:
 * the packet before next_psn if this burst has built it, else NULL. */
static void RARE
request_ack_before(struct qp *qp, struct pkt *pkt)
{
	if (!qp_reliable(qp))
		return;
	if (pkt != NULL)
		rebuild_with_ackreq(qp, pkt);
	else
		tlp_request_ack(qp);
}

unsigned
req_tx(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now)
{
	struct requester *req = &qp->req;
	uint32_t sent_psn = req->sent_psn;
	unsigned built = 0, first = 0;
	bool more, suppress = false;

	if ((qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD) ||
		req->rnr_deadline != TIME_NEVER || n == 0)
		return 0;
	if (unlikely(qp_peer_has_many_qps(qp)))
		suppress = ackreq_can_suppress(qp);
	if (unlikely(req->tlp_state == TLP_DUE))
		first = built = tlp_build(qp, pkts);
	n = RTE_MIN(n, built + window_left(qp));
	more = has_request(qp, req->next_idx);
	/* n counts packets of one PSN each; a READ takes more. */
	while (more && built < n &&
		(likely(req->reads == 0) || (window_open(qp) && order_allows(qp)))) {
		unsigned status = IBV_WC_SUCCESS;

		if (req->next_idx == req->started_idx)
			status = req_start(qp);
		more = status == IBV_WC_SUCCESS && !is_tail(qp);
		if (status == IBV_WC_SUCCESS &&
			!req_build(qp, &pkts[built],
				(built + 1 == n || !more) && likely(!suppress)))
			status = IBV_WC_LOC_PROT_ERR;
		if (unlikely(status != IBV_WC_SUCCESS)) {
			request_ack_before(qp, built != first ? &pkts[built - 1] : NULL);
			if (status == START_LOCAL) {
				more = has_request(qp, req->next_idx);
				continue;
			}
			req_mark_failed(
				qp, (enum ibv_wc_status)status, vendor_err_of(status));
			break;
		}
		built++;
		/* is_tail() does not cover a READ, whose one packet takes many PSNs, nor
		 * a UC QP whose CQ has overflowed since. */
		if (unlikely(req->reads != 0 || qp->type == IBV_QPT_UC))
			more = has_request(qp, req->next_idx);
	}
	/* A fence blocks the next request. The packet built last was not known to be the
	 * last one. */
	if (unlikely(req->reads != 0) && built != first && built < n &&
		has_request(qp, req->next_idx) && qp_reliable(qp))
		rebuild_with_ackreq(qp, &pkts[built - 1]);
	if (built != 0 && qp_reliable(qp))
		req_sent(qp, sent_psn, now);
	return built;
}
