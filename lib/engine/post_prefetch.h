/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Prefetches for posts. An application with many QPs posts to them in the same order
 * again and again, and each post misses the cache on lines last used a round ago: those
 * of the QP, and above all the send queue slot that the request is written to. So the
 * engine remembers for each QP which QP was posted to POST_PREFETCH_DISTANCE posts later,
 * and which slot its next request will take, and prefetches both at the next post to the
 * first QP. A wrong guess costs only the prefetch.
 *
 * ROCADE_POST_PREFETCH=0 in the environment turns it off. The counters post_prefetch_hits
 * and post_prefetch_misses say how many posts were foreseen.
 *
 * The addresses are used by prefetch instructions alone and are never dereferenced: the
 * memory may have been freed. Any thread posts. Threads that post at the same time mix
 * their orders.
 */
#ifndef ROCADE_ENGINE_POST_PREFETCH_H
#define ROCADE_ENGINE_POST_PREFETCH_H

#include "qp/qp.h"

#define POST_PREFETCH_DISTANCE 4 /* posts between the prefetch and the use */
/* with no more QPs than this, their lines stay in the caches */
#define POST_PREFETCH_MIN_QPS 128

struct post_prefetch_hint {
	const struct qp *qp;
	const void *slot;
};
static_assert(LINE_SIZE % sizeof(struct post_prefetch_hint) == 0,
	"a post reads and writes two hints: a line each");

struct post_prefetch {
	struct post_prefetch_hint *hints; /* by QP index; count of them */
	uint32_t count;
	uint32_t posts_counted, hits_counted; /* by post_prefetch_count() */
	uint32_t min_qps; /* POST_PREFETCH_MIN_QPS; UINT32_MAX: turned off, no hints */
	/* Written by each post: QP indices of the last posts, the number of all posts,
	 * and of those that were foreseen. Threads that post at the same time may lose
	 * counts. */
	uint32_t recent[POST_PREFETCH_DISTANCE] LINE_ALIGNED;
	uint32_t posts;
	uint32_t hits;
};

/* For QP indices 0..count-1. Returns 0 or -ENOMEM. */
int post_prefetch_init(struct post_prefetch *post_prefetch, uint32_t count);
void post_prefetch_fini(struct post_prefetch *post_prefetch);

/* Prefetches the slot and the lines that a post reads: those of the QP, and the first of
 * what its creator placed behind it (struct qp). */
static inline void
post_prefetch_issue(const struct post_prefetch_hint *hint)
{
	/* An integer, because pointer arithmetic needs an object: there may be no QP any
	 * more. */
	uintptr_t qp = (uintptr_t)__atomic_load_n(&hint->qp, __ATOMIC_RELAXED);

	__builtin_prefetch(__atomic_load_n(&hint->slot, __ATOMIC_RELAXED), 1);
	__builtin_prefetch((const void *)qp);
	__builtin_prefetch((const void *)(qp + offsetof(struct qp, sq.lock)), 1);
	__builtin_prefetch((const void *)(qp + sizeof(struct qp)));
}

/* Records a post to the QP of this index, and prefetches for the QP expected
 * POST_PREFETCH_DISTANCE posts later. */
static inline void
post_prefetch_update(
	struct post_prefetch *post_prefetch, uint32_t index, const struct qp *qp)
{
	uint32_t at = __atomic_load_n(&post_prefetch->posts, __ATOMIC_RELAXED);
	uint32_t *place = &post_prefetch->recent[at % POST_PREFETCH_DISTANCE];
	uint32_t before = __atomic_load_n(place, __ATOMIC_RELAXED);
	const void *slot = sq_ring_slot(
		&qp->sq.post, __atomic_load_n(&qp->sq.prod, __ATOMIC_RELAXED));

	__atomic_store_n(&post_prefetch->posts, at + 1, __ATOMIC_RELAXED);
	if (likely(__atomic_load_n(&post_prefetch->hints[before].qp, __ATOMIC_RELAXED) ==
		    qp))
		__atomic_store_n(&post_prefetch->hits,
			__atomic_load_n(&post_prefetch->hits, __ATOMIC_RELAXED) + 1,
			__ATOMIC_RELAXED);
	__atomic_store_n(place, index, __ATOMIC_RELAXED);
	__atomic_store_n(&post_prefetch->hints[before].qp, qp, __ATOMIC_RELAXED);
	__atomic_store_n(&post_prefetch->hints[before].slot, slot, __ATOMIC_RELAXED);
	post_prefetch_issue(&post_prefetch->hints[index]);
}

/* Adds what was counted since the last call. With the engine lock held. */
static inline void
post_prefetch_count(struct post_prefetch *post_prefetch, struct port_stats *stats)
{
	uint32_t posts = __atomic_load_n(&post_prefetch->posts, __ATOMIC_RELAXED);
	uint32_t hits = __atomic_load_n(&post_prefetch->hits, __ATOMIC_RELAXED);
	uint32_t hits_new = hits - post_prefetch->hits_counted;

	stats->post_prefetch_hits += hits_new;
	stats->post_prefetch_misses += posts - post_prefetch->posts_counted - hits_new;
	post_prefetch->posts_counted = posts;
	post_prefetch->hits_counted = hits;
}

#endif
