/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "latencies_sum.h"

/* The bounds of the daemon's rows are those of the sums: nothing overflows, whatever clients say. */
#define COUNT_MAX (INT64_C(1) << 48)
#define SUM_NS_MAX (INT64_C(1) << 62)

typedef uint64_t join_fn(uint64_t a, uint64_t b);

static uint64_t
join_add(uint64_t a, uint64_t b)
{
	return a + b;
}

static uint64_t
join_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void
value_join(json_t *into, const json_t *from, const char *key, join_fn *join, int64_t max)
{
	uint64_t both = join((uint64_t)json_integer_value(json_object_get(into, key)),
		(uint64_t)json_integer_value(json_object_get(from, key)));

	json_object_set_new(into, key,
		json_integer(both < (uint64_t)max ? (json_int_t)both : (json_int_t)max));
}

static bool
same_text(const json_t *a, const json_t *b, const char *key)
{
	return json_equal(json_object_get(a, key), json_object_get(b, key)) == 1;
}

/* Returns the row of the same type and operation, or NULL. */
static json_t *
row_like(const json_t *rows, const json_t *row)
{
	json_t *found;
	size_t i;

	json_array_foreach(rows, i, found)
	{
		if (same_text(found, row, "type") && same_text(found, row, "operation"))
			return found;
	}
	return NULL;
}

static void
rows_join(json_t *into, const json_t *from, join_fn *join)
{
	const json_t *row;
	const char *bound;
	json_t *count;
	size_t i;

	json_array_foreach(from, i, row)
	{
		json_t *found = row_like(into, row);

		if (found == NULL) {
			json_array_append_new(into, json_deep_copy(row));
			continue;
		}
		value_join(found, row, "sum_ns", join, SUM_NS_MAX);
		json_object_foreach(json_object_get(row, "buckets"), bound, count)
			value_join(json_object_get(found, "buckets"),
				json_object_get(row, "buckets"), bound, join, COUNT_MAX);
	}
}

void
latencies_sum(json_t *snapshot, json_t *kept)
{
	json_t *now = json_array();
	const json_t *client;
	size_t i;

	rows_join(now, json_object_get(snapshot, "departed_latencies"), join_add);
	json_array_foreach(json_object_get(snapshot, "clients"), i, client)
		rows_join(now, json_object_get(client, "latencies"), join_add);
	rows_join(kept, now, join_max);
	json_decref(now);
	json_object_set(snapshot, "all_latencies", kept);
}
