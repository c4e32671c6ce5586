/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/delayed_ack.h"
#include "engine/engine_lock.h"

#include "cover.h"
#include "event.h"
#include "host.h"

#define COUNTER_MAX 4096

#define ACCESS_ALL                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |     \
		IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

static void *
counted_get(void *ctx, const char *name, size_t len)
{
	struct host *h = ctx;
	void *mem = alloc_get(&alloc_plain, name, len);

	h->mem_bytes += mem != NULL ? len : 0;
	return mem;
}

static void
counted_put(void *ctx, void *mem, size_t len)
{
	struct host *h = ctx;

	CHECK(h->mem_bytes >= len, "more memory freed than allocated");
	h->mem_bytes -= len;
	alloc_put(&alloc_plain, mem, len);
}

static void
device_open(struct host *h)
{
	struct alloc mem = {counted_get, counted_put, h};
	struct random_key random = {{0}};
	struct dev_conf conf = {
		.random = &random,
		.mtu = 4184,
		.qpn_base = 0x10000 * (h->index + 1) + (uint32_t)draw(0x8000),
		.max_qp = 64,
		.peer_window = h->conf.peer_window,
		.cc = h->conf.cc,
		.no_sack = (sim.seed + h->index) % 4 == 0,
		.paths = (uint8_t)(1 + (sim.seed / 2 + h->index) % 4),
		.net = {.addr_count = 2},
	};
	char text[64];

	snprintf(conf.name, sizeof(conf.name), "sim%u", h->index);
	snprintf(text, sizeof(text), "10.0.0.%u/24", h->index + 1);
	CHECK(gid_parse(text, conf.net.addr[0].gid, &conf.net.addr[0].prefix_len) == 0,
		"gid_parse");
	snprintf(text, sizeof(text), "fd00::%u/64", h->index + 1);
	CHECK(gid_parse(text, conf.net.addr[1].gid, &conf.net.addr[1].prefix_len) == 0,
		"gid_parse");
	memcpy(h->gid4.raw, conf.net.addr[0].gid, 16);
	memcpy(h->gid6.raw, conf.net.addr[1].gid, 16);
	random.word[0] = draw(256);
	CHECK(dev_create(&conf, &h->wire->port, &mem, &h->dev) == 0, "dev_create");
	if ((sim.seed + h->index) % 5 == 0) /* has to drop most of what it holds */
		for (unsigned i = 0; i < h->dev->engine_count; i++)
			h->dev->engines[i]->hold.touched = HOLD_PACKETS - 4;
	CHECK(port_publish(h->dev, &h->port) == 0, "port_publish");
	h->ctx = ibv_open_device(rocade_port_device(h->port));
	CHECK(h->ctx != NULL, "ibv_open_device: %s", strerror(errno));
	fcntl(h->ctx->async_fd, F_SETFL, fcntl(h->ctx->async_fd, F_GETFL) | O_NONBLOCK);
}

void
host_open(struct host *h, struct link *l, unsigned index, const struct host_conf *conf)
{
	struct arena arena = h->arena;

	memset(h, 0, sizeof(*h));
	h->arena = arena;
	h->index = index;
	h->conf = *conf;
	h->wire = link_attach(l, index, conf->engines, 1024);
	arena_init(&h->arena, index);
	device_open(h);
	for (unsigned i = 0; i < HOST_PDS; i++) {
		h->pd[i] = ibv_alloc_pd(h->ctx);
		CHECK(h->pd[i] != NULL, "ibv_alloc_pd: %s", strerror(errno));
		/* Registering the arena would pin and populate 24 MiB: register 0 bytes
		 * and set the length. */
		h->mr[i] = ibv_reg_mr(h->pd[i], h->arena.base, 0, ACCESS_ALL);
		CHECK(h->mr[i] != NULL, "ibv_reg_mr: %s", strerror(errno));
		((struct key_entry *)key_find(&h->dev->keys, h->mr[i]->lkey))->len =
			ARENA_BYTES;
	}
	arena_get(&h->arena, HOST_COUNTERS * 8, true, &h->counters);
	memset(h->counters.data, 0, h->counters.len);
	for (unsigned i = 0; i < HOST_COUNTERS; i++) {
		h->counter_seen[i] = calloc(1, COUNTER_MAX);
		CHECK(h->counter_seen[i] != NULL, "no memory");
	}
}

static void
counters_check(struct host *h)
{
	for (unsigned i = 0; i < HOST_COUNTERS; i++) {
		uint64_t value = ((uint64_t *)h->counters.data)[i];

		CHECK(value >= h->counter_done[i] && value <= h->counter_adds[i],
			"host %u: counter %u is %llu after %u of %u additions", h->index,
			i, (unsigned long long)value, h->counter_done[i],
			h->counter_adds[i]);
		free(h->counter_seen[i]);
	}
	pattern_fill(h->counters.data, h->counters.len);
	arena_put(&h->arena, &h->counters);
}

