/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints a snapshot as text. */
#ifndef STATUS_VIEW_H
#define STATUS_VIEW_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

struct view_conf {
	bool qps;       /* with a line for each QP */
	bool peers;     /* with a line for each peer */
	bool latencies; /* with a line for each type of QP and operation */
	bool slow;      /* with lines for the slowest requests */
};
void view_print(FILE *to, const json_t *snapshot, const struct view_conf *conf);

#endif
