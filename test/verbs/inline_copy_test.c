/* SPDX-License-Identifier: BSD-3-Clause */
/* Inline data whose list grows after it was measured: another thread of the application
 * changes it. Nothing behind the slot is written. */

#include "case.h"
#include "verbs/wqe.h"

#define MEASURED 24

static uint8_t source[64], slot[64];

static void
grown(uint32_t first, uint32_t second)
{
	struct ibv_sge list[] = {{.addr = (uintptr_t)source, .length = first},
		{.addr = (uintptr_t)source, .length = second}};

	memset(source, 0x5A, sizeof(source));
	memset(slot, 0, sizeof(slot));
	inline_copy(slot, list, 2, MEASURED);
	for (unsigned i = 0; i < sizeof(slot); i++)
		assert_int_equal(slot[i], i < MEASURED ? 0x5A : 0);
}

TEST(list_that_grows_after_it_was_measured)
{
	grown(16, 8); /* as measured */
	grown(64, 8);
	grown(16, 48);
	grown(24, UINT32_MAX);
	grown(UINT32_MAX, UINT32_MAX);
}
