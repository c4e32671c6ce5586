/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures a scenario while it runs. */
#ifndef ROCADE_FABRIC_MEASURE_H
#define ROCADE_FABRIC_MEASURE_H

#include "load.h"
#include "plot.h"

#define MEASURE_STEP PS_PER_US         /* between two samples of the queue */
#define MEASURE_SLICE (50 * PS_PER_US) /* over which rates are averaged */
#define MEASURE_FAIR 0.95

struct measure {
	const struct row *row;
	struct fabric *fabric;
	struct load_flows *flows;
	struct plot *plot;
	uint64_t started;
	uint64_t begun;           /* measure_begin() */
	uint64_t *packets_before; /* of each flow, at that time */
	unsigned first_undone;    /* flow */
	/* Samples of the queue: bytes. */
	uint32_t *queue;
	size_t samples, room;
	/* The current slice. */
	uint64_t slice_end;
	uint64_t *slice_packets; /* of each flow, at its beginning */
	/* LOAD_STAIRS. */
	unsigned changes;
	uint64_t changed, settled; /* settled: the longest; 0: none */
	bool unsettled;
	double jain_sum;
	unsigned jain_slices;
};

void measure_init(struct measure *m, const struct row *row, struct fabric *fabric,
	struct load_flows *flows, struct plot *plot);
/* To be called each MEASURE_STEP. */
void measure_sample(struct measure *m);
/* Returns whether all messages are complete. */
bool measure_is_done(struct measure *m);
/* The scenario has come to rest: what is measured begins here. */
void measure_begin(struct measure *m);
void measure_end(struct measure *m, struct result *result);

#endif
