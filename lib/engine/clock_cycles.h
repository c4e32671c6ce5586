/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Where the cycles of a pass go, for -Dcycles=true: the counters cycles_* of
 * base_stats.def. Every other build compiles these macros to nothing. A stage is measured
 * once per burst. */
#ifndef ROCADE_ENGINE_CLOCK_CYCLES_H
#define ROCADE_ENGINE_CLOCK_CYCLES_H

#ifdef ROCADE_CYCLES
#include <rte_cycles.h>

#define CYCLES_START(since) uint64_t since = rte_rdtsc()
/* Adds the cycles since the start, or since the last lap, to this stage. */
#define CYCLES_LAP(e, stage, since)                                                      \
	do {                                                                             \
		uint64_t cycles_now_ = rte_rdtsc();                                      \
                                                                                         \
		(e)->stats.cycles_##stage += cycles_now_ - since;                        \
		since = cycles_now_;                                                     \
	} while (0)
#else
#define CYCLES_START(since) ((void)0)
#define CYCLES_LAP(e, stage, since) ((void)0)
#endif

#endif
