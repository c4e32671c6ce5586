/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints a snapshot in the text format of Prometheus. */
#ifndef STATUS_PROMETHEUS_H
#define STATUS_PROMETHEUS_H

#include <stdio.h>

#include <jansson.h>

#include "view.h"

void prometheus_print(FILE *to, const json_t *snapshot, const struct view_conf *conf);

#endif
