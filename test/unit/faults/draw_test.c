/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run has counted, and random scripts for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rocade/faults.h>

#include "faults/faults.h"

#include "case.h"

#define SEEDS 2000

static struct fault_census census;

/* Two programs: a sender, and one that has only opened the device, and was killed. */
static const char journal[] =
	"# rocade-faults journal 1: rocade 0.1.0, program \"sh\", seed 0\n"
	"# rocade-faults process 7: \"killed\", \"killed\"\n"
	"# rocade-faults process 8: \"a b\", \"comm\"\n"
	"in \"a b\": call 2 of reg_mr: ENOMEM\n"
	"# rocade-faults process 8: \"again\", \"again\"\n"
	"# rocade-faults counted 8: \"again\": reg_mr 3 post_send 70 new_thing 4 request 60 "
	"packet 90 qp 2 srq 1\n"
	"# rocade-faults counted 8: \"a b\": open_device 1\n"
	"# rocade-faults counted 9: \"nobody\": alloc_pd 1\n";

TEST(a_journal_says_what_its_processes_have_counted)
{
	fault_census_read(&census, journal);
	assert_int_equal(census.count, 3);
	assert_string_equal(census.programs[0].name, "killed");
	assert_false(census.programs[0].counted);
	assert_true(census.programs[0].count[FAULT_RECEIVES] != 0);
	assert_string_equal(census.programs[2].name, "again");
	assert_int_equal(census.programs[2].count[FAULT_reg_mr], 3);
	assert_int_equal(census.programs[2].count[FAULT_REQUESTS], 60);
	assert_int_equal(census.programs[2].count[FAULT_RECEIVES], 0);
	assert_int_equal(census.programs[2].count[FAULT_PACKETS], 90);
	assert_int_equal(census.programs[2].qps, 2);
	assert_int_equal(census.programs[2].srqs, 1);
	assert_int_equal(census.programs[1].count[FAULT_open_device], 1);
	assert_int_equal(census.programs[1].qps, 0);
}

TEST(what_a_process_writes_is_read_again)
{
	struct fault_program me = {.pid = 12, .name = "me", .qps = 5};
	struct fault_plan plan = {.script = NULL};
	char text[FAULT_COUNTS_TEXT + 128];
	size_t len;

	for (unsigned i = 0; i < FAULT_COUNTED; i++)
		plan.count[i] = UINT64_MAX - i;
	strcpy(text, FAULT_JOURNAL_PROCESS "12: \"me\", \"me\"\n");
	len = strlen(text);
	fault_counts_write(&plan, &me, text + len, sizeof(text) - len);
	assert_int_equal(text[strlen(text) - 1], '\n');
	fault_census_read(&census, text);
	assert_int_equal(census.count, 1);
	assert_true(census.programs[0].counted);
	for (unsigned i = 0; i < FAULT_COUNTED; i++)
		assert_int_equal(census.programs[0].count[i], UINT64_MAX - i);
	assert_int_equal(census.programs[0].qps, 5);
	assert_int_equal(census.programs[0].srqs, 0);
}

TEST(more_processes_than_there_is_room_for_are_left_out)
{
	char text[(FAULT_PROGRAMS_MAX + 2) * 64];
	size_t len = 0;

	for (unsigned i = 0; i < FAULT_PROGRAMS_MAX + 2; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			FAULT_JOURNAL_PROCESS "%u: \"p\", \"p\"\n", i);
	fault_census_read(&census, text);
	assert_int_equal(census.count, FAULT_PROGRAMS_MAX);
}

