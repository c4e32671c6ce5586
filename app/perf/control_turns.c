/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "control_turns.h"

void
control_turns_add(struct control_turns *turns, uint64_t now, uint64_t messages)
{
	uint64_t number;

	if (turns->turn_tsc == 0 || now < turns->begin_tsc)
		return;
	number = (now - turns->begin_tsc) / turns->turn_tsc;
	if (turns->from_tsc != 0 && number == turns->number)
		return;
	/* Of a turn in which the thread was not there at all the rate is not known. */
	if (turns->from_tsc != 0 && number == turns->number + 1 &&
		turns->number < CONTROL_TURNS_ROOM) {
		turns->rate[turns->number] = (double)(messages - turns->from) /
					     (double)(now - turns->from_tsc);
		turns->count = (unsigned)turns->number + 1;
	}
	turns->number = number;
	turns->from_tsc = now;
	turns->from = messages;
}

static int
ratio_compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

unsigned
control_turns_ratio(const struct control_turns *turns, double quartiles[3])
{
	static double ratios[CONTROL_TURNS_ROOM / 2];
	unsigned n = 0;

	for (unsigned i = 1; i + 1 < turns->count; i += 2) {
		double around = (turns->rate[i - 1] + turns->rate[i + 1]) / 2;

		if (turns->rate[i - 1] != 0 && turns->rate[i] != 0 &&
			turns->rate[i + 1] != 0)
			ratios[n++] = turns->rate[i] / around;
	}
	if (n == 0)
		return 0;
	qsort(ratios, n, sizeof(ratios[0]), ratio_compare);
	for (unsigned q = 0; q < 3; q++)
		quartiles[q] = ratios[(n - 1) * (q + 1) / 4];
	return n;
}
