/* SPDX-License-Identifier: BSD-3-Clause */
#include "early_malloc.h"

#include <dlfcn.h>
#include <stdlib.h>

static unsigned calls;

__attribute__((visibility("default"))) unsigned
early_malloc_calls(void)
{
	return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

__attribute__((visibility("default"))) void *
malloc(size_t size)
{
	static void *(*next)(size_t size);

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "malloc");
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	return next(size);
}