void
host_close(struct host *h)
{
	counters_check(h);
	for (unsigned i = 0; i < HOST_PDS; i++) {
		CHECK(ibv_dereg_mr(h->mr[i]) == 0, "ibv_dereg_mr");
		CHECK(ibv_dealloc_pd(h->pd[i]) == 0, "host %u: a PD is in use at the end",
			h->index);
	}
	CHECK(ibv_close_device(h->ctx) == 0, "host %u: objects exist at the end",
		h->index);
	CHECK(h->dev->keys.used == 0, "host %u: keys are in use at the end", h->index);
	CHECK(rocade_close_port(h->port) == 0, "rocade_close_port");
	CHECK(h->mem_bytes == 0,
		"host %u: %llu bytes of ring memory are in use at the end", h->index,
		(unsigned long long)h->mem_bytes);
	arena_check(&h->arena);
}

bool
host_has_frames(const struct host *h)
{
	for (unsigned i = 0; i < h->conf.engines; i++) {
		const struct engine *e = h->dev->engines[i];

		if (e->io.backlog_count != 0)
			return true;
		for (unsigned from = 0; from < h->conf.engines; from++) {
			if (e->handoff[from] != NULL && !rte_ring_empty(e->handoff[from]))
				return true;
		}
	}
	return false;
}

unsigned
host_pass(struct host *h, unsigned engine)
{
	struct engine *e = h->dev->engines[engine];
	unsigned moved;

	if (host_has_frames(h))
		h->kept = sim.now;
	moved = engine_run(e, sim.now);
	/* As if this thread had polled the engine. */
	e->tx_thread = chance(h->conf.tx_from_post) ? engine_thread() : 0;
	/* As if it had answered many requests at once. */
	if (chance(h->conf.tx_from_post))
		e->delayed_ack.answers = DELAYED_ACK_ANSWERS;
	/* As if a stream had gone on for long. */
	if (chance(h->conf.streams))
		e->ack_coalesce.stream.needed = (uint32_t)draw(3);
	if (host_has_frames(h))
		h->kept = sim.now;
	return moved;
}

unsigned
host_run(struct host *h)
{
	unsigned moved = 0;
	unsigned first = h->conf.engines > 1 ? (unsigned)draw(h->conf.engines) : 0;

	for (unsigned i = 0; i < h->conf.engines; i++) {
		unsigned e = (first + i) % h->conf.engines;

		if (!link_queue_empty(&h->wire->queues[e]) ||
			engine_deadline(h->dev->engines[e]) <= sim.now)
			moved += host_pass(h, e) + 1;
	}
	return moved;
}

uint64_t
host_deadline(struct host *h)
{
	uint64_t when = TIME_NEVER;

	for (unsigned i = 0; i < h->conf.engines; i++) {
		if (!link_queue_empty(&h->wire->queues[i]))
			return 0;
		when = RTE_MIN(when, engine_deadline(h->dev->engines[i]));
	}
	return when;
}

void
host_events(struct host *h)
{
	struct ibv_async_event event;

	/* Look first: saves the system call if no event is pending. */
	while (!STAILQ_EMPTY(&to_ctx(h->ctx)->events.raised)) {
		CHECK(ibv_get_async_event(h->ctx, &event) == 0, "ibv_get_async_event: %s",
			strerror(errno));
		event_seen(h, &event);
		ibv_ack_async_event(&event);
	}
}

void
host_flush(struct host *h)
{
	unsigned stall = h->wire->link->conf.stall;

	h->wire->link->conf.stall = 0;
	/* A megabyte between two ends of this host, with a small MTU and window, takes
	 * many passes. */
	for (unsigned n = 0; n < 100000 && host_has_frames(h); n++)
		host_pass(h, n % h->conf.engines);
	CHECK(!host_has_frames(h), "host %u does not send its frames", h->index);
	h->wire->link->conf.stall = stall;
}

void
host_stats(struct host *h)
{
	struct port_stats stats;

	dev_stats(h->dev, &stats);
	for (unsigned i = 0; i < DROP_COUNT; i++)
		cover.drop[i] += stats.drop[i];
	CHECK(stats.cnp_sent <= stats.ecn_marked,
		"host %u: %" PRIu64 " CNPs for %" PRIu64 " marked packets", h->index,
		stats.cnp_sent, stats.ecn_marked);
	cover.cnp_sent += stats.cnp_sent;
	cover.cnp_received += stats.cnp_received;
	cover.cc_waits += stats.cc_waits;
	cover.cc_cut_delay += stats.cc_cut_delay;
	cover.cc_cut_loss += stats.cc_cut_loss;
	cover.cc_cut_cnp += stats.cc_cut_cnp;
	cover.sack_received += stats.sack_received;
	cover.resent_few += stats.resent_few;
	cover.ack_coalesced += stats.ack_coalesced;
	cover.spread += stats.spread;
	cover.paths_moved += stats.paths_moved;
	cover.hold_evicted += stats.hold_evicted;
	cover.read_placed += stats.read_placed;
	cover.read_repeated += stats.read_repeated;
}
