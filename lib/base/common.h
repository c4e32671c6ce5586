/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCADE_BASE_COMMON_H
#define ROCADE_BASE_COMMON_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_bitops.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>

/* The size of a cache line on x86-64 and on most arm64 CPUs; layouts assert against it. DPDK for
 * arm64 assumes lines of 128 bytes (RTE_CACHE_LINE_SIZE), which some of these CPUs have. There two
 * of our lines may be one, which costs time and is not wrong. */
#define LINE_SIZE 64
static_assert(RTE_CACHE_LINE_SIZE % LINE_SIZE == 0, "alignment of DPDK's structures");
#define LINE_ALIGNED __attribute__((aligned(LINE_SIZE)))
#define PACKED __attribute__((packed))

/* Engines of a device, at most. */
#define ENGINES_MAX 16
#define ENGINES_ALL UINT32_MAX /* a bit for each */

/* The engines that a count by engine has, a bit each. */
static inline uint32_t
engines_used(const uint32_t counts[ENGINES_MAX])
{
	uint32_t engines = 0;

	for (unsigned i = 0; i < ENGINES_MAX; i++)
		engines |= (uint32_t)(counts[i] != 0) << i;
	return engines;
}

/* For rare cases: not inlined, so that its callers do not spill registers for it. */
#define RARE __attribute__((cold, noinline))

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_SEC UINT64_C(1000000000)

/* "No deadline": later than every time. */
#define TIME_NEVER UINT64_MAX

#endif
