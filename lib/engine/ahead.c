/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "engine/ahead.h"

int
ahead_init(struct ahead *ahead, uint32_t count)
{
	*ahead = (struct ahead){.count = count};
	ahead->hints = alloc_get(&alloc_plain, "ahead", count * sizeof(*ahead->hints));
	return ahead->hints != NULL ? 0 : -ENOMEM;
}

void
ahead_fini(struct ahead *ahead)
{
	alloc_put(&alloc_plain, ahead->hints, ahead->count * sizeof(*ahead->hints));
}
