/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "load.h"
#include "random.h"

#define SPREAD (10 * PS_PER_US)      /* the starts of long flows */
#define SPREAD_BURST (1 * PS_PER_US) /* and of a burst */
#define ECT0 2
#define MAX_FLOWS 65536

unsigned
load_hosts(const struct row *row)
{
	switch (row->load) {
	case LOAD_VICTIM:
		return row->n + 2;
	case LOAD_CHAIN:
		return 2 * (row->n + 1);
	case LOAD_MIX:
	case LOAD_ALL:
		return row->n;
	case LOAD_PAIRS:
		return 2 * row->n;
	default:
		return row->n + 1;
	}
}

struct builder {
	struct load_flows *flows;
	const struct row *row;
	struct fabric *fabric;
	uint64_t start, length;
};

static void
add(struct builder *b, struct flow_conf conf)
{
	conf.tclass = b->row->ecn ? ECT0 : 0;
	conf.read |= b->row->read;
	conf.hello = b->row->hello;
	conf.message = b->row->message;
	conf.depth = b->row->depth;
	conf.mtu = b->row->mtu;
	CHECK(b->flows->count < MAX_FLOWS, "too many flows");
	flow_init(&b->flows->flow[b->flows->count++], b->fabric, &conf);
}

/* Hosts 1 to n to host 0. */
static void
incast(struct builder *b, uint64_t spread)
{
	unsigned n = b->row->n * RTE_MAX(b->row->qps, 1u);

	for (unsigned i = 0; i < n; i++)
		add(b, (struct flow_conf){.src = 1 + i % b->row->n,
			       .start = b->start + random_between(0, spread),
			       .bytes = b->row->bytes});
	b->flows->sharing = n;
}

/* One more flow each step, then one less. */
static void
stairs(struct builder *b)
{
	unsigned n = b->row->n;

	b->flows->step = b->length / (2 * n);
	for (unsigned i = 0; i < n; i++)
		add(b, (struct flow_conf){.src = i + 1,
			       .start = b->start + i * b->flows->step,
			       .stop = b->start + (n + i) * b->flows->step});
	b->flows->sharing = n;
}

/* Switch i has the hosts 2i and 2i + 1. */
static void
chain(struct builder *b)
{
	unsigned n = b->row->n;

	for (unsigned i = 0; i < n; i++)
		add(b, (struct flow_conf){
			       .src = 2 * i + 1,
			       .dst = 2 * (i + 1),
			       .start = b->start + random_between(0, SPREAD),
		       });
	add(b, (struct flow_conf){.src = 0, .dst = 2 * n + 1, .start = b->start});
	b->flows->sharing = n;
	b->flows->bottleneck = fabric_queue_right(b->fabric, 0);
}

/* The lengths of the WebSearch workload (Alizadeh et al., DCTCP, 2010), a fifth of them:
 * bytes, and the part of messages up to them. */
static const struct {
	double bytes, part;
} lengths[] = {{200, 0}, {2e3, .15}, {4e3, .2}, {6e3, .3}, {1e4, .4}, {1.6e4, .53},
	{4e4, .6}, {2e5, .7}, {4e5, .8}, {1e6, .9}, {2e6, .97}, {6e6, 1}};

static double
length_mean(void)
{
	double mean = 0;

	for (unsigned i = 1; i < RTE_DIM(lengths); i++)
		mean += (lengths[i].part - lengths[i - 1].part) *
			(lengths[i].bytes + lengths[i - 1].bytes) / 2;
	return mean;
}

static uint64_t
length_draw(void)
{
	double u = random_unit();
	unsigned i = 1;

	while (lengths[i].part < u)
		i++;
	return (uint64_t)(lengths[i - 1].bytes +
			  (lengths[i].bytes - lengths[i - 1].bytes) *
				  (u - lengths[i - 1].part) /
				  (lengths[i].part - lengths[i - 1].part));
}

/* Poisson arrivals at each host, to any other, in the first 80 % of the time. */
static void
mix(struct builder *b)
{
	unsigned n = b->row->n;
	double gap =
		length_mean() * (double)b->fabric->conf.link_ps_per_byte / b->row->part;

	for (unsigned src = 0; src < n; src++) {
		double at = 0;

		for (;;) {
			unsigned dst = (unsigned)random_between(0, n - 1);

			at -= log(1 - random_unit()) * gap;
			if (at > (double)b->length * 0.8)
				break;
			add(b, (struct flow_conf){.src = src,
				       .dst = dst + (dst >= src),
				       .start = b->start + (uint64_t)at,
				       .bytes = length_draw()});
		}
	}
}

static void
pairs(struct builder *b)
{
	for (unsigned i = 0; i < b->row->n; i++)
		add(b, (struct flow_conf){
			       .src = i,
			       .dst = b->row->n + i,
			       .start = b->start + random_between(0, SPREAD),
		       });
	b->flows->sharing = b->row->n;
	b->flows->bottleneck = b->row->spines != 0
				       ? fabric_queue_right(b->fabric, 0)
				       : fabric_queue_to(b->fabric, b->row->n);
}

/* Host 0 to hosts 1 to n. */
static void
fanout(struct builder *b)
{
	unsigned n = b->row->n;

	for (unsigned i = 0; i < n; i++)
		add(b, (struct flow_conf){.dst = 1 + i,
			       .start = b->start + random_between(0, SPREAD)});
	b->flows->sharing = n;
}

static void
all_to_all(struct builder *b)
{
	unsigned n = b->row->n;

	for (unsigned i = 0; i < n * n; i++) {
		if (i / n != i % n)
			add(b, (struct flow_conf){.src = i / n,
				       .dst = i % n,
				       .start = b->start + random_between(0, SPREAD)});
	}
	b->flows->sharing = n * (n - 1);
}

void
load_init(struct load_flows *flows, const struct row *row, struct fabric *fabric,
	uint64_t start, uint64_t length)
{
	struct builder b = {flows, row, fabric, start, length};

	*flows = (struct load_flows){.bottleneck = fabric_queue_to(fabric, 0)};
	flows->flow = aligned_alloc(LINE_SIZE, MAX_FLOWS * sizeof(*flows->flow));
	CHECK(flows->flow != NULL, "no memory");
	switch (row->load) {
	case LOAD_STAIRS:
		stairs(&b);
		break;
	case LOAD_CHAIN:
		chain(&b);
		break;
	case LOAD_MIX:
		mix(&b);
		break;
	case LOAD_PAIRS:
		pairs(&b);
		break;
	case LOAD_FANOUT:
		fanout(&b);
		break;
	case LOAD_ALL:
		all_to_all(&b);
		break;
	default:
		incast(&b, row->load == LOAD_BURST ? SPREAD_BURST : SPREAD);
		break;
	}
	if (row->load == LOAD_VICTIM)
		add(&b, (struct flow_conf){.src = 1, .dst = row->n + 1, .start = start});
	if (row->load == LOAD_DUPLEX)
		add(&b, (struct flow_conf){.dst = 1, .start = start, .read = true});
}

void
load_fini(struct load_flows *flows)
{
	for (unsigned i = 0; i < flows->count; i++)
		flow_fini(&flows->flow[i]);
	free(flows->flow);
}
