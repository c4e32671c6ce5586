/* SPDX-License-Identifier: BSD-3-Clause */
/* A failed check is a fault of the test or of the library: it ends the program. */
#ifndef ROCADE_FABRIC_CHECK_H
#define ROCADE_FABRIC_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition, ...)                                                            \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "fabric: " __VA_ARGS__);                         \
			fputc('\n', stderr);                                             \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

#endif
