/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-status --latencies: how long requests took, as text. */
#ifndef STATUS_VIEW_LATENCIES_H
#define STATUS_VIEW_LATENCIES_H

#include <stdio.h>

#include <jansson.h>

/* Prints a line for each row, a type of QP and an operation. Each begins with `before`. */
void view_latencies(FILE *to, const char *before, const json_t *rows);

/* Prints a time in us, ms or s. */
void view_time(FILE *to, double ns);

#endif
