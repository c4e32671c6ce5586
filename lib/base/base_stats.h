/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters. Each set has one writer, the holder of the engine lock, which adds with plain
 * stores. Any thread may read, one value at a time. Counters are 64 bits wide (32 for a QP).
 * The library never resets them: the command `clear` of rocade-testpmd subtracts a snapshot.
 *
 * The writer's `++` is not atomic: compilers make one instruction of it on x86 (add to memory), but three of an
 * atomic load and store, also relaxed ones, and a packet has up to ten counters. A value of a register's width that
 * is aligned does not tear. ThreadSanitizer takes a read beside the writer for a race all the same. */
#ifndef ROCADE_BASE_STATS_H
#define ROCADE_BASE_STATS_H

#include "base/common.h"

enum drop_reason {
#define DROP(name, text) DROP_##name,
#include "base/base_stats.def"
	DROP_COUNT
};

struct port_stats {
#define PORT_STAT(name, text) uint64_t name;
#include "base/base_stats.def"
	uint64_t drop[DROP_COUNT];
};

struct qp_stats {
#define QP_STAT(name, text) uint32_t name;
#include "base/base_stats.def"
};

struct stat_row {
	const char *name; /* drops carry the prefix drop_ */
	const char *text;
	bool error; /* counts losses, refusals or retries */
};

/* One row for each uint64_t in struct port_stats, in its order. */
#define PORT_STAT_COUNT (sizeof(struct port_stats) / sizeof(uint64_t))
#define QP_STAT_COUNT (sizeof(struct qp_stats) / sizeof(uint32_t))
extern const struct stat_row port_stat_rows[PORT_STAT_COUNT];
extern const struct stat_row qp_stat_rows[QP_STAT_COUNT];

/* to += from. Reads each value once: the writer may be running. */
void port_stats_add(struct port_stats *to, const struct port_stats *from);

#endif
