/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SRQ number -> XRC SRQ, for packets that name one (annex A14). Numbers go upwards from a
 * base and come back once all others were used, so that a packet for an SRQ that is gone
 * does not soon meet another. Changes with every gate held; reads by engines without a
 * lock. Memory comes as it is needed and stays until the end.
 */
#ifndef ROCADE_QUEUE_SRQ_TABLE_H
#define ROCADE_QUEUE_SRQ_TABLE_H

#include "queue/srq.h"

#define SRQ_TABLE_MAX 65536
#define SRQ_TABLE_CHUNK 256
/* The largest base: numbers have 24 bits, and 0xFFFFFF is none. */
#define SRQ_TABLE_BASE_MAX (0xFFFFFFu - SRQ_TABLE_MAX)

struct srq_table {
	struct srq **chunks[SRQ_TABLE_MAX / SRQ_TABLE_CHUNK];
	uint32_t base;
	uint32_t next; /* index to try first */
	uint32_t count;
};

void
srq_table_init(struct srq_table *t, uint32_t base);
/* Empty (asserted). */
void
srq_table_fini(struct srq_table *t);

/* Gives the SRQ its number, and packets find it. -ENOSPC, -ENOMEM. */
int
srq_table_put(struct srq_table *t, struct srq *srq);
void
srq_table_remove(struct srq_table *t, const struct srq *srq);

/* NULL: no SRQ has the number. */
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
