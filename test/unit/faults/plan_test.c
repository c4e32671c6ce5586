/* SPDX-License-Identifier: BSD-3-Clause */
/* Which calls of a process the rules of a script refuse. */
#include <errno.h>
#include <string.h>

#include "faults/faults.h"

#include "case.h"

#define CALLS_MADE 100000

static struct fault_script script;
static struct fault_plan plan;

static void
plan_make(const char *text, uint64_t seed, const char *program)
{
	char why[FAULT_WHY_MAX];
	const char *names[] = {program, "comm"};

	assert_int_equal(fault_script_parse(&script, text, strlen(text), why), 0);
	assert_int_equal(fault_plan_init(&plan, &script, seed, names, 2), 0);
}

static void
plan_end(void)
{
	fault_plan_free(&plan);
	fault_script_free(&script);
}

/* Makes calls, and returns the numbers of those that are refused as a text. */
static const char *
refused(enum fault_call call, unsigned calls)
{
	static char out[4096];

	out[0] = '\0';
	for (unsigned i = 0; i < calls; i++) {
		struct fault_hit hit = fault_plan_next(&plan, call);
		size_t len = strlen(out);

		if (hit.rule == NULL)
			continue;
		fault_plan_applied(&plan, &hit);
		snprintf(out + len, sizeof(out) - len, "%u:%u ", (unsigned)hit.number,
			hit.rule->line);
	}
	return out;
}

TEST(a_rule_refuses_the_call_of_its_number)
{
	plan_make("call 3 of reg_mr: ENOMEM", 1, "p");
	assert_string_equal(refused(FAULT_reg_mr, 10), "3:1 ");
	assert_int_equal(plan.applied[0], 1);
	plan_end();
}

TEST(a_rule_refuses_each_call_of_a_multiple)
{
	plan_make("each 4th reg_mr: ENOMEM", 1, "p");
	assert_string_equal(refused(FAULT_reg_mr, 12), "4:1 8:1 12:1 ");
	assert_int_equal(plan.applied[0], 3);
	plan_end();
}

TEST(calls_of_other_functions_do_not_count)
{
	plan_make("call 2 of reg_mr: ENOMEM\ncall 1 of create_qp: ENOMEM", 1, "p");
	assert_string_equal(refused(FAULT_poll_cq, 10), "");
	assert_string_equal(refused(FAULT_reg_mr, 2), "2:1 ");
	assert_string_equal(refused(FAULT_create_qp, 2), "1:2 ");
	plan_end();
}

TEST(the_first_rule_of_the_script_that_matches_is_applied)
{
	plan_make("each 2nd reg_mr: ENOMEM\neach 1st reg_mr: EINVAL", 1, "p");
	assert_string_equal(refused(FAULT_reg_mr, 4), "1:2 2:1 3:2 4:1 ");
	plan_end();
}

TEST(a_rule_concerns_the_program_that_it_names)
{
	plan_make("in \"a\": call 1 of reg_mr: ENOMEM\n"
		  "in \"b\": call 2 of reg_mr: ENOMEM\n"
		  "in \"comm\": call 3 of reg_mr: ENOMEM\n"
		  "call 4 of reg_mr: ENOMEM",
		1, "b");
	assert_string_equal(refused(FAULT_reg_mr, 10), "2:2 3:3 4:4 ");
	assert_int_equal(plan.start[FAULT_CALLS], 3);
	plan_end();
}

/* A journal has names in quotes, a name a line. */
TEST(bytes_that_a_script_cannot_have_are_question_marks)
{
	plan_make("in \"a?b?\": call 1 of reg_mr: ENOMEM\n"
		  "in \"a?b\": call 2 of reg_mr: ENOMEM\n"
		  "in \"a\tb?\": call 3 of reg_mr: ENOMEM\n"
		  "in \"a?b?c\": call 4 of reg_mr: ENOMEM",
		1, "a\"b\n");
	assert_string_equal(refused(FAULT_reg_mr, 5), "1:1 3:3 ");
	plan_end();
}

TEST(rules_concern_the_calls_that_they_name)
{
	plan_make("call 2 of reg_mr: ENOMEM\nin \"a\": call 1 of poll_cq: EIO", 1, "b");
	assert_true(fault_plan_concerns(&plan, FAULT_reg_mr));
	assert_false(fault_plan_concerns(&plan, FAULT_poll_cq));
	assert_false(fault_plan_concerns(&plan, FAULT_alloc_mw));
	assert_false(fault_plan_concerns(&plan, FAULT_wr_complete));
	plan_end();
}

TEST(a_forked_child_counts_from_the_beginning)
{
	plan_make("call 2 of reg_mr: ENOMEM", 1, "p");
	assert_string_equal(refused(FAULT_reg_mr, 3), "2:1 ");
	fault_plan_restart(&plan);
	assert_int_equal(plan.applied[0], 0);
	assert_string_equal(refused(FAULT_reg_mr, 3), "2:1 ");
	plan_end();
}

TEST(the_same_seed_draws_the_same_calls)
{
	static const char text[] = "10% of reg_mr: ENOMEM";
	char first[4096];

	plan_make(text, 7, "p");
	strcpy(first, refused(FAULT_reg_mr, 100));
	assert_true(first[0] != '\0');
	plan_end();
	plan_make(text, 7, "p");
	assert_string_equal(refused(FAULT_reg_mr, 100), first);
	plan_end();
	plan_make(text, 8, "p");
	assert_string_not_equal(refused(FAULT_reg_mr, 100), first);
	plan_end();
}

/* Two rules of one probability draw different calls: about 1,000 of 100,000 are of both. */
TEST(each_rule_draws_its_own_calls)
{
	unsigned of_first = 0, of_second = 0, of_both = 0;

	plan_make("10% of reg_mr: ENOMEM\n10% of reg_mr: EINVAL", 1, "p");
	for (uint64_t n = 1; n <= CALLS_MADE; n++) {
		bool first = fault_rule_matches(&script.rules[0], 0, 1, n);
		bool second = fault_rule_matches(&script.rules[1], 1, 1, n);

		of_first += first;
		of_second += second;
		of_both += first && second;
	}
	assert_in_range(of_first, 9500, 10500);
	assert_in_range(of_second, 9500, 10500);
	assert_in_range(of_both, 800, 1200);
	plan_end();
}

TEST(a_share_of_everything_refuses_every_call)
{
	plan_make("100% of reg_mr: ENOMEM", 3, "p");
	assert_string_equal(refused(FAULT_reg_mr, 3), "1:1 2:1 3:1 ");
	plan_end();
}
