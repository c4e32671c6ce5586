/* SPDX-License-Identifier: BSD-3-Clause */
/* What the counters of rocade_status() are called, and what they count. */
#include <stddef.h>

#include <rocade/status.h>

#include "base/base_stats.h"
#include "cm/cm_core.h"
#include "switch/sw.h"

#define COUNTER_AT(rows, count, i)                                                       \
	((i) < (count) ? (struct rocade_counter){(rows)[i].name, (rows)[i].text,         \
				 (rows)[i].error}                                        \
		       : (struct rocade_counter){NULL, NULL, false})

struct rocade_counter
rocade_counter(enum rocade_counters set, unsigned i)
{
	switch (set) {
	case ROCADE_COUNTERS_ENGINE:
		return COUNTER_AT(port_stat_rows, PORT_STAT_COUNT, i);
	case ROCADE_COUNTERS_CLIENT:
		return COUNTER_AT(sw_stat_rows, SW_STAT_COUNT, i);
	case ROCADE_COUNTERS_QP:
		return COUNTER_AT(qp_stat_rows, QP_STAT_COUNT, i);
	case ROCADE_COUNTERS_CM:
		return COUNTER_AT(cm_stat_rows, CM_STAT_COUNT, i);
	case ROCADE_COUNTERS_QUEUE:
		return COUNTER_AT(sw_thread_stat_rows, SW_THREAD_STAT_COUNT, i);
	}
	return (struct rocade_counter){NULL, NULL, false};
}
