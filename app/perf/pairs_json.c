/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_cycles.h>

#include "pairs_json.h"

static json_t *
pass_us_json(const struct pass_spans *all, unsigned of_100000)
{
	double us;

	if (pass_spans_quantile(all, of_100000, rte_get_tsc_hz(), &us))
		return json_real(us);
	return json_sprintf("more than %d", PASS_SPANS_US);
}

void
passes_json(json_t *object, const struct pass_spans *all)
{
	json_object_set_new(
		object, "passes", json_integer((json_int_t)pass_spans_count(all)));
	json_object_set_new(object, "longest_pass_us",
		json_real((double)all->longest * 1e6 / (double)rte_get_tsc_hz()));
	json_object_set_new(object, "pass_us_p999", pass_us_json(all, 99900));
	json_object_set_new(object, "pass_us_p9999", pass_us_json(all, 99990));
}

void
intervals_json(json_t *object, const struct control_intervals *intervals)
{
	double quartiles[3];
	unsigned n;

	if (intervals->interval_tsc == 0)
		return;
	n = control_intervals_ratio(intervals, quartiles);
	json_object_set_new(object, "control_intervals", json_integer((json_int_t)n));
	if (n == 0)
		return;
	json_object_set_new(object, "control_ratio", json_real(quartiles[1]));
	json_object_set_new(object, "control_ratio_quartiles",
		json_pack("[f,f]", quartiles[0], quartiles[2]));
}
