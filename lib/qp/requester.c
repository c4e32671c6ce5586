/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * The sending half of the requester (IBA 9.7.3, 9.7.5): assigns PSNs to requests and
 * decides what may be sent when. A packet is a function of its request and PSN
 * (req_build.c), so a retry only moves next_psn back.
 */
#include "qp/congestion.h"
#include "qp/flight.h"
#include "qp/multipath.h"
#include "qp/qp_state.h"
#include "qp/read_gap.h"
#include "qp/req.h"
#include "qp/sack.h"
#include "qp/tlp.h"
#include "qp/window.h"

void
req_reset(struct qp *qp, uint32_t psn)
{
	/* Starts at the SQ's present index. That skips no posted request: RESET has
	 * discarded them all, and RTR -> RTS, which sets a new PSN, follows a state in
	 * which nothing can be posted. */
	uint32_t idx = sq_posted(&qp->sq);

	assert(qp->req.unacked == 0 && qp->req.reading == 0 && !qp->req.missing);
	qp->sacks = false;
	qp->read_repeated = false;
	qp_answer_came(qp);
	qp->req = (struct requester){
		.una_idx = idx,
		.next_idx = idx,
		.started_idx = idx,
		.una_psn = psn,
		.next_psn = psn,
		.sent_psn = psn,
		.pos_psn = psn,
		.rtt_una = (uint8_t)psn,
		.loss_state = LOSS_OPEN,
		.ack_deadline = TIME_NEVER,
		.rnr_deadline = TIME_NEVER,
		.tlp_deadline = TIME_NEVER,
		.rtt_start = TIME_NEVER,
		.retry_left = qp->params.retry_cnt,
		.rnr_left = qp->params.rnr_retry,
	};
	if (unlikely(qp->multipath != 0))
		multipath_reset(qp);
}

void
qp_set_peer(struct qp *qp, struct peer *peer)
{
	struct requester *req = &qp->req;

	if (missing_reads(qp))
		req_rollback(qp, req->una_psn); /* the new peer may be of another kind */
	else if (req->missing)
		loss_end(qp);
	/* An answer of the new peer is none to the copies that the old one got. */
	loss_step(&req->loss_state, LOSS_EV_PEER);
	qp->sacks = false;
	if (qp->peer != NULL) {
		peer_charge(&qp->peer->send, req->unacked, 0);
		peer_charge(&qp->peer->read, req->stalled ? 0 : req->reading, 0);
	}
	req->unacked = 0;
	req->stalled = false;
	qp->cc_probes = 0;
	req_measure_end(req); /* it was one to the old peer */
	req->rtt_una = (uint8_t)req->una_psn;
	qp->peer = peer;
	if (peer != NULL) {
		peer->extensions |= qp->extensions;
		if (unlikely(qp->multipath != 0))
			qp_ext_ask(qp); /* not only once a packet is lost */
		peer_charge(&peer->read, 0, req->reading);
	}
	req_account(qp);
}

/* Moves next_idx and next_psn to packet psn, which was sent before. */
static void
req_seek(struct qp *qp, uint32_t psn)
{
	struct requester *req = &qp->req;
	uint32_t idx = req->una_idx;

	while (idx != req->started_idx &&
		psn_range_before(sq_psn_range(&qp->sq, idx), psn))
		idx++;
	req->next_idx = idx;
	req->next_psn = psn;
}

void
req_rollback(struct qp *qp, uint32_t psn)
{
	struct requester *req = &qp->req;

	req_seek(qp, psn);
	/* Packets sent from una_psn on no longer count as sent. Only
	 * rebuild_with_ackreq() rolls back to another PSN than una_psn. */
	if (psn == req->una_psn) {
		if (unlikely(req->missing))
			loss_end(qp);
		if (unlikely(qp->multipath != 0))
			multipath_rollback(qp);
		req->reads = 0; /* and with it req->reading: req_account() */
		req->read_restart = true;
		req_measure_end(req);
	}
	req_account(qp);
}

