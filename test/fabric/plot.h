/* SPDX-License-Identifier: BSD-3-Clause */
/* Curves over time: the bottleneck's queue, the flows' rates, their fairness; as a table
 * and as a picture. Or, where messages are measured, their slowdown by length. */
#ifndef ROCADE_FABRIC_PLOT_H
#define ROCADE_FABRIC_PLOT_H

#include <stdint.h>

struct plot;

/* Opens DIRECTORY/NAME.tsv and .svg. */
struct plot *plot_open(const char *directory, const char *name, uint64_t ps_per_byte);
/* A run begins. The curves are those of the last run, the messages those of all. */
void plot_run(struct plot *plot);
/* now: since the start, in picoseconds; rates: in Gb/s. The same n each time. */
void plot_slice(struct plot *plot, uint64_t now, uint64_t queue_bytes,
	const double *rates, unsigned n, double jain);
/* slowdown: the message's time over that in an idle network. */
void plot_message(struct plot *plot, uint64_t bytes, double slowdown);
/* Writes the files. */
void plot_close(struct plot *plot);

#endif
