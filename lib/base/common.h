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

/* The size of a cache line on all supported machines; layouts assert against it. */
#define LINE_SIZE 64
#define LINE_ALIGNED __attribute__((aligned(LINE_SIZE)))
#define PACKED __attribute__((packed))

/* Engines of a device, at most. */
#define ENGINES_MAX 16

/* For rare cases: not inlined, so that its callers do not spill registers for it. */
#define RARE __attribute__((cold, noinline))

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_SEC UINT64_C(1000000000)

/* "No deadline": later than every time. */
#define TIME_NEVER UINT64_MAX

#endif
