/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Doorbells: which QPs of an engine were posted to. There is a byte for each QP, one for
 * each group of DOORBELLS_GROUP QPs, and one for all. A post stores these three bytes
 * with release. It uses no locked instruction, because that would wait until the stores
 * of the request have reached the cache: with many QPs, a cache miss for each post. The
 * engine drains the doorbells in the order of their indices.
 *
 * Any thread rings. One thread at a time drains: the holder of the engine lock.
 */
#ifndef ROCADE_ENGINE_DOORBELL_H
#define ROCADE_ENGINE_DOORBELL_H

#include "base/common.h"

#define DOORBELLS_GROUP 64 /* doorbells of one group byte */

struct doorbells {
	uint8_t *doorbell; /* by QP index; 1: pending */
	uint8_t *group;    /* 1: a doorbell of the group may be pending */
	/* size of doorbell: a multiple of 8 * DOORBELLS_GROUP, as eight group bytes are
	 * tested at once */
	uint32_t count;
	uint32_t groups; /* to scan: those behind them have no doorbell enabled */
	uint8_t any LINE_ALIGNED; /* 1: any doorbell may be pending */
	/* 1: the engine sleeps, and has to be woken for what is posted; see engine_sleep.h. On
	 * the line that posts write. */
	uint32_t asleep;
};

/* For QP indices 0..count-1. Returns 0 or -ENOMEM. */
int doorbells_init(struct doorbells *doorbells, uint32_t count);
void doorbells_fini(struct doorbells *doorbells);

/* Enables the doorbell of this QP index. With the engine lock held. */
void doorbells_enable(struct doorbells *doorbells, uint32_t index);

/* Rings the doorbell of this QP index. The thread that drains it sees what this thread
 * has published before. */
static inline void
doorbells_ring(struct doorbells *doorbells, uint32_t index)
{
	/* From the lowest level up: the drain that finds a byte set finds those below it
	 * set too. Each store pairs with the exchange of the same byte in doorbell.c. */
	__atomic_store_n(&doorbells->doorbell[index], 1, __ATOMIC_RELEASE);
	__atomic_store_n(&doorbells->group[index / DOORBELLS_GROUP], 1, __ATOMIC_RELEASE);
	__atomic_store_n(&doorbells->any, 1, __ATOMIC_RELEASE);
}

static inline bool
doorbells_pending(const struct doorbells *doorbells)
{
	return __atomic_load_n(&doorbells->any, __ATOMIC_RELAXED) != 0;
}

/* Drains the next group with pending doorbells: writes their indices, and returns their
 * number. Called until it returns 0; *at is 0 before the first call. */
unsigned doorbells_drain(
	struct doorbells *doorbells, uint32_t *at, uint32_t indices[DOORBELLS_GROUP]);

#endif
