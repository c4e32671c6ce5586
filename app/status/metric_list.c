/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "metric_list.h"

static void
label_print(FILE *to, const char *name, const char *value)
{
	fprintf(to, "%s=\"", name);
	for (; *value != '\0'; value++) {
		if (*value == '\n')
			fputs("\\n", to);
		else if (*value == '"' || *value == '\\')
			fprintf(to, "\\%c", *value);
		else
			fputc(*value, to);
	}
	fputc('"', to);
}

void
list_add(json_t *list, const json_t *object, const char *base, ...)
{
	char *labels = NULL;
	const char *name;
	va_list pairs;
	size_t size;
	FILE *to = open_memstream(&labels, &size);

	if (to == NULL)
		return;
	fputs(base, to);
	va_start(pairs, base);
	while ((name = va_arg(pairs, const char *)) != NULL) {
		if (ftell(to) != 0)
			fputc(',', to);
		label_print(to, name, va_arg(pairs, const char *));
	}
	va_end(pairs);
	if (fclose(to) == 0)
		json_object_set(list, labels, (json_t *)object);
	free(labels);
}

json_t *
list_of_one(const json_t *object, const char *base)
{
	json_t *list = json_object();

	if (object != NULL)
		list_add(list, object, base, NULL);
	return list;
}

static void
value_print(FILE *to, const json_t *value, double unit)
{
	if (unit != 0)
		fprintf(to, "%.9g", json_number_value(value) * unit);
	else if (json_is_integer(value))
		fprintf(to, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else
		fprintf(to, "%.9g", json_is_true(value) ? 1.0 : json_number_value(value));
}

/* The lines before the values. OpenMetrics describes a counter or an info by a name without the suffix
 * of its values. */
static void
head_print(const struct metrics_to *to, const char *prefix, const struct metric *m)
{
	static const char *const types[] = {[GAUGE] = "gauge",
		[COUNTER] = "counter",
		[INFO] = "info",
		[HISTOGRAM] = "histogram"};
	static const char *const suffixes[] = {
		[GAUGE] = "", [COUNTER] = "_total", [INFO] = "_info", [HISTOGRAM] = ""};
	const char *type = types[m->type];
	char name[128];
	size_t len =
		(size_t)snprintf(name, sizeof(name), "rocade_%s_%s", prefix, m->name);

	if (to->openmetrics && len < sizeof(name))
		name[len - strlen(suffixes[m->type])] = '\0';
	else if (m->type == INFO)
		type = types[GAUGE];
	fprintf(to->file, "# HELP %s %s\n# TYPE %s %s\n", name, m->help, name, type);
}

/* The values of a histogram: how many are up to each bound, their sum and their number. */
static void
histogram_print(const struct metrics_to *to, const char *prefix, const struct metric *m,
	const char *labels, const json_t *value)
{
	json_int_t up_to = 0;
	const char *bound;
	json_t *count;

	json_object_foreach(json_object_get(value, "buckets"), bound, count)
	{
		char le[32] = "+Inf";

		if (strcmp(bound, "inf") != 0)
			snprintf(le, sizeof(le), "%.10g", strtod(bound, NULL) * m->unit);
		up_to += json_integer_value(count);
		fprintf(to->file,
			"rocade_%s_%s_bucket{%s,le=\"%s\"} %" JSON_INTEGER_FORMAT "\n",
			prefix, m->name, labels, le, up_to);
	}
	fprintf(to->file, "rocade_%s_%s_sum{%s} ", prefix, m->name, labels);
	value_print(to->file, json_object_get(value, "sum_ns"), m->unit);
	fprintf(to->file, "\nrocade_%s_%s_count{%s} %" JSON_INTEGER_FORMAT "\n", prefix,
		m->name, labels, up_to);
}

void
metric_print(const struct metrics_to *to, const json_t *list, const char *prefix,
	const struct metric *m)
{
	const char *labels;
	json_t *object;
	bool any = false;

	json_object_foreach((json_t *)list, labels, object)
	{
		/* A list of values has no members. */
		const json_t *value =
			m->key != NULL ? json_object_get(object, m->key) : object;

		if (value == NULL)
			continue;
		if (!any)
			head_print(to, prefix, m);
		any = true;
		if (m->type == HISTOGRAM) {
			histogram_print(to, prefix, m, labels, value);
			continue;
		}
		fprintf(to->file, "rocade_%s_%s{%s} ", prefix, m->name, labels);
		value_print(to->file, value, m->unit);
		fputc('\n', to->file);
	}
}

void
metrics_end(const struct metrics_to *to)
{
	if (to->openmetrics)
		fputs("# EOF\n", to->file);
}
