/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "snapshot.h"
#include "view_latencies.h"
#include "view_slowest.h"

/* A part of the time of a request. */
struct part {
	const char *name;
	double ns;
};

#define PARTS_MAX 16

static int
longer_first(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0;
}

/* Prints those parts that are not 0, the longest first. */
static void
parts_print(FILE *to, const json_t *spent)
{
	struct part parts[PARTS_MAX];
	const char *name;
	json_t *ns;
	size_t n = 0;

	json_object_foreach((json_t *)spent, name, ns)
	{
		if (json_number_value(ns) > 0 && n < PARTS_MAX)
			parts[n++] = (struct part){name, json_number_value(ns)};
	}
	qsort(parts, n, sizeof(parts[0]), longer_first);
	for (size_t i = 0; i < n; i++) {
		fprintf(to, "%s%s ", i == 0 ? ": " : ", ", parts[i].name);
		view_time(to, parts[i].ns);
	}
}

static void
counts_print(FILE *to, const json_t *request)
{
	static const char *const names[][2] = {{"resent", "resent"}, {"timers", "timers"},
		{"naks", "NAKs"}, {"rnr_naks", "RNR NAKs"}};
	bool any = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		double count = number_of(request, names[i][0]);

		if (count == 0)
			continue;
		fprintf(to, "%s%s %.0f", any ? ", " : "; ", names[i][1], count);
		any = true;
	}
}

static void
view_request(FILE *to, const json_t *request, double now_ns)
{
	double age_ns = now_ns - number_of(request, "ended_ns");

	fputs("        ", to);
	view_time(to, number_of(request, "took_ns"));
	fprintf(to, ", %.0f s ago, QP 0x%06lx, %.0f bytes", age_ns > 0 ? age_ns / 1e9 : 0,
		(unsigned long)number_of(request, "qpn"), number_of(request, "bytes"));
	parts_print(to, json_object_get(request, "spent_ns"));
	counts_print(to, request);
	fputc('\n', to);
}

void
view_slowest(FILE *to, const json_t *rows)
{
	const json_t *row, *request;
	struct timespec now;
	size_t i, k;

	clock_gettime(CLOCK_REALTIME, &now);
	json_array_foreach(rows, i, row)
	{
		const char *type = json_string_value(json_object_get(row, "type"));
		const char *op = json_string_value(json_object_get(row, "operation"));

		if (type == NULL || op == NULL)
			continue;
		fprintf(to, "      slowest %s %s:\n", type, op);
		json_array_foreach(json_object_get(row, "requests"), k, request)
			view_request(to, request,
				(double)now.tv_sec * 1e9 + (double)now.tv_nsec);
	}
}
