/* SPDX-License-Identifier: BSD-3-Clause */
/* The parser of scripts. The grammar is in rocade-faults(1):
 *
 *     line  = [rule] ["#" comment]
 *     rule  = ["in" STRING ":"] (call NAME ":" (ERROR | conn) | request ":" action | EFFECT packets | span)
 *     call  = "call" N "of" | "each" Nth | P "%" "of"
 *     request = (KIND N | "each" Nth KIND | P "%" "of" KIND "s") ["of" ("qp" | "srq") N]
 *     action = "fail" STATUS ["vendor" N] | "event" EVENT | "link" link
 *     conn = "event" EVENT | "reject" REASON | "lose" MESSAGE
 *     packets = (["copy" N "of"] "packet" N "of" "request" N | "each" Nth "packet" | P "%" "of" "packets") ["of" "qp" N]
 *
 * KIND is "request" or "receive". fault_parse_link.c has link and span.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "faults/fault_words.h"

#define WHICH_VALID                                                                      \
	"call N of, request N, receive N, each Nth, P% of, delay, drop, duplicate, from TIME"
#define RULE_VALID "in \"PROGRAM\":, " WHICH_VALID

/* "each" Nth */
static bool
each_read(struct parser *p, struct fault_rule *r)
{
	static const char *const endings[] = {"th", "st", "nd", "rd"};
	struct word w = fault_word_next(p);
	size_t n = fault_digits_read(w, &r->number);
	struct word ending = {.at = w.at + n, .len = w.len - n};

	r->when = FAULT_EACH_NTH;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]) && n != 0; i++) {
		if (fault_word_is(ending, endings[i]))
			return true;
	}
	return fault_refuse(p, EINVAL, w,
		NUMBER_VALID ", and behind it th, st, nd or rd, such as 500th");
}

/* P "%" "of". P has up to four digits behind the point. */
static bool
share_read(struct parser *p, struct fault_rule *r, struct word w)
{
	uint64_t share = 0, unit = FAULT_MILLION / 100;
	size_t n = 0;
	bool point = false, digit = false;

	for (; n < w.len && share <= FAULT_MILLION && unit != 0; n++) {
		if (w.at[n] == '.' && !point) {
			point = true;
		} else if (isdigit((unsigned char)w.at[n])) {
			digit = true;
			if (point)
				share += (uint64_t)(w.at[n] - '0') * (unit /= 10);
			else
				share = share * 10 + (uint64_t)(w.at[n] - '0') * unit;
		} else {
			break;
		}
	}
	if (!digit || unit == 0 || n + 1 != w.len || w.at[n] != '%' || share == 0 ||
		share > FAULT_MILLION)
		return fault_refuse(p, EINVAL, w, "0.0001% to 100%, such as 0.5%");
	r->when = FAULT_SHARE;
	r->number = share;
	return fault_expect(p, "of");
}

/* STRING ":", behind "in" */
static bool
in_read(struct parser *p, struct fault_rule *r)
{
	static const char valid[] = "a program's name in quotes, of 1 to 255 bytes";
	struct word w = fault_word_next(p);
	const char *closing;

	if (!fault_word_is(w, "\""))
		return fault_refuse(p, EINVAL, w, valid);
	closing = memchr(p->at, '"', (size_t)(p->end - p->at));
	if (closing == NULL || closing == p->at || closing - p->at > FAULT_NAME_MAX ||
		memchr(p->at, '\0', (size_t)(closing - p->at)) != NULL) {
		w.len = (size_t)((closing != NULL ? closing + 1 : p->end) - w.at);
		return fault_refuse(p, EINVAL, w, valid);
	}
	r->program = strndup(p->at, (size_t)(closing - p->at));
	if (r->program == NULL) {
		p->err = ENOMEM;
		snprintf(p->why, FAULT_WHY_MAX, "out of memory");
		return false;
	}
	p->at = closing + 1;
	return fault_expect(p, ":");
}

