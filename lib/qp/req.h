/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * The requester: its sending half (requester.c, over req_build.c and local_op.c) and its
 * receiving half (completer.c). Called by qp_io.c, modify.c, flush.c and qp_init.c; the
 * inline functions and req_check_drained() by uc.c and tlp.c, too.
 */
#ifndef ROCADE_QP_REQ_H
#define ROCADE_QP_REQ_H

#include "base/usdt.h"
#include "qp/missing.h"
#include "qp/qp_state.h"
#include "qp/req_time.h"
#include "qp/wr_row.h"

/* True if all packets of a request lie before psn. Compares the last PSN, not the end: a
 * request can have 2^23 packets. The difference of its first PSN and its end, as a signed
 * 24-bit number, is then ambiguous. */
static inline bool
psn_range_before(const struct psn_range *range, uint32_t psn)
{
	return psn_diff(psn_range_end(range) - 1, psn) < 0;
}

/* True if a started request is a local operation: it takes no PSN. */
static inline bool
psn_range_is_local(const struct psn_range *range)
{
	return range->first_psn == psn_range_end(range);
}

/* Packets up to next_psn that are not acknowledged. */
static inline uint32_t
req_outstanding(const struct qp *qp)
{
	return (qp->req.next_psn - qp->req.una_psn) & PSN_MASK;
}

/* PSNs that may be unacknowledged. Without an ACK timeout a stalled QP is not limited:
 * only the answer to a further request can still acknowledge the others, or show that
 * they are lost. */
static inline uint32_t
req_max_unacked(const struct qp *qp)
{
	return unlikely(qp->req.stalled) && qp->params.timeout != 0 ? 1 : QP_MAX_UNACKED;
}

/* Most PSNs from una_psn to the one before the last request, when responses behind a
 * missing one do not count: bits of a PSN stay unambiguous. */
#define REQ_SPAN_MAX (PSN_BITS - QP_MAX_UNACKED / 4 - 2)

/* The same while READ responses are missing: what has arrived behind does not count,
 * unless a READ request may be longer than REQ_SPAN_MAX leaves room for. arrived:
 * missing_arrived(). */
static inline bool
req_gap_below_max(const struct qp *qp, uint32_t arrived)
{
	uint32_t outstanding = req_outstanding(qp);

	return qp->params.max_rd_atomic >= 4 && outstanding < REQ_SPAN_MAX &&
	       outstanding - arrived < req_max_unacked(qp);
}

/* True while fewer than that are unacknowledged. A READ request takes many
 * PSNs and may exceed the limit. */
static inline bool
req_below_max_unacked(const struct qp *qp)
{
	return likely(req_outstanding(qp) < req_max_unacked(qp)) ||
	       (missing_reads(qp) && req_gap_below_max(qp, missing_arrived(qp)));
}

/* Returns whether tail-loss probes find what the peer does not have. */
static inline bool
req_probes(const struct qp *qp)
{
	return qp->params.timeout != 0 && !qp->shared->tlp_off;
}

/* The measurement of a round trip ends without a sample. */
static inline void
req_measure_end(struct requester *req)
{
	req->rtt_start = TIME_NEVER;
	req->rtt_counts = false;
}

/* Starts the ACK timer, if the QP has one. */
static inline void
req_timer_start(struct qp *qp, uint64_t now)
{
	if (likely(qp->params.timeout != 0))
		qp->req.ack_deadline = now + req_timeout_ns(qp);
}

/* Packets are to be sent again. While the ACK timer runs it shows since when the oldest
 * one is that: until then the measured request did not wait for it. */
static inline void
req_lost(struct qp *qp, enum slow_part part)
{
	uint64_t stuck_ns = qp->req.ack_deadline - req_timeout_ns(qp);

	if (qp->req.ack_deadline == TIME_NEVER)
		stuck_ns = 0; /* not known */
	req_time_lost(qp, part, stuck_ns);
}

static inline struct answer_wait *
qp_answer_wait(const struct qp *qp)
{
	return &qp->shared->answer_wait[qp->qpn & qp->shared->answer_wait_mask];
}

/* Packets that the QP sends from now on are not those whose answer a timer may have
 * waited for. */
static inline void
qp_answer_came(const struct qp *qp)
{
	/* A QP that is created has no engine yet. */
	if (qp->shared != NULL && qp->shared->answer_waits != NULL &&
		qp_answer_wait(qp)->on)
		qp_answer_wait(qp)->on = false;
}

/* The fault of the oldest request, if it cannot be sent. */
static inline enum verdict
req_oldest_fault(const struct requester *req)
{
	return req->una_idx == req->fail_idx ? (enum verdict)req->fail_verdict
					     : VERDICT_GO;
}

/* Counts packets of responses that are requested, and one that has come. */
static inline void
req_response_requested(struct qp *qp, uint32_t packets)
{
	qp->req.reading = (uint16_t)(qp->req.reading + packets);
	if (likely(qp->peer != NULL && !qp->req.stalled))
		peer_charge(&qp->peer->read, 0, packets);
}

