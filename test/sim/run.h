/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCADE_SIM_RUN_H
#define ROCADE_SIM_RUN_H

#include "sim.h"

/* All of a seed: hosts made, so many operations, everything comes to rest and is taken
 * down. Does not come back when something is wrong. */
void
seed_run(uint64_t seed, unsigned ops);

#endif
