/* SPDX-License-Identifier: BSD-3-Clause */
/* A snapshot for people. */
#ifndef STATUS_VIEW_H
#define STATUS_VIEW_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

/* qps: a line for each QP too. */
void
view_print(FILE *to, const json_t *snapshot, bool qps);

#endif
