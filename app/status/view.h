/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints a snapshot as text. */
#ifndef STATUS_VIEW_H
#define STATUS_VIEW_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

/* qps: with a line for each QP. */
void view_print(FILE *to, const json_t *snapshot, bool qps);

#endif
