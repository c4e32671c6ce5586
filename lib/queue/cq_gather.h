/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * The completions of a burst of packets, of one engine, for a CQ that other engines write too.
 * They are written together: one compare-and-swap reserves their slots, and these are neighbours,
 * so that few cache lines move between the engines.
 *
 * Completions are gathered only while the CQ has room for those of all its engines. Behind that they
 * are written one by one, so that an overflow is found where it happens, as without gathering. If
 * engines that write one by one take the room meanwhile, the CQ enters the error state when the
 * gathered completions are written. These stay in cqes then, so that their QPs can be told when the
 * burst has ended, and the rest of the burst is not gathered.
 */
#ifndef ROCADE_QUEUE_CQ_GATHER_H
#define ROCADE_QUEUE_CQ_GATHER_H

#include "queue/cq.h"

#define CQ_GATHER_MAX 32

/* Of an engine; used with the engine lock held. All zero: writes each completion at once. */
struct cq_gather {
	struct cq *cq; /* of the completions gathered */
	uint32_t count;
	bool on; /* between cq_gather_begin() and cq_gather_end() */
	bool solicited;
	/* Completions in cqes that could not be written. The engine sets it to 0. */
	uint32_t lost;
	struct cqe cqes[CQ_GATHER_MAX];
};

/* Enclose a burst. */
void cq_gather_begin(struct cq_gather *gather);
/* Writes what was gathered. */
void cq_gather_end(struct cq_gather *gather);
/* The same, within a burst: before an event that tells the application that it will find a
 * completion. */
void cq_gather_flush(struct cq_gather *gather);

/* As cq_put(), for a CQ that several engines write. */
bool cq_gather_put(struct cq_gather *gather, struct cq *cq, const struct cqe *cqe,
	const uint64_t *now);

/* As cq_put(). All completions of QPs go through here, and so stay in order. */
static inline bool
cq_complete(struct cq_gather *gather, struct cq *cq, const struct cqe *cqe,
	const uint64_t *now)
{
	struct cqe copy;

	if (likely(!cq->shared))
		return cq_put(cq, cqe, now);
	/* Of the copy the address is taken, so that the other path keeps cqe in registers. */
	copy = *cqe;
	return cq_gather_put(gather, cq, &copy, now);
}

#endif
