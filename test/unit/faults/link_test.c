/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of the link: what the grammar has, its errors, sentences, and when the link is down by the clock. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "faults/faults.h"

#include "case.h"

#define TIME "a time from 1ms to 86400s, such as 500ms or 2s"
#define BEGIN "a time from 0s to 86400s, such as 500ms or 2s"
#define END "the end of the line, or # COMMENT"

static struct fault_script
parsed(const char *text)
{
	struct fault_script s;
	char why[FAULT_WHY_MAX];

	assert_int_equal(fault_script_parse(&s, text, strlen(text), why), 0);
	return s;
}

TEST(a_rule_of_the_link)
{
	struct fault_script s = parsed("request 1000 of qp 2: link down for 500ms\n"
				       "each 3rd request: link down\n"
				       "in \"p\": receive 7 of srq 1:link up# x\n"
				       "from 0s to 86400s: link down\n"
				       "from 2s : link down # for ever\n"
				       "from 1500ms to 3s: link down for 1ms each 2ms");
	static const struct fault_rule want[] = {
		{.call = FAULT_REQUESTS,
			.err = FAULT_LINK_DOWN,
			.number = 1000,
			.span = {.down = 500},
			.queue = {FAULT_QP, 2}},
		{.call = FAULT_REQUESTS,
			.when = FAULT_EACH_NTH,
			.err = FAULT_LINK_DOWN,
			.number = 3},
		{.call = FAULT_RECEIVES,
			.err = FAULT_LINK_UP,
			.number = 7,
			.queue = {FAULT_SRQ, 1}},
		{.call = FAULT_TIMES,
			.err = FAULT_LINK_DOWN,
			.span = {.from = 0, .to = 86400000}},
		{.call = FAULT_TIMES, .err = FAULT_LINK_DOWN, .span = {.from = 2000}},
		{.call = FAULT_TIMES,
			.err = FAULT_LINK_DOWN,
			.span = {.from = 1500, .to = 3000, .down = 1, .each = 2}},
	};

	assert_int_equal(s.count, 6);
	for (unsigned i = 0; i < s.count; i++) {
		const struct fault_rule *r = &s.rules[i];

		assert_int_equal(r->action, FAULT_LINK);
		assert_int_equal(r->call, want[i].call);
		assert_int_equal(r->when, want[i].when);
		assert_int_equal(r->err, want[i].err);
		assert_int_equal(r->number, want[i].number);
		assert_int_equal(r->queue.type, want[i].queue.type);
		assert_int_equal(r->queue.number, want[i].queue.number);
		assert_int_equal(r->span.from, want[i].span.from);
		assert_int_equal(r->span.to, want[i].span.to);
		assert_int_equal(r->span.down, want[i].span.down);
		assert_int_equal(r->span.each, want[i].span.each);
		assert_int_equal(r->program != NULL, i == 2);
	}
	fault_script_free(&s);
}

TEST(an_error_of_the_link_says_what_is_valid)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"request 1: link",
			"column 16: the line ends too early; valid: down, up"},
		{"request 1: link flap",
			"column 17: 'flap' is not known; valid: down, up"},
		{"request 1: link up for 1s",
			"column 20: 'for' is not known; valid: " END},
		{"request 1: link down 1s",
			"column 22: '1s' is not known; valid: for TIME, " END},
		{"request 1: link down for 0s",
			"column 26: '0s' is not known; valid: " TIME},
		{"request 1: link down for 1s each 2s",
			"column 29: 'each' is not known; valid: " END},
		{"from", "column 5: the line ends too early; valid: " BEGIN},
		{"from 1: link down", "column 6: '1' is not known; valid: " BEGIN},
		{"from s: link down", "column 6: 's' is not known; valid: " BEGIN},
		{"from 00s: link down", "column 6: '00s' is not known; valid: " BEGIN},
		{"from 1us: link down", "column 6: '1us' is not known; valid: " BEGIN},
		{"from 86401s: link down",
			"column 6: '86401s' is not known; valid: " BEGIN},
		{"from 86400001ms: link down",
			"column 6: '86400001ms' is not known; valid: " BEGIN},
		{"from 18446744073709551s: link down",
			"column 6: '18446744073709551s' is not known; valid: " BEGIN},
		{"from 1s until", "column 9: 'until' is not known; valid: to TIME, :"},
		{"from 1s to  1000ms: link down",
			"column 13: '1000ms' is not known; valid: a time after that of "
			"from"},
		{"from 1s to 2s link", "column 15: 'link' is not known; valid: :"},
		{"from 1s: link up", "column 15: 'up' is not known; valid: down"},
		{"from 1s: port down", "column 10: 'port' is not known; valid: link"},
		{"from 1s: link down each 2s",
			"column 20: 'each' is not known; valid: for TIME each TIME, " END},
		{"from 1s: link down for 2s",
			"column 26: the line ends too early; valid: each"},
		{"from 1s: link down for 2s each 2s",
			"column 32: '2s' is not known; valid: a longer time than that of "
			"for"},
		{"from 1s: link down for 2s each 3s x",
			"column 35: 'x' is not known; valid: " END},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fault_script s;
		char why[FAULT_WHY_MAX], want[FAULT_WHY_MAX];

		assert_int_equal(
			fault_script_parse(&s, rows[i].text, strlen(rows[i].text), why),
			EINVAL);
		snprintf(want, sizeof(want), "line 1, %s", rows[i].why);
		assert_string_equal(why, want);
	}
}

