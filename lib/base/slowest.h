/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slowest requests among those that are measured (qp/req_time.h), each with where its
 * time went. A set keeps a measured request for SLOWEST_PERIOD_NS after it has ended,
 * unless SLOWEST_KEPT slower ones of its type of QP and operation are kept or come
 * meanwhile. The holder of the engine lock writes the set. Any thread may read it. The
 * daemon reads the set of a client in the client's memory, and does not trust it.
 */
#ifndef ROCADE_BASE_SLOWEST_H
#define ROCADE_BASE_SLOWEST_H

#include "base/latencies.h"

enum slow_part {
#define SLOW(name) SLOW_##name,
#include "base/slowest.def"
	SLOW_PARTS
};

extern const char *const slow_part_names[SLOW_PARTS];

struct slow_request {
	uint64_t ended_ns; /* the writer's clock; 0: there is none */
	uint64_t spent_ns[SLOW_PARTS];
	/* from the engine's pass before to the one that found it; 0: not known */
	uint64_t before_ns;
	uint32_t qpn;
	uint32_t bytes;
	uint32_t resent; /* request packets of its QP that were sent again meanwhile */
	uint32_t timers; /* of its QP that expired meanwhile */
	/* NAKs and the like that showed its QP a loss meanwhile */
	uint32_t naks;
	uint32_t rnr_naks;
};
#define SLOW_WORDS (sizeof(struct slow_request) / sizeof(uint64_t))
static_assert(sizeof(struct slow_request) % sizeof(uint64_t) == 0, "copied by words");

#define SLOWEST_KEPT 4
#define SLOWEST_PERIOD_NS (300 * NS_PER_SEC)

struct slowest_row {
	uint32_t writes; /* odd: a request is being written */
	uint32_t reserved;
	/* For the writer: a request that took longer than floor_ns may get a place, and
	 * any that ends at renew_ns or later. */
	uint64_t floor_ns;
	uint64_t renew_ns;
	struct slow_request of[SLOWEST_KEPT];
};

struct slowest {
	/* Nanoseconds to be added to the writer's clock: the sum is wall clock time since
	 * 1970. Any thread of the writer's process writes it. */
	uint64_t to_wall_ns;
	struct slowest_row of[LATENCY_TYPES][LATENCY_OPS];
};

/* Returns whether slowest_add() may keep a request that took so long. */
static inline bool
slowest_takes(const struct slowest_row *row, uint64_t took_ns, uint64_t now)
{
	return took_ns > row->floor_ns || now >= row->renew_ns;
}

/* Keeps the request in place of one that ended SLOWEST_PERIOD_NS before it, or of a
 * faster one. */
void slowest_add(struct slowest_row *row, const struct slow_request *request);

/* The sum of the parts. */
uint64_t slow_total_ns(const struct slow_request *request);

void slowest_clock_set(struct slowest *s, uint64_t now, uint64_t wall_ns);

/* Copies the requests of the row that ended less than SLOWEST_PERIOD_NS before wall_ns,
 * slowest first, with ended_ns as wall clock time. The writer may be running, or be
 * hostile: the copy is bounded. Returns their number. */
unsigned slowest_copy(const struct slowest *s, enum latency_type type, enum latency_op op,
	uint64_t wall_ns, struct slow_request copy[SLOWEST_KEPT]);

/* Returns whether slowest_copy() finds any. */
bool slowest_any(const struct slowest *s, uint64_t wall_ns);

/* Prints an array with a row for each type and operation of which slowest_copy() finds
 * requests. The text has fewer than SLOWEST_TEXT_MAX bytes: rows that do not fit are left
 * out. */
void slowest_print(
	struct json_out *j, const char *key, const struct slowest *s, uint64_t wall_ns);
#define SLOWEST_TEXT_MAX 16000

#endif
