/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which QPs of an engine were posted to: a byte each, and above them bytes that say where
 * to look. Who posts stores three bytes and waits for nothing: a locked instruction here
 * would hold him up until his request has reached the cache, which with many QPs is a
 * miss for each post. The engine takes the bells in the order of their indices.
 *
 * Any thread rings; one at a time takes (the holder of the engine).
 */
#ifndef ROCADE_ENGINE_BELLS_H
#define ROCADE_ENGINE_BELLS_H

#include "base/common.h"

#define BELLS_GROUP 64 /* bells that one byte above them speaks for */

struct bells {
	uint8_t *bell;
	uint8_t *group;
	uint32_t count;  /* of bells, whole words of groups */
	uint32_t groups; /* to look at: no QP has had a bell behind them; read by any thread */
	uint8_t any LINE_ALIGNED;
};

/* For indices 0..count-1; -ENOMEM. */
int
bells_init(struct bells *bells, uint32_t count);
void
bells_fini(struct bells *bells);

/* From now on this bell may ring. The engine is held. */
void
bells_hang(struct bells *bells, uint32_t index);

/* No bell from this index on has ever been hung. From any thread. */
static inline uint32_t
bells_hung(const struct bells *bells)
{
	return __atomic_load_n(&bells->groups, __ATOMIC_RELAXED) * BELLS_GROUP;
}

/* What was published before is seen by whoever takes this bell. */
static inline void
bells_ring(struct bells *bells, uint32_t index)
{
	/* From below: who finds a byte finds those below it. Each pairs with the exchange
	 * of the same byte in bells.c. */
	__atomic_store_n(&bells->bell[index], 1, __ATOMIC_RELEASE);
	__atomic_store_n(&bells->group[index / BELLS_GROUP], 1, __ATOMIC_RELEASE);
	__atomic_store_n(&bells->any, 1, __ATOMIC_RELEASE);
}

static inline bool
bells_rung(const struct bells *bells)
{
	return __atomic_load_n(&bells->any, __ATOMIC_RELAXED) != 0;
}

/* Takes the bells of the next group that was rung: their indices. 0: there is none. To be
 * called until then; *at is 0 at first. */
unsigned
bells_take(struct bells *bells, uint32_t *at, uint32_t indices[BELLS_GROUP]);

#endif
