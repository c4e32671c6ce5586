/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base_stats.h"

const struct stat_row port_stat_rows[PORT_STAT_COUNT] = {
#define PORT_STAT(name, text) {#name, text, false},
#define PORT_ERROR(name, text) {#name, text, true},
#include "base/base_stats.def"
#define DROP(name, text) {"drop_" #name, text, DROP_##name != DROP_none},
#include "base/base_stats.def"
};

const struct stat_row qp_stat_rows[QP_STAT_COUNT] = {
#define QP_STAT(name, text) {#name, text, false},
#define QP_ERROR(name, text) {#name, text, true},
#include "base/base_stats.def"
};

void
port_stats_add(struct port_stats *to, const struct port_stats *from)
{
	uint64_t *sum = (uint64_t *)to;
	const uint64_t *value = (const uint64_t *)from;

	/* Relaxed: a counter orders nothing; it only must not tear. */
	for (size_t i = 0; i < PORT_STAT_COUNT; i++)
		sum[i] += __atomic_load_n(&value[i], __ATOMIC_RELAXED);
}
