/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_HELP_H
#define PERF_HELP_H

#include <stdio.h>

void perf_help_print(FILE *out);

#endif
