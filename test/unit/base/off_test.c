/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of names in ROCADE_OFF (lib/base/off.h). */
#include "base/off.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "case.h"

static const char *const names[OFF_COUNT] = {
#define OFF(which, name) [OFF_##which] = name,
#include "base/off.def"
#undef OFF
};

static char why[OFF_WHY_MAX];

static int
checked(const char *text)
{
	setenv("ROCADE_OFF", text, 1);
	return off_check(why, sizeof(why));
}

TEST(a_name_turns_off_its_mechanism_and_no_other)
{
	for (unsigned i = 0; i < OFF_COUNT; i++) {
		assert_int_equal(checked(names[i]), 0);
		for (unsigned j = 0; j < OFF_COUNT; j++)
			assert_int_equal(is_off(j), i == j);
	}
}

TEST(a_list_turns_off_each_of_its_names)
{
	assert_int_equal(checked("sack,pairs,advice"), 0);
	for (unsigned i = 0; i < OFF_COUNT; i++)
		assert_int_equal(
			is_off(i), i == OFF_SACK || i == OFF_PAIRS || i == OFF_ADVICE);
}

TEST(nothing_is_off_without_names)
{
	assert_int_equal(checked(""), 0);
	assert_false(is_off(OFF_SACK));
	unsetenv("ROCADE_OFF");
	assert_int_equal(off_check(why, sizeof(why)), 0);
	assert_false(is_off(OFF_SACK));
}

TEST(an_entry_that_is_no_name_is_refused)
{
	static const struct {
		const char *text, *entry;
	} wrong[] = {{"sacks", "'sacks'"}, {"sac", "'sac'"}, {"tlp,SACK", "'SACK'"},
		{"tlp,,sack", "''"}, {"tlp,", "''"}, {",", "''"}, {"1", "'1'"},
		{"tlp, sack", "' sack'"}};

	for (unsigned i = 0; i < RTE_DIM(wrong); i++) {
		assert_int_equal(checked(wrong[i].text), -EINVAL);
		assert_non_null(strstr(why, wrong[i].entry));
		for (unsigned j = 0; j < OFF_COUNT; j++)
			assert_non_null(strstr(why, names[j]));
	}
}
