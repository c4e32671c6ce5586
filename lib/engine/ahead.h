/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who has many QPs posts to them in turn, in the same order again and again, and each post waits
 * for lines that left the caches a round ago: the QP's, and above all the slot of its ring that
 * the request is written to. So an engine remembers for each QP which one was posted to a few
 * posts later, and where that one's next request will go, and fetches both when the QP is posted
 * to again. A wrong guess costs nothing but the fetch.
 *
 * Addresses are for prefetch instructions alone, and never read through: what was there may be
 * gone. Any thread posts; threads that do so at the same time mix their orders.
 */
#ifndef ROCADE_ENGINE_AHEAD_H
#define ROCADE_ENGINE_AHEAD_H

#include "qp/qp.h"

#define AHEAD_POSTS 4 /* so many posts between the fetch and the use */
#define AHEAD_QPS 128 /* fewer stay in the caches */

struct ahead_hint {
	const struct qp *qp;
	const void *slot;
};

struct ahead {
	struct ahead_hint *hints; /* by the QP's index; count of them */
	uint32_t count;
	/* Written by each post. */
	uint32_t recent[AHEAD_POSTS] LINE_ALIGNED; /* indices of the last ones */
	uint32_t posts;
};

/* For indices 0..count-1; -ENOMEM. */
int
ahead_init(struct ahead *ahead, uint32_t count);
void
ahead_fini(struct ahead *ahead);

/* The lines that a post looks at, those of its creator behind the QP among them (struct qp_conf's
 * at), and the slot. */
static inline void
ahead_fetch(const struct ahead_hint *hint)
{
	/* A number: there may be no QP, or none any more. */
	uintptr_t qp = (uintptr_t)__atomic_load_n(&hint->qp, __ATOMIC_RELAXED);

	__builtin_prefetch(__atomic_load_n(&hint->slot, __ATOMIC_RELAXED), 1);
	__builtin_prefetch((const void *)qp);
	__builtin_prefetch((const void *)(qp + offsetof(struct qp, sq.lock)), 1);
	__builtin_prefetch((const void *)(qp + sizeof(struct qp)));
}

/* The QP of this index was posted to. */
static inline void
ahead_posted(struct ahead *ahead, uint32_t index, const struct qp *qp)
{
	uint32_t at = __atomic_load_n(&ahead->posts, __ATOMIC_RELAXED);
	uint32_t *place = &ahead->recent[at % AHEAD_POSTS];
	uint32_t before = __atomic_load_n(place, __ATOMIC_RELAXED);
	const void *slot = sq_ring_slot(
		&qp->sq.post, __atomic_load_n(&qp->sq.prod, __ATOMIC_RELAXED));

	__atomic_store_n(&ahead->posts, at + 1, __ATOMIC_RELAXED);
	__atomic_store_n(place, index, __ATOMIC_RELAXED);
	__atomic_store_n(&ahead->hints[before].qp, qp, __ATOMIC_RELAXED);
	__atomic_store_n(&ahead->hints[before].slot, slot, __ATOMIC_RELAXED);
	ahead_fetch(&ahead->hints[index]);
}

#endif
