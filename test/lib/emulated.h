/* SPDX-License-Identifier: BSD-3-Clause */
/* For cases that need what qemu-user lacks, such as a system call or the effect of one. They
 * skip in the stage arm64, and test/arm64/skips has the reason of each. */
#ifndef ROCADE_TEST_EMULATED_H
#define ROCADE_TEST_EMULATED_H

#include <stdbool.h>
#include <stdlib.h>

/* Whether qemu-user runs this program: the stage arm64 sets ROCADE_EMULATED. */
static inline bool
emulated(void)
{
	return getenv("ROCADE_EMULATED") != NULL;
}

/* For the first statement of a cmocka case. */
#define SKIP_IF_EMULATED()                                                               \
	do {                                                                             \
		if (emulated())                                                          \
			skip();                                                          \
	} while (0)

#endif
