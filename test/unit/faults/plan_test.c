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
	assert_int_equal(plan.start[FAULT_COUNTED], 3);
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
		bool first = fault_rule_matches(&script.rules[0], 0, 1, 0, n);
		bool second = fault_rule_matches(&script.rules[1], 1, 1, 0, n);

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

/* Posts requests, and returns the numbers of those of which a rule makes something as a text. */
static const char *
hit(unsigned counted, struct fault_queue queue, unsigned requests, unsigned kind)
{
	static char out[4096];

	out[0] = '\0';
	for (unsigned i = 1; i <= requests; i++) {
		struct fault_hit one = fault_plan_request(&plan, counted, queue, i, kind);
		size_t len = strlen(out);

		if (one.rule == NULL)
			continue;
		assert_int_equal(one.number, i);
		assert_int_equal(one.queue.number, queue.number);
		fault_plan_applied(&plan, &one);
		snprintf(out + len, sizeof(out) - len, "%u:%u ", i, one.rule->line);
	}
	return out;
}

static const struct fault_queue qp1 = {FAULT_QP, 1}, qp2 = {FAULT_QP, 2},
				srq1 = {FAULT_SRQ, 1};

TEST(a_rule_counts_the_requests_of_its_queue)
{
	plan_make("request 3 of qp 2: fail retry-exceeded\n"
		  "each 4th request: fail remote-operation\n"
		  "receive 1 of srq 1: fail local-length\n"
		  "receive 2: fail local-protection",
		1, "p");
	assert_string_equal(
		hit(FAULT_REQUESTS, qp1, 5, FAULT_ON_SEND | FAULT_OF_RC), "4:2 ");
	assert_string_equal(
		hit(FAULT_REQUESTS, qp2, 8, FAULT_ON_SEND | FAULT_OF_RC), "3:1 4:2 8:2 ");
	assert_string_equal(hit(FAULT_RECEIVES, qp1, 3,
				    FAULT_ON_RECEIVE | FAULT_ON_BYTES | FAULT_OF_UD),
		"2:4 ");
	assert_string_equal(hit(FAULT_RECEIVES, srq1, 3,
				    FAULT_ON_RECEIVE | FAULT_ON_BYTES | FAULT_OF_SRQ),
		"1:3 2:4 ");
	assert_int_equal(plan.count[FAULT_REQUESTS], 13);
	assert_int_equal(plan.count[FAULT_RECEIVES], 6);
	assert_int_equal(plan.applied[1], 3);
	plan_end();
}

TEST(a_request_that_cannot_have_the_status_is_passed_over)
{
	plan_make("request 1: fail remote-access\nrequest 1: fail local-length\n"
		  "request 1: event qp-fatal",
		1, "p");
	assert_string_equal(
		hit(FAULT_REQUESTS, qp1, 1, FAULT_ON_READ | FAULT_ON_BYTES | FAULT_OF_RC),
		"1:1 ");
	assert_string_equal(
		hit(FAULT_REQUESTS, qp1, 1, FAULT_ON_SEND | FAULT_ON_BYTES | FAULT_OF_RC),
		"1:2 ");
	assert_string_equal(hit(FAULT_REQUESTS, qp1, 1,
				    FAULT_ON_WRITE | FAULT_ON_BYTES | FAULT_OF_UC),
		"1:2 ");
	assert_string_equal(
		hit(FAULT_REQUESTS, qp1, 1, FAULT_ON_READ | FAULT_OF_RC), "1:3 ");
	assert_string_equal(hit(FAULT_REQUESTS, qp1, 1, FAULT_OF_RC), "");
	plan_end();
}

TEST(a_connection_ends_among_requests_of_rc_and_uc)
{
	plan_make("request 1: event disconnected", 1, "p");
	assert_string_equal(
		hit(FAULT_REQUESTS, qp1, 1, FAULT_ON_WRITE | FAULT_OF_RC), "1:1 ");
	assert_string_equal(
		hit(FAULT_REQUESTS, qp1, 1, FAULT_ON_WRITE | FAULT_OF_UC), "1:1 ");
	assert_string_equal(hit(FAULT_REQUESTS, qp1, 1, FAULT_ON_SEND | FAULT_OF_UD), "");
	plan_end();
}

TEST(two_queues_draw_for_themselves)
{
	char first[4096];

	plan_make("20% of requests: event qp-fatal", 1, "p");
	strcpy(first, hit(FAULT_REQUESTS, qp1, 100, FAULT_ON_SEND | FAULT_OF_RC));
	assert_string_not_equal(
		first, hit(FAULT_REQUESTS, qp2, 100, FAULT_ON_SEND | FAULT_OF_RC));
	assert_string_equal(
		first, hit(FAULT_REQUESTS, qp1, 100, FAULT_ON_SEND | FAULT_OF_RC));
	plan_end();
}

