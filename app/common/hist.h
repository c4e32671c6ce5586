/* SPDX-License-Identifier: BSD-3-Clause */
/* A histogram of nanoseconds with three significant digits: 1024 buckets per doubling. */
#ifndef COMMON_HIST_H
#define COMMON_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS 10
#define HIST_DOUBLINGS 30 /* up to 2^40 ns, 18 minutes */
#define HIST_BUCKETS ((HIST_DOUBLINGS + 1) << HIST_SUB_BITS)

struct hist {
	uint64_t count, min_ns, max_ns;
	uint64_t bucket[HIST_BUCKETS];
};

void hist_clear(struct hist *hist);
void hist_add(struct hist *hist, uint64_t ns);
/* Adds the samples of another histogram. */
void hist_merge(struct hist *hist, const struct hist *other);
/* Returns the value that per_10000 of 10,000 samples do not exceed, rounded up to the top of its
 * bucket; 0 if the histogram is empty. */
uint64_t hist_quantile_fine(const struct hist *hist, unsigned per_10000);

static inline uint64_t
hist_quantile(const struct hist *hist, unsigned per_mille)
{
	return hist_quantile_fine(hist, per_mille * 10);
}

#endif
