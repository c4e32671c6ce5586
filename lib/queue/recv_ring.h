/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring of receive WQEs, of an RQ (one consumer: the QP's engine) or inside an SRQ (any
 * number of engines). Posting threads share the producer lock, taken once a posted list; they
 * write straight into slots. A take copies the WQE out and frees the slot: what a QP took it
 * keeps, whatever happens to the ring.
 *
 * prod and cons run freely; prod - cons is what is outstanding. Slot i's seq is i while it
 * is free for the producer's index i and until WQE i has been copied out (the producer does not
 * touch seq, it publishes by prod); then the consumer sets it to i + size.
 */
#ifndef ROCADE_QUEUE_RECV_RING_H
#define ROCADE_QUEUE_RECV_RING_H

#include <rte_spinlock.h>

#include "base/alloc.h"
#include "mem/sge.h"

#define RECV_MAX_SGE 16 /* the device's max_sge and max_srq_sge */

struct recv_slot {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t seq;
	struct sge sge[];
};

/* A WQE that was taken: the consumer's own copy. */
struct recv_wqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t reserved;
	struct sge sge[RECV_MAX_SGE];
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
	bool unlocked; /* single-threaded by a thread domain: skip the lock */
	uint32_t prod; /* published with release; read with acquire by the takers */
	/* takers */
	uint32_t cons LINE_ALIGNED;
};

/* max_wr is rounded up to a power of two, 0 to 1 (read it back from the ring), max_sge is kept
 * as it is and in 0..RECV_MAX_SGE (asserted). -ENOMEM. */
int recv_ring_init(struct recv_ring *r, const struct alloc *mem, uint32_t max_wr,
	uint32_t max_sge);
void recv_ring_fini(struct recv_ring *r);

/*
 * Moves what is outstanding, in order, into a ring of other dimensions (max_wr rounded up as
 * above). Indices go on: WQE i is WQE i of the new ring. -EINVAL where there are more than
 * max_wr or one has more than max_sge SGEs, -ENOMEM; the ring is unchanged then. The caller
 * excludes takers and holds the producer lock.
 */
int recv_ring_resize(struct recv_ring *r, uint32_t max_wr, uint32_t max_sge);

/* Forgets everything outstanding (QP to RESET); same exclusion. */
void recv_ring_clear(struct recv_ring *r);

static inline struct recv_slot *
recv_ring_slot(const struct recv_ring *r, uint32_t index)
{
	return (struct recv_slot *)(r->slots + (size_t)(index & r->mask) * r->stride);
}

static inline uint32_t
recv_ring_outstanding(const struct recv_ring *r)
{
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

/*
 * A posted list: lock, then for each request recv_ring_next() -- the slot to fill, NULL when
 * full -- with prod as a local index starting at r->prod, then recv_ring_publish() once with
 * the index behind the last one filled, unlock.
 */
static inline struct recv_slot *
recv_ring_next(const struct recv_ring *r, uint32_t prod)
{
	struct recv_slot *slot;

	if (unlikely(prod - __atomic_load_n(&r->cons, __ATOMIC_ACQUIRE) >= r->max_wr))
		return NULL;
	slot = recv_ring_slot(r, prod);
	/* A taker has moved cons and still copies out: a few cycles. Pairs with the release
	 * of seq in the take. */
	while (unlikely(__atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE) != prod))
		rte_pause();
	return slot;
}

static inline void
recv_ring_publish(struct recv_ring *r, uint32_t prod)
{
	/* Pairs with the acquire of prod in the take. */
	__atomic_store_n(&r->prod, prod, __ATOMIC_RELEASE);
}

/* The oldest WQE where it lies, which recv_ring_pop() then takes; NULL where recv_ring_take() would
 * not just take it. One consuming engine. */
static inline const struct recv_slot *
recv_ring_peek(const struct recv_ring *r)
{
	/* Pairs with the release in recv_ring_publish(). */
	uint32_t count = __atomic_load_n(&r->prod, __ATOMIC_ACQUIRE) - r->cons;

	return likely(count - 1 < r->max_wr) ? recv_ring_slot(r, r->cons) : NULL;
}

static inline void
recv_ring_pop(struct recv_ring *r)
{
	uint32_t cons = r->cons;

	/* Ordered by the release of cons, which the poster acquires first. */
	__atomic_store_n(&recv_ring_slot(r, cons)->seq, cons + r->max_wr, __ATOMIC_RELAXED);
	/* Pairs with the acquire of cons in recv_ring_next(). */
	__atomic_store_n(&r->cons, cons + 1, __ATOMIC_RELEASE);
}

/*
 * Take the oldest WQE: one consuming engine. 0, -EAGAIN when there is none, -EIO when the ring
 * cannot be true (prod more than max_wr ahead, more SGEs than max_sge): what is in out and in
 * the ring is then worth nothing.
 */
int recv_ring_take(struct recv_ring *r, struct recv_wqe *out);

/* The same with several consuming engines: claims with a compare-and-swap on cons. */
int recv_ring_take_shared(struct recv_ring *r, struct recv_wqe *out);

#endif