TEST(rules_of_the_link_in_sentences)
{
	struct fault_script s = parsed("request 9 of qp 2: link down for 500ms\n"
				       "1% of receives: link down\n"
				       "each 2nd request: link up\n"
				       "from 2s: link down\n"
				       "from 0s to 3s: link down\n"
				       "from 1ms to 10s: link down for 100ms each 1s");
	char *out = NULL;
	size_t size;
	FILE *to = open_memstream(&out, &size);

	assert_non_null(to);
	fault_script_explain(&s, to);
	fclose(to);
	assert_string_equal(out,
		"line 1: in each process, send request 9 of QP 2 takes the link down for "
		"500ms, when it is posted; IBA 11.6.3, Port Error allows it.\n"
		"line 2: in each process, 1 % of the receive requests, which the seed draws, "
		"of each QP and SRQ take the link down, when they are posted; IBA 11.6.3, "
		"Port Error allows it.\n"
		"line 3: in each process, each 2nd send request of each QP takes the link up, "
		"when it is posted; IBA 11.6.3, Port Active allows it.\n"
		"line 4: in each process, the link goes down 2s after the opening of the first "
		"device; IBA 11.6.3, Port Error allows it.\n"
		"line 5: in each process, the link goes down 0s after the opening of the first "
		"device, until 3s after it; IBA 11.6.3, Port Error allows it.\n"
		"line 6: in each process, the link goes down 1ms after the opening of the first "
		"device for 100ms, and so each 1s, until 10s after it; IBA 11.6.3, Port Error "
		"allows it.\n"
		"6 rules in all.\n");
	free(out);
	fault_script_free(&s);
}

/* The outages of a rule, as rules of a journal. */
static void
expect_outages(const char *rule, const char *const *want, unsigned count)
{
	struct fault_script s = parsed(rule);
	struct fault_hit hit = {.rule = s.rules};
	char out[FAULT_HIT_TEXT];
	unsigned n = 0;

	for (; n < count; n++) {
		assert_true(fault_outage_of(s.rules, n, &hit.outage));
		fault_hit_write(&hit, out, sizeof(out));
		assert_string_equal(out, want[n]);
	}
	if (s.rules[0].span.to != 0 || s.rules[0].span.each == 0)
		assert_false(fault_outage_of(s.rules, n, &hit.outage));
	fault_script_free(&s);
}

TEST(outages_are_rules_of_their_own)
{
	static const char *const one[] = {"from 2s to 3500ms: link down"};
	static const char *const ever[] = {"from 2s: link down"};
	static const char *const flaps[] = {"from 1s to 1300ms: link down",
		"from 1500ms to 1800ms: link down", "from 2s to 2100ms: link down"};

	expect_outages(one[0], one, 1);
	expect_outages(ever[0], ever, 1);
	expect_outages("from 1s to 2100ms: link down for 300ms each 500ms", flaps, 3);
	expect_outages("from 1s to 2s: link down for 300ms each 500ms", flaps, 2);
	expect_outages("from 1s: link down for 300ms each 500ms", flaps, 2);
}

/* The link of a process with these rules, and the time, which the test sets. */
struct link_fixture {
	struct fault_script script;
	struct fault_plan plan;
	struct fault_links links;
	uint64_t now;
};

#define MS UINT64_C(1000000)
#define BEGIN_NS UINT64_C(777) /* of the clock */

static void
link_open(struct link_fixture *f, const char *rules)
{
	f->script = parsed(rules);
	f->now = BEGIN_NS;
	assert_int_equal(fault_plan_init(&f->plan, &f->script, 1, NULL, 0), 0);
	assert_int_equal(fault_links_begin(&f->links, &f->plan, f->now), 0);
}

static void
link_close(struct link_fixture *f)
{
	fault_links_free(&f->links);
	fault_plan_free(&f->plan);
	fault_script_free(&f->script);
}

/* Expects these steps at this time: for each outage that begins and each hit the line of its rule, '-' and '+' if the link goes
 * down and up. */
static void
expect_step(char *at, const struct fault_links *l, const struct fault_link_step *step)
{
	if (step->hit.rule != NULL)
		sprintf(at + strlen(at), "%u", (unsigned)step->hit.rule->line);
	if (step->changes)
		strcat(at, l->cut ? "-" : "+");
}

static void
expect_steps(struct link_fixture *f, uint64_t ms, const char *want)
{
	struct fault_link_step step;
	char steps[256] = "";

	f->now = BEGIN_NS + ms * MS;
	while (fault_links_step(&f->links, f->now, &step))
		expect_step(steps, &f->links, &step);
	assert_string_equal(steps, want);
}

