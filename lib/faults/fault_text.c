/* SPDX-License-Identifier: BSD-3-Clause */
/* A script in sentences, and what was applied as a rule. */
#include <inttypes.h>
#include <string.h>

#include "faults/faults.h"

const char *
fault_ordinal_ending(uint64_t n)
{
	static const char *const endings[] = {"th", "st", "nd", "rd"};

	return n % 100 / 10 == 1 || n % 10 > 3 ? endings[0] : endings[n % 10];
}

/* Prints which calls or requests of a rule are meant: unit, such as "call", or its plural. */
static void
which_explain(const struct fault_rule *r, const char *unit, FILE *to)
{
	if (r->when == FAULT_NTH)
		fprintf(to, "%s %" PRIu64, unit, r->number);
	else if (r->when == FAULT_EACH_NTH)
		fprintf(to, "each %" PRIu64 "%s %s", r->number,
			fault_ordinal_ending(r->number), unit);
	else
		fprintf(to, "%g %% of the %ss, which the seed draws,",
			(double)r->number * 100 / FAULT_MILLION, unit);
}

/* Prints what happens to the connection of the calls. */
static void
connection_explain(const struct fault_rule *r, FILE *to)
{
	const char *name = fault_value_name(r);

	if (r->action == FAULT_REJECT)
		fprintf(to, "gets a REJ with the reason %d, %s", r->err, name);
	else if (r->action == FAULT_LOSE)
		fprintf(to, "has its first %s lost", name);
	else
		fprintf(to, "gets the event %s", name);
	fprintf(to, ", if it can have it; %s allows it.\n", fault_value_permission(r));
}

static void
call_explain(const struct fault_rule *r, FILE *to)
{
	enum fault_call call = (enum fault_call)r->call;

	which_explain(r, fault_counts_requests(call) ? "work request" : "call", to);
	if (r->action != FAULT_REFUSE) {
		fprintf(to, " of %s %s executed, and the ID ", fault_call_functions(call),
			r->when == FAULT_SHARE ? "are" : "is");
		connection_explain(r, to);
		return;
	}
	fprintf(to, " of %s %s refused with %s; %s allows the failure.\n",
		fault_call_functions(call), r->when == FAULT_SHARE ? "are" : "is",
		fault_error_name(r->err), fault_permission(call, r->err));
}

void
fault_time_write(uint64_t ms, char *out, size_t size)
{
	if (ms % 1000 == 0)
		snprintf(out, size, "%" PRIu64 "s", ms / 1000);
	else
		snprintf(out, size, "%" PRIu64 "ms", ms);
}

/* Prints what requests do to the link. */
static void
link_explain(const struct fault_rule *r, bool many, FILE *to)
{
	char down[FAULT_TIME_TEXT];

	fprintf(to, " %s the link %s", many ? "take" : "takes", fault_value_name(r));
	if (r->span.down != 0) {
		fault_time_write(r->span.down, down, sizeof(down));
		fprintf(to, " for %s", down);
	}
	fprintf(to, ", when %s posted; %s allows it.\n", many ? "they are" : "it is",
		fault_value_permission(r));
}

static void
span_explain(const struct fault_rule *r, FILE *to)
{
	char from[FAULT_TIME_TEXT], end[FAULT_TIME_TEXT], down[FAULT_TIME_TEXT],
		each[FAULT_TIME_TEXT];

	fault_time_write(r->span.from, from, sizeof(from));
	fault_time_write(r->span.to, end, sizeof(end));
	fault_time_write(r->span.down, down, sizeof(down));
	fault_time_write(r->span.each, each, sizeof(each));
	fprintf(to, "the link goes down %s after the opening of the first device", from);
	if (r->span.each != 0)
		fprintf(to, " for %s, and so each %s", down, each);
	if (r->span.to != 0)
		fprintf(to, ", until %s after it", end);
	fprintf(to, "; %s allows it.\n", fault_value_permission(r));
}

static void
request_explain(const struct fault_rule *r, FILE *to)
{
	const char *unit = r->call == FAULT_REQUESTS ? "send request" : "receive request";
	bool many = r->when == FAULT_SHARE;

	which_explain(r, unit, to);
	if (r->queue.type == FAULT_NO_OBJECT)
		fprintf(to, " of each QP%s", r->call == FAULT_RECEIVES ? " and SRQ" : "");
	else
		fprintf(to, " of %s %" PRIu64, r->queue.type == FAULT_QP ? "QP" : "SRQ",
			r->queue.number);
	if (r->action == FAULT_LINK) {
		link_explain(r, many, to);
		return;
	}
	if (r->action == FAULT_FAIL)
		fprintf(to, " %s with the status %s", many ? "complete" : "completes",
			fault_value_name(r));
	else
		fprintf(to, " %s preceded by the event %s", many ? "are" : "is",
			fault_value_name(r));
	if (r->vendor != 0)
		fprintf(to, " and vendor_err %" PRIu32, r->vendor);
	fprintf(to, ", if %s can have it; %s allows it.\n", many ? "they" : "it",
		fault_value_permission(r));
}

