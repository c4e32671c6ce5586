/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>

#include "base/json_out.h"
#include "base/latencies.h"

const char *const latency_type_names[LATENCY_TYPES] = {
#define LATENCY_TYPE(name) #name,
#include "base/latencies.def"
};

const char *const latency_op_names[LATENCY_OPS] = {
#define LATENCY_OP(name) #name,
#include "base/latencies.def"
};

#define HISTS (LATENCY_TYPES * LATENCY_OPS)

/* Adds one value. Relaxed: it orders nothing; it only must not be read twice. */
static void
clamped_add(uint64_t *to, const uint64_t *from, uint64_t max)
{
	uint64_t value = __atomic_load_n(from, __ATOMIC_RELAXED);

	*to = RTE_MIN(*to + RTE_MIN(value, max), max);
}

void
latencies_add(struct latencies *to, const struct latencies *from)
{
	struct latency_hist *sum = &to->of[0][0];
	const struct latency_hist *hist = &from->of[0][0];

	for (unsigned i = 0; i < HISTS; i++) {
		clamped_add(&sum[i].sum_ns, &hist[i].sum_ns, LATENCY_SUM_MAX);
		for (unsigned k = 0; k < LATENCY_BUCKETS; k++)
			clamped_add(
				&sum[i].count[k], &hist[i].count[k], LATENCY_COUNT_MAX);
	}
}

static uint64_t
hist_total(const struct latency_hist *hist)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
		total += hist->count[i];
	return total;
}

bool
latencies_are_empty(const struct latencies *l)
{
	const struct latency_hist *hist = &l->of[0][0];

	for (unsigned i = 0; i < HISTS; i++) {
		if (hist_total(&hist[i]) != 0)
			return false;
	}
	return true;
}

/* The keys of the buckets are the longest times that they count, in nanoseconds. */
static void
hist_print(struct json_out *j, unsigned i, const struct latency_hist *hist)
{
	char key[24];

	json_out_object(j, NULL);
	json_out_text(j, "type", latency_type_names[i / LATENCY_OPS]);
	json_out_text(j, "operation", latency_op_names[i % LATENCY_OPS]);
	json_out_uint(j, "count", hist_total(hist));
	json_out_uint(j, "sum_ns", hist->sum_ns);
	json_out_object(j, "buckets");
	for (unsigned k = 0; k < LATENCY_BUCKETS - 1; k++) {
		snprintf(key, sizeof(key), "%" PRIu64, LATENCY_FIRST_NS << k);
		json_out_uint(j, key, hist->count[k]);
	}
	json_out_uint(j, "inf", hist->count[LATENCY_BUCKETS - 1]);
	json_out_end(j);
	json_out_end(j);
}

void
latencies_print(struct json_out *j, const char *key, const struct latencies *l)
{
	const struct latency_hist *hist = &l->of[0][0];

	json_out_array(j, key);
	for (unsigned i = 0; i < HISTS; i++) {
		if (hist_total(&hist[i]) != 0)
			hist_print(j, i, &hist[i]);
	}
	json_out_end(j);
}
