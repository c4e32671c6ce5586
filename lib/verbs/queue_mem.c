/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "verbs/queue_mem.h"

#define PIECES 8 /* more than an object has */

struct queue_mem {
	struct alloc mem; /* for the object */
	const struct alloc *port;
	struct verbs_pd *domain;
	uint64_t type;
	bool created;
	unsigned count;
	void *pieces[PIECES]; /* those that the domain's allocator gave */
};

static void
piece_free(const struct queue_mem *q, void *piece)
{
	q->domain->allocators.free(
		&q->domain->ibv, q->domain->allocators.pd_context, piece, q->type);
}

static void *
queue_mem_get(void *ctx, const char *name, size_t len)
{
	struct queue_mem *q = ctx;
	void *piece;

	if (q->created || q->count == PIECES)
		return alloc_get(q->port, name, len);
	piece = q->domain->allocators.alloc(&q->domain->ibv,
		q->domain->allocators.pd_context, len, RTE_CACHE_LINE_SIZE, q->type);
	if (piece == IBV_ALLOCATOR_USE_DEFAULT)
		return alloc_get(q->port, name, len);
	if (piece == NULL)
		return NULL;
	if ((uintptr_t)piece % RTE_CACHE_LINE_SIZE != 0) {
		piece_free(q, piece);
		return NULL;
	}
	q->pieces[q->count++] = piece;
	/* The allocator has to clear it, and not all do. Bytes that look like a completion must
	 * not be in a new queue. */
	return memset(piece, 0, len);
}

static void
queue_mem_put(void *ctx, void *piece, size_t len)
{
	const struct queue_mem *q = ctx;

	for (unsigned i = 0; i < q->count; i++) {
		if (q->pieces[i] == piece)
			return; /* queue_mem_free() frees it, without a lock */
	}
	alloc_put(q->port, piece, len);
}

const struct alloc *
queue_mem_new(struct verbs_pd *pd, const struct alloc *port, enum rocade_resource type)
{
	struct queue_mem *q;

	if (pd == NULL || pd->allocators.alloc == NULL)
		return port;
	q = calloc(1, sizeof(*q));
	if (q == NULL)
		return NULL;
	q->mem = (struct alloc){.get = queue_mem_get, .put = queue_mem_put, .ctx = q};
	q->port = port;
	q->domain = pd;
	q->type = type;
	return &q->mem;
}

void
queue_mem_created(const struct alloc *mem)
{
	if (mem->get == queue_mem_get)
		((struct queue_mem *)mem->ctx)->created = true;
}

void
queue_mem_free(const struct alloc *mem)
{
	struct queue_mem *q;

	if (mem->get != queue_mem_get)
		return;
	q = mem->ctx;
	while (q->count != 0)
		piece_free(q, q->pieces[--q->count]);
	free(q);
}
