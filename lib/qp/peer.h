/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Peers: the destinations of an engine's reliable QPs. All QPs to one peer share two
 * windows, which limit the packets that are in flight at once: the send window those of
 * SENDs and WRITEs, which this end sends, and the read window the responses of READs,
 * atomics and the like, which the peer sends when this end requests them. A window is as
 * large as its cap, which the receive ring of the receiver can hold, or less if congestion
 * control (cc.h) is on. A READ request may exceed the window by the rest of its response.
 * The packets of a QP that gets no answer do not count (congestion.c).
 *
 * The requester accounts for its packets by peer_charge(). The engine finds, releases,
 * blocks and unblocks. All calls with the engine lock held.
 */
#ifndef ROCADE_QP_PEER_H
#define ROCADE_QP_PEER_H

#include <sys/queue.h>

#include "base/base_alloc.h"
#include "qp/cc.h"
#include "wire/extensions.h"

struct qp;

/* The window of its peer on whose list a QP is. */
enum peer_blocked {
	BLOCKED_NOT,
	BLOCKED_SEND,
	BLOCKED_READ,
};

/* What is known of the extensions (wire/extensions.h) that a peer understands. */
enum peer_ext {
	PEER_EXT_UNKNOWN, /* no packet was lost yet */
	PEER_EXT_ASK,     /* in peers->asking: the engine finds out, see engine_ext.c */
	PEER_EXT_NONE,    /* none */
	PEER_EXT_KNOWN,
	PEER_EXT_LOCAL, /* an address of this host, which is not asked */
};

struct peer_window {
	uint32_t inflight; /* packets of all QPs */
	uint32_t window;   /* see peer_window_set() */
	uint32_t cap;      /* of the window */
	uint32_t qps_blocked;
	struct cc *cc;            /* used for each burst, not for each packet */
	TAILQ_HEAD(, qp) blocked; /* QPs blocked on the window */
	TAILQ_ENTRY(peer_window) blocked_link;
};

struct peer {
	/* The members up to gid are written by the calls of this file only, srtt_ns by
	 * tlp.c. */
	struct peer_window send, read;
	uint32_t qps; /* QPs to this peer */
	/* smoothed round trip of all QPs; 0: no sample yet; see tlp.c */
	uint32_t srtt_ns;
	LIST_ENTRY(peer) link; /* in its bucket */
	uint8_t gid[16];
	uint8_t resend_shift, resend_naks; /* see peer_resend_shift() */
	struct cc send_cc, read_cc;
	/* Extensions, see peer_ext_ask(). */
	uint8_t extensions;   /* EXT_* that the peer understands */
	uint8_t ext_state;    /* enum peer_ext */
	bool ext_asked;       /* PEER_EXT_ASK: the engine has asked once */
	bool lossless;        /* see peers->lossless */
	uint8_t ext_sgid[16]; /* own address, from PEER_EXT_ASK on */
	TAILQ_ENTRY(peer) ext_link;
};
static_assert(offsetof(struct peer, read.cap) <= LINE_SIZE,
	"what each packet needs of both windows: one cache line");

LIST_HEAD(peer_bucket, peer);

/* The peers of an engine, hashed by GID. */
struct peers {
	TAILQ_HEAD(, peer_window) blocked; /* windows that have blocked QPs */
	struct peer_bucket *buckets;
	uint32_t mask;  /* number of buckets - 1 */
	uint32_t count; /* peers */
	uint32_t cap;   /* of the windows of each peer */
	struct cc_conf cc;
	const struct alloc *mem;
	/* Extensions. */
	TAILQ_HEAD(, peer) asking; /* peers in PEER_EXT_ASK, those not asked yet first */
	bool ext_off;              /* no peer is asked */
	/* Packets to local peers are lost only if their receiver stands still: the daemon makes
	 * senders wait for others. Set before the first peer is created. */
	bool lossless;
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

/* A packet to or from the peer was lost, by a QP with the address sgid: has the engine find out
 * which extensions the peer understands, unless that is known or extensions are off. If the
 * peer understands none, the engine looks whether that still holds. */
void peer_ext_ask(struct peers *peers, struct peer *peer, const uint8_t sgid[16]);
/* Takes the peer off peers->asking, if it is there. */
void peer_ext_unlink(struct peers *peers, struct peer *peer);

/* Initialises both windows. */
void peer_windows_init(struct peer *peer, uint32_t cap, const struct cc_conf *cc);

/* Put the QP on the list of QPs blocked on this window of its peer, where it stays in place
 * if it is on it already, and take it off. */
void peer_block(struct peers *peers, struct qp *qp, struct peer_window *w);
void peer_unblock(struct peers *peers, struct qp *qp);

/* ---- The windows ---- */

/* Packets that the window has room for. */
static inline uint32_t
peer_room(const struct peer_window *w)
{
	return w->inflight < w->window ? w->window - w->inflight : 0;
}

static inline bool
peer_full(const struct peer_window *w)
{
	return w->inflight >= w->window;
}

/* A QP had `before` packets in flight, and now has `after`. */
static inline void
peer_charge(struct peer_window *w, uint32_t before, uint32_t after)
{
	w->inflight += after - before;
}

/* Returns the time of the next packet, until which the window is closed; TIME_NEVER: time
 * does not open it. */
static inline uint64_t
peer_opens_at(const struct peer_window *w, uint64_t now)
{
	const struct cc *cc = w->cc;

	return cc_is_on(cc) && (cc_is_paced(cc) || cc->exceeded) && now < cc->send_at
		       ? cc->send_at
		       : TIME_NEVER;
}

/* Puts what congestion control lets out into effect, up to the cap. */
static inline void
peer_window_set(struct peer_window *w, uint64_t now)
{
	uint32_t window;

	if (!cc_is_on(w->cc))
		return;
	window = peer_opens_at(w, now) == TIME_NEVER ? cc_window(w->cc) : 0;
	w->window = RTE_MIN(window, w->cap);
}

/* ---- Missing packets ---- */

/* True if QPs of the peer and this host send each other selective acknowledgements. */
static inline bool
peer_sacks(const struct peer *peer)
{
	return (peer->extensions & EXT_SACK) != 0;
}

/*
 * How many packets a QP sends again for a sequence NAK. A peer may hold the packets
 * behind the missing one (Rocade does, hold.h): then that one is enough. Others drop
 * them, and need all again. A peer that sends selective acknowledgements says what it
 * misses (sack.h). With another one the QP begins with one packet. If the answer
 * acknowledges more than was sent again, the peer holds packets, and the next NAK is
 * answered by one packet, too. If it acknowledges just that, the peer holds none, or
 * misses more packets in a row: the next NAK is answered by twice as many, in the end by
 * all (go-back-N).
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
