/* SPDX-License-Identifier: BSD-3-Clause */
/* When the link of a process is down. It is so until some time. Each rule that takes it down makes that time later, and
 * one that takes it up makes it now. */
#include <errno.h>
#include <stdlib.h>

#include "faults/faults.h"

#define MS UINT64_C(1000000) /* in nanoseconds */

bool
fault_outage_of(const struct fault_rule *r, uint64_t n, struct fault_outage *out)
{
	const struct fault_span *s = &r->span;
	uint64_t end = s->to != 0 ? s->to : FAULT_NO_END;

	if (s->each == 0) {
		*out = (struct fault_outage){.from = s->from, .to = end};
		return n == 0;
	}
	out->from = s->from + n * s->each;
	out->to = out->from + s->down < end ? out->from + s->down : end;
	return out->from < end;
}

static uint32_t
rules_of_times(const struct fault_plan *p)
{
	return p->start[FAULT_TIMES + 1] - p->start[FAULT_TIMES];
}

int
fault_links_begin(struct fault_links *l, const struct fault_plan *plan, uint64_t now)
{
	*l = (struct fault_links){.plan = plan, .begin = now};
	l->next = calloc(rules_of_times(plan) + 1, sizeof(*l->next));
	return l->next != NULL ? 0 : ENOMEM;
}

void
fault_links_free(struct fault_links *l)
{
	free(l->next);
	*l = (struct fault_links){.next = NULL};
}

/* Returns how many outages of the rule have begun, also of those that are over. */
static uint64_t
outages_begun(const struct fault_rule *r, uint64_t ms)
{
	uint64_t all;

	if (r->span.each == 0 || ms < r->span.from)
		return r->span.each == 0 && ms >= r->span.from;
	all = r->span.to != 0 ? ((uint64_t)r->span.to - r->span.from + r->span.each - 1) /
					r->span.each
			      : UINT64_MAX;
	ms = 1 + (ms - r->span.from) / r->span.each;
	return ms < all ? ms : all;
}

/* A process may have been stopped for hours. */
static void
late_skip(uint64_t *next, const struct fault_rule *r, uint64_t ms)
{
	uint64_t begun = outages_begun(r, ms);

	if (begun > *next + FAULT_LATE_MAX)
		*next = begun - FAULT_LATE_MAX;
}

/* Finds the outage that begins first of those that have not begun: *hit, and which rule it is of. Returns when it begins;
 * FAULT_NO_END: there is none. */
static uint64_t
outage_first(struct fault_links *l, uint64_t now, struct fault_hit *hit, uint32_t *of)
{
	const struct fault_plan *p = l->plan;
	uint64_t first = FAULT_NO_END;

	for (uint32_t i = 0; i < rules_of_times(p); i++) {
		const struct fault_rule *r =
			&p->script->rules[p->order[p->start[FAULT_TIMES] + i]];
		struct fault_outage outage;

		late_skip(&l->next[i], r, (now - l->begin) / MS);
		if (!fault_outage_of(r, l->next[i], &outage) || outage.from >= first)
			continue;
		first = outage.from;
		*hit = (struct fault_hit){.rule = r, .outage = outage};
		*of = i;
	}
	return first != FAULT_NO_END ? l->begin + first * MS : FAULT_NO_END;
}

static void
outage_begin(struct fault_links *l, uint64_t until, struct fault_link_step *out)
{
	if (until > l->down_until)
		l->down_until = until;
	out->changes = !l->cut;
	l->cut = true;
}

bool
fault_links_step(struct fault_links *l, uint64_t now, struct fault_link_step *out)
{
	struct fault_hit hit = {.rule = NULL};
	uint32_t of = 0;
	uint64_t first = outage_first(l, now, &hit, &of);

	*out = (struct fault_link_step){.changes = true};
	/* One that begins as another ends is one with it. */
	if (l->cut && (first <= now ? l->down_until < first : l->down_until <= now)) {
		l->cut = false;
		return true;
	}
	if (first > now)
		return false;
	l->next[of]++;
	out->hit = hit;
	outage_begin(l,
		hit.outage.to != FAULT_NO_END ? l->begin + hit.outage.to * MS
					      : FAULT_NO_END,
		out);
	return true;
}

bool
fault_links_hit(struct fault_links *l, const struct fault_hit *hit, uint64_t now,
	struct fault_link_step *out)
{
	const struct fault_rule *r = hit->rule;
	uint64_t until = r->span.down != 0 ? now + r->span.down * MS : FAULT_NO_END;

	*out = (struct fault_link_step){.hit = *hit, .changes = true};
	if (r->err == FAULT_LINK_DOWN) {
		if (until <= l->down_until)
			return false;
		outage_begin(l, until, out);
		return true;
	}
	if (!l->cut)
		return false;
	l->down_until = now;
	l->cut = false;
	return true;
}

uint64_t
fault_links_due(struct fault_links *l, uint64_t now)
{
	struct fault_hit hit;
	uint32_t of;
	uint64_t first = outage_first(l, now, &hit, &of);

	return l->cut && l->down_until < first ? l->down_until : first;
}
