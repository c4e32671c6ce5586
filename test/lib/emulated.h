/* SPDX-License-Identifier: BSD-3-Clause */
/* For cases that need what qemu-user lacks, such as a system call or the effect of one. They
 * skip in the stage arm64, and test/arm64/skips has the reason of each. */
#ifndef ROCADE_TEST_EMULATED_H
#define ROCADE_TEST_EMULATED_H

#include <stdbool.h>
#include <stdlib.h>

#include "case.h"

/* Whether qemu-user runs this program: the stage arm64 sets ROCADE_EMULATED. */
static inline bool
emulated(void)
{
	return getenv("ROCADE_EMULATED") != NULL;
}

/* A program that has no case under qemu-user. */
#define TEST_NONE_IF_EMULATED                                                            \
	static void __attribute__((constructor)) none_if_emulated(void)                  \
	{                                                                                \
		if (emulated())                                                          \
			case_skip_all("qemu-user");                                      \
	}

/* For the first statement of a case. */
#define SKIP_IF_EMULATED()                                                               \
	do {                                                                             \
		if (emulated())                                                          \
			skip();                                                          \
	} while (0)

#endif
