/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <common/hist.h>

#define SUB (UINT64_C(1) << HIST_SUB_BITS)

void
hist_clear(struct hist *hist)
{
	memset(hist, 0, sizeof(*hist));
	hist->min_ns = UINT64_MAX;
}

/* Below SUB a bucket holds one value. Above, it holds the values that share their leading
 * HIST_SUB_BITS + 1 bits. */
static unsigned
hist_bucket_of(uint64_t ns)
{
	if (ns < SUB)
		return (unsigned)ns;
	unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - HIST_SUB_BITS;
	if (shift >= HIST_DOUBLINGS)
		return HIST_BUCKETS - 1;
	return ((shift + 1) << HIST_SUB_BITS) + (unsigned)((ns >> shift) - SUB);
}

static uint64_t
hist_bucket_top_ns(unsigned bucket)
{
	unsigned shift = bucket >> HIST_SUB_BITS;

	if (shift == 0)
		return bucket;
	shift--;
	return (((bucket & (SUB - 1)) + SUB + 1) << shift) - 1;
}

void
hist_add(struct hist *hist, uint64_t ns)
{
	hist->count++;
	if (ns < hist->min_ns)
		hist->min_ns = ns;
	if (ns > hist->max_ns)
		hist->max_ns = ns;
	hist->bucket[hist_bucket_of(ns)]++;
}

void
hist_merge(struct hist *hist, const struct hist *other)
{
	hist->count += other->count;
	if (other->min_ns < hist->min_ns)
		hist->min_ns = other->min_ns;
	if (other->max_ns > hist->max_ns)
		hist->max_ns = other->max_ns;
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		hist->bucket[i] += other->bucket[i];
}

uint64_t
hist_quantile_fine(const struct hist *hist, unsigned per_10000)
{
	/* Rounded up: of 10 values, p99 is the 10th. */
	uint64_t rank = (hist->count * per_10000 + 9999) / 10000;
	uint64_t seen = 0;

	if (hist->count == 0)
		return 0;
	if (rank == 0)
		return hist->min_ns;
	/* The last bucket has no upper bound; max_ns stands in for it. */
	for (unsigned i = 0; i < HIST_BUCKETS - 1; i++) {
		seen += hist->bucket[i];
		if (seen >= rank) {
			uint64_t top = hist_bucket_top_ns(i);

			return top < hist->max_ns ? top : hist->max_ns;
		}
	}
	return hist->max_ns;
}
