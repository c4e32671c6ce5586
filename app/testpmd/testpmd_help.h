/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTPMD_HELP_H
#define TESTPMD_HELP_H

#include <stdio.h>

#define PROGRAM "rocade-testpmd"

void testpmd_help_print(FILE *out);

#endif
