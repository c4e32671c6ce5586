/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/*
 * Maps an SRQ number to its XRC SRQ, for packets that carry one (annex A14). Numbers
 * ascend from a base and are reused only after all others were used, so that a late
 * packet for a destroyed SRQ does not soon match a new one. Changes need all engine
 * locks; engines read without a lock. Memory is allocated on demand and freed by
 * srq_table_fini().
 */
#ifndef ROCADE_QUEUE_SRQ_TABLE_H
#define ROCADE_QUEUE_SRQ_TABLE_H

#include "queue/srq.h"

#define SRQ_TABLE_MAX 65536
#define SRQ_TABLE_CHUNK 256
/* The largest base: numbers have 24 bits, and 0xFFFFFF is reserved. */
#define SRQ_TABLE_BASE_MAX (0xFFFFFFu - SRQ_TABLE_MAX)

struct srq_table {
	struct srq **chunks[SRQ_TABLE_MAX / SRQ_TABLE_CHUNK];
	uint32_t base;
	uint32_t next; /* index to try first */
	uint32_t count;
};

void srq_table_init(struct srq_table *t, uint32_t base);
/* The table must be empty (asserted). */
void srq_table_fini(struct srq_table *t);

/* Assigns a number to the SRQ and publishes it to srq_table_get(). -ENOSPC, -ENOMEM. */
int srq_table_put(struct srq_table *t, struct srq *srq);
void srq_table_remove(struct srq_table *t, const struct srq *srq);

/* Returns whether this is one of the numbers that the table assigns. */
static inline bool
srq_table_covers(const struct srq_table *t, uint32_t srqn)
{
	return srqn - t->base < SRQ_TABLE_MAX;
}

/* Returns NULL if no SRQ has this number. */
static inline struct srq *
srq_table_get(const struct srq_table *t, uint32_t srqn)
{
	uint32_t index = srqn - t->base;
	struct srq **chunk;

	if (unlikely(index >= SRQ_TABLE_MAX))
		return NULL;
	/* Both pair with the releases in srq_table_put(). */
	chunk = __atomic_load_n(&t->chunks[index / SRQ_TABLE_CHUNK], __ATOMIC_ACQUIRE);
	if (unlikely(chunk == NULL))
		return NULL;
	return __atomic_load_n(&chunk[index % SRQ_TABLE_CHUNK], __ATOMIC_ACQUIRE);
}

#endif
