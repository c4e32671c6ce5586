/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "qp/congestion.h"
#include "qp/flight.h"
#include "qp/req.h"

/* A sample is idle if at most this many packets were in flight to the peer when its
 * measurement began, those of the QP included. */
#define IDLE_PACKETS 2

static void RARE
cut_note(struct qp *qp, const struct peer_window *w, enum cc_cut why)
{
	flight_write(qp,
		why == CC_CUT_DELAY  ? FLIGHT_CUT_DELAY
		: why == CC_CUT_LOSS ? FLIGHT_CUT_LOSS
				     : FLIGHT_CUT_CNP,
		0, w->cc->cwnd);
}

/* Counts the cut, if congestion control has made one, and puts the window into effect. */
static void
window_update(struct qp *qp, struct peer_window *w, enum cc_cut why, uint64_t now)
{
	struct port_stats *stats = qp->shared->stats;

	stats->cc_cut_delay += why == CC_CUT_DELAY;
	stats->cc_cut_loss += why == CC_CUT_LOSS;
	stats->cc_cut_cnp += why == CC_CUT_CNP;
	if (unlikely(qp->shared->flight_on) && why != CC_CUT_NONE)
		cut_note(qp, w, why);
	peer_window_set(w, now);
}

/* The window of the packet that is measured. */
static struct peer_window *
measured_window(const struct qp *qp)
{
	return qp->req.rtt_read ? &qp->peer->read : &qp->peer->send;
}

/* More packets leave together, or come together, than the window has. No other one leaves
 * for as long as this many take. */
void RARE
congestion_pace(struct qp *qp, struct peer_window *w, uint32_t packets, uint64_t now)
{
	qp->shared->stats->cc_waits++;
	w->cc->send_at = now + packets * cc_gap_ns(w->cc);
	w->cc->exceeded = packets > 1;
	peer_window_set(w, now);
}

static void
window_resume(struct peer_window *w, uint64_t now)
{
	if (w->inflight != 0 || !cc_paused(w->cc, now))
		return;
	cc_resume(w->cc, now);
	peer_window_set(w, now);
}

void RARE
congestion_resume(struct peer *peer, uint64_t now)
{
	window_resume(&peer->send, now);
	window_resume(&peer->read, now);
}

void
congestion_sampled(struct qp *qp, uint32_t idx, bool read)
{
	struct requester *req = &qp->req;

	/* Packets that were acknowledged since the last sample, but gave none, lower the
	 * loss rate and do not widen the window. */
	if (unlikely(!req->rtt_counts || req->rtt_read != read)) {
		cc_acked(measured_window(qp)->cc, (uint8_t)(req->una_psn - req->rtt_una));
		req->rtt_una = (uint8_t)req->una_psn;
	}
	req->rtt_read = read;
	cc_packet(measured_window(qp)->cc,
		RTE_MIN(sq_slot(&qp->sq, idx)->len, qp_pmtu(qp)));
	/* The acknowledgement of a SEND waits for the responses of READs before it. */
	req->rtt_counts = !req->stalled && (read || req->reading == 0);
	req->rtt_idle = qp->peer->send.inflight + qp->peer->read.inflight <= IDLE_PACKETS;
}

void
congestion_sample(struct qp *qp, uint32_t rtt_ns, uint64_t now)
{
	struct requester *req = &qp->req;
	struct peer_window *w = measured_window(qp);
	uint64_t polled = qp->shared->polled_ns;
	enum cc_cut why;
	uint32_t before;
	struct cc_sample s = {
		.rtt_ns = rtt_ns,
		.packets = (uint8_t)(req->una_psn - req->rtt_una),
		.inflight = w->inflight,
		.idle = req->rtt_idle,
	};

	req->rtt_una = (uint8_t)req->una_psn;
	/* They were in flight, and have not been counted in packets yet. */
	if (unlikely(req->missing) && !missing_reads(qp))
		s.inflight += missing_arrived(qp);
	if (unlikely(!cc_is_on(w->cc)))
		return;
	if (likely(polled > req->rtt_start && !w->cc->delay_unknown))
		s.delay_ns = (uint32_t)RTE_MIN(polled - req->rtt_start, NS_PER_SEC);
	before = w->cc->cwnd;
	why = cc_sample(w->cc, &s, now);
	if (w->cc->cwnd != before || cc_is_paced(w->cc) || w->cc->exceeded)
		window_update(qp, w, why, now);
}

void
congestion_loss(struct qp *qp, struct peer_window *w, uint64_t now)
{
	if (cc_is_on(w->cc))
		window_update(qp, w, cc_loss(w->cc, now), now);
}

void RARE
congestion_cnp(struct qp *qp, uint64_t now)
{
	struct peer *peer = qp->peer;

	if (peer != NULL && cc_is_on(peer->send.cc))
		window_update(qp, &peer->send, cc_cnp(peer->send.cc, now), now);
}

/* ---- Probes ---- */

static void RARE
stalled_set(struct qp *qp, bool stalled)
{
	struct requester *req = &qp->req;

	req->stalled = stalled;
	peer_charge(
		&qp->peer->read, stalled ? req->reading : 0, stalled ? 0 : req->reading);
	req_account(qp);
	req->rtt_una = (uint8_t)req->una_psn;
}

/* A QP that gets no answer must not hold the window of the others. From the second probe
 * on it is stalled until there is an answer: its packets do not count, and it sends one
 * packet or READ request at a time. */
void RARE
congestion_probe(struct qp *qp, uint64_t wait_ns, uint64_t now)
{
	struct peer_window *w =
		req_oldest_needs_response(qp) ? &qp->peer->read : &qp->peer->send;

	if (!cc_is_on(w->cc))
		return;
	qp->cc_probes = (uint8_t)(qp->cc_probes + (qp->cc_probes < 3)) & 3;
	qp->probed_read = w == &qp->peer->read;
	if (qp->cc_probes == 2)
		stalled_set(qp, true);
	/* Before the first sample a probe only shows that the round trip is longer than
	 * was assumed. If another QP of the peer has had a sample during the wait, the
	 * network is not the cause. */
	if (w->cc->srtt_ns != 0 && w->cc->sample_at + wait_ns <= now)
		window_update(qp, w, cc_probe(w->cc, qp->cc_probes, now), now);
}

/* The same for a QP whose packets the receiver does not take: they may stay there for long. */
void RARE
congestion_waits(struct qp *qp)
{
	if (qp->peer == NULL || qp->req.stalled)
		return;
	qp->cc_probes = 2;
	qp->probed_read = req_oldest_needs_response(qp);
	stalled_set(qp, true);
}

void RARE
congestion_answer(struct qp *qp, bool late, uint64_t now)
{
	struct peer_window *w = qp->probed_read ? &qp->peer->read : &qp->peer->send;

	qp->cc_probes = 0;
	if (!qp->req.stalled)
		return;
	stalled_set(qp, false);
	/* A READ is requested again: its response may be the answer to that, or late. */
	if (cc_is_on(w->cc))
		cc_answer(w->cc, late && !qp->probed_read);
	peer_window_set(w, now);
}
