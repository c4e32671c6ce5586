/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <stdlib.h>

#include "queue/srq_table.h"

void
srq_table_init(struct srq_table *t, uint32_t base)
{
	assert(base <= SRQ_TABLE_BASE_MAX);
	*t = (struct srq_table){.base = base};
}

void
srq_table_fini(struct srq_table *t)
{
	assert(t->count == 0);
	for (size_t i = 0; i < RTE_DIM(t->chunks); i++)
		free(t->chunks[i]);
}

static struct srq **
slot_of(const struct srq_table *t, uint32_t index)
{
	return &t->chunks[index / SRQ_TABLE_CHUNK][index % SRQ_TABLE_CHUNK];
}

int
srq_table_put(struct srq_table *t, struct srq *srq)
{
	uint32_t index = t->next;
	struct srq **chunk;

	if (t->count == SRQ_TABLE_MAX)
		return -ENOSPC;
	while (srq_table_get(t, t->base + index) != NULL)
		index = (index + 1) % SRQ_TABLE_MAX;
	if (t->chunks[index / SRQ_TABLE_CHUNK] == NULL) {
		chunk = calloc(SRQ_TABLE_CHUNK, sizeof(struct srq *));
		if (chunk == NULL)
			return -ENOMEM;
		/* Pairs with the acquire in srq_table_get(). */
		__atomic_store_n(
			&t->chunks[index / SRQ_TABLE_CHUNK], chunk, __ATOMIC_RELEASE);
	}
	srq->srqn = t->base + index;
	/* Pairs with the acquire in srq_table_get(). */
	__atomic_store_n(slot_of(t, index), srq, __ATOMIC_RELEASE);
	t->next = (index + 1) % SRQ_TABLE_MAX;
	t->count++;
	return 0;
}

void
srq_table_remove(struct srq_table *t, const struct srq *srq)
{
	assert(srq_table_get(t, srq->srqn) == srq);
	__atomic_store_n(slot_of(t, srq->srqn - t->base), NULL, __ATOMIC_RELEASE);
	t->count--;
}
