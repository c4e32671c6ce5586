/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Moderation of completion events (ibv_modify_cq(3), IBV_CQ_ATTR_MODERATE): an armed CQ raises its
 * event when as many completions as cq_count have been written that it is armed for, or cq_period
 * microseconds after the first of them. With either of them 0, each arming has its event at once.
 * Only CQs that are moderated and armed cost anything.
 *
 * The CQs of a device that wait for their time are in its list. An engine looks at it in the pass
 * whose time has reached `due`.
 */
#ifndef ROCADE_QUEUE_CQ_MODERATE_H
#define ROCADE_QUEUE_CQ_MODERATE_H

#include <sys/queue.h>

#include <rte_spinlock.h>

#include "base/common.h"

struct cq;

/* Of a device. */
struct cq_moderator {
	/* 0: a CQ has been added since the last look; TIME_NEVER: none waits. Read by all
	 * engines, changed with the lock. */
	uint64_t due_ns;
	rte_spinlock_t lock; /* guards the list, and struct cq_moderation of all CQs */
	TAILQ_HEAD(, cq_moderation) waiting;
	/* Relaxed: the device has a progress thread, so that the following are counted. */
	bool counts;
	/* Relaxed: how many CQs of the device are armed for a program that sleeps on the descriptor of their
	 * channel, and how many events completions have raised, but for those that moderation held back. */
	uint32_t armed LINE_ALIGNED;
	uint32_t raised;
};

/* Of a CQ. */
struct cq_moderation {
	TAILQ_ENTRY(cq_moderation) link;
	uint64_t period_ns; /* 0: not moderated */
	uint64_t due_ns;    /* when the event is raised at the latest; 0: not set yet */
	uint32_t count;     /* completions for an event */
	uint32_t written;   /* since the last event */
	bool waits;         /* is in the list */
};

/* Raises the event of an armed CQ, whether or not it is moderated. Returns whether it was armed. */
bool cq_event_raise(struct cq *cq);

void cq_moderator_init(struct cq_moderator *m);

static inline uint64_t
cq_moderator_due(const struct cq_moderator *m)
{
	return __atomic_load_n(&m->due_ns, __ATOMIC_RELAXED);
}

static inline bool
cq_moderator_counts(const struct cq_moderator *m)
{
	return m != NULL && __atomic_load_n(&m->counts, __ATOMIC_RELAXED);
}

/* The word of a CQ (enum cq_armed) has changed. m: NULL if it has no CQ_COUNTED. */
void cq_moderator_count(struct cq_moderator *m, uint8_t old, uint8_t armed);

/* Returns whether a CQ is armed for a program that sleeps, or is about to. */
static inline bool
cq_moderator_armed(const struct cq_moderator *m)
{
	return __atomic_load_n(&m->armed, __ATOMIC_RELAXED) != 0;
}

/* Returns how many events completions have raised so far. */
static inline uint32_t
cq_moderator_raised(const struct cq_moderator *m)
{
	return __atomic_load_n(&m->raised, __ATOMIC_RELAXED);
}

/* Raises the events whose time has come. */
void cq_moderator_run(struct cq_moderator *m, uint64_t now);

/* Sets the moderation of a CQ; either 0: ends it. An event that waits is raised. The caller holds
 * all engine locks. */
void cq_moderate(struct cq *cq, uint16_t count, uint16_t period_us);

/* A moderated CQ, which is armed, got n completions that it is armed for. Returns whether its event
 * is due now. */
bool cq_moderated_is_due(struct cq *cq, uint32_t n);

#endif