/* A request hits the rule with this index, at the time of the last expect_steps(). */
static void
expect_hit(struct link_fixture *f, unsigned index, const char *want)
{
	const struct fault_hit hit = {.rule = &f->script.rules[index]};
	struct fault_link_step step;
	char steps[256] = "";

	if (fault_links_hit(&f->links, &hit, f->now, &step))
		expect_step(steps, &f->links, &step);
	assert_string_equal(steps, want);
}

static void
expect_due(struct link_fixture *f, uint64_t ms)
{
	assert_int_equal(fault_links_due(&f->links, f->now),
		ms == FAULT_NO_END ? ms : BEGIN_NS + ms * MS);
}

TEST(a_link_goes_down_and_up_by_the_clock)
{
	struct link_fixture f;

	link_open(&f, "from 10ms to 1s: link down\nfrom 20ms to 30ms: link down");
	expect_steps(&f, 9, "");
	expect_due(&f, 10);
	expect_steps(&f, 10, "1-");
	expect_due(&f, 20);
	expect_steps(&f, 20, "2");
	expect_due(&f, 1000);
	expect_steps(&f, 999, "");
	expect_steps(&f, 1000, "+");
	expect_due(&f, FAULT_NO_END);
	link_close(&f);
	link_open(&f, "from 0s: link down");
	expect_steps(&f, 0, "1-");
	expect_due(&f, FAULT_NO_END);
	expect_steps(&f, 100000000, "");
	link_close(&f);
}

/* The caller comes when the next outage has begun, or is over: the events of each one come all the same. */
TEST(an_outage_that_is_seen_late_is_not_lost)
{
	struct link_fixture f;

	link_open(&f, "from 10ms: link down for 5ms each 10ms");
	expect_steps(&f, 10, "1-");
	expect_steps(&f, 22, "+1-");
	expect_steps(&f, 47, "+1-+1-+");
	link_close(&f);
	link_open(&f, "from 20ms to 25ms: link down\nfrom 5ms to 10ms: link down");
	expect_steps(&f, 30, "2-+1-+");
	link_close(&f);
}

TEST(outages_that_meet_are_one)
{
	struct link_fixture f;
	static const char two[] =
		"from 20ms to 30ms: link down\nfrom 10ms to 20ms: link down";

	link_open(&f, two);
	expect_steps(&f, 10, "2-");
	expect_steps(&f, 20, "1");
	expect_steps(&f, 30, "+");
	link_close(&f);
	link_open(&f, two);
	expect_steps(&f, 40, "2-1+");
	link_close(&f);
	link_open(&f, "from 10ms to 30ms: link down\nfrom 20ms to 40ms: link down");
	expect_steps(&f, 50, "1-2+");
	link_close(&f);
}

TEST(the_last_outages_of_a_process_that_was_stopped_come)
{
	struct link_fixture f;

	link_open(&f, "from 0s: link down for 1ms each 10ms");
	expect_steps(&f, 160, "1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-");
	assert_int_equal(f.links.next[0], 17);
	expect_steps(&f, 86400000, "+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-");
	assert_int_equal(f.links.next[0], 8640001);
	expect_due(&f, 86400001);
	link_close(&f);
	/* The last ones of the rule, if it is over. */
	link_open(&f, "from 0s to 195ms: link down for 1ms each 10ms");
	expect_steps(&f, 5000, "1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+1-+");
	assert_int_equal(f.links.next[0], 20);
	expect_due(&f, FAULT_NO_END);
	link_close(&f);
}

TEST(requests_take_the_link_down_and_up)
{
	struct link_fixture f;

	link_open(&f,
		"request 1: link down for 10ms\nrequest 2: link down\nrequest 3: link up\n"
		"from 100ms to 200ms: link down");
	expect_hit(&f, 2, "");
	expect_hit(&f, 0, "1-");
	expect_due(&f, 10);
	expect_steps(&f, 9, "");
	expect_hit(&f, 0, "1");
	expect_due(&f, 19);
	/* The time is over: a pair of events for each hit. */
	expect_steps(&f, 25, "+");
	expect_hit(&f, 2, "");
	expect_hit(&f, 1, "2-");
	expect_hit(&f, 0, "");
	expect_hit(&f, 1, "");
	expect_hit(&f, 2, "3+");
	expect_due(&f, 100);
	expect_steps(&f, 101, "4-");
	expect_hit(&f, 0, "");
	expect_hit(&f, 2, "3+");
	expect_due(&f, FAULT_NO_END);
	expect_steps(&f, 300, "");
	link_close(&f);
}

TEST(a_hit_of_the_link_is_written_as_a_rule)
{
	static const char *const rules[] = {"request 4 of qp 2: link down for 1500ms",
		"request 5 of qp 1: link down for 2s", "request 6 of qp 1: link down",
		"receive 7 of srq 3: link up"};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct fault_script s = parsed(rules[i]);
		struct fault_hit hit = {.rule = s.rules,
			.number = s.rules[0].number,
			.queue = s.rules[0].queue};
		char out[FAULT_HIT_TEXT];

		fault_hit_write(&hit, out, sizeof(out));
		assert_string_equal(out, rules[i]);
		fault_script_free(&s);
	}
}
