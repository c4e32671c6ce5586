/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long requests took: histograms by type of QP and operation. qp/req_time.h chooses the requests that are
 * measured. A set has one writer, the holder of the engine lock, which adds with plain stores, and any
 * thread may read it, as with the counters of base_stats.h. The set of a client of the daemon is in memory that
 * the daemon reads, and does not trust.
 */
#ifndef ROCADE_BASE_LATENCIES_H
#define ROCADE_BASE_LATENCIES_H

#include "base/common.h"

struct json_out;

enum latency_type {
#define LATENCY_TYPE(name) LATENCY_TYPE_##name,
#include "base/latencies.def"
	LATENCY_TYPES
};

enum latency_op {
#define LATENCY_OP(name) LATENCY_OP_##name,
#include "base/latencies.def"
	LATENCY_OPS
};

extern const char *const latency_type_names[LATENCY_TYPES];
extern const char *const latency_op_names[LATENCY_OPS];

/* Bucket i counts what took up to LATENCY_FIRST_NS << i, and longer than bucket i - 1; the last one what took
 * longer than all others. */
#define LATENCY_BUCKETS 24
#define LATENCY_FIRST_SHIFT 9
#define LATENCY_FIRST_NS (UINT64_C(1) << LATENCY_FIRST_SHIFT)

struct latency_hist {
	uint64_t sum_ns;
	uint64_t count[LATENCY_BUCKETS];
};

struct latencies {
	struct latency_hist of[LATENCY_TYPES][LATENCY_OPS];
};

/* Bounds of the values that latencies_add() reads, and of its sums. The count of all buckets together is exact in
 * parsers that read a number as a double, and nothing exceeds INT64_MAX. */
#define LATENCY_COUNT_MAX (UINT64_C(1) << 48)
#define LATENCY_SUM_MAX (UINT64_C(1) << 62)

static inline unsigned
latency_bucket(uint64_t ns)
{
	uint64_t below = (ns - (ns != 0)) | (LATENCY_FIRST_NS - 1);
	unsigned bucket =
		(unsigned)(63 - __builtin_clzll(below)) - (LATENCY_FIRST_SHIFT - 1);

	return RTE_MIN(bucket, LATENCY_BUCKETS - 1u);
}

static inline void
latency_count(struct latency_hist *hist, uint64_t ns)
{
	hist->sum_ns += ns;
	hist->count[latency_bucket(ns)]++;
}

/* to += from, of which each value is read once: its writer may be running, or be hostile. */
void latencies_add(struct latencies *to, const struct latencies *from);

/* Returns whether no request of the set was measured. */
bool latencies_are_empty(const struct latencies *l);

/* Prints an array with a row for each type and operation of which a request was measured. The set must be a sum of
 * latencies_add(): then the text has fewer than LATENCY_TEXT_MAX bytes. */
void latencies_print(struct json_out *j, const char *key, const struct latencies *l);
#define LATENCY_TEXT_MAX 16000

#endif