/* In which order processes end, and how far one of several with a name gets, is not fixed. */
TEST(processes_of_one_name_are_one_and_have_an_order)
{
	static const char of_each[2][3][96] = {
		{"b\": post_send 3 qp 1\n", "a\": alloc_pd 2\n",
			"b\": alloc_pd 1 srq 2\n"},
		{"b\": alloc_pd 1 srq 2\n", "b\": post_send 3 qp 1\n",
			"a\": alloc_pd 2\n"}};
	char text[1024];

	for (unsigned n = 0; n < 2; n++) {
		text[0] = '\0';
		for (unsigned i = 0; i < 3; i++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text),
				FAULT_JOURNAL_PROCESS
				"%u: \"%c\", \"c\"\n" FAULT_JOURNAL_COUNTED "%u: \"%s",
				i, of_each[n][i][0], i, of_each[n][i]);
		fault_census_read(&census, text);
		assert_int_equal(census.count, 3);
		fault_census_join(&census);
		assert_int_equal(census.count, 2);
		assert_string_equal(census.programs[0].name, "a");
		assert_string_equal(census.programs[1].name, "b");
		assert_int_equal(census.programs[0].count[FAULT_alloc_pd], 2);
		assert_int_equal(census.programs[1].count[FAULT_alloc_pd], 1);
		assert_int_equal(census.programs[1].count[FAULT_post_send], 3);
		assert_int_equal(census.programs[1].qps, 1);
		assert_int_equal(census.programs[1].srqs, 2);
	}
}

/* Draws a script, and parses it. The text is valid until the next call. */
static const char *
drawn(unsigned profile, uint64_t seed, struct fault_script *s)
{
	static char text[8192];
	FILE *to = fmemopen(text, sizeof(text), "w");
	char why[FAULT_WHY_MAX];

	assert_non_null(to);
	assert_true(fault_script_draw(&census, profile, seed, to));
	assert_int_equal(fclose(to), 0);
	assert_int_equal(fault_script_parse(s, text, strlen(text), why), 0);
	return text;
}

TEST(a_seed_draws_one_script_and_another_seed_another)
{
	struct fault_script s;
	unsigned same = 0;
	char *first;

	fault_census_read(&census, journal);
	first = strdup(drawn(2, 1, &s));
	fault_script_free(&s);
	assert_string_equal(drawn(2, 1, &s), first);
	fault_script_free(&s);
	for (uint64_t seed = 2; seed < 100; seed++) {
		same += strcmp(drawn(2, seed, &s), first) == 0;
		fault_script_free(&s);
	}
	assert_int_equal(same, 0);
	free(first);
}

/* Of the row of docs/faults.def with this index. */
static bool
is_of_row(const struct fault_rule *r, unsigned index)
{
	struct fault_rule row = {.line = 0};

	return fault_row(index, &row) && row.call == r->call && row.action == r->action &&
	       row.err == r->err;
}

/* Draws many scripts. Returns how many rows were drawn, and checks the numbers against the counts. */
static unsigned
rows_drawn(unsigned profile, unsigned *rules_max, unsigned *actions, unsigned *whens)
{
	bool seen[256] = {false};
	struct fault_rule row = {.line = 0};
	struct fault_script s;
	uint64_t packet_max = 0;
	unsigned rows = 0;

	*rules_max = *actions = *whens = 0;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		drawn(profile, seed, &s);
		*rules_max = s.count > *rules_max ? s.count : *rules_max;
		for (unsigned i = 0; i < s.count; i++) {
			const struct fault_rule *r = &s.rules[i];
			bool again = strcmp(r->program, "again") == 0;

			*actions |= 1u << r->action;
			*whens |= 1u << r->when;
			assert_true(again || strcmp(r->program, "killed") == 0 ||
				    r->call == FAULT_open_device);
			if (again && r->call == FAULT_REQUESTS)
				assert_in_range(r->number, 1, 60 / 2); /* of one QP */
			else if (again && r->call < FAULT_REQUESTS)
				assert_in_range(
					r->number, 1, census.programs[2].count[r->call]);
			if (again && r->call == FAULT_PACKETS) {
				assert_in_range(r->number, 1,
					r->when == FAULT_NTH ? 60 / 2 : 90 / 2);
				packet_max =
					r->when == FAULT_NTH && r->packet > packet_max
						? r->packet
						: packet_max;
			}
			if (again && r->call >= FAULT_CALLS)
				assert_in_range(r->queue.number, 1, 2);
			if (r->when == FAULT_EACH_NTH)
				assert_true(r->number > 1);
			if (r->action == FAULT_LINK)
				assert_in_range(r->span.down, 10, 500);
			for (unsigned n = 0; fault_row(n, &row); n++)
				seen[n] = seen[n] || is_of_row(r, n);
		}
		fault_script_free(&s);
	}
	assert_int_equal(packet_max, 2); /* a request has 90 / 60, rounded up */
	for (unsigned n = 0; fault_row(n, &row); n++)
		rows += seen[n];
	return rows;
}

