/* SPDX-License-Identifier: BSD-3-Clause */
/* --rate-sweep: a run for each of several rates, and files with latency over load. */
#ifndef TESTPMD_SWEEP_H
#define TESTPMD_SWEEP_H

#include "run.h"

/* The result of one run. */
struct sweep_row {
	double asked, rate;           /* messages a second */
	double p50, p99, p999, p9999; /* microseconds */
	double max;
	uint64_t behind; /* messages that were due and not posted */
};

/* Runs each rate for --duration, and writes the files. Stops at a run that fails, and at a signal. */
void sweep_run(struct run *run);
/* sweep_svg.c: returns 0, or -1 with errno set. */
int sweep_svg_write(
	const char *path, const struct sweep_row *rows, unsigned n, const char *title);

#endif
