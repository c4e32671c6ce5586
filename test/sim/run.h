/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCADE_SIM_RUN_H
#define ROCADE_SIM_RUN_H

#include "sim.h"

/* Runs a seed: opens the hosts, does `ops` operations, waits until nothing is in progress
 * and closes everything. Ends the process if something is wrong. */
void seed_run(uint64_t seed, unsigned ops);

#endif
