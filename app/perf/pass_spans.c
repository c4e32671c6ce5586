/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "pass_spans.h"

void
pass_spans_init(struct pass_spans *spans, uint64_t tsc_hz)
{
	memset(spans, 0, sizeof(*spans));
	/* The largest power of 2 that is no longer than a microsecond. */
	spans->shift = 63 - (unsigned)__builtin_clzll(tsc_hz / 1000000);
}

void
pass_spans_merge(struct pass_spans *to, const struct pass_spans *from)
{
	to->longest = from->longest > to->longest ? from->longest : to->longest;
	for (unsigned i = 0; i < PASS_SPANS_MAX; i++)
		to->count[i] += from->count[i];
}

uint64_t
pass_spans_count(const struct pass_spans *spans)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < PASS_SPANS_MAX; i++)
		sum += spans->count[i];
	return sum;
}

bool
pass_spans_quantile(
	const struct pass_spans *spans, unsigned of_100000, uint64_t tsc_hz, double *us)
{
	uint64_t all = pass_spans_count(spans), below = 0, top;
	unsigned n = 0;

	do
		below += spans->count[n++];
	while (n < PASS_SPANS_MAX && below * 100000 < all * of_100000);
	top = (uint64_t)n << spans->shift;
	if (top > spans->longest)
		top = spans->longest;
	*us = (double)top * 1e6 / (double)tsc_hz;
	return (double)((uint64_t)(n - 1) << spans->shift) * 1e6 / (double)tsc_hz <
	       PASS_SPANS_US;
}
