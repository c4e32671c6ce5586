/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Tail-loss probe, TLP (as in RFC 8985). A lost NAK, a lost first resend or a lost last
 * packet would otherwise cost a whole local ACK timeout, which is set for the worst case
 * and thousands of round trips long. When una_psn has not moved for a few round trips, a
 * copy of that packet is sent. It is not charged to retry_cnt: the ACK timer runs beside
 * it and decides when to give up.
 *
 * If the peer acknowledges just the copy, the packets after it are missing too and are
 * resent. If it acknowledges more, they were only late: a peer or a host that was stalled
 * for a while gets no second copy of everything. A READ or an atomic is requested again
 * with all requests after it. The wait doubles each time; no probe is sent when it
 * reaches the ACK timeout, and none in an RNR wait.
 *
 * A QP that has not measured a round trip yet uses that of its peer, measured by other
 * QPs, or else waits for QP_SRTT_UNKNOWN_NS. If the round trip is longer than the wait, or
 * has become so, each wait ends in a copy, and a packet that was sent twice gives no sample
 * (Karn). So the wait stays doubled until an acknowledgement covers more than the copy, or,
 * of a QP that has a sample, another packet.
 */
#include "qp/congestion.h"
#include "qp/flight.h"
#include "qp/loss.h"
#include "qp/multipath.h"
#include "qp/srtt.h"
#include "qp/tlp.h"

#define TLP_RTTS 4
#define TLP_MIN_NS (100 * NS_PER_US)
/* Of a peer behind the same daemon. A late answer means that the daemon keeps the packet, because
 * the peer's QP is not connected yet (SW_WAIT_NS) or its ring is full (SW_BACKPRESSURE_NS), or that
 * a process has no core. A copy shortens none of these. */
#define TLP_LOSSLESS_MIN_NS (500 * NS_PER_MS)
#define TLP_REPAIR_MIN_NS (25 * NS_PER_US)
#define TLP_BACKOFF_MAX 10 /* without an ACK timeout */

static uint64_t
tlp_wait_ns(const struct qp *qp)
{
	uint32_t srtt_ns = qp_srtt_ns(qp);
	uint64_t wait;

	wait = unlikely(srtt_ns == 0) ? QP_SRTT_UNKNOWN_NS
				      : RTE_MAX((uint64_t)srtt_ns * TLP_RTTS, TLP_MIN_NS);
	if (qp->peer->lossless)
		wait = RTE_MAX(wait, TLP_LOSSLESS_MIN_NS);
	return wait << qp->req.tlp_backoff;
}

/* True if the timer is to be armed for this wait: the wait ends before the ACK timeout.
 * Without an ACK timeout the application wants no resend by a timer, and this timer sends
 * no probe: it only tells congestion control, at most TLP_BACKOFF_MAX times without progress. */
static bool
tlp_wait_counts(const struct qp *qp, uint64_t wait)
{
	if (unlikely(qp->params.timeout == 0))
		return cc_is_on(qp->peer->send.cc) &&
		       qp->req.tlp_backoff < TLP_BACKOFF_MAX;
	return wait < req_timeout_ns(qp);
}

static void
tlp_arm(struct qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;
	uint64_t wait = tlp_wait_ns(qp);

	req->tlp_deadline = !qp->shared->tlp_off && req->rnr_deadline == TIME_NEVER &&
					    tlp_wait_counts(qp, wait)
				    ? now + wait
				    : TIME_NEVER;
}

