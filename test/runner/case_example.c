/* SPDX-License-Identifier: BSD-3-Clause */
/* A program for case_test.py. EXAMPLE in the environment says what fails or is missing. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

static bool
example(const char *what)
{
	const char *set = getenv("EXAMPLE");

	return set != NULL && strcmp(set, what) == 0;
}

static int
begin(void **state)
{
	assert_false(example("assertion in the setup of the group"));
	return example("setup of the group");
}

static int
end(void **state)
{
	assert_false(example("assertion in the teardown of the group"));
	return example("teardown of the group");
}

static int
give(void **state)
{
	*state = "given";
	return 0;
}

TEST(z_is_first)
{
	assert_null(*state);
}

TEST_WITH(m_has_a_state, give, NULL)
{
	assert_string_equal(*state, "given");
}

static void
may_fail(void **state)
{
	assert_false(example("case"));
}

TEST_ADD(a_runs_a_function, may_fail, NULL, NULL)
TEST_ADD(again, may_fail, give, NULL)

TEST_GROUP(begin, end)

static void __attribute__((constructor)) none_on_this_machine(void)
{
	if (example("machine"))
		case_skip_all("no such machine");
}
