/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "engine/post_prefetch.h"

int
post_prefetch_init(struct post_prefetch *post_prefetch, uint32_t count)
{
	*post_prefetch = (struct post_prefetch){.count = count};
	post_prefetch->hints = alloc_get(
		&alloc_plain, "post_prefetch", count * sizeof(*post_prefetch->hints));
	return post_prefetch->hints != NULL ? 0 : -ENOMEM;
}

void
post_prefetch_fini(struct post_prefetch *post_prefetch)
{
	alloc_put(&alloc_plain, post_prefetch->hints,
		post_prefetch->count * sizeof(*post_prefetch->hints));
}