void
tlp_sent(struct qp *qp, const struct tlp_burst *burst, uint64_t now)
{
	struct requester *req = &qp->req;
	/* Only of a packet that is sent for the first time: an acknowledgement of a packet
	 * sent twice is ambiguous (Karn). */
	bool sampled = req->rtt_start == TIME_NEVER &&
		       psn_diff(req->next_psn, burst->sent_psn) > 0;
	bool read = false;

	if (req->tlp_deadline == TIME_NEVER)
		tlp_arm(qp, now);
	if (!sampled)
		return;
	if (unlikely(req->reads != 0)) {
		/* Behind packets that were sent again the first new one is not known. */
		if (burst->psn != burst->sent_psn)
			return;
		read = psn_range_needs_response(sq_psn_range(&qp->sq, burst->idx));
	}
	req->rtt_start = now;
	/* The first packet: with congestion control, see congestion_wants_ack(), and of a
	 * response, which in a lossy network rarely comes as a whole. Otherwise the last
	 * one, because its acknowledgement may be the only one of the burst. */
	if (read || burst->cc)
		req->rtt_psn = burst->sent_psn;
	else
		req->rtt_psn = psn_add(req->next_psn, PSN_MASK);
	if (burst->cc)
		congestion_sampled(qp, burst->idx, read);
}

/* If a copy is lost, everything waits for it. One copy too many costs little. */
static void
repair_arm(struct qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;

	if (req->srtt_ns != 0 && req_probes(qp))
		req->tlp_deadline =
			now + RTE_MAX(2 * (uint64_t)req->srtt_ns, TLP_REPAIR_MIN_NS);
}

/* The peer has said that it does not have the packet, so the answer is one to the copy.
 * Without this measurement a QP that loses a packet in each round trip would have none. */
void
tlp_repair_sent(struct qp *qp, uint32_t psn, uint64_t now)
{
	struct requester *req = &qp->req;

	repair_arm(qp, now);
	/* With selective acknowledgements the measurement of a later packet goes on, unless
	 * none has ended yet. */
	if (req->missing && req->rtt_start != TIME_NEVER && req->srtt_ns != 0)
		return;
	req->rtt_psn = psn;
	req->rtt_start = now;
	if (cc_is_on(qp->peer->send.cc))
		congestion_sampled(qp, req->una_idx, false);
}

void RARE
tlp_repeated(struct qp *qp, uint64_t now)
{
	/* After a probe the wait is doubled. */
	if (qp->req.tlp_backoff == 0)
		repair_arm(qp, now);
	else
		tlp_arm(qp, now);
}

/* Packet rtt_psn has arrived. */
static void
rtt_measured(struct qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;
	uint32_t sample = (uint32_t)RTE_MIN(now - req->rtt_start, NS_PER_SEC);

	sample = RTE_MAX(sample, 1u);
	srtt_sample(&req->srtt_ns, sample);
	srtt_sample(&qp->peer->srtt_ns, sample);
	if (req->rtt_counts)
		congestion_sample(qp, sample, now);
	req->rtt_start = TIME_NEVER;
}

void RARE
tlp_sacked(struct qp *qp, bool measured, uint64_t now)
{
	struct requester *req = &qp->req;

	if (measured && req->rtt_start != TIME_NEVER)
		rtt_measured(qp, now);
	req->tlp_backoff = 0;
	if (req->loss_state == LOSS_REPAIR_SENT)
		repair_arm(qp, now);
	else if (req->loss_state == LOSS_OPEN)
		tlp_arm(qp, now);
}

/* una_psn has advanced, by one PSN or more, after a copy of that packet became due. Returns
 * true if the answer to a probe shows that the packets behind it are missing, too. */
static bool RARE
copy_answered(struct qp *qp, uint32_t packets)
{
	struct requester *req = &qp->req;
	uint8_t state = req->loss_state;

	loss_step(&req->loss_state, LOSS_EV_OVER);
	loss_update(qp);
	/* If the copies were all that was unacknowledged, the answer does not show what the
	 * peer does with packets behind them. */
	if (state == LOSS_REPAIR_SENT && !qp->sacks && !req->missing &&
		(req->next_psn != req->una_psn || packets > 1u << qp->resend_shift))
		peer_resend_answered(qp->peer, qp->resend_shift, packets);
	if (packets != 1 || state != LOSS_TLP_SENT)
		return false;
	/* Packets of other paths may be on their way. */
	if (multipath_reorders(qp) && multipath_is_late(qp, req->una_psn))
		return true;
	if (!req->missing)
		return !multipath_reorders(qp);
	/* A record says what is missing. If it says that the next packet has arrived, the
	 * answer would cover that, too: the peer has dropped what it held. */
	return psn_bit(&missing_of(qp)->arrived, req->una_psn);
}

