/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "qp/congestion.h"

/* A sample is idle if at most this many packets were in flight to the peer when its
 * measurement began, those of the QP included. */
#define IDLE_PACKETS 2

/* Counts the cut, if congestion control has made one, and puts the window into effect. */
static void
window_update(struct qp *qp, enum cc_cut why, uint64_t now)
{
	struct port_stats *stats = qp->shared->stats;

	stats->cc_cut_delay += why == CC_CUT_DELAY;
	stats->cc_cut_loss += why == CC_CUT_LOSS;
	stats->cc_cut_cnp += why == CC_CUT_CNP;
	peer_window_set(qp->peer, now);
}

/* No other packet leaves for a while. */
static void RARE
pace(struct qp *qp, uint64_t now)
{
	struct peer *peer = qp->peer;

	qp->shared->stats->cc_waits++;
	peer->cc.send_at = now + cc_gap_ns(&peer->cc);
	peer_window_set(peer, now);
}

void
congestion_sampled(struct qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;
	struct peer *peer = qp->peer;

	/* Packets that were acknowledged since the last sample, but gave none, lower the
	 * loss rate and do not widen the window. */
	if (unlikely(!req->rtt_counts)) {
		cc_acked(&peer->cc, (uint8_t)(req->una_psn - req->rtt_una));
		req->rtt_una = (uint8_t)req->una_psn;
	}
	req->rtt_counts = !req->uncounted;
	if (!req->rtt_counts)
		return;
	req->rtt_idle = peer->inflight - peer->uncounted <= IDLE_PACKETS;
	cc_sent(&peer->cc, now);
	peer_window_set(peer, now);
}

void
congestion_sent(struct qp *qp, uint64_t now)
{
	if (unlikely(cc_is_paced(&qp->peer->cc)))
		pace(qp, now);
}

void
congestion_sample(struct qp *qp, uint32_t rtt_ns, uint64_t now)
{
	struct requester *req = &qp->req;
	struct peer *peer = qp->peer;
	uint64_t polled = qp->shared->polled_ns;
	struct cc_sample s = {
		.rtt_ns = rtt_ns,
		.packets = (uint8_t)(req->una_psn - req->rtt_una),
		.inflight = peer->inflight - peer->uncounted,
		.idle = req->rtt_idle,
	};

	req->rtt_una = (uint8_t)req->una_psn;
	if (unlikely(!cc_is_on(&peer->cc)))
		return;
	if (likely(polled > req->rtt_start))
		s.delay_ns = (uint32_t)RTE_MIN(polled - req->rtt_start, NS_PER_SEC);
	window_update(qp, cc_sample(&peer->cc, &s, now), now);
}

void
congestion_loss(struct qp *qp, uint64_t now)
{
	struct peer *peer = qp->peer;

	if (cc_is_on(&peer->cc))
		window_update(qp, cc_loss(&peer->cc, now), now);
}

void RARE
congestion_cnp(struct qp *qp, uint64_t now)
{
	struct peer *peer = qp->peer;

	if (peer != NULL && cc_is_on(&peer->cc))
		window_update(qp, cc_cnp(&peer->cc, now), now);
}

/* ---- Packets that are not counted ---- */

void
congestion_account(struct qp *qp)
{
	struct requester *req = &qp->req;
	struct peer *peer = qp->peer;
	uint32_t uncounted;

	if (req->reads == 0) {
		qp->cc_reading = 0;
		req->rtt_una = (uint8_t)req->una_psn;
	}
	uncounted = req->stalled ? req->unacked : qp->cc_reading;
	peer->uncounted += uncounted - qp->cc_uncounted;
	qp->cc_uncounted = (uint16_t)uncounted;
	req->uncounted = req->stalled || qp->cc_reading != 0;
	peer_window_set(peer, qp->shared->now);
}

void RARE
congestion_leave(struct qp *qp)
{
	qp->cc_probes = 0;
	if (!qp->req.uncounted)
		return;
	qp->req.stalled = false;
	qp->cc_reading = 0;
	qp->peer->uncounted -= qp->cc_uncounted;
	qp->cc_uncounted = 0;
	qp->req.uncounted = false;
	peer_window_set(qp->peer, qp->shared->now);
}

void
congestion_read_count(struct qp *qp, uint32_t packets)
{
	qp->cc_reading = (uint16_t)(qp->cc_reading + packets);
	qp->req.uncounted = true; /* req_account() follows */
}

/* ---- Probes ---- */

/* A QP that gets no answer must not hold the window of the others. From the second probe
 * on it is stalled until there is an answer: its packets do not count, and it sends one
 * at a time. */
void RARE
congestion_probe(struct qp *qp, uint64_t wait_ns, uint64_t now)
{
	struct peer *peer = qp->peer;

	if (!cc_is_on(&peer->cc))
		return;
	qp->cc_probes = (uint8_t)(qp->cc_probes + (qp->cc_probes < 3)) & 3;
	if (qp->cc_probes >= 2) {
		qp->req.stalled = true;
		congestion_account(qp);
	}
	/* Before the first sample a probe only shows that the round trip is longer than
	 * was assumed. If another QP of the peer has had a sample during the wait, the
	 * network is not the cause. */
	if (peer->cc.srtt_ns != 0 && peer->cc.sample_at + wait_ns <= now)
		window_update(qp, cc_probe(&peer->cc, qp->cc_probes, now), now);
}

void RARE
congestion_answer(struct qp *qp, bool late, uint64_t now)
{
	qp->cc_probes = 0;
	if (!qp->req.stalled)
		return;
	qp->req.stalled = false;
	congestion_account(qp);
	cc_answer(&qp->peer->cc, late);
	peer_window_set(qp->peer, now);
}
