/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * How long a cache line takes from the core of a partner: 30 to 70 ns between cores with one
 * last-level cache, 130 ns and more from another die or socket. A hypervisor may change that while a
 * machine runs.
 *
 * It decides whether long packets are built in the memory of a pair. There, stores have to get each line
 * that the partner has read before, and a core waits for few lines at a time. A copy of a whole packet,
 * as by `rep movsb`, need not get the lines that it overwrites. The lines for short packets are
 * requested before the packets are there, if they are far.
 */
#ifndef ROCADE_SHM_LINE_TIME_H
#define ROCADE_SHM_LINE_TIME_H

#include "base/common.h"

#define LINE_FAR_NS 110  /* longer: the lines of the partner are far */
#define LINE_MOST_NS 500 /* the thread was interrupted meanwhile */
#define LINE_SAMPLES 8   /* the weight of the mean, in samples */

/* Returns the mean with this sample. 0: there was none. */
static inline uint32_t
line_time_mean(uint32_t mean_ns, uint64_t took_ns)
{
	int32_t sample = (int32_t)RTE_MIN(took_ns, LINE_MOST_NS + UINT64_C(0));

	if (mean_ns == 0)
		return (uint32_t)RTE_MIN(sample + 1, LINE_FAR_NS);
	return (uint32_t)((int32_t)mean_ns + (sample - (int32_t)mean_ns) / LINE_SAMPLES);
}

static inline bool
line_time_is_far(uint32_t mean_ns)
{
	return mean_ns > LINE_FAR_NS;
}

#endif