/* STATUS ["vendor" N] | EVENT | REASON | MESSAGE, to the end of the line */
static bool
outcome_read(struct parser *p, struct fault_rule *r)
{
	char valid[FAULT_WHY_MAX / 2];
	struct word w = fault_word_next(p);
	uint64_t vendor = 0;

	if (!fault_value_named(r, w.at, w.len)) {
		fault_values_list(r, valid, sizeof(valid));
		return fault_refuse(p, EINVAL, w, valid);
	}
	w = fault_word_next(p);
	/* A receive fails by the device's own check. */
	if (r->action == FAULT_FAIL && r->call == FAULT_REQUESTS) {
		if (!fault_word_is(w, "vendor"))
			return fault_line_end_read(p, w, "vendor N, " END_VALID);
		w = fault_word_next(p);
		if (fault_digits_read(w, &vendor) != w.len || w.len == 0 ||
			vendor > UINT32_MAX)
			return fault_refuse(
				p, EINVAL, w, "a number from 1 to 4294967295");
		r->vendor = (uint32_t)vendor;
		w = fault_word_next(p);
	}
	return fault_line_end_read(p, w, END_VALID);
}

/* ":" (ERROR | conn), to the end of the line, behind the name w of a call. more: what is valid there, too. */
static bool
call_read(struct parser *p, struct fault_rule *r, struct word w, const char *more)
{
	char valid[FAULT_WHY_MAX / 2];
	size_t len = strlen(more);

	r->call = (uint8_t)fault_call_named(w.at, w.len);
	if (r->call == FAULT_CALLS) {
		strcpy(valid, more);
		fault_calls_list(valid + len, sizeof(valid) - len);
		return fault_refuse(p, EINVAL, w, valid);
	}
	if (!fault_expect(p, ":"))
		return false;
	w = fault_word_next(p);
	if (fault_action_named(r, w.at, w.len))
		return outcome_read(p, r);
	r->err = fault_error_named((enum fault_call)r->call, w.at, w.len);
	if (r->err == 0) {
		fault_errors_list((enum fault_call)r->call, valid, sizeof(valid));
		return fault_refuse(p, EINVAL, w, valid);
	}
	return fault_line_end_read(p, fault_word_next(p), END_VALID);
}

/* ["of" ("qp" | "srq") N] ":" action */
static bool
requests_read(struct parser *p, struct fault_rule *r)
{
	bool receives = r->call == FAULT_RECEIVES;
	struct word w = fault_word_next(p);
	char valid[128];

	if (fault_word_is(w, "of")) {
		w = fault_word_next(p);
		if (fault_word_is(w, "qp"))
			r->queue.type = FAULT_QP;
		else if (receives && fault_word_is(w, "srq"))
			r->queue.type = FAULT_SRQ;
		else
			return fault_refuse(p, EINVAL, w, receives ? "qp, srq" : "qp");
		if (!fault_count_read(p, &r->queue.number) || !fault_expect(p, ":"))
			return false;
	} else if (!fault_word_is(w, ":")) {
		return fault_refuse(
			p, EINVAL, w, receives ? "of qp N, of srq N, :" : "of qp N, :");
	}
	w = fault_word_next(p);
	if (fault_action_named(r, w.at, w.len))
		return r->action == FAULT_LINK ? fault_link_read(p, r)
					       : outcome_read(p, r);
	fault_actions_list(r->call, valid, sizeof(valid));
	return fault_refuse(p, EINVAL, w, valid);
}

/* Returns whether the word says that requests or receives are counted. */
static bool
counts_requests(struct fault_rule *r, struct word w, bool plural)
{
	if (fault_word_is(w, plural ? "requests" : "request"))
		r->call = FAULT_REQUESTS;
	else if (fault_word_is(w, plural ? "receives" : "receive"))
		r->call = FAULT_RECEIVES;
	else
		return false;
	return true;
}

/* The unit that is counted, behind "each" Nth or P "%" "of", and the rest of the line. */
static bool
counted_read(struct parser *p, struct fault_rule *r)
{
	bool plural = r->when == FAULT_SHARE;
	struct word w = fault_word_next(p);

	if (counts_requests(r, w, plural))
		return requests_read(p, r);
	return call_read(p, r, w, plural ? "requests, receives, " : "request, receive, ");
}

/* ["copy" N "of"] "packet" N "of" "request" N, behind its first word */
static bool
packet_name_read(struct parser *p, struct fault_rule *r, struct word first)
{
	r->copy = 1;
	if (fault_word_is(first, "copy") &&
		!(fault_count_read(p, &r->copy) && fault_expect(p, "of") &&
			fault_expect(p, "packet")))
		return false;
	return fault_count_read(p, &r->packet) && fault_expect(p, "of") &&
	       fault_expect(p, "request") && fault_count_read(p, &r->number);
}

