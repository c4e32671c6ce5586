/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "check.h"
#include "engine/engine_state.h"
#include "fabric.h"
#include "random.h"

static unsigned
leaf_count(const struct fabric_conf *c)
{
	return c->shape == SHAPE_STAR ? 1 : c->leaves;
}

static unsigned
hosts_per_leaf(const struct fabric_conf *c)
{
	return c->hosts / leaf_count(c);
}

static struct outq_conf
link_to(const struct fabric *f, uint64_t ps, void (*deliver)(void *, struct frame *),
	void *to)
{
	return (struct outq_conf){
		.ps_per_byte = ps,
		.delay = f->conf.delay,
		.deliver = deliver,
		.to = to,
	};
}

static void
switch_link(struct fabric *f, struct sw *s, unsigned queue, struct outq_conf link)
{
	link.limit = f->conf.port_bytes;
	link.red = f->conf.red;
	if (f->conf.shared_bytes != 0)
		link.buffer = &s->buffer;
	outq_init(&s->queues[queue], &link);
}

/* The links of a leaf, or of a switch of the chain, to its hosts; each host's to it. */
static void
hosts_link(struct fabric *f, unsigned leaf)
{
	const struct fabric_conf *c = &f->conf;
	struct sw *s = &f->switches[leaf];
	unsigned n = hosts_per_leaf(c);

	for (unsigned i = 0; i < n; i++) {
		unsigned index = leaf * n + i;
		struct host *h = &f->hosts[index];
		struct host_conf conf = {
			.link = link_to(f, c->link_ps_per_byte, sw_rx, s),
			.turns = c->turns,
			.max_qp = c->max_qp,
			.no_sack = c->no_sack,
			.paths = c->paths};

		conf.link.frames = c->nic_frames;
		if (index == 0 || index > c->greedy)
			conf.cc = c->cc;
		switch_link(f, s, i, link_to(f, c->link_ps_per_byte, nic_rx, &h->nic));
		s->routes[index] = (struct route){(uint16_t)i, 1};
		host_init(h, index, &conf);
		if (c->no_hold)
			h->dev->engines[0]->shared.hold = NULL;
	}
}

static void
clos_link(struct fabric *f)
{
	const struct fabric_conf *c = &f->conf;
	uint16_t n = (uint16_t)hosts_per_leaf(c);

	for (unsigned leaf = 0; leaf < c->leaves; leaf++) {
		for (unsigned spine = 0; spine < c->spines; spine++) {
			struct sw *up = &f->switches[c->leaves + spine];
			struct sw *down = &f->switches[leaf];

			switch_link(f, down, n + spine,
				link_to(f, c->trunk_ps_per_byte, sw_rx, up));
			switch_link(f, up, leaf,
				link_to(f, c->trunk_ps_per_byte, sw_rx, down));
			down->queues[n + spine].dead = spine < c->dead_spines;
			up->queues[leaf].dead = spine < c->dead_spines;
		}
		for (unsigned h = 0; h < c->hosts; h++) {
			if (h / n != leaf)
				f->switches[leaf].routes[h] =
					(struct route){n, (uint16_t)c->spines};
			for (unsigned spine = 0; spine < c->spines; spine++)
				f->switches[c->leaves + spine].routes[h] =
					(struct route){(uint16_t)(h / n), 1};
		}
	}
}

static void
chain_link(struct fabric *f)
{
	const struct fabric_conf *c = &f->conf;
	uint16_t n = (uint16_t)hosts_per_leaf(c);

	for (unsigned i = 0; i < c->leaves; i++) {
		struct sw *s = &f->switches[i];
		unsigned right = (i + 1) % c->leaves,
			 left = (i + c->leaves - 1) % c->leaves;

		switch_link(f, s, n,
			link_to(f, c->trunk_ps_per_byte, sw_rx, &f->switches[right]));
		switch_link(f, s, n + 1u,
			link_to(f, c->trunk_ps_per_byte, sw_rx, &f->switches[left]));
		for (unsigned h = 0; h < c->hosts; h++) {
			if (h / n != i)
				s->routes[h] = (struct route){
					(uint16_t)(h / n > i ? n : n + 1), 1};
		}
	}
}

static unsigned
switch_queues(const struct fabric_conf *c, unsigned index)
{
	if (index >= leaf_count(c))
		return c->leaves;
	switch (c->shape) {
	case SHAPE_CLOS:
		return hosts_per_leaf(c) + c->spines;
	case SHAPE_CHAIN:
		return hosts_per_leaf(c) + 2;
	default:
		return c->hosts;
	}
}

void
fabric_init(struct fabric *f, const struct fabric_conf *conf)
{
	unsigned leaves = leaf_count(conf);

	*f = (struct fabric){.conf = *conf};
	f->switch_count = leaves + (conf->shape == SHAPE_CLOS ? conf->spines : 0);
	f->hosts = aligned_alloc(LINE_SIZE, conf->hosts * sizeof(*f->hosts));
	f->switches = calloc(f->switch_count, sizeof(*f->switches));
	CHECK(f->hosts != NULL && f->switches != NULL, "no memory");
	CHECK(conf->hosts % leaves == 0, "%u hosts at %u switches", conf->hosts, leaves);
	for (unsigned i = 0; i < f->switch_count; i++) {
		struct sw *s = &f->switches[i];

		sw_init(s, (uint16_t)switch_queues(conf, i), conf->hosts,
			(uint32_t)rand_below(&random_state, 1 << 16));
		s->buffer = (struct buffer){conf->shared_bytes, 0, conf->alpha};
		s->loss = conf->loss;
		policer_init(&s->policer, conf->police_mbit_per_s, conf->police_burst);
	}
	for (unsigned i = 0; i < leaves; i++)
		hosts_link(f, i);
	if (conf->shape == SHAPE_CLOS)
		clos_link(f);
	else if (conf->shape == SHAPE_CHAIN)
		chain_link(f);
}

void
fabric_fini(struct fabric *f)
{
	for (unsigned i = 0; i < f->conf.hosts; i++)
		host_fini(&f->hosts[i]);
	for (unsigned i = 0; i < f->switch_count; i++)
		sw_fini(&f->switches[i]);
	CHECK(frames_in_use() == 0, "%u frames are lost", frames_in_use());
	free(f->hosts);
	free(f->switches);
}

struct outq *
fabric_queue_to(struct fabric *f, unsigned host)
{
	unsigned n = hosts_per_leaf(&f->conf);

	return &f->switches[host / n].queues[host % n];
}

struct outq *
fabric_queue_right(struct fabric *f, unsigned n)
{
	return &f->switches[n].queues[hosts_per_leaf(&f->conf)];
}

struct fabric_count
fabric_count(const struct fabric *f)
{
	struct fabric_count c = {0};

	for (unsigned i = 0; i < f->switch_count; i++) {
		const struct sw *s = &f->switches[i];

		c.offered += s->lost;
		c.lost += s->lost;
		for (unsigned q = 0; q < s->queue_count; q++) {
			c.offered += s->queues[q].offered;
			c.lost += s->queues[q].dropped;
			c.marked += s->queues[q].marked;
		}
	}
	return c;
}
