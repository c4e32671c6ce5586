/* SPDX-License-Identifier: BSD-3-Clause */
/* The pair of pair_fixture.h for tests of long packets. */
#ifndef ROCADE_TEST_PAIR_LONG_FIXTURE_H
#define ROCADE_TEST_PAIR_LONG_FIXTURE_H

#include "pair_fixture.h"

#define SLOTS 8 /* of the fixture's rings */

static struct pair_fixture f;

static inline int
setup(void **state)
{
	fixture_open(&f);
	return 0;
}

static inline int
teardown(void **state)
{
	fixture_close(&f);
	return 0;
}

/* Of the group: buffers in which long packets fit. */
static inline int
longer_buffers(void **state)
{
	fixture_buf_size = 2048;
	return 0;
}

#endif
