/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Rounds of passes: engines of one process between which packets travel by rings. A round ends when
 * each engine has completed a pass that began after the round, and in which it emptied its rings. All
 * that was in a ring at the beginning of the round has then left it, and what the engines send for it
 * is in the next ring. (Read-copy-update calls that a grace period.)
 *
 * An engine that finds no round to take part in compares two numbers in a pass.
 */
#ifndef ROCADE_PORT_ROUNDS_H
#define ROCADE_PORT_ROUNDS_H

#include "base/answer_wait.h"

struct round_engine {
	uint32_t done;  /* the last round that has ended for the engine */
	uint32_t began; /* the round that its passes count for; used by the engine only */
	bool ended;     /* it takes part in no round any more */
} LINE_ALIGNED;

/* All zeros at the beginning. */
struct rounds {
	uint32_t number LINE_ALIGNED; /* of the last round that has begun */
	uint32_t count;               /* engines */
	struct round_engine engines[];
};

static inline size_t
rounds_size(uint32_t engines)
{
	return sizeof(struct rounds) + engines * sizeof(struct round_engine);
}

/* At the end of a pass of the engine. answered: it has emptied its rings and holds no answer back. */
static inline void
rounds_pass(struct rounds *r, struct round_engine *e, bool answered)
{
	/* Pairs with rounds_begin(): what was in a ring then is found by the next pass. */
	uint32_t number = __atomic_load_n(&r->number, __ATOMIC_ACQUIRE);

	if (e->done == number)
		return;
	if (e->began == e->done)
		e->began = number;
	else if (answered)
		/* Pairs with the acquire in rounds_has_ended(): the answers are in their ring. */
		__atomic_store_n(&e->done, e->began, __ATOMIC_RELEASE);
}

/* The engine makes no passes any more. */
static inline void
rounds_leave(struct rounds *r, uint32_t index)
{
	__atomic_store_n(&r->engines[index].ended, true, __ATOMIC_RELAXED);
}

/* Begins a round, behind what the caller has put into a ring. Returns its number. */
static inline uint32_t
rounds_begin(struct rounds *r)
{
	return __atomic_add_fetch(&r->number, 1, __ATOMIC_ACQ_REL);
}

static inline bool
rounds_has_ended(const struct rounds *r, uint32_t number)
{
	for (uint32_t i = 0; i < r->count; i++) {
		const struct round_engine *e = &r->engines[i];

		if ((int32_t)(__atomic_load_n(&e->done, __ATOMIC_ACQUIRE) - number) < 0 &&
			!__atomic_load_n(&e->ended, __ATOMIC_RELAXED))
			return false;
	}
	return true;
}

/* Returns whether fewer than that many rounds have ended, one after the other, since the first call
 * for w. */
static inline bool
rounds_wait(struct rounds *r, struct answer_wait *w, unsigned rounds)
{
	while (w->step < rounds) {
		if (!w->marked) {
			w->mark = rounds_begin(r);
			w->marked = true;
		}
		if (!rounds_has_ended(r, w->mark))
			return true;
		w->marked = false;
		w->step++;
	}
	return false;
}

#endif
