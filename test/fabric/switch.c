/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "random.h"
#include "switch.h"

void
sw_init(struct sw *s, uint16_t queues, unsigned hosts, uint32_t salt)
{
	*s = (struct sw){.queue_count = queues, .salt = salt};
	s->queues = calloc(queues, sizeof(*s->queues));
	s->routes = calloc(hosts, sizeof(*s->routes));
	if (s->queues == NULL || s->routes == NULL)
		abort();
}

void
sw_fini(struct sw *s)
{
	for (unsigned i = 0; i < s->queue_count; i++)
		outq_fini(&s->queues[i]);
	free(s->queues);
	free(s->routes);
}

unsigned
ecmp_choose(const struct frame *f, unsigned n, uint32_t salt)
{
	uint64_t key = (uint64_t)salt << 48 ^ (uint64_t)f->src << 32 ^
		       (uint64_t)f->dst << 16 ^ f->sport;

	return (unsigned)rand_below(&key, n);
}

static bool
lost_at_edge(struct sw *s, const struct frame *f)
{
	if (f->hops != 0)
		return false;
	if (s->loss != 0 && random_unit() * 1e6 < s->loss)
		return true;
	return !policer_pass(&s->policer, f, clock_ps);
}

void
sw_rx(void *sw, struct frame *f)
{
	struct sw *s = sw;
	const struct route *r = &s->routes[f->dst];
	unsigned path = 0;

	if (lost_at_edge(s, f)) {
		s->lost += f->payload;
		frame_put(f);
		return;
	}
	f->hops++;
	if (r->count > 1)
		path = ecmp_choose(f, r->count, s->salt);
	outq_send(&s->queues[r->first + path], f);
}