static void
packets_explain(const struct fault_rule *r, FILE *to)
{
	static const char *const done[] = {[FAULT_DROP] = "dropped",
		[FAULT_DUPLICATE] = "sent twice",
		[FAULT_DELAY] = "overtaken by the next ones"};

	if (r->when == FAULT_NTH)
		fprintf(to, "packet %" PRIu64 " of send request %" PRIu64, r->packet,
			r->number);
	else
		which_explain(r, "request packet", to);
	if (r->queue.type == FAULT_NO_OBJECT)
		fprintf(to, " of each QP");
	else
		fprintf(to, " of QP %" PRIu64, r->queue.number);
	fprintf(to, " %s %s", r->when == FAULT_SHARE ? "are" : "is", done[r->err]);
	if (r->when == FAULT_NTH)
		fprintf(to, " when it is sent for the %" PRIu64 "%s time", r->copy,
			fault_ordinal_ending(r->copy));
	fprintf(to, "; %s.\n", fault_value_permission(r));
}

static void
rule_explain(const struct fault_rule *r, FILE *to)
{
	fprintf(to, "line %" PRIu32 ": in each process", r->line);
	if (r->program != NULL)
		fprintf(to, " of a program named \"%s\"", r->program);
	fprintf(to, ", ");
	if (r->call < FAULT_CALLS)
		call_explain(r, to);
	else if (r->call == FAULT_PACKETS)
		packets_explain(r, to);
	else if (r->call == FAULT_TIMES)
		span_explain(r, to);
	else
		request_explain(r, to);
}

/* An outage as a rule of its own. */
static void
outage_write(const struct fault_outage *o, char *out, size_t size)
{
	char from[FAULT_TIME_TEXT], end[FAULT_TIME_TEXT];

	fault_time_write(o->from, from, sizeof(from));
	fault_time_write(o->to, end, sizeof(end));
	if (o->to == FAULT_NO_END)
		snprintf(out, size, "from %s: link down", from);
	else
		snprintf(out, size, "from %s to %s: link down", from, end);
}

/* Adds a word and a time to a rule. */
static void
duration_add(const char *word, uint32_t ms, char *out, size_t size)
{
	char text[FAULT_TIME_TEXT];
	size_t len = strlen(out);

	fault_time_write(ms, text, sizeof(text));
	if (ms != 0)
		snprintf(out + len, size - len, " %s %s", word, text);
}

void
fault_hit_write(const struct fault_hit *hit, char *out, size_t size)
{
	const struct fault_rule *r = hit->rule;
	int len;

	if (r->call < FAULT_CALLS) {
		bool refused = r->action == FAULT_REFUSE;

		snprintf(out, size, "call %" PRIu64 " of %s: %s%s%s", hit->number,
			fault_call_name((enum fault_call)r->call),
			refused ? "" : fault_action_name(r), refused ? "" : " ",
			refused ? fault_error_name(r->err) : fault_value_name(r));
		return;
	}
	if (r->call == FAULT_PACKETS) {
		len = snprintf(out, size, "%s ", fault_value_name(r));
		if (hit->copy != 1)
			len += snprintf(out + len, size - (size_t)len,
				"copy %" PRIu64 " of ", hit->copy);
		snprintf(out + len, size - (size_t)len,
			"packet %" PRIu64 " of request %" PRIu64 " of qp %" PRIu64,
			hit->packet, hit->number, hit->queue.number);
		return;
	}
	if (r->call == FAULT_TIMES) {
		outage_write(&hit->outage, out, size);
		return;
	}
	len = snprintf(out, size, "%s %" PRIu64 " of %s %" PRIu64 ": %s %s",
		r->call == FAULT_REQUESTS ? "request" : "receive", hit->number,
		hit->queue.type == FAULT_QP ? "qp" : "srq", hit->queue.number,
		fault_action_name(r), fault_value_name(r));
	if (r->vendor != 0 && len > 0 && (size_t)len < size)
		snprintf(out + len, size - (size_t)len, " vendor %" PRIu32, r->vendor);
	if (r->action == FAULT_LINK)
		duration_add("for", r->span.down, out, size);
}

void
fault_script_explain(const struct fault_script *s, FILE *to)
{
	for (unsigned i = 0; i < s->count; i++)
		rule_explain(&s->rules[i], to);
	fprintf(to, "%u rule%s in all.\n", s->count, s->count == 1 ? "" : "s");
}
