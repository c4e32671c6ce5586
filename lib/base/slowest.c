/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "base/json_out.h"
#include "base/slowest.h"

const char *const slow_part_names[SLOW_PARTS] = {
#define SLOW(name) #name,
#include "base/slowest.def"
};

/* Bounds of what is read: sums of the parts stay exact in parsers that read a number as a
 * double. */
#define SLOW_NS_MAX (UINT64_C(1) << 48)
#define SLOW_ENDED_MAX (UINT64_C(1) << 62)
/* Of the text of a row. */
#define ROW_TEXT_MAX 2200
#define READ_TRIES 8

uint64_t
slow_total_ns(const struct slow_request *request)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < SLOW_PARTS; i++)
		total += request->spent_ns[i];
	return total;
}

/* Data path. */

static bool
is_old(const struct slow_request *request, uint64_t now)
{
	return request->ended_ns == 0 || request->ended_ns + SLOWEST_PERIOD_NS <= now;
}

/* Returns the place for a request, or NULL. */
static struct slow_request *
place_for(struct slowest_row *row, const struct slow_request *request)
{
	uint64_t least = slow_total_ns(request);
	struct slow_request *found = NULL;

	for (unsigned i = 0; i < SLOWEST_KEPT; i++) {
		uint64_t total = slow_total_ns(&row->of[i]);

		if (is_old(&row->of[i], request->ended_ns))
			return &row->of[i];
		if (total < least) {
			least = total;
			found = &row->of[i];
		}
	}
	return found;
}

static void
limits_set(struct slowest_row *row, uint64_t now)
{
	uint64_t least = UINT64_MAX, renew = UINT64_MAX;

	for (unsigned i = 0; i < SLOWEST_KEPT; i++) {
		const struct slow_request *r = &row->of[i];
		bool old = is_old(r, now);

		least = RTE_MIN(least, old ? 0 : slow_total_ns(r));
		if (!old)
			renew = RTE_MIN(renew, r->ended_ns + SLOWEST_PERIOD_NS);
	}
	row->floor_ns = least;
	row->renew_ns = renew;
}

void RARE
slowest_add(struct slowest_row *row, const struct slow_request *request)
{
	struct slow_request *place = place_for(row, request);
	const uint64_t *from = (const uint64_t *)request;
	uint64_t *to = (uint64_t *)place;

	if (place != NULL) {
		__atomic_store_n(&row->writes, row->writes + 1, __ATOMIC_RELAXED);
		/* The number is odd before a word changes. Pairs with the fence in
		 * slow_read(). */
		__atomic_thread_fence(__ATOMIC_RELEASE);
		for (unsigned i = 0; i < SLOW_WORDS; i++)
			__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
		/* Pairs with the acquire in slow_read(). */
		__atomic_store_n(&row->writes, row->writes + 1, __ATOMIC_RELEASE);
	}
	limits_set(row, request->ended_ns);
}

/* Control path. */

void
slowest_clock_set(struct slowest *s, uint64_t now, uint64_t wall_ns)
{
	__atomic_store_n(&s->to_wall_ns, wall_ns - now, __ATOMIC_RELAXED);
}

/* Returns false if it was written meanwhile: a writer that goes on for ever, or was
 * stopped, is not waited for. */
static bool
slow_read(const struct slowest_row *row, const struct slow_request *from,
	struct slow_request *copy)
{
	const uint64_t *words = (const uint64_t *)from;
	uint64_t *to = (uint64_t *)copy;

	for (unsigned tries = 0; tries < READ_TRIES; tries++) {
		/* Pairs with the release in slowest_add(). */
		uint32_t writes = __atomic_load_n(&row->writes, __ATOMIC_ACQUIRE);

		if (writes % 2 != 0)
			continue;
		for (unsigned i = 0; i < SLOW_WORDS; i++)
			to[i] = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
		/* Pairs with the fence in slowest_add(). */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&row->writes, __ATOMIC_RELAXED) == writes)
			return true;
	}
	return false;
}