void
req_check_drained(struct qp *qp)
{
	if (!qp->req.draining || qp->req.una_idx != qp->req.started_idx)
		return;
	qp->req.draining = false;
	if (qp->params.sqd_notify)
		qp_event(qp, IBV_EVENT_SQ_DRAINED);
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
	       (req->reads < qp->params.max_rd_atomic && !read_gap_holds_back(qp));
}

/* True if there is a request to send at idx (next_idx or the one after it). */
static bool
has_request(const struct qp *qp, uint32_t idx)
{
	const struct requester *req = &qp->req;

	if (req->fail_verdict != VERDICT_GO && idx == req->fail_idx)
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

static bool
sges_granted(const struct qp *qp, const struct send_wqe *wqe, unsigned need)
{
	struct sge_cursor c = request_cursor(qp, wqe, NULL);

	return sge_check(&c, need) == 0;
}

/* True if the QP may read the memory of a request, or write its response there. */
static bool
memory_granted(
	const struct qp *qp, const struct send_wqe *wqe, unsigned kind, uint32_t packets)
{
	if (kind == WR_READ || kind == WR_ATOMIC)
		return sges_granted(qp, wqe, IBV_ACCESS_LOCAL_WRITE);
	/* A message of several packets is checked as a whole before its first packet is
	 * sent. A single packet is checked by its copy. */
	return packets == 1 || (wqe->flags & IBV_SEND_INLINE) != 0 ||
	       sges_granted(qp, wqe, 0);
}

/* Executes the local operation at next_idx. It completes in queue order. */
static enum verdict RARE
req_start_local(struct qp *qp, const struct send_wqe *wqe)
{
	struct requester *req = &qp->req;
	enum verdict verdict = local_execute(qp, wqe);

	if (verdict != VERDICT_GO)
		return verdict;
	req_take_psns(qp, wqe, 0);
	req_advance(qp, 0);
	if (req->una_idx + 1 == req->next_idx && !qp_complete_oldest(qp))
		return FAULT_SEND_CQ_FULL;
	return VERDICT_LOCAL;
}

/* Assigns PSNs to the request at next_idx. */
static enum verdict
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
			return FAULT_NO_READS;
		if (kind != WR_READ)
			packets = 1;
	}
	if (!memory_granted(qp, wqe, kind, packets))
		return FAULT_SEND_SGE;
	req_take_psns(qp, wqe, packets);
	return VERDICT_GO;
}

/* Packets of SENDs and WRITEs that the limit of the QP and the send window allow now. */
static unsigned
window_left(const struct qp *qp)
{
	uint32_t used = req_outstanding(qp);
	uint32_t limit = req_max_unacked(qp);
	uint32_t left = used < limit ? limit - used : 0;

	return qp->peer != NULL ? RTE_MIN(left, peer_room(&qp->peer->send)) : left;
}

/* True if the limits allow the packet next_psn, which is not counted yet. A READ takes many
 * PSNs at once and may exceed them by the rest of its PSNs. arrived: missing_arrived(), or 0
 * without a record, which packets that are built do not change. */
static bool
next_allowed(const struct qp *qp, uint32_t arrived)
{
	const struct requester *req = &qp->req;
	const struct peer *peer = qp->peer;
	uint32_t built;

	if ((unlikely(req_outstanding(qp) >= req_max_unacked(qp)) &&
		    !(missing_reads(qp) && req_gap_below_max(qp, arrived))) ||
		!order_allows(qp))
		return false;
	if (peer == NULL)
		return true;
	if (qp_next_needs_response(qp))
		return !peer_full(&peer->read);
	built = req_outstanding(qp) - req->reading - req->unacked - arrived;
	return peer->send.inflight + (req->stalled ? 0 : built) < peer->send.window;
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

/* Rebuilds the packet before next_psn, which was built last, with AckReq. The request
 * after it is a local operation, which completes only after this packet, or cannot be
 * sent now: it is invalid, fenced, or stopped by max_rd_atomic or the window. That was
 * not known when the packet was built. A READ or an atomic is answered without AckReq. */
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
	req_build(qp, pkt, true); /* fails only if on-demand memory has just gone */
}

