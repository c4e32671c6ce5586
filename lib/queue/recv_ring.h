/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * The ring of receive WQEs of an RQ (one consumer: the QP's engine) or of an SRQ (any
 * number of engines). Posting threads take the producer lock once per posted list and
 * write directly into slots. A take copies the WQE out and frees the slot, so a WQE that
 * a QP has taken does not depend on the ring any more.
 *
 * prod and cons run freely; prod - cons WQEs are outstanding. A slot's seq tells the
 * producer when the slot is free: it is i from the time the slot is free for index i
 * until WQE i has been copied out. Then the consumer sets it to i + size. The producer
 * does not write seq; it publishes WQEs by advancing prod.
 *
 * A taker whose thread loses its core between claim and copy delays other threads by at
 * most RECV_RING_TRIES tries: other takers claim the WQEs behind its own, and a poster
 * that reaches its slots finds the ring full.
 */
#ifndef ROCADE_QUEUE_RECV_RING_H
#define ROCADE_QUEUE_RECV_RING_H

#include <rte_spinlock.h>

#include "base/base_alloc.h"
#include "mem/sge.h"

#define RECV_MAX_SGE 16 /* the device's max_sge and max_srq_sge */
#define RECV_RING_TRIES 1000
#define RECV_CLAIM_MAX 32 /* WQEs that one claim takes at most: a burst of packets */

struct recv_slot {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t seq;
	struct sge sge[];
};

/* A WQE that was taken: the consumer's copy. */
struct recv_wqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t reserved;
	struct sge sge[RECV_MAX_SGE];
};

/* WQEs that a claim has taken: as they were in the ring, packed. */
struct recv_claim {
	uint32_t next, count; /* those from next on are not used yet */
	uint32_t stride, max_sge;
	uint64_t wqes[RECV_CLAIM_MAX * sizeof(struct recv_wqe) / 8];
};

struct recv_ring {
	/* read by both sides */
	uint8_t *slots;
	uint32_t mask; /* size - 1 */
	uint32_t stride;
	uint32_t max_wr; /* == size: a power of two */
	uint32_t max_sge;
	const struct alloc *mem;
	/* posting threads */
	rte_spinlock_t lock LINE_ALIGNED;
	/* posts come from one thread at a time (thread domain): skip the lock */
	bool unlocked;
	uint32_t prod; /* published with release; takers read it with acquire */
	/* takers */
	uint32_t cons LINE_ALIGNED;
};

/* max_wr is rounded up to a power of two, at least 1 (the actual size is r->max_wr).
 * max_sge is kept as given and must be in 0..RECV_MAX_SGE (asserted). -ENOMEM. */
int recv_ring_init(
	struct recv_ring *r, const struct alloc *mem, uint32_t max_wr, uint32_t max_sge);
void recv_ring_fini(struct recv_ring *r);

/*
 * Moves the outstanding WQEs, in order, into a ring of another size (max_wr is rounded up
 * as in recv_ring_init(); max_sge stays). Indices continue: WQE i is WQE i of the new
 * ring. Returns -EINVAL if more than max_wr WQEs are outstanding, or -ENOMEM; the ring is
 * unchanged then. The caller excludes takers and holds the producer lock.
 */
int recv_ring_resize(struct recv_ring *r, uint32_t max_wr);

/* Discards all outstanding WQEs (QP to RESET). The caller excludes takers and holds the
 * producer lock. */
void recv_ring_clear(struct recv_ring *r);

static inline struct recv_slot *
recv_ring_slot(const struct recv_ring *r, uint32_t index)
{
	return (struct recv_slot *)(r->slots + (size_t)(index & r->mask) * r->stride);
}

static inline uint32_t
recv_ring_outstanding(const struct recv_ring *r)
{
	/* Pair with the releases of cons in recv_ring_take() and cons_claim(), and of
	 * prod in recv_ring_publish(). */
	uint32_t cons = __atomic_load_n(&r->cons, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&r->prod, __ATOMIC_ACQUIRE) - cons;
}

static inline void
recv_ring_lock(struct recv_ring *r)
{
	if (!r->unlocked)
		rte_spinlock_lock(&r->lock);
}

static inline void
recv_ring_unlock(struct recv_ring *r)
{
	if (!r->unlocked)
		rte_spinlock_unlock(&r->lock);
}

/* Returns whether the slot is free for index prod, after RECV_RING_TRIES tries at most. */
bool recv_ring_slot_wait(const struct recv_slot *slot, uint32_t prod);

/*
 * To post a list: lock; for each request call recv_ring_next(), with prod as a local
 * index that starts at r->prod, and fill the slot (NULL: the ring is full); call
 * recv_ring_publish() once with the index after the last slot filled; unlock.
 */
static inline struct recv_slot *
recv_ring_next(const struct recv_ring *r, uint32_t prod)
{
	struct recv_slot *slot;

	/* Pairs with the release of cons in recv_ring_take(). */
	if (unlikely(prod - __atomic_load_n(&r->cons, __ATOMIC_ACQUIRE) >= r->max_wr))
		return NULL;
	slot = recv_ring_slot(r, prod);
	/* A taker has moved cons and is still copying, for a few cycles or until its
	 * thread gets a core again. Pairs with the release of seq in
	 * recv_ring_take_shared(). */
	if (unlikely(__atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE) != prod) &&
		!recv_ring_slot_wait(slot, prod))
		return NULL;
	return slot;
}

static inline void
recv_ring_publish(struct recv_ring *r, uint32_t prod)
{
	/* Pairs with the acquires of prod by the takers. */
	__atomic_store_n(&r->prod, prod, __ATOMIC_RELEASE);
}

/*
 * Takes the oldest WQE. One consuming engine. Returns 0, -EAGAIN if there is none, or
 * -EIO if the ring is corrupted (prod more than max_wr ahead, more SGEs than max_sge);
 * the contents of out and of the ring are then invalid.
 */
int recv_ring_take(struct recv_ring *r, struct recv_wqe *out);

/* As recv_ring_take(), with several consuming engines: claims by compare-and-swap on
 * cons, which is sequentially consistent. -EAGAIN also if other takers were faster
 * RECV_RING_TRIES times. */
int recv_ring_take_shared(struct recv_ring *r, struct recv_wqe *out);

/*
 * Takes up to `most` of the oldest WQEs, RECV_CLAIM_MAX at most, by one compare-and-swap, and at
 * least one: not more than half of the outstanding ones, so that other engines find some. Returns
 * 0, or as recv_ring_take_shared(): then nothing is taken.
 */
int recv_ring_claim(struct recv_ring *r, uint32_t most, struct recv_claim *claim);

/* Takes the next WQE of a claim, which must have one. Returns 0, or -EIO if the ring was
 * corrupted. out->wr_id is valid in both cases. */
int recv_claim_take(struct recv_claim *claim, struct recv_wqe *out);

#endif
