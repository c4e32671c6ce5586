/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of objects that have the same metrics, and these in the text format of Prometheus, version
 * 0.0.4, or in that of OpenMetrics, version 1.0.0.
 *
 * A list is a JSON object: labels to the object that has the values. Two objects with the
 * same labels, which only a client that reports nonsense has, are then one: Prometheus
 * refuses a text with a series twice. */
#ifndef STATUS_METRIC_LIST_H
#define STATUS_METRIC_LIST_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

enum metric_type { GAUGE, COUNTER, INFO, HISTOGRAM };

struct metric {
	/* The member; NULL: the object itself is the value. That of a HISTOGRAM has sum_ns and buckets: an object
	 * of how many values each bucket has, by the most that it counts; the last one is inf. */
	const char *key;
	/* After the prefix. That of a COUNTER ends with _total, that of an INFO is info. */
	const char *name;
	enum metric_type type;
	double unit; /* of the member, and of a HISTOGRAM's buckets, in the metric's; 0: the same */
	const char *help;
};

struct metrics_to {
	FILE *file;
	bool openmetrics;
};

/* Adds the object to the list. Its labels: those of `base`, then pairs of a name and a
 * value, which end with NULL. */
void list_add(json_t *list, const json_t *object, const char *base, ...)
	__attribute__((sentinel));

/* object may be NULL: then the list is empty. */
json_t *list_of_one(const json_t *object, const char *base);

/* Prints the metric's values of all objects of the list that have it. */
void metric_print(const struct metrics_to *to, const json_t *list, const char *prefix,
	const struct metric *m);

/* The last line of OpenMetrics, without which a reader takes the text as cut off. */
void metrics_end(const struct metrics_to *to);

#endif
