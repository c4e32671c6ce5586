/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "control_intervals.h"

void
control_intervals_begin(
	struct control_intervals *intervals, uint64_t begin_tsc, uint64_t interval_tsc)
{
	*intervals = (struct control_intervals){.interval_tsc = interval_tsc,
		.next_tsc = interval_tsc != 0 ? begin_tsc : UINT64_MAX};
}

void
control_intervals_next(
	struct control_intervals *intervals, uint64_t now, uint64_t messages)
{
	uint64_t over = (now - intervals->next_tsc) / intervals->interval_tsc;

	/* The rate of an interval in which the thread did not run at all is not known. */
	if (over == 0 && intervals->from_tsc != 0 &&
		intervals->number < CONTROL_INTERVALS_ROOM) {
		intervals->rate[intervals->number] =
			(double)(messages - intervals->from) /
			(double)(now - intervals->from_tsc);
		intervals->count = (unsigned)intervals->number + 1;
	}
	intervals->number += over + (intervals->from_tsc != 0);
	intervals->next_tsc += (over + 1) * intervals->interval_tsc;
	intervals->from_tsc = now;
	intervals->from = messages;
}

static int
ratio_compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

unsigned
control_intervals_ratio(const struct control_intervals *intervals, double quartiles[3])
{
	static double ratios[CONTROL_INTERVALS_ROOM / 2];
	unsigned n = 0;

	for (unsigned i = 1; i + 1 < intervals->count; i += 2) {
		double around = (intervals->rate[i - 1] + intervals->rate[i + 1]) / 2;

		if (intervals->rate[i - 1] != 0 && intervals->rate[i] != 0 &&
			intervals->rate[i + 1] != 0)
			ratios[n++] = intervals->rate[i] / around;
	}
	if (n == 0)
		return 0;
	qsort(ratios, n, sizeof(ratios[0]), ratio_compare);
	for (unsigned q = 0; q < 3; q++)
		quartiles[q] = ratios[(n - 1) * (q + 1) / 4];
	return n;
}
