/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by all parts of the simulator: the seed's random numbers, the virtual clock, the
 * trace that is printed when a seed fails, and sim_fail(). */
#ifndef ROCADE_SIM_SIM_H
#define ROCADE_SIM_SIM_H

#include <inttypes.h>

#include "base/common.h"

#include "../unit/rand.h"

struct sim {
	uint64_t seed;
	uint64_t rand;      /* state of the generator */
	uint64_t now;       /* virtual nanoseconds */
	uint64_t ops;       /* done in this seed */
	bool verbose;       /* print the trace as it grows */
	unsigned ops_asked; /* --ops: operations per seed */
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

/* Adds a line to the trace. The format takes at most 7 numbers of 64 bits; a number may
 * be the address of a constant string (%s). Lines are formatted only when they are
 * printed. */
#define TRACE(fmt, ...) trace_add(fmt, (const uint64_t[7]){__VA_ARGS__})
#define TRACE_S(string) ((uint64_t)(uintptr_t)(string))

void trace_add(const char *fmt, const uint64_t args[7]);
void trace_clear(void);

/* Prints the trace, the command that replays the seed and the message, and ends the
 * process. */
void sim_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn, cold));

#define CHECK(condition, ...)                                                            \
	do {                                                                             \
		if (unlikely(!(condition)))                                              \
			sim_fail(__VA_ARGS__);                                           \
	} while (0)

/* A crash or an endless loop prints the seed too. */
void sim_catch_signals(void);

#endif