/* Builds up to n copies of packets that are known to be lost. Returns their number. */
static unsigned
lost_build(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now)
{
	const struct requester *req = &qp->req;
	unsigned built = 0;
	uint32_t psn;

	while (built < n && sack_next_lost(qp, &psn)) {
		req_seek(qp, psn);
		if (!req_build(qp, &pkts[built], true)) {
			loss_end(qp);
			break;
		}
		loss_sent_again(qp, psn, 1, req->sent_psn, now);
		built++;
	}
	return built;
}

/* Builds copies of up to n packets from una_psn on. Returns their number. */
static unsigned
oldest_build(struct qp *qp, struct pkt *pkts, unsigned n, uint32_t end, uint64_t now)
{
	struct requester *req = &qp->req;
	unsigned built = 0;

	req->next_idx = req->una_idx;
	req->next_psn = req->una_psn;
	while (built < n && req->next_psn != end &&
		!psn_range_needs_response(sq_psn_range(&qp->sq, req->next_idx)) &&
		req_build(qp, &pkts[built], true)) {
		if (req->missing)
			loss_sent_again(
				qp, psn_add(req->una_psn, built), 1, req->sent_psn, now);
		built++;
	}
	return built;
}

/* Builds up to n requests for missing ranges of READs. Returns their number. */
static unsigned RARE
repeats_build(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now)
{
	unsigned built = 0;
	uint32_t psn, packets, asked = 0;
	bool due;

	while ((due = read_gap_due(qp, &psn, &packets)) && built < n) {
		req_build_repeat(qp, psn, packets, &pkts[built++]);
		read_gap_repeated(qp, psn, packets, now);
		asked += packets;
	}
	loss_step(&qp->req.loss_state, due ? LOSS_EV_FOUND : LOSS_EV_REPEATED);
	if (cc_is_on(qp->peer->read.cc))
		congestion_sent(qp, 0, asked, true, now);
	return built;
}

/* Builds a copy of packet una_psn, which belongs to a SEND or WRITE, for a probe; for a NAK
 * up to n copies from there on, or of what is known to be lost. next_psn does not move.
 * Returns their number; 0: the QP may no longer read the packet's memory. The resend after
 * the ACK timeout then reports the error. */
static unsigned RARE
copies_build(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now)
{
	struct requester *req = &qp->req;
	uint32_t idx = req->next_idx, psn = req->next_psn, first = req->una_psn;
	bool repair = req->loss_state == LOSS_REPAIR_DUE;
	unsigned built;

	if (repair && req->missing && sack_next_lost(qp, &first))
		built = lost_build(qp, pkts, n, now);
	else
		built = oldest_build(qp, pkts,
			repair ? RTE_MIN(n, 1u << qp->resend_shift) : 1, psn, now);
	req->next_idx = idx;
	req->next_psn = psn;
	if (repair)
		qp->shared->stats->resent_few += built;
	else
		qp->shared->stats->tlp_sent += built;
	if (built != 0)
		flight_note(qp, repair ? FLIGHT_COPIES_SENT : FLIGHT_TLP_COPY_SENT, first,
			built);
	loss_step(&req->loss_state, built != 0 ? LOSS_EV_SENT : LOSS_EV_UNSENT);
	if (built != 0 && repair)
		tlp_repair_sent(qp, first, now);
	else if (built == 0)
		req_account(qp); /* the record may be gone */
	loss_update(qp);
	return built;
}

/* Accounts for the packets of a burst and starts the timers. copies: of packets before it.
 * reading: req.reading before it. */
static void
req_sent(struct qp *qp, const struct tlp_burst *burst, unsigned copies, uint32_t reading,
	uint64_t now)
{
	struct requester *req = &qp->req;
	uint32_t requested = req->reading - reading;

	if (unlikely(qp->shared->flight_on) && req->next_psn != burst->psn)
		flight_write(qp, FLIGHT_SENT, burst->psn,
			(req->next_psn - burst->psn) & PSN_MASK);
	req_account(qp);
	if (req->ack_deadline == TIME_NEVER)
		req_timer_start(qp, now);
	tlp_sent(qp, burst, now);
	if (burst->cc)
		congestion_sent(qp,
			copies + ((req->next_psn - burst->psn) & PSN_MASK) - requested,
			requested, burst->psn != burst->sent_psn, now);
}

