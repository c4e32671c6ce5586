/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The signals of a QP for the congestion control of its peer (cc.h). Called by cnp.c,
 * nak.c, qp_io.c, requester.c, sack.c and tlp.c. */
#ifndef ROCADE_QP_CONGESTION_H
#define ROCADE_QP_CONGESTION_H

#include "qp/qp.h"

/* The functions up to congestion_sent() are to be called only if congestion control is on. */

/* Ends a long pause of either window. */
void congestion_resume(struct peer *peer, uint64_t now);

/* A QP of the peer is about to send packets. */
static inline void
congestion_begin(struct peer *peer, uint64_t now)
{
	if (unlikely(cc_paused(peer->send.cc, now) || cc_paused(peer->read.cc, now)))
		congestion_resume(peer, now);
}

/* True if the first packet of the next burst is to ask for an acknowledgement, because its
 * round trip will be measured: what follows it in the burst does not delay that. */
static inline bool
congestion_wants_ack(const struct qp *qp)
{
	return qp->req.rtt_start == TIME_NEVER;
}

/* The QP begins to measure a round trip, that of a packet of the request idx. read: of a READ or
 * the like. */
void congestion_sampled(struct qp *qp, uint32_t idx, bool read);
void congestion_pace(
	struct qp *qp, struct peer_window *w, uint32_t packets, uint64_t now);
/* The QP has sent packets of SENDs and WRITEs, and requested packets of responses. resent:
 * some of them again. */
static inline void
congestion_sent(
	struct qp *qp, uint32_t sent, uint32_t requested, bool resent, uint64_t now)
{
	struct peer *peer = qp->peer;

	if (sent != 0) {
		peer->send.cc->active_at = now;
		if (cc_is_paced(peer->send.cc))
			congestion_pace(qp, &peer->send, 1, now);
	}
	if (requested != 0 && !qp->req.stalled) {
		peer->read.cc->active_at = now;
		/* A request that is sent again may ask for more than the window. */
		if (requested << CC_SHIFT > peer->read.cc->cwnd &&
			(resent || cc_is_paced(peer->read.cc)))
			congestion_pace(qp, &peer->read, requested, now);
	}
}
/* The measurement has ended: the round trip took rtt_ns. To be called only if
 * req.rtt_counts is set. */
void congestion_sample(struct qp *qp, uint32_t rtt_ns, uint64_t now);
/* A packet was lost that counted in this window. */
void congestion_loss(struct qp *qp, struct peer_window *w, uint64_t now);
/* A tail-loss probe is due, after this wait. */
void congestion_probe(struct qp *qp, uint64_t wait_ns, uint64_t now);
/* The receiver has not taken for long what the QP has sent: until there is an answer, its packets do
 * not count in the window of the other QPs. */
void congestion_waits(struct qp *qp);
/* una_psn has advanced after probes. late: nothing was lost. */
void congestion_answer(struct qp *qp, bool late, uint64_t now);
/* A CNP has come. */
void congestion_cnp(struct qp *qp, uint64_t now);

#endif
