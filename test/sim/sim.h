/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every part of the simulator uses: the seed's numbers, the virtual clock, the trace
 * that is shown when a seed fails, and the way to fail.
 */
#ifndef ROCADE_SIM_SIM_H
#define ROCADE_SIM_SIM_H

#include <inttypes.h>

#include "base/common.h"

#include "../unit/rand.h"

struct sim {
	uint64_t seed;
	uint64_t rand; /* state of the generator */
	uint64_t now;  /* virtual nanoseconds */
	uint64_t ops;  /* done in this seed */
	bool verbose;  /* the trace is printed as it grows */
	unsigned ops_asked;
};

extern struct sim sim;

static inline uint64_t
draw(uint64_t limit)
{
	return rand_below(&sim.rand, limit);
}

static inline bool
chance(unsigned of_thousand)
{
	return of_thousand != 0 && draw(1000) < of_thousand;
}

#define DRAW_OF(array) ((array)[draw(RTE_DIM(array))])

/* A line of the trace: a format for at most 7 numbers of 64 bits, which may be the
 * addresses of constant strings (%s). It is formatted only when somebody looks. */
#define TRACE(fmt, ...) trace_add(fmt, (const uint64_t[7]){__VA_ARGS__})
#define TRACE_S(string) ((uint64_t)(uintptr_t)(string))

void
trace_add(const char *fmt, const uint64_t args[7]);
void
trace_clear(void);

/* Says what is wrong, how to replay it and what happened before, and ends the process. */
void
sim_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn, cold));

#define CHECK(condition, ...)                                                            \
	do {                                                                             \
		if (unlikely(!(condition)))                                              \
			sim_fail(__VA_ARGS__);                                           \
	} while (0)

/* A crash or an endless loop says which seed it was too. */
void
sim_catch_signals(void);

#endif