/* The request at next_idx cannot be sent: it fails once those before it are done
 * (C10-83). Returns the fault if that is so already. */
static enum verdict RARE
req_mark_failed(struct requester *req, enum verdict fault)
{
	if (fault == FAULT_SEND_CQ_FULL)
		return fault;
	req->fail_verdict = (uint8_t)fault;
	req->fail_idx = req->next_idx;
	return req_oldest_fault(req);
}

struct burst
req_tx(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now)
{
	struct requester *req = &qp->req;
	uint32_t reading = req->reading, arrived;
	unsigned built = 0, first = 0, copies = 0, last, ask_at;
	struct tlp_burst burst;
	bool more, reads;
	enum verdict verdict = VERDICT_GO;

	if ((qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD) ||
		req->rnr_deadline != TIME_NEVER || n == 0)
		return (struct burst){0, VERDICT_GO};
	if (unlikely(qp_copy_due(qp))) {
		first = built = missing_reads(qp) ? repeats_build(qp, pkts, n, now)
						  : copies_build(qp, pkts, n, now);
		copies = missing_reads(qp) ? 0 : built;
	}
	burst = (struct tlp_burst){.idx = req->next_idx,
		.psn = req->next_psn,
		.sent_psn = req->sent_psn,
		.cc = qp->peer != NULL && cc_is_on(qp->peer->send.cc)};
	more = has_request(qp, req->next_idx);
	if (burst.cc && more)
		congestion_begin(qp->peer, now);
	reads = req->reads != 0 || (qp->peer != NULL && peer_full(&qp->peer->read));
	last = reads ? n : RTE_MIN(n, built + window_left(qp));
	ask_at = burst.cc && congestion_wants_ack(qp) ? first : last - 1;
	arrived = unlikely(req->missing) ? missing_arrived(qp) : 0;
	/* `last` counts packets of SENDs and WRITEs of one PSN each. Once READs are under
	 * way, or cannot be, each packet is checked. */
	while (more && ((likely(!reads) && built < last) ||
			       (built < n && next_allowed(qp, arrived)))) {
		bool ask = false;

		if (req->next_idx == req->started_idx)
			verdict = req_start(qp);
		more = verdict == VERDICT_GO && !is_tail(qp);
		if (unlikely(built == ask_at) && verdict == VERDICT_GO) {
			ask = true;
			ask_at = last - 1;
		}
		if (verdict == VERDICT_GO && !req_build(qp, &pkts[built], ask || !more))
			verdict = FAULT_SEND_SGE;
		if (unlikely(verdict != VERDICT_GO)) {
			if (built != first && qp_reliable(qp))
				rebuild_with_ackreq(qp, &pkts[built - 1]);
			if (verdict != VERDICT_LOCAL) {
				verdict = req_mark_failed(req, verdict);
				break;
			}
			verdict = VERDICT_GO;
			more = has_request(qp, req->next_idx);
			continue;
		}
		built++;
		/* is_tail() does not cover a READ, whose one packet takes many PSNs. */
		if (unlikely(req->reads != 0)) {
			reads = true;
			ask_at = n - 1;
			more = has_request(qp, req->next_idx);
		}
	}
	/* A fence, max_rd_atomic or the window stops the next request. That was not known
	 * when the last packet was built, so it may lack AckReq. */
	if (unlikely(reads) && built != first && built < n &&
		has_request(qp, req->next_idx) && qp_reliable(qp))
		rebuild_with_ackreq(qp, &pkts[built - 1]);
	if (built != 0 && qp_reliable(qp))
		req_sent(qp, &burst, copies, reading, now);
	return (struct burst){built, verdict};
}
