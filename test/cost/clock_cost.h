/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCADE_TEST_CLOCK_COST_H
#define ROCADE_TEST_CLOCK_COST_H

#include <stdint.h>

/* Advances the clock of the process by `ns`. */
void clock_step(uint64_t ns);

#endif
