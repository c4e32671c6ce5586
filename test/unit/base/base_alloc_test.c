/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/base_alloc.h"
#include "case.h"

/* AddressSanitizer's allocator otherwise aborts where malloc() returns NULL. Visible,
 * because the sanitizer's library looks the function up. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

TEST(memory_is_zeroed_and_aligned)
{
	static const size_t lens[] = {0, 1, 63, 64, 65, 4096, 100000};
	static const struct alloc *const kinds[] = {&alloc_plain, &alloc_demand};

	for (size_t i = 0; i < RTE_DIM(kinds) * RTE_DIM(lens); i++) {
		const struct alloc *kind = kinds[i / RTE_DIM(lens)];
		size_t len = lens[i % RTE_DIM(lens)];

		/* Two rounds: the first writes to the memory, so that in the second one
		 * it is no fresh page of zeroes. */
		for (unsigned round = 0; round < 2; round++) {
			uint8_t *mem = alloc_get(kind, "test", len);

			assert_non_null(mem);
			assert_int_equal((uintptr_t)mem % LINE_SIZE, 0);
			for (size_t at = 0; at < len; at++)
				assert_int_equal(mem[at], 0);
			memset(mem, 0xa5, len);
			alloc_put(kind, mem, len);
		}
	}
}

TEST(overflowing_size_is_refused)
{
	/* The first two would be small if the rounding overflowed. */
	assert_null(alloc_get(&alloc_plain, "test", SIZE_MAX));
	assert_null(alloc_get(&alloc_plain, "test", SIZE_MAX - LINE_SIZE + 2));
	assert_null(alloc_get(&alloc_plain, "test", SIZE_MAX / 2));
	assert_null(alloc_get(&alloc_demand, "test", SIZE_MAX / 2));
}

static unsigned puts_seen;

static void
put_counted(void *ctx, void *mem, size_t len)
{
	(void)mem;
	puts_seen += *(unsigned *)ctx + len;
}

TEST(put_passes_context_and_skips_null)
{
	unsigned weight = 100;
	struct alloc counting = {.put = put_counted, .ctx = &weight};

	puts_seen = 0;
	alloc_put(&counting, NULL, 8);
	assert_int_equal(puts_seen, 0);
	alloc_put(&counting, &weight, 8);
	assert_int_equal(puts_seen, 108);
}
