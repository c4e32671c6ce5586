/* SPDX-License-Identifier: BSD-3-Clause */
/* How long packets wake the progress thread although the application polls. */
#include <stdint.h>

#include "case.h"
#include "engine/delegation.h"

#define BEGIN NS_PER_SEC

TEST(lasts_for_a_while)
{
	struct delegation d = {0};

	assert_false(delegation_holds(&d, 0));
	delegation_taken(&d);
	assert_false(delegation_holds(&d, BEGIN));
	delegation_begin(&d, BEGIN);
	assert_true(delegation_holds(&d, BEGIN + DELEGATION_FIRST_NS - 1));
	assert_false(delegation_holds(&d, BEGIN + DELEGATION_FIRST_NS));
}

TEST(lasts_longer_each_time)
{
	struct delegation d = {0};
	uint64_t now = BEGIN, ns = DELEGATION_FIRST_NS;

	for (unsigned i = 0; i < 10; i++) {
		delegation_begin(&d, now);
		assert_true(delegation_holds(&d, now + ns - 1));
		assert_false(delegation_holds(&d, now + ns));
		now += ns + 4 * ns - 1;
		ns = RTE_MIN(2 * ns, DELEGATION_LAST_NS);
	}
	now++;
	delegation_begin(&d, now);
	assert_false(delegation_holds(&d, now + DELEGATION_FIRST_NS));
}

/* The application takes packets, with nothing that the thread takes in between. */
TEST(ends_with_bursts_of_the_application)
{
	struct delegation d = {0};

	delegation_begin(&d, BEGIN);
	for (unsigned i = 0; i < DELEGATION_BURSTS - 1; i++)
		delegation_burst(&d);
	delegation_taken(&d);
	for (unsigned i = 0; i < DELEGATION_BURSTS - 1; i++)
		delegation_burst(&d);
	assert_true(delegation_holds(&d, BEGIN));
	delegation_burst(&d);
	assert_false(delegation_holds(&d, BEGIN));
	/* Nothing is left of it, but for the next one. */
	delegation_burst(&d);
	delegation_taken(&d);
	assert_false(delegation_holds(&d, BEGIN));
	delegation_begin(&d, BEGIN);
	assert_true(delegation_holds(&d, BEGIN + DELEGATION_FIRST_NS - 1));
}