static inline void
req_response_taken(struct qp *qp)
{
	if (unlikely(qp->req.reading == 0))
		return; /* it overtakes the resend of its request */
	qp->req.reading--;
	if (likely(qp->peer != NULL && !qp->req.stalled))
		peer_charge(&qp->peer->read, 1, 0);
}

/* Brings the counts of the peer's windows up to date with una_psn, next_psn, reads and
 * stalled. */
static inline void
req_account(struct qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t unacked = req_outstanding(qp);

	if (unlikely(req->reading != 0)) {
		if (req->reads == 0) {
			if (!req->stalled && qp->peer != NULL)
				peer_charge(&qp->peer->read, req->reading, 0);
			req->reading = 0;
		}
		unacked -= req->reading;
	}
	if (unlikely(req->missing || req->stalled))
		unacked = req->stalled ? 0 : unacked - missing_arrived(qp);
	if (likely(qp->peer != NULL))
		peer_charge(&qp->peer->send, req->unacked, unacked);
	req->unacked = (uint16_t)unacked;
}

/* True if the oldest request is a READ, an atomic or the like. There is one. */
static inline bool
req_oldest_needs_response(const struct qp *qp)
{
	return psn_range_needs_response(sq_psn_range(&qp->sq, qp->req.una_idx));
}

/* ---- req_build.c ---- */

/* Starts the request at next_idx: assigns this number of PSNs to it. */
static __rte_always_inline void
req_take_psns(struct qp *qp, const struct send_wqe *wqe, uint32_t packets)
{
	struct requester *req = &qp->req;
	struct psn_range *range = sq_psn_range(&qp->sq, req->next_idx);
	uint32_t end = psn_add(req->next_psn, packets);

	end |= (wqe->flags & WQE_MARKS) << PSN_RANGE_FLAGS_SHIFT;
	if (wr_has_response(wr_row(wqe)->kind))
		end |= PSN_RANGE_NEEDS_RESPONSE;
	if (packets == 0)
		req_time_skip(qp);
	else if (unlikely(--qp->untimed == 0))
		end |= req_time_start(qp);
	range->first_psn = req->next_psn;
	/* Atomic, so that the compiler does not merge both members into one vector store:
	 * the next load of this one would stall on it. */
	__atomic_store_n(&range->end, end, __ATOMIC_RELAXED);
	req->started_idx++;
}

/* A packet is sent again that takes this number of PSNs. */
static __rte_always_inline void
req_count_resent(struct qp *qp, uint32_t psn, uint32_t packets)
{
	qp->stats.retransmitted++;
	qp->shared->stats->retransmitted++;
	USDT(retransmission, qp->qpn, psn, packets);
}

/* Packet next_psn of the request at next_idx has been built and takes this number of
 * PSNs: moves next_psn, and after its last packet next_idx. */
static __rte_always_inline void
req_advance(struct qp *qp, uint32_t packets)
{
	struct requester *req = &qp->req;

	if (psn_diff(req->next_psn, req->sent_psn) < 0)
		req_count_resent(qp, req->next_psn, packets);
	req->next_psn = psn_add(req->next_psn, packets);
	req->pos_psn = req->next_psn;
	if (psn_diff(req->next_psn, req->sent_psn) > 0)
		req->sent_psn = req->next_psn;
	if (req->next_psn != psn_range_end(sq_psn_range(&qp->sq, req->next_idx)))
		return;
	/* During a resend: local operations are executed once only. */
	do
		req->next_idx++;
	while (unlikely(req->next_idx != req->started_idx) &&
		psn_range_is_local(sq_psn_range(&qp->sq, req->next_idx)));
}

/* Builds packet next_psn of the started request next_idx and advances next_psn. final: no
 * packet follows it for now, so it sets AckReq. Returns false if the QP may not read the
 * packet's memory. */
bool req_build(struct qp *qp, struct pkt *pkt, bool final);

/* Builds a request for these packets of the oldest READ, which were requested before. */
void req_build_repeat(struct qp *qp, uint32_t psn, uint32_t packets, struct pkt *pkt);

/* ---- local_op.c ---- */

/* Executes the local operation at next_idx. */
enum verdict local_execute(struct qp *qp, const struct send_wqe *wqe);

/* ---- requester.c ---- */

void req_reset(struct qp *qp, uint32_t psn);
bool req_has_next(const struct qp *qp);
/* Builds up to n packets. The verdict is that of the oldest request. */
struct burst req_tx(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now);
/* Resends from this packet on (una_psn <= psn <= next_psn). */
void req_rollback(struct qp *qp, uint32_t psn);
/* Raises SQ_DRAINED when the last started request of a QP in SQD has completed. */
void req_check_drained(struct qp *qp);

/* ---- completer.c ---- */

enum verdict comp_rx(struct qp *qp, const struct pkt_view *view, uint64_t now);
enum verdict comp_ack_timeout(struct qp *qp);

#endif