/* packets, to the end of the line */
static bool
packets_read(struct parser *p, struct fault_rule *r)
{
	struct word w = fault_word_next(p);
	bool good;

	if (fault_word_is(w, "packet") || fault_word_is(w, "copy"))
		good = packet_name_read(p, r, w);
	else if (fault_word_is(w, "each"))
		good = each_read(p, r) && fault_expect(p, "packet");
	else if (w.len != 0 && memchr(w.at, '%', w.len) != NULL)
		good = share_read(p, r, w) && fault_expect(p, "packets");
	else
		return fault_refuse(
			p, EINVAL, w, "packet N of, copy N of, each Nth, P% of");
	if (!good)
		return false;
	w = fault_word_next(p);
	if (!fault_word_is(w, "of"))
		return fault_line_end_read(p, w, "of qp N, " END_VALID);
	r->queue.type = FAULT_QP;
	return fault_expect(p, "qp") && fault_count_read(p, &r->queue.number) &&
	       fault_line_end_read(p, fault_word_next(p), END_VALID);
}

/* Returns whether the word is an effect on packets. */
static bool
is_effect(struct fault_rule *r, struct word w)
{
	struct fault_rule packets = {.call = FAULT_PACKETS, .action = FAULT_PACKET};

	if (!fault_value_named(&packets, w.at, w.len))
		return false;
	r->call = packets.call;
	r->action = packets.action;
	r->err = packets.err;
	return true;
}

static bool
rule_read(struct parser *p, struct fault_rule *r, struct word first)
{
	if (fault_word_is(first, "in")) {
		if (!in_read(p, r))
			return false;
		first = fault_word_next(p);
	}
	r->when = FAULT_NTH;
	if (fault_word_is(first, "call"))
		return fault_count_read(p, &r->number) && fault_expect(p, "of") &&
		       call_read(p, r, fault_word_next(p), "");
	if (counts_requests(r, first, false))
		return fault_count_read(p, &r->number) && requests_read(p, r);
	if (fault_word_is(first, "each"))
		return each_read(p, r) && counted_read(p, r);
	if (first.len != 0 && memchr(first.at, '%', first.len) != NULL)
		return share_read(p, r, first) && counted_read(p, r);
	if (is_effect(r, first))
		return packets_read(p, r);
	if (fault_word_is(first, "from"))
		return fault_span_read(p, r);
	return fault_refuse(
		p, EINVAL, first, r->program != NULL ? WHICH_VALID : RULE_VALID);
}

/* Makes room for one more rule. */
static bool
rules_grow(struct parser *p)
{
	struct fault_script *s = p->script;
	unsigned room = p->room != 0 ? p->room * 2 : 16;
	struct fault_rule *rules;

	if (s->count < p->room)
		return true;
	rules = realloc(s->rules, room * sizeof(*rules));
	if (rules == NULL) {
		p->err = ENOMEM;
		snprintf(p->why, FAULT_WHY_MAX, "out of memory");
		return false;
	}
	s->rules = rules;
	p->room = room;
	return true;
}

static bool
script_line_read(struct parser *p)
{
	struct word first = fault_word_next(p);
	struct fault_rule *r;

	if (first.len == 0)
		return true;
	if (p->script->count == FAULT_RULES_MAX) {
		p->err = E2BIG;
		snprintf(p->why, FAULT_WHY_MAX,
			"line %u, column 1: a rule too many; valid: at most %d rules, "
			"also in a journal that is replayed",
			p->line, FAULT_RULES_MAX);
		return false;
	}
	if (!rules_grow(p))
		return false;
	r = &p->script->rules[p->script->count++];
	*r = (struct fault_rule){.line = p->line};
	return rule_read(p, r, first);
}

int
fault_script_parse(
	struct fault_script *s, const char *text, size_t len, char why[FAULT_WHY_MAX])
{
	const char *end = text + len;
	struct parser p = {.script = s, .why = why};

	*s = (struct fault_script){.rules = NULL};
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		p.begin = p.at = text;
		p.end = newline != NULL ? newline : end;
		p.line++;
		if (!script_line_read(&p)) {
			fault_script_free(s);
			return p.err;
		}
		text = newline != NULL ? newline + 1 : end;
	}
	return 0;
}

void
fault_script_free(struct fault_script *s)
{
	for (unsigned i = 0; i < s->count; i++)
		free(s->rules[i].program);
	free(s->rules);
	*s = (struct fault_script){.rules = NULL};
}
