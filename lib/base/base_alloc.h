/* SPDX-License-Identifier: BSD-3-Clause */
/* Where memory comes from. Ring memory lives in hugepages where a DPDK process hosts the
 * engine, and in ordinary pages elsewhere: the caller that opens a port chooses. Control
 * path only. */
#ifndef ROCADE_BASE_ALLOC_H
#define ROCADE_BASE_ALLOC_H

#include "base/common.h"

struct alloc {
	/* Returns len bytes, zeroed and aligned to RTE_CACHE_LINE_SIZE, or NULL. name is a short
	 * label for listings of memory, not necessarily unique. */
	void *(*get)(void *ctx, const char *name, size_t len);
	void (*put)(void *ctx, void *mem, size_t len);
	void *ctx;
};

/* Ordinary pages (aligned_alloc()): tests, the loop port, control structures. */
extern const struct alloc alloc_plain;

/* Pages that take memory once they are touched (demand paging): for what most processes use
 * little of, or none. */
extern const struct alloc alloc_demand;

static inline void *
alloc_get(const struct alloc *a, const char *name, size_t len)
{
	return a->get(a->ctx, name, len);
}

static inline void
alloc_put(const struct alloc *a, void *mem, size_t len)
{
	if (mem != NULL)
		a->put(a->ctx, mem, len);
}

#endif
