/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces lib/engine/clock.c. Time advances with the passes of the poll loop, so that
 * instruction counts do not depend on the speed of the machine. */
#include "engine/clock.h"

#include "clock_cost.h"

static uint64_t now_ns = NS_PER_SEC;

void
clock_step(uint64_t ns)
{
	now_ns += ns;
}

void
clock_init(void)
{
}

uint64_t
clock_now(void)
{
	return now_ns;
}

uint64_t
clock_wall(void)
{
	return now_ns;
}
