/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of the result of rocade-pairs. */
#ifndef PERF_PAIRS_JSON_H
#define PERF_PAIRS_JSON_H

#include <jansson.h>

#include "control_intervals.h"
#include "pairs_control.h"
#include "pass_spans.h"

/* --passes: how long passes take. */
void passes_json(json_t *object, const struct pass_spans *all);
/* Nothing without --control-ms. */
void intervals_json(json_t *object, const struct control_intervals *intervals);

#endif