bool
tlp_progress(struct qp *qp, uint32_t packets, uint64_t now)
{
	struct requester *req = &qp->req;
	/* Without congestion control nothing bounds a round trip: the wait would go on to rise. */
	bool copied = req->loss_state == LOSS_TLP_SENT && cc_is_on(qp->peer->send.cc);
	bool goes_back = false;

	if (unlikely(req->loss_state != LOSS_OPEN))
		goes_back = copy_answered(qp, packets);
	if (req->rtt_start != TIME_NEVER && psn_diff(req->una_psn, req->rtt_psn) > 0)
		rtt_measured(qp, now);
	if (unlikely(qp->cc_probes != 0))
		congestion_answer(qp, !goes_back, now);
	if (packets != 1 || (likely(req->srtt_ns != 0) && !copied))
		req->tlp_backoff = 0;
	req->tlp_deadline = TIME_NEVER;
	if (req->next_psn == req->una_psn)
		return false;
	if (goes_back) {
		qp->shared->stats->tlp_repaired++;
		qp_ext_ask(qp);
		congestion_loss(qp, &qp->peer->send, now);
		return true;
	}
	tlp_arm(qp, now);
	return false;
}

void
tlp_cancel(struct qp *qp)
{
	loss_step(&qp->req.loss_state, LOSS_EV_OVER);
	qp->req.tlp_deadline = TIME_NEVER;
	req_measure_end(&qp->req);
}

void RARE
tlp_restart(struct qp *qp, uint64_t waited_ns, uint64_t now)
{
	struct requester *req = &qp->req;

	tlp_arm(qp, now);
	if (req->tlp_deadline != TIME_NEVER)
		req->tlp_deadline = now + answer_ask_ns(tlp_wait_ns(qp), waited_ns);
}

bool
tlp_timeout(struct qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;
	uint64_t rtt_start = req->rtt_start;
	bool rtt_counts = req->rtt_counts;

	if (req->next_psn == req->una_psn) {
		tlp_cancel(qp);
		return false;
	}
	/* A repair says more than a probe. While it cannot be sent, no probe could be,
	 * either, and the ACK timer runs on. */
	if (unlikely(qp_copy_due(qp))) {
		tlp_arm(qp, now);
		return false;
	}
	flight_note(qp, FLIGHT_TLP_WAIT, req->una_psn,
		(uint32_t)RTE_MIN(tlp_wait_ns(qp), UINT32_MAX));
	congestion_probe(qp, tlp_wait_ns(qp), now);
	if (unlikely(qp->multipath != 0)) {
		multipath_acknowledged(qp);
		multipath_note_lost(qp, req->una_psn);
		multipath_move_dead(qp);
	}
	req->tlp_backoff++;
	if (unlikely(qp->params.timeout == 0)) {
		tlp_arm(qp, now);
		return false;
	}
	req_lost(qp, SLOW_timer);
	if (req_oldest_needs_response(qp)) {
		tlp_cancel(qp); /* armed again when the packets are sent */
		return true;
	}
	req->tlp_deadline = TIME_NEVER; /* armed again when the copy is sent */
	req_measure_end(req);
	/* A probe ends the measurement (docs/protocol.md 7.7): the peer may acknowledge
	 * the measured packet only because of the copy. A QP without a sample keeps its
	 * measurement: in an incast it would else double its wait again and again, so a
	 * sample that is too long is better than none. If the copy is of the measured
	 * packet itself, the last packet is measured instead, if that is another one. */
	if (req->srtt_ns == 0 && req->rtt_psn == req->una_psn)
		req->rtt_psn = psn_add(req->next_psn, PSN_MASK);
	if (req->srtt_ns == 0 && req->rtt_psn != req->una_psn) {
		req->rtt_start = rtt_start;
		req->rtt_counts = rtt_counts;
	}
	loss_step(&req->loss_state, LOSS_EV_TLP_TIMER);
	return false;
}
