/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include "engine/clock.h"
#include "test_clock.h"

const uint64_t *test_clock;

void
clock_init(void)
{
}

uint64_t
clock_now(void)
{
	return test_clock != NULL ? *test_clock : 0;
}

uint64_t
clock_wall(void)
{
	return clock_now();
}
