/* SPDX-License-Identifier: BSD-3-Clause */
/* Random scripts. Each rule is one of the rows of docs/faults.def, for something that the program was seen to do. None
 * has a share of calls: which those are depends on the place of a rule in its script, so a script with fewer rules would
 * have other faults. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rocade/faults.h>

#include "base/splitmix64.h"
#include "faults/faults.h"

#define ACTION(action) (1u << (action))
/* A link is down for up to half a second, which an RC QP with the usual timeout survives, or not. */
#define OUTAGE_STEP_MS 10
#define OUTAGE_STEPS 50
#define REPEATS 4 /* of 4 rules that may be of each N-th call, one is */

static const struct profile {
	unsigned rules; /* at most */
	unsigned actions, repeated;
} profiles[] = {
#define PROFILE(name, ...) {__VA_ARGS__},
#include "faults/profiles.def"
};

const char *const rocade_faults_profiles[] = {
#define PROFILE(name, ...) #name,
#include "faults/profiles.def"
	NULL};

static uint64_t
drawn_below(uint64_t *state, uint64_t end)
{
	return splitmix64(state) % end;
}

/* Returns a number from 1 to count: one of one digit as often as one of six, because errors are at the begin of a
 * program and in its midst. */
static uint64_t
drawn_early(uint64_t *state, uint64_t count)
{
	unsigned bits = 64 - (unsigned)__builtin_clzll(count);
	uint64_t width = UINT64_C(1) << drawn_below(state, bits), n;

	n = width + drawn_below(state, width);
	return n <= count ? n : 1 + n % count;
}

/* Whether a rule of this row may concern queues of this type of the program. */
static bool
has_queue(const struct fault_rule *r, const struct fault_program *p, bool srq)
{
	unsigned of = srq ? FAULT_OF_SRQ : FAULT_OF_ANY & ~FAULT_OF_SRQ;

	if (r->action == FAULT_PACKET)
		return !srq && p->qps != 0;
	return (srq ? p->srqs : p->qps) != 0 && (!srq || r->call == FAULT_RECEIVES) &&
	       fault_value_fits(r, ~FAULT_OF_ANY | of);
}

static bool
row_fits(const struct profile *profile, const struct fault_program *p,
	const struct fault_rule *r)
{
	/* A time names no place in what the program does, and a link that is up goes up no more. */
	if (r->call == FAULT_TIMES ||
		(r->action == FAULT_LINK && r->err != FAULT_LINK_DOWN))
		return false;
	return (profile->actions & ACTION(r->action)) != 0 && p->count[r->call] != 0 &&
	       (r->call < FAULT_CALLS || has_queue(r, p, false) || has_queue(r, p, true));
}

/* Sets r by the row number nth, from 0, of those that fit. Returns how many do, up to that one. */
static uint64_t
row_find(const struct profile *profile, const struct fault_program *p, uint64_t nth,
	struct fault_rule *r)
{
	struct fault_rule row = {.line = 0};
	uint64_t fitting = 0;

	for (unsigned i = 0; fitting <= nth && fault_row(i, &row); i++) {
		if (row_fits(profile, p, &row)) {
			*r = row;
			fitting++;
		}
	}
	return fitting;
}

/* Of what all queues have counted, that of one, as if they were alike. */
static uint64_t
count_of_each(uint64_t count, uint64_t queues)
{
	return count > queues ? count / queues : 1;
}

static uint64_t
packets_of_request(const struct fault_program *p)
{
	uint64_t requests = p->count[FAULT_REQUESTS];

	return requests != 0 ? (p->count[FAULT_PACKETS] + requests - 1) / requests : 1;
}

/* Draws the queue. Returns how many of its type there are. */
static uint64_t
queue_draw(struct fault_rule *r, const struct fault_program *p, uint64_t *state)
{
	bool srq = has_queue(r, p, true) &&
		   (!has_queue(r, p, false) || drawn_below(state, 2) == 0);
	uint64_t queues = srq ? p->srqs : p->qps;

	r->queue.type = srq ? FAULT_SRQ : FAULT_QP;
	r->queue.number = 1 + drawn_below(state, queues);
	return queues;
}

/* Writes the name in quotes, and the rule. */
static void
rule_write(const struct fault_rule *r, const char *program, FILE *to)
{
	struct fault_hit hit = {.rule = r,
		.number = r->number,
		.queue = r->queue,
		.packet = r->packet,
		.copy = r->copy};
	const char *ending = fault_ordinal_ending(r->number);
	char text[FAULT_HIT_TEXT];

	if (program != NULL)
		fprintf(to, "in \"%s\": ", program);
	if (r->when == FAULT_NTH) {
		fault_hit_write(&hit, text, sizeof(text));
		fprintf(to, "%s\n", text);
	} else if (r->action == FAULT_REFUSE) {
		fprintf(to, "each %" PRIu64 "%s %s: %s\n", r->number, ending,
			fault_call_name((enum fault_call)r->call),
			fault_error_name(r->err));
	} else if (r->action == FAULT_PACKET) {
		fprintf(to, "%s each %" PRIu64 "%s packet of qp %" PRIu64 "\n",
			fault_value_name(r), r->number, ending, r->queue.number);
	} else {
		fprintf(to, "each %" PRIu64 "%s %s of %s %" PRIu64 ": fail %s\n",
			r->number, ending,
			r->call == FAULT_REQUESTS ? "request" : "receive",
			r->queue.type == FAULT_SRQ ? "srq" : "qp", r->queue.number,
			fault_value_name(r));
	}
}

