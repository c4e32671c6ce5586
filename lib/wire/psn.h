/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* 24-bit packet sequence numbers: arithmetic modulo 2^24 (IBA 9.7.1). Inputs may carry
 * high bits; every PSN returned is in 0..0xFFFFFF. */
#ifndef ROCADE_WIRE_PSN_H
#define ROCADE_WIRE_PSN_H

#include "base/common.h"

#define PSN_MASK 0xFFFFFFu

static inline uint32_t
psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PSN_MASK;
}

/* a - b in -2^23 .. 2^23-1: above 0 a is later, below 0 it is earlier (C9-72). */
static inline int32_t
psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

#endif
