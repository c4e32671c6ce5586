/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCADE_TEST_CLOCK_COST_H
#define ROCADE_TEST_CLOCK_COST_H

#include <stdint.h>

/* The clock of the process goes on by so much. */
void
clock_step(uint64_t ns);

#endif