static void
rule_draw(const struct profile *profile, const struct fault_program *p, uint64_t *state,
	FILE *to)
{
	struct fault_rule r = {.line = 0};
	uint64_t count, queues = 1;

	(void)row_find(
		profile, p, drawn_below(state, row_find(profile, p, UINT64_MAX, &r)), &r);
	if (r.call >= FAULT_CALLS)
		queues = queue_draw(&r, p, state);
	count = count_of_each(p->count[r.call], queues);
	r.when = FAULT_NTH;
	r.packet = r.copy = 1;
	if (r.action == FAULT_LINK)
		r.span.down =
			OUTAGE_STEP_MS * (1 + (uint32_t)drawn_below(state, OUTAGE_STEPS));
	if ((profile->repeated & ACTION(r.action)) != 0 && count > 1 &&
		drawn_below(state, REPEATS) == 0) {
		r.when = FAULT_EACH_NTH;
		r.number = 1 + drawn_early(state, count - 1); /* not all */
	} else if (r.action == FAULT_PACKET) {
		r.packet = drawn_early(state, packets_of_request(p));
		r.number = drawn_early(
			state, count_of_each(p->count[FAULT_REQUESTS], queues));
	} else {
		r.number = drawn_early(state, count);
	}
	rule_write(&r, p->name, to);
}

bool
fault_script_draw(const struct fault_census *c, unsigned profile, uint64_t seed, FILE *to)
{
	const struct fault_program *fitting[FAULT_PROGRAMS_MAX];
	const struct profile *of = &profiles[profile];
	struct fault_rule row = {.line = 0};
	uint64_t state = seed, rules;
	unsigned count = 0;

	for (unsigned i = 0; i < c->count; i++) {
		if (row_find(of, &c->programs[i], 0, &row) != 0)
			fitting[count++] = &c->programs[i];
	}
	if (count == 0)
		return false;
	rules = 1 + drawn_below(&state, of->rules);
	for (uint64_t i = 0; i < rules; i++)
		rule_draw(of, fitting[drawn_below(&state, count)], &state, to);
	return true;
}

void
rocade_faults_count_all(FILE *to)
{
	struct fault_rule r = {.when = FAULT_NTH};
	bool seen[FAULT_COUNTED] = {false};

	for (unsigned i = 0; fault_row(i, &r); i++) {
		if (r.call >= FAULT_COUNTED || seen[r.call])
			continue;
		seen[r.call] = true;
		r.number = FAULT_NUMBER_MAX;
		r.queue = (struct fault_queue){FAULT_QP, 1};
		r.packet = r.copy = 1;
		rule_write(&r, NULL, to);
	}
}

int
rocade_faults_draw(const char *journal, unsigned profile, uint64_t seed, FILE *to,
	char why[ROCADE_FAULTS_WHY])
{
	struct fault_census *census = calloc(1, sizeof(*census));
	size_t len;
	char *text = fault_text_read(journal, &len);
	int err = 0;

	if (census == NULL || text == NULL) {
		err = errno != 0 ? errno : ENOMEM;
		snprintf(
			why, FAULT_WHY_MAX, "cannot read %s: %s", journal, strerror(err));
	} else {
		fault_census_read(census, text);
		fault_census_join(census);
		if (census->count == 0)
			err = ENODATA;
		else if (!fault_script_draw(census, profile, seed, to))
			err = ENOTSUP;
	}
	if (err == ENODATA)
		snprintf(why, FAULT_WHY_MAX,
			"no process of the command has used a device of Rocade; valid: "
			"a command with rocade-run in it");
	else if (err == ENOTSUP && profiles[profile].actions == ACTION(FAULT_PACKET))
		snprintf(why, FAULT_WHY_MAX,
			"the profile %s has only faults of packets, and no process has "
			"sent one; valid: a profile with other faults (rocade-faults(1))",
			rocade_faults_profiles[profile]);
	else if (err == ENOTSUP)
		snprintf(why, FAULT_WHY_MAX,
			"the profile %s has no fault for the calls of the command; valid: "
			"a command of which a call can be refused (rocade-faults(1))",
			rocade_faults_profiles[profile]);
	free(text);
	free(census);
	return err;
}