static void
slow_bound(struct slow_request *r)
{
	for (unsigned i = 0; i < SLOW_PARTS; i++)
		r->spent_ns[i] = RTE_MIN(r->spent_ns[i], SLOW_NS_MAX);
	r->before_ns = RTE_MIN(r->before_ns, SLOW_NS_MAX);
	r->ended_ns = RTE_MIN(r->ended_ns, SLOW_ENDED_MAX);
	r->qpn &= 0xFFFFFF;
}

/* Puts the last one of n in its place: slower ones stand before it. */
static void
sort_in(struct slow_request *copy, unsigned n)
{
	struct slow_request last = copy[n - 1];
	unsigned at = n - 1;

	for (; at > 0 && slow_total_ns(&copy[at - 1]) < slow_total_ns(&last); at--)
		copy[at] = copy[at - 1];
	copy[at] = last;
}

unsigned
slowest_copy(const struct slowest *s, enum latency_type type, enum latency_op op,
	uint64_t wall_ns, struct slow_request copy[SLOWEST_KEPT])
{
	const struct slowest_row *row = &s->of[type][op];
	uint64_t to_wall = __atomic_load_n(&s->to_wall_ns, __ATOMIC_RELAXED);
	unsigned n = 0;

	for (unsigned i = 0; i < SLOWEST_KEPT; i++) {
		struct slow_request *r = &copy[n];

		if (!slow_read(row, &row->of[i], r))
			break;
		if (r->ended_ns == 0)
			continue;
		r->ended_ns += to_wall;
		slow_bound(r);
		if (!is_old(r, wall_ns))
			sort_in(copy, ++n);
	}
	return n;
}

static void
slow_print(struct json_out *j, const struct slow_request *r)
{
	json_out_object(j, NULL);
	json_out_uint(j, "ended_ns", r->ended_ns);
	json_out_uint(j, "qpn", r->qpn);
	json_out_uint(j, "bytes", r->bytes);
	json_out_uint(j, "took_ns", slow_total_ns(r));
	json_out_object(j, "spent_ns");
	for (unsigned i = 0; i < SLOW_PARTS; i++)
		json_out_uint(j, slow_part_names[i], r->spent_ns[i]);
	json_out_end(j);
	json_out_uint(j, "engine_before_ns", r->before_ns);
	json_out_uint(j, "resent", r->resent);
	json_out_uint(j, "timers", r->timers);
	json_out_uint(j, "naks", r->naks);
	json_out_uint(j, "rnr_naks", r->rnr_naks);
	json_out_end(j);
}

static void
slow_row_print(struct json_out *j, unsigned type, unsigned op,
	const struct slow_request *r, unsigned n)
{
	json_out_object(j, NULL);
	json_out_text(j, "type", latency_type_names[type]);
	json_out_text(j, "operation", latency_op_names[op]);
	json_out_array(j, "requests");
	for (unsigned i = 0; i < n; i++)
		slow_print(j, &r[i]);
	json_out_end(j);
	json_out_end(j);
}

bool
slowest_any(const struct slowest *s, uint64_t wall_ns)
{
	struct slow_request copy[SLOWEST_KEPT];

	for (unsigned i = 0; i < LATENCY_TYPES * LATENCY_OPS; i++)
		if (slowest_copy(s, (enum latency_type)(i / LATENCY_OPS),
			    (enum latency_op)(i % LATENCY_OPS), wall_ns, copy) != 0)
			return true;
	return false;
}

void
slowest_print(
	struct json_out *j, const char *key, const struct slowest *s, uint64_t wall_ns)
{
	long begin = ftell(j->to);

	json_out_array(j, key);
	for (unsigned i = 0; i < LATENCY_TYPES * LATENCY_OPS; i++) {
		unsigned type = i / LATENCY_OPS, op = i % LATENCY_OPS;
		struct slow_request copy[SLOWEST_KEPT];
		unsigned n = slowest_copy(
			s, (enum latency_type)type, (enum latency_op)op, wall_ns, copy);

		if (n != 0 && ftell(j->to) - begin < SLOWEST_TEXT_MAX - ROW_TEXT_MAX)
			slow_row_print(j, type, op, copy, n);
	}
	json_out_end(j);
}
