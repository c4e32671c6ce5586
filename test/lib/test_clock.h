/* SPDX-License-Identifier: BSD-3-Clause */
/* Instead of lib/engine/clock.c: whoever reads the clock reads a number of the test's. */
#ifndef ROCADE_TEST_CLOCK_H
#define ROCADE_TEST_CLOCK_H

#include <stdint.h>

extern const uint64_t *test_clock; /* NULL: it stands at 0 */

#endif