TEST(a_profile_draws_each_row_that_it_has)
{
	struct fault_rule row = {.line = 0};
	unsigned rules, actions, whens, all = 0, packets = 0, events = 0, links = 0;

	fault_census_read(&census, journal);
	for (unsigned i = 0; fault_row(i, &row); i++) {
		/* Nothing is drawn by the clock, nor a link that goes up. */
		links += row.action == FAULT_LINK;
		all += row.action != FAULT_LINK ||
		       (row.call != FAULT_TIMES && row.err == FAULT_LINK_DOWN);
		packets += row.action == FAULT_PACKET;
		events += row.action == FAULT_EVENT;
	}
	assert_true(packets >= 3 && events >= 6 && links >= 5);
	assert_int_equal(rows_drawn(0, &rules, &actions, &whens), packets);
	assert_int_equal(actions, 1u << FAULT_PACKET);
	assert_int_equal(rules, 4);
	assert_int_equal(rows_drawn(1, &rules, &actions, &whens), all - events);
	assert_int_equal(rules, 3);
	assert_int_equal(rows_drawn(2, &rules, &actions, &whens), all);
	assert_int_equal(rules, 8);
	/* No share: which calls it means depends on the rules before it. */
	assert_int_equal(whens, 1u << FAULT_NTH | 1u << FAULT_EACH_NTH);
}

TEST(what_a_program_does_not_do_is_not_drawn)
{
	static const char few[] =
		"# rocade-faults process 8: \"p\", \"p\"\n"
		"# rocade-faults counted 8: \"p\": alloc_pd 1 receive 3 "
		"srq 1\n";
	FILE *to = fopen("/dev/null", "w");
	struct fault_script s;

	fault_census_read(&census, few);
	assert_non_null(to);
	assert_false(fault_script_draw(&census, 0, 1, to));
	fclose(to);
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		drawn(2, seed, &s);
		for (unsigned i = 0; i < s.count; i++) {
			assert_true(s.rules[i].call == FAULT_alloc_pd ||
				    s.rules[i].queue.type == FAULT_SRQ);
			assert_true(s.rules[i].number <= 3);
		}
		fault_script_free(&s);
	}
}

TEST(a_profile_without_a_fault_for_the_program_is_refused)
{
	char path[] = "/tmp/faults-draw-XXXXXX", why[2][ROCADE_FAULTS_WHY];
	FILE *to = fopen("/dev/null", "w"), *file = fdopen(mkstemp(path), "w");
	int err[2];

	assert_non_null(to);
	assert_non_null(file);
	fputs("# rocade-faults process 8: \"p\", \"p\"\n"
	      "# rocade-faults counted 8: \"p\": alloc_pd 1\n",
		file);
	assert_int_equal(fclose(file), 0);
	for (unsigned i = 0; i < 2; i++)
		err[i] = rocade_faults_draw(path, i, 1, to, why[i]);
	assert_int_equal(unlink(path), 0);
	fclose(to);
	assert_int_equal(err[0], ENOTSUP);
	assert_string_equal(why[0],
		"the profile mild has only faults of packets, and no process has sent "
		"one; valid: a profile with other faults (rocade-faults(1))");
	assert_int_equal(err[1], 0);
}

TEST(a_script_that_counts_all_has_a_rule_for_each_count)
{
	static char text[8192];
	struct fault_script s;
	struct fault_plan plan;
	char why[FAULT_WHY_MAX];
	FILE *to = fmemopen(text, sizeof(text), "w");

	assert_non_null(to);
	rocade_faults_count_all(to);
	fclose(to);
	assert_int_equal(fault_script_parse(&s, text, strlen(text), why), 0);
	assert_int_equal(fault_plan_init(&plan, &s, 1, NULL, 0), 0);
	for (unsigned i = 0; i < FAULT_COUNTED; i++)
		assert_true(fault_plan_concerns(&plan, i));
	for (unsigned i = 0; i < s.count; i++)
		assert_int_equal(s.rules[i].number, FAULT_NUMBER_MAX);
	fault_plan_free(&plan);
	fault_script_free(&s);
}
