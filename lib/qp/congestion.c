/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "qp/congestion.h"

#define IDLE_PACKETS 2 /* in flight, when a sample is one of an idle peer */

/* Counts a cut, and puts the window into effect. */
static void
effect(struct qp *qp, enum cc_cut why, uint64_t now)
{
	struct port_stats *stats = qp->shared->stats;

	stats->cc_cut_delay += why == CC_CUT_DELAY;
	stats->cc_cut_loss += why == CC_CUT_LOSS;
	stats->cc_cut_cnp += why == CC_CUT_CNP;
	peer_window_set(qp->peer, now);
}

void
congestion_sent(struct qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;
	struct peer *peer = qp->peer;

	req->rtt_counts = !req->reading;
	if (!req->rtt_counts)
		return;
	req->rtt_idle = peer->inflight <= IDLE_PACKETS;
	cc_sent(&peer->cc, now);
	peer_window_set(peer, now);
}

void
congestion_sample(struct qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;
	struct peer *peer = qp->peer;
	uint64_t polled = qp->shared->polled_ns;
	struct cc_sample s = {
		.srtt_ns = peer->srtt_ns,
		.packets = (uint8_t)(req->una_psn - req->rtt_una),
		.inflight = peer->inflight - peer->reading,
		.idle = req->rtt_idle,
	};

	req->rtt_una = (uint8_t)req->una_psn;
	if (likely(polled > req->rtt_start))
		s.delay_ns = (uint32_t)RTE_MIN(polled - req->rtt_start, NS_PER_SEC);
	effect(qp, cc_sample(&peer->cc, &s, now), now);
}

void
congestion_loss(struct qp *qp, uint64_t now)
{
	struct peer *peer = qp->peer;

	if (cc_is_on(&peer->cc))
		effect(qp, cc_loss(&peer->cc, peer->srtt_ns, now), now);
}

void
congestion_probe(struct qp *qp, unsigned nth, uint64_t now)
{
	struct peer *peer = qp->peer;

	/* Without a round trip the probes only tell that it is longer than thought. */
	if (cc_is_on(&peer->cc) && peer->srtt_ns != 0)
		effect(qp, cc_probe(&peer->cc, nth, peer->srtt_ns, now), now);
}

void RARE
congestion_cnp(struct qp *qp, uint64_t now)
{
	struct peer *peer = qp->peer;

	if (peer != NULL && cc_is_on(&peer->cc))
		effect(qp, cc_cnp(&peer->cc, peer->srtt_ns, now), now);
}

void RARE
congestion_pace(struct qp *qp, uint64_t now)
{
	struct peer *peer = qp->peer;

	if (!cc_is_on(&peer->cc) || !cc_is_paced(&peer->cc))
		return;
	qp->shared->stats->cc_waits++;
	peer->cc.send_at = now + cc_gap_ns(&peer->cc, peer->srtt_ns);
	peer_window_set(peer, now);
}

/* ---- READs and atomics ---- */

void
congestion_read(struct qp *qp)
{
	struct peer *peer = qp->peer;

	if (qp->req.reading || peer == NULL || !cc_is_on(&peer->cc))
		return;
	qp->req.reading = true;
	congestion_reading(qp, 0, qp->req.unacked);
}

void
congestion_reading(struct qp *qp, uint32_t before, uint32_t after)
{
	struct peer *peer = qp->peer;

	peer->reading += after - before;
	if (qp->req.reads == 0) {
		peer->reading -= after;
		qp->req.reading = false;
	}
	peer_window_set(peer, qp->shared->now);
}
