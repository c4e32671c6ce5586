/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbells: which QPs of an engine were posted to. There is a byte for each QP, one for
 * each group of QPs, and one for all. A post stores three bytes with release and uses no
 * locked instruction, which would wait until the request has reached the cache: with many
 * QPs, a miss for each post. The engine drains the doorbells in the order of their
 * indices.
 *
 * Any thread rings. One thread at a time drains: the holder of the engine lock.
 */
#ifndef ROCADE_ENGINE_BELLS_H
#define ROCADE_ENGINE_BELLS_H

#include "base/common.h"

#define BELLS_GROUP 64 /* doorbells of one group byte */

struct bells {
	uint8_t *bell;
	uint8_t *group;
	uint32_t count;  /* doorbells: a multiple of those of eight groups */
	/* groups to scan: those behind them have no doorbell enabled; read by any
	 * thread */
	uint32_t groups;
	uint8_t any LINE_ALIGNED;
};

/* For QP indices 0..count-1. Returns 0 or -ENOMEM. */
int
bells_init(struct bells *bells, uint32_t count);
void
bells_fini(struct bells *bells);

/* Enables the doorbell of this QP index. With the engine lock held. */
void
bells_hang(struct bells *bells, uint32_t index);

/* Returns an upper bound of the enabled indices. Any thread. */
static inline uint32_t
bells_hung(const struct bells *bells)
{
	return __atomic_load_n(&bells->groups, __ATOMIC_RELAXED) * BELLS_GROUP;
}

/* The thread that drains this doorbell sees what was published before. */
static inline void
bells_ring(struct bells *bells, uint32_t index)
{
	/* From the lowest level up: the drain that finds a byte set finds those below it
	 * set too. Each store pairs with the exchange of the same byte in bells.c. */
	__atomic_store_n(&bells->bell[index], 1, __ATOMIC_RELEASE);
	__atomic_store_n(&bells->group[index / BELLS_GROUP], 1, __ATOMIC_RELEASE);
	__atomic_store_n(&bells->any, 1, __ATOMIC_RELEASE);
}

static inline bool
bells_rung(const struct bells *bells)
{
	return __atomic_load_n(&bells->any, __ATOMIC_RELAXED) != 0;
}

/* Drains the next group with pending doorbells: writes their indices, and returns their
 * number. Called until it returns 0; *at is 0 before the first call. */
unsigned
bells_take(struct bells *bells, uint32_t *at, uint32_t indices[BELLS_GROUP]);

#endif
