/* SPDX-License-Identifier: BSD-3-Clause */
/* Delta debugging on predicates. */
#include <stdlib.h>
#include <string.h>

#include <faults/drop_parts.h>

#include "case.h"

#define COUNT 100

/* The failure needs all parts of one of two sets. */
struct need {
	bool one[COUNT], other[COUNT];
	unsigned asked, asked_empty;
};

static bool kept[COUNT], spare[COUNT];

static bool
has_all(const bool *there, const bool *set)
{
	bool any = false;

	for (unsigned i = 0; i < COUNT; i++) {
		if (set[i] && !there[i])
			return false;
		any = any || set[i];
	}
	return any;
}

static bool
fails(const bool *there, void *arg)
{
	static const bool none[COUNT];
	struct need *need = arg;

	need->asked++;
	need->asked_empty += memcmp(there, none, sizeof(none)) == 0;
	return has_all(there, need->one) || has_all(there, need->other);
}

static unsigned
dropped_to(struct need *need)
{
	memset(kept, true, sizeof(kept));
	return parts_drop(kept, spare, COUNT, fails, need);
}

TEST(one_part_that_is_needed_is_found_in_few_tries)
{
	for (unsigned i = 0; i < COUNT; i++) {
		struct need need = {.one = {false}};

		need.one[i] = true;
		assert_int_equal(dropped_to(&need), 1);
		assert_true(kept[i]);
		assert_int_equal(need.asked_empty, 0);
		assert_true(need.asked <= 20); /* 100 one by one */
	}
}

TEST(two_parts_that_are_needed_together_are_found)
{
	for (unsigned i = 0; i < COUNT; i++) {
		for (unsigned k = i + 1; k < COUNT; k++) {
			struct need need = {.one = {[0] = false}};

			need.one[i] = need.one[k] = true;
			assert_int_equal(dropped_to(&need), 2);
			assert_true(kept[i] && kept[k]);
		}
	}
}

TEST(of_two_causes_one_is_left)
{
	struct need need = {.one = {[3] = true, [50] = true}, .other = {[51] = true}};
	unsigned left = dropped_to(&need);

	assert_true((left == 1 && kept[51]) || (left == 2 && kept[3] && kept[50]));
}

TEST(what_is_needed_in_full_stays)
{
	struct need need = {.one = {false}};

	memset(need.one, true, sizeof(need.one));
	assert_int_equal(dropped_to(&need), COUNT);
	assert_int_equal(need.asked_empty, 0);
}

/* Part i can go only when those behind it have gone: each pass drops one. */
static bool
fails_in_order(const bool *there, void *arg)
{
	unsigned *count = arg;

	for (unsigned i = 1; i < *count; i++) {
		if (there[i] && !there[i - 1])
			return false;
	}
	return there[0];
}

TEST(passes_go_on_until_no_part_can_go)
{
	for (unsigned count = 1; count <= 40; count++) {
		memset(kept, true, sizeof(kept));
		assert_int_equal(
			parts_drop(kept, spare, count, fails_in_order, &count), 1);
		assert_true(kept[0]);
	}
}

TEST(a_single_part_is_not_tried)
{
	struct need need = {.one = {[0] = true}};

	memset(kept, true, sizeof(kept));
	assert_int_equal(parts_drop(kept, spare, 1, fails, &need), 1);
	assert_int_equal(need.asked, 0);
}
