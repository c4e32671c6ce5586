/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_malloc.h>

#include "ethdev/ethdev.h"

static void *
socket_alloc_get(void *ctx, const char *name, size_t len)
{
	return rte_zmalloc_socket(name, len, RTE_CACHE_LINE_SIZE, (int)(intptr_t)ctx);
}

static void
socket_alloc_put(void *ctx, void *mem, size_t len)
{
	(void)ctx;
	(void)len;
	rte_free(mem);
}

struct alloc
ethdev_alloc(int socket)
{
	return (struct alloc){.get = socket_alloc_get,
		.put = socket_alloc_put,
		.ctx = (void *)(intptr_t)socket};
}
