/* SPDX-License-Identifier: BSD-3-Clause */
/* When the link is down by a rule of times. */
#include "faults/faults.h"

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
