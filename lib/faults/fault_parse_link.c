/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of rules of the link:
 *
 *     link = "down" ["for" TIME] | "up"
 *     span = "from" TIME ["to" TIME] ":" "link" "down" ["for" TIME "each" TIME]
 *
 * TIME is N "ms" or N "s", without a blank. */
#include <errno.h>

#include "faults/fault_words.h"

bool
fault_link_read(struct parser *p, struct fault_rule *r)
{
	struct word w = fault_word_next(p);

	if (!fault_value_named(r, w.at, w.len))
		return fault_refuse(p, EINVAL, w, "down, up");
	w = fault_word_next(p);
	if (r->err != FAULT_LINK_DOWN)
		return fault_line_end_read(p, w, END_VALID);
	if (!fault_word_is(w, "for"))
		return fault_line_end_read(p, w, "for TIME, " END_VALID);
	return fault_time_read(p, 1, &r->span.down, &w) &&
	       fault_line_end_read(p, fault_word_next(p), END_VALID);
}

/* "to" TIME, which is behind the begin, or nothing. Then ":". */
static bool
span_end_read(struct parser *p, struct fault_rule *r)
{
	struct word w = fault_word_next(p);

	if (!fault_word_is(w, "to"))
		return fault_word_is(w, ":") || fault_refuse(p, EINVAL, w, "to TIME, :");
	if (!fault_time_read(p, 1, &r->span.to, &w))
		return false;
	if (r->span.to > r->span.from)
		return fault_expect(p, ":");
	return fault_refuse(p, EINVAL, w, "a time after that of from");
}

/* "for" TIME "each" TIME, or nothing. The link is up in between. */
static bool
flaps_read(struct parser *p, struct fault_rule *r)
{
	struct word w = fault_word_next(p);

	if (!fault_word_is(w, "for"))
		return fault_line_end_read(p, w, "for TIME each TIME, " END_VALID);
	if (!fault_time_read(p, 1, &r->span.down, &w) || !fault_expect(p, "each"))
		return false;
	if (!fault_time_read(p, 1, &r->span.each, &w))
		return false;
	if (r->span.each > r->span.down)
		return fault_line_end_read(p, fault_word_next(p), END_VALID);
	return fault_refuse(p, EINVAL, w, "a longer time than that of for");
}

bool
fault_span_read(struct parser *p, struct fault_rule *r)
{
	struct word w;

	r->call = FAULT_TIMES;
	r->action = FAULT_LINK;
	r->err = FAULT_LINK_DOWN;
	return fault_time_read(p, 0, &r->span.from, &w) && span_end_read(p, r) &&
	       fault_expect(p, "link") && fault_expect(p, "down") && flaps_read(p, r);
}
