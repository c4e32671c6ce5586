/* SPDX-License-Identifier: BSD-3-Clause */
/* Curves over time: the bottleneck's queue, the flows' rates, their fairness; as a table
 * and as a picture. */
#ifndef ROCADE_FABRIC_PLOT_H
#define ROCADE_FABRIC_PLOT_H

#include <stdint.h>

struct plot;

/* Opens DIRECTORY/NAME.tsv and .svg. */
struct plot *plot_open(const char *directory, const char *name, uint64_t ps_per_byte);
/* now: since the start, in picoseconds; rates: in Gb/s. The same n each time. */
void plot_slice(struct plot *plot, uint64_t now, uint64_t queue_bytes,
	const double *rates, unsigned n, double jain);
/* Writes the files. */
void plot_close(struct plot *plot);

#endif
