/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Peers: the destinations of an engine's reliable QPs. All QPs that send to one peer share
 * its window. It limits their packets that are in flight at once: to the cap, which the
 * peer's receive ring can hold, or less if congestion control (cc.h) is on. A READ may
 * exceed the window by the rest of its response. Congestion control concerns what this end
 * sends, so it does not count packets of READs and atomics. Nor does it count those of a QP
 * that gets no answer.
 *
 * The requester accounts for its packets by peer_charge(). The engine finds, releases,
 * blocks and unblocks. All calls with the engine lock held.
 */
#ifndef ROCADE_QP_PEER_H
#define ROCADE_QP_PEER_H

#include <sys/queue.h>

#include "base/base_alloc.h"
#include "qp/cc.h"

struct qp;

struct peer {
	/* The members up to gid are written by the calls of this file only, srtt_ns by
	 * tlp.c. */
	uint32_t inflight; /* packets of all QPs */
	uint32_t window;   /* see peer_window_set() */
	uint32_t qps;      /* QPs that send to this peer */
	/* smoothed round trip of all QPs; 0: no sample yet; see tlp.c */
	uint32_t srtt_ns;
	uint32_t qps_blocked;     /* of qps */
	TAILQ_HEAD(, qp) blocked; /* QPs blocked on the window */
	TAILQ_ENTRY(peer) blocked_link;
	LIST_ENTRY(peer) link; /* in its bucket */
	uint8_t gid[16];
	/* Congestion control: used once in a round trip, not for each packet. */
	uint32_t cap; /* of the window */
	/* packets of inflight that congestion control leaves out: of READs, atomics and
	 * the like, and of stalled QPs */
	uint32_t uncounted;
	uint8_t resend_shift, resend_naks; /* see peer_resend_shift() */
	struct cc cc;
};

LIST_HEAD(peer_bucket, peer);

/* The peers of an engine, hashed by GID. */
struct peers {
	TAILQ_HEAD(, peer) blocked; /* peers that have blocked QPs */
	struct peer_bucket *buckets;
	uint32_t mask;  /* number of buckets - 1 */
	uint32_t count; /* peers */
	uint32_t cap;   /* of the window of each peer */
	struct cc_conf cc;
	const struct alloc *mem;
};

/* Returns 0 or -ENOMEM. */
int peers_init(struct peers *peers, const struct alloc *mem, uint32_t cap,
	const struct cc_conf *cc);
/* No peer may be left (asserted). */
void peers_fini(struct peers *peers);

/* Returns the peer with this GID, for one more QP; creates it if need be, without
 * congestion control if no network is in between (local). NULL: no memory. peer_put()
 * releases it. */
struct peer *peer_get(struct peers *peers, const uint8_t gid[16], bool local);
void peer_put(struct peers *peers, struct peer *peer);

/* Put the QP on its peer's list of blocked QPs, where it stays in place if it is on it
 * already, and take it off. */
void peer_block(struct peers *peers, struct qp *qp);
void peer_unblock(struct peers *peers, struct qp *qp);

/* ---- The window ---- */

/* Packets that the window has room for. */
static inline uint32_t
peer_room(const struct peer *peer)
{
	return peer->inflight < peer->window ? peer->window - peer->inflight : 0;
}

static inline bool
peer_full(const struct peer *peer)
{
	return peer->inflight >= peer->window;
}

/* True if the window has room for another packet when a QP has `after` packets in flight
 * of which `before` are charged. */
static inline bool
peer_has_room_after(const struct peer *peer, uint32_t before, uint32_t after)
{
	return peer->inflight + after - before < peer->window;
}

/* A QP had `before` packets in flight, and now has `after`. */
static inline void
peer_charge(struct peer *peer, uint32_t before, uint32_t after)
{
	peer->inflight += after - before;
}

/* True if the window is below one packet: then each packet has its time. */
static inline bool
peer_is_paced(const struct peer *peer)
{
	return cc_is_on(&peer->cc) && cc_is_paced(&peer->cc);
}

/* Returns the time of the next packet, until which the window is closed; TIME_NEVER: time
 * does not open it. */
static inline uint64_t
peer_opens_at(const struct peer *peer, uint64_t now)
{
	return peer_is_paced(peer) && now < peer->cc.send_at ? peer->cc.send_at
							     : TIME_NEVER;
}

/* Puts what congestion control lets out into effect, up to the cap. Packets that it does
 * not count may be in flight besides. */
static inline void
peer_window_set(struct peer *peer, uint64_t now)
{
	uint32_t window;

	if (!cc_is_on(&peer->cc))
		return;
	window = peer_opens_at(peer, now) == TIME_NEVER ? cc_window(&peer->cc) : 0;
	peer->window = RTE_MIN(window + peer->uncounted, peer->cap);
}

/* ---- Missing packets ---- */

/*
 * How many packets a QP sends again for a sequence NAK. A peer may hold the packets behind
 * the missing one (Rocade does, hold.h): then that one is enough. Others drop them, and need
 * all again. The QP begins with one. If the answer acknowledges more than was sent again,
 * the peer holds packets, and the next NAK is answered by one packet, too. If it
 * acknowledges just that, the peer holds none, or misses more packets in a row: the next NAK
 * is answered by twice as many, in the end by all (go-back-N).
 */
#define RESEND_ALL_SHIFT 4
/* of NAKs for which all packets would be sent again: one finds out whether the peer holds */
#define RESEND_TRY_EVERY 16

/* Returns the binary logarithm of the number for a NAK; RESEND_ALL_SHIFT: all packets. */
static inline unsigned
peer_resend_shift(struct peer *peer)
{
	if (peer->resend_shift < RESEND_ALL_SHIFT)
		return peer->resend_shift;
	return ++peer->resend_naks % RESEND_TRY_EVERY == 0 ? RESEND_ALL_SHIFT - 1
							   : RESEND_ALL_SHIFT;
}

/* 1 << shift packets were sent again for a NAK, and the answer acknowledges this number of
 * packets. */
static inline void
peer_resend_answered(struct peer *peer, unsigned shift, uint32_t acknowledged)
{
	if (acknowledged > 1u << shift)
		peer->resend_shift = 0;
	else if (acknowledged == 1u << shift)
		peer->resend_shift = (uint8_t)(shift + 1);
}

#endif
