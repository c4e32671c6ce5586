/* SPDX-License-Identifier: BSD-3-Clause */
/* Control calls beside the traffic of the pairs, by a thread of its own. Uses public calls only. */
#ifndef PERF_PAIRS_CONTROL_H
#define PERF_PAIRS_CONTROL_H

#include "pairs.h"

/* The calls of one round: a region of 4 KiB is registered and deregistered, or two QPs are created, one
 * of each device, connected, and later destroyed. */
enum pairs_control { CONTROL_NONE, CONTROL_DEREGISTER, CONTROL_CONNECT };

struct pairs_control_run {
	struct pairs *pairs;
	enum pairs_control what;
	uint64_t rate; /* rounds a second; 0: as many as possible */
	uint64_t begin_tsc,
		interval_tsc; /* control_intervals.h; interval_tsc 0: rounds all the time */
	const bool *stop;     /* ends the run */
	uint64_t rounds;      /* so far */
	const char *failed;   /* which call; NULL: none */
};

/* Makes rounds until *stop is set, and destroys what it has created. Returns 0. */
int pairs_control_run(void *run);

#endif
