/* SPDX-License-Identifier: BSD-3-Clause */
/* When a run counts as a hang. */
#include <faults/run_watch.h>

#include "case.h"

/* Observes states that differ (changing) or not. Returns after how many the watch says something else than that the run goes
 * on, which is said; 0: after none of many. */
static unsigned
watched(struct run_watch w, bool changing, enum run_verdict *said)
{
	for (unsigned i = 1; i <= 5 * REPEAT_LOOKS; i++) {
		*said = run_watch_next(&w, changing ? i : 7, 0);
		if (*said != RUN_GOES_ON)
			return i;
	}
	return 0;
}

TEST(a_state_that_stays_ends_a_run_with_and_without_a_limit)
{
	enum run_verdict said;

	for (unsigned limited = 0; limited < 2; limited++) {
		assert_int_equal(watched((struct run_watch){.limited = limited != 0},
					 false, &said),
			HANG_LOOKS + 1);
		assert_int_equal(said, RUN_HANGS);
	}
}

TEST(a_change_begins_the_count_again)
{
	struct run_watch w = {.limited = true};

	for (unsigned i = 0; i < HANG_LOOKS; i++)
		assert_int_equal(run_watch_next(&w, 1, 0), RUN_GOES_ON);
	for (unsigned i = 0; i < HANG_LOOKS; i++)
		assert_int_equal(run_watch_next(&w, 2, 0), RUN_GOES_ON);
	assert_int_equal(run_watch_next(&w, 2, 0), RUN_HANGS);
}

TEST(a_run_that_repeats_itself_ends_only_if_its_time_is_known)
{
	enum run_verdict said;

	assert_int_equal(
		watched((struct run_watch){.limited = true}, true, &said), REPEAT_LOOKS);
	assert_int_equal(said, RUN_HANGS);
	assert_int_equal(watched((struct run_watch){.limited = false}, true, &said), 0);
}

TEST(what_a_command_leaves_behind_may_stay_or_repeat_itself)
{
	struct run_watch left = {.ended = true};
	enum run_verdict said;

	assert_int_equal(watched(left, false, &said), 2);
	assert_int_equal(said, RUN_IS_QUIET);
	assert_int_equal(watched(left, true, &said), REPEAT_LOOKS);
	assert_int_equal(said, RUN_HANGS);
}

TEST(the_state_when_a_command_ends_is_not_compared_with_those_before)
{
	struct run_watch w = {.limited = true};

	for (unsigned i = 0; i < HANG_LOOKS; i++)
		assert_int_equal(run_watch_next(&w, 1, 0), RUN_GOES_ON);
	w.ended = true;
	assert_int_equal(run_watch_next(&w, 1, 0), RUN_GOES_ON);
	assert_int_equal(run_watch_next(&w, 1, 0), RUN_IS_QUIET);
}

TEST(more_output_than_there_may_be_ends_a_run)
{
	struct run_watch w = {.output_max = 100}, any = {.output_max = 0};

	assert_int_equal(run_watch_next(&w, 1, 100), RUN_GOES_ON);
	assert_int_equal(run_watch_next(&w, 2, 101), RUN_HANGS);
	assert_int_equal(run_watch_next(&any, 1, UINT64_MAX), RUN_GOES_ON);
}
