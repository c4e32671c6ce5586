/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Smoothed round trips (RFC 6298): of QPs, of peers, and of congestion control. */
#ifndef ROCADE_QP_SRTT_H
#define ROCADE_QP_SRTT_H

#include "base/common.h"

#define SRTT_SHIFT 3 /* a sample counts for an eighth */

/* Counts a sample, which is not 0. *srtt_ns is 0 before the first one. */
static inline void
srtt_sample(uint32_t *srtt_ns, uint32_t sample)
{
	if (unlikely(*srtt_ns == 0))
		*srtt_ns = sample;
	else
		*srtt_ns += ((int32_t)(sample - *srtt_ns)) >> SRTT_SHIFT;
}

#endif
