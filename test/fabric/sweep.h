/* SPDX-License-Identifier: BSD-3-Clause */
/* `fabric --sweep`: networks that seeds draw, and what holds in each network. */
#ifndef ROCADE_FABRIC_SWEEP_H
#define ROCADE_FABRIC_SWEEP_H

#include "row.h"

/* A network, and what may be asked of it. Rates are parts of a link's. */
struct drawn {
	struct row row;
	double fair;      /* of a flow: what it gets if all get the same */
	double allowed;   /* that the load can use of the bottleneck; 0: not known */
	double fluid;     /* part that is lost if each flow has a packet under way */
	double resends;   /* the most, percent */
	double buffer_us; /* of the bottleneck, as time */
};

/* Faults of a network. */
enum sweep_fault {
	SWEEP_STARVED = 1, /* a flow gets less than a tenth of its fair part */
	SWEEP_RESENDS = 2,
	SWEEP_FULL = 4,   /* the queue is full half of the time */
	SWEEP_UNUSED = 8, /* less than 80 % of what the load can use */
};

void sweep_draw(struct drawn *d, uint64_t seed);
/* Returns the faults, an OR of enum sweep_fault. */
unsigned sweep_judge(const struct drawn *d, const struct result *result);

/* A seed of sweep.def, and the faults that stand with it. */
struct sweep_listed {
	uint64_t seed;
	unsigned faults;
};

struct sweep_verdict {
	unsigned fresh; /* faults that are not listed: the seed fails */
	unsigned gone;  /* listed faults that it does not have */
};

struct sweep_verdict sweep_compare(
	const struct sweep_listed *list, unsigned count, uint64_t seed, unsigned found);

#define SWEEP_MOST 100000 /* seeds */

/* Runs `count` seeds, in long runs more. Returns the exit status: 1 if a seed has a fault that sweep.def
 * does not list with it. */
int sweep_run(uint64_t first, unsigned count);

#endif