TEST(a_qp_and_an_srq_of_one_number_draw_for_themselves)
{
	unsigned on = FAULT_ON_RECEIVE | FAULT_ON_BYTES;
	char first[4096];

	plan_make("20% of receives: fail local-protection", 1, "p");
	strcpy(first, hit(FAULT_RECEIVES, qp1, 100, on | FAULT_OF_RC));
	assert_string_not_equal(first, hit(FAULT_RECEIVES, srq1, 100, on | FAULT_OF_SRQ));
	plan_end();
}

TEST(inline_data_has_no_lkey)
{
	unsigned on = FAULT_ON_SEND | FAULT_OF_RC | FAULT_ON_BYTES;

	plan_make(
		"request 1: fail local-protection\nrequest 2: fail local-length", 1, "p");
	assert_string_equal(hit(FAULT_REQUESTS, qp1, 2, on), "2:2 ");
	assert_string_equal(
		hit(FAULT_REQUESTS, qp1, 2, on | FAULT_ON_MEMORY), "1:1 2:2 ");
	plan_end();
}

/* Sends packets of requests of three packets each, some again, and returns those of which a rule makes something. */
static const char *
sent(struct fault_queue queue, unsigned requests, unsigned copies)
{
	static char out[4096];

	out[0] = '\0';
	for (unsigned i = 0; i < requests * 3; i++) {
		for (unsigned copy = 1; copy <= copies; copy++) {
			struct fault_hit one = fault_plan_packet(&plan, queue,
				&(struct fault_packet){.request = i / 3 + 1,
					.packet = i % 3 + 1,
					.copy = copy,
					.order = i + 1});
			size_t len = strlen(out);

			if (one.rule == NULL)
				continue;
			assert_int_equal(one.copy, copy);
			snprintf(out + len, sizeof(out) - len, "%u.%u.%u:%u ",
				(unsigned)one.number, (unsigned)one.packet, copy,
				one.rule->line);
		}
	}
	return out;
}

TEST(a_rule_names_a_packet_and_its_copy)
{
	plan_make(
		"drop packet 2 of request 1\ndrop copy 2 of packet 3 of request 2 of qp 2\n"
		"delay each 4th packet of qp 1",
		1, "p");
	assert_string_equal(sent(qp1, 3, 2), "1.2.1:1 2.1.1:3 3.2.1:3 ");
	assert_string_equal(sent(qp2, 3, 2), "1.2.1:1 2.3.2:2 ");
	assert_int_equal(plan.count[FAULT_PACKETS], 36);
	plan_end();
}

TEST(each_copy_of_a_packet_is_drawn_for_itself)
{
	char first[4096];

	plan_make("drop 30% of packets", 1, "p");
	strcpy(first, sent(qp1, 10, 3));
	assert_non_null(strstr(first, ".1:1"));
	assert_non_null(strstr(first, ".2:1"));
	assert_non_null(strstr(first, ".3:1"));
	assert_string_equal(sent(qp1, 10, 3), first);
	assert_string_not_equal(sent(qp2, 10, 3), first);
	plan_end();
	plan_make("drop 100% of packets", 1, "p");
	assert_string_equal(
		sent(qp1, 1, 2), "1.1.1:1 1.1.2:1 1.2.1:1 1.2.2:1 1.3.1:1 1.3.2:1 ");
	plan_end();
}

/* A bit for each of 64 requests whose packet with this number is drawn. */
static uint64_t
drawn_packets(uint64_t seed, struct fault_queue queue, uint64_t number, uint64_t copy)
{
	uint64_t bits = 0;

	plan_make("drop 50% of packets", seed, "p");
	for (unsigned i = 0; i < 64; i++) {
		struct fault_packet packet = {
			.request = i + 1, .packet = number, .copy = copy};

		if (fault_plan_packet(&plan, queue, &packet).rule != NULL)
			bits |= UINT64_C(1) << i;
	}
	plan_end();
	return bits;
}

/* Numbers whose bits could add up to those of another packet, seed or QP. */
TEST(packets_of_different_seeds_and_queues_are_drawn_apart)
{
	uint64_t other = drawn_packets(1, qp1, 2, 1);

	assert_int_equal(drawn_packets(1, qp1, 2, 1), other);
	assert_int_not_equal(drawn_packets(2, qp1, 1, 1), other);
	assert_int_not_equal(drawn_packets(1, qp2, 1, 1), other);
	assert_int_not_equal(drawn_packets(1, qp1, 1, 1), other);
	assert_int_not_equal(drawn_packets(1, qp1, 2, 2), other);
}
