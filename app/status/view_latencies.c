/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "snapshot.h"
#include "view_latencies.h"

void
view_time(FILE *to, double ns)
{
	if (ns < 1e6)
		fprintf(to, "%.1f us", ns / 1e3);
	else if (ns < 1e9)
		fprintf(to, "%.1f ms", ns / 1e6);
	else
		fprintf(to, "%.1f s", ns / 1e9);
}

/* Prints the bound of the first bucket up to which this many of 1000 are counted. */
static void
quantile_print(FILE *to, const json_t *row, double permille)
{
	const double wanted = number_of(row, "count") * permille / 1000;
	const char *bound, *below = "0";
	double up_to = 0;
	json_t *count;

	json_object_foreach(json_object_get(row, "buckets"), bound, count)
	{
		up_to += json_number_value(count);
		if (up_to >= wanted)
			break;
		below = bound;
	}
	fprintf(to, ", %g %% ", permille / 10);
	if (bound != NULL && strcmp(bound, "inf") != 0)
		below = bound;
	fputs(below == bound ? "within " : "above ", to);
	view_time(to, strtod(below, NULL));
}

void
view_latencies(FILE *to, const char *before, const json_t *rows)
{
	static const double permilles[] = {500, 990, 999};
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		const char *type = json_string_value(json_object_get(row, "type"));
		const char *op = json_string_value(json_object_get(row, "operation"));
		double count = number_of(row, "count");

		if (type == NULL || op == NULL || count == 0)
			continue;
		fprintf(to, "%s%s %s: %.0f measured, mean ", before, type, op, count);
		view_time(to, number_of(row, "sum_ns") / count);
		for (size_t k = 0; k < sizeof(permilles) / sizeof(permilles[0]); k++)
			quantile_print(to, row, permilles[k]);
		fputc('\n', to);
	}
}
