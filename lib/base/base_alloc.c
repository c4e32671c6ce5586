/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base_alloc.h"

static void *
plain_get(void *ctx, const char *name, size_t len)
{
	/* aligned_alloc() requires a multiple of the alignment, which is that of rte_ring.
	 * One line even for length 0, so that NULL always means no memory. */
	size_t room =
		len == 0 ? RTE_CACHE_LINE_SIZE : RTE_ALIGN_CEIL(len, RTE_CACHE_LINE_SIZE);
	void *mem;

	(void)ctx;
	(void)name;
	if (room < len)
		return NULL;
	mem = aligned_alloc(RTE_CACHE_LINE_SIZE, room);
	if (mem != NULL)
		memset(mem, 0, room);
	return mem;
}

static void
plain_put(void *ctx, void *mem, size_t len)
{
	(void)ctx;
	(void)len;
	free(mem);
}

const struct alloc alloc_plain = {.get = plain_get, .put = plain_put};

static void *
demand_get(void *ctx, const char *name, size_t len)
{
	void *mem = mmap(NULL, RTE_MAX(len, 1u), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)ctx;
	(void)name;
	return mem != MAP_FAILED ? mem : NULL;
}

static void
demand_put(void *ctx, void *mem, size_t len)
{
	(void)ctx;
	munmap(mem, RTE_MAX(len, 1u));
}

const struct alloc alloc_demand = {.get = demand_get, .put = demand_put};
