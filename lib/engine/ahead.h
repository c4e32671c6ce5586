/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prefetches for posts. An application with many QPs posts to them in the same order
 * again and again, and each post misses the cache on lines last used a round ago: those
 * of the QP, and above all the send queue slot that the request is written to. So the
 * engine remembers for each QP which QP was posted to AHEAD_POSTS posts later, and which
 * slot its next request will take, and prefetches both at the next post to the first QP.
 * A wrong guess costs only the prefetch.
 *
 * The addresses are used by prefetch instructions alone and are never dereferenced: the
 * memory may have been freed. Any thread posts. Threads that post at the same time mix
 * their orders.
 */
#ifndef ROCADE_ENGINE_AHEAD_H
#define ROCADE_ENGINE_AHEAD_H

#include "qp/qp.h"

#define AHEAD_POSTS 4 /* posts between the prefetch and the use */
#define AHEAD_QPS 128 /* with no more QPs than this, their lines stay in the caches */

struct ahead_hint {
	const struct qp *qp;
	const void *slot;
};

struct ahead {
	struct ahead_hint *hints; /* by QP index; count of them */
	uint32_t count;
	/* Written by each post. */
	uint32_t recent[AHEAD_POSTS] LINE_ALIGNED; /* indices of the last posts */
	uint32_t posts;
};

/* For QP indices 0..count-1. Returns 0 or -ENOMEM. */
int
ahead_init(struct ahead *ahead, uint32_t count);
void
ahead_fini(struct ahead *ahead);

/* Prefetches the slot and the lines that a post reads, with those behind the QP, which
 * belong to its creator (qp_conf.at). */
static inline void
ahead_fetch(const struct ahead_hint *hint)
{
	/* An integer: there may be no QP, or it may be gone. */
	uintptr_t qp = (uintptr_t)__atomic_load_n(&hint->qp, __ATOMIC_RELAXED);

	__builtin_prefetch(__atomic_load_n(&hint->slot, __ATOMIC_RELAXED), 1);
	__builtin_prefetch((const void *)qp);
	__builtin_prefetch((const void *)(qp + offsetof(struct qp, sq.lock)), 1);
	__builtin_prefetch((const void *)(qp + sizeof(struct qp)));
}

/* Records a post to the QP of this index, and prefetches for the QP expected AHEAD_POSTS
 * posts later. */
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
