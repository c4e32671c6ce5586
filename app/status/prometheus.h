/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints a snapshot in the text format of Prometheus, or in that of OpenMetrics. */
#ifndef STATUS_PROMETHEUS_H
#define STATUS_PROMETHEUS_H

#include <jansson.h>

#include "metric_list.h"
#include "view.h"

void prometheus_print(const struct metrics_to *to, const json_t *snapshot,
	const struct view_conf *conf);

#endif
