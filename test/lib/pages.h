/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that stands for that which a client and the daemon share. */
#ifndef ROCADE_TEST_PAGES_H
#define ROCADE_TEST_PAGES_H

#include <stdlib.h>
#include <string.h>

/* Returns zeroed pages, which the caller frees. */
static inline void *
pages_make(size_t size)
{
	void *mem = aligned_alloc(4096, size);

	assert_non_null(mem);
	return memset(mem, 0, size);
}

#endif
