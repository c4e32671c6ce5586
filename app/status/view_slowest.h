/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-status --slow: the slowest requests, and where their time went, as text. */
#ifndef STATUS_VIEW_SLOWEST_H
#define STATUS_VIEW_SLOWEST_H

#include <stdio.h>

#include <jansson.h>

/* Prints the lines of a client. rows: as in "slowest" of a snapshot. */
void view_slowest(FILE *to, const json_t *rows);

#endif
