/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells whether two cores are hardware threads of one core, and the clock of a core. */
#ifndef PERF_CORE_STATE_H
#define PERF_CORE_STATE_H

#include <stdint.h>

struct core_state {
	/* How many times as long a fixed piece of work takes on the first core while the second one does the
	 * same: about 1 on two cores, 1.3 to 2 on two hardware threads of one core. */
	double beside;
	/* Cycles of the first core in the time of one tick of the counter that is the clock of DPDK (TSC;
	 * arm64: the generic timer). */
	double cycles_a_tick;
};

/* Takes about 40 ms. Moves the calling thread to the first core. Returns 0, or -1 with errno if a core does not exist
 * or is not permitted, or no thread can be created. */
int core_state_measure(const unsigned cores[2], struct core_state *state);

/* Returns the monotonic clock in nanoseconds. */
uint64_t line_now_ns(void);
/* Returns the median, so that a reading during which a core was descheduled does not matter. Sorts the numbers. */
double line_median(double *numbers, unsigned n);

#endif
