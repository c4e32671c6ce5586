/* SPDX-License-Identifier: BSD-3-Clause */
/* How long the passes of a lane take, counted without a division. */
#ifndef PERF_PASS_SPANS_H
#define PERF_PASS_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#define PASS_SPANS_US 256 /* passes that are longer than all spans are counted together */
#define PASS_SPANS_MAX 514 /* a span is 0.5 to 1 us */

struct pass_spans {
	unsigned shift; /* a span is 1 << shift cycles of the TSC */
	uint64_t longest;
	uint64_t count[PASS_SPANS_MAX]; /* the last one: of all that are longer */
};

void pass_spans_init(struct pass_spans *spans, uint64_t tsc_hz);

/* Counts a pass that has taken tsc cycles. */
static inline void
pass_spans_add(struct pass_spans *spans, uint64_t tsc)
{
	uint64_t span = tsc >> spans->shift;

	spans->longest = tsc > spans->longest ? tsc : spans->longest;
	spans->count[span < PASS_SPANS_MAX ? span : PASS_SPANS_MAX - 1]++;
}

/* Adds what another lane has counted. */
void pass_spans_merge(struct pass_spans *to, const struct pass_spans *from);
uint64_t pass_spans_count(const struct pass_spans *spans);
/* *us: the time that of_100000 of 100,000 passes took at most. Returns false if that is more than
 * PASS_SPANS_US. */
bool pass_spans_quantile(
	const struct pass_spans *spans, unsigned of_100000, uint64_t tsc_hz, double *us);

#endif
