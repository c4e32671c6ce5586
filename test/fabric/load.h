/* SPDX-License-Identifier: BSD-3-Clause */
/* The flows of a scenario. */
#ifndef ROCADE_FABRIC_LOAD_H
#define ROCADE_FABRIC_LOAD_H

#include "flow.h"
#include "row.h"

struct load_flows {
	struct flow *flow;
	unsigned count;
	/* Flows before it share the bottleneck; the one behind them is the victim or the
	 * long flow. */
	unsigned sharing;
	struct outq *bottleneck;
	uint64_t step; /* LOAD_STAIRS: between two changes, in picoseconds */
};

/* Returns the number of hosts. */
unsigned load_hosts(const struct row *row);

/* Creates the flows. They start at `start`; length: of the scenario. */
void load_init(struct load_flows *flows, const struct row *row, struct fabric *fabric,
	uint64_t start, uint64_t length);
void load_fini(struct load_flows *flows);

#endif
