/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces lib/engine/clock.c: the clock returns a number that the test sets. */
#ifndef ROCADE_TEST_CLOCK_H
#define ROCADE_TEST_CLOCK_H

#include <stdint.h>

extern const uint64_t *test_clock; /* NULL: the clock is 0 */

#endif
