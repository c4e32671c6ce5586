/* SPDX-License-Identifier: BSD-3-Clause */
/* Included before the files of app/perf: the test's clock in place of the TSC. */
#ifndef ROCADE_TEST_PERF_CLOCK_H
#define ROCADE_TEST_PERF_CLOCK_H

#include <rte_cycles.h>

/* Advances by 20 ms with each call. */
uint64_t perf_clock(void);
#define rte_rdtsc() perf_clock()

#endif
