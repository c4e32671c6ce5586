/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/engine_state.h"

#include "check.h"
#include "host.h"
#include "random.h"

#define CQ_ROOM 8192
#define TURN_PASSES 64 /* passes of one turn, at most */
#define MEM_REAL (64u << 10)

/* All hosts send from and write to the same memory: 64 KiB, mapped again and again, which
 * stay in the CPU's cache. No scenario looks at payload. */
static uint8_t *
shared_memory(void)
{
	static uint8_t *mem;
	int fd;

	if (mem != NULL)
		return mem;
	fd = memfd_create("payload", 0);
	CHECK(fd >= 0 && ftruncate(fd, MEM_REAL) == 0, "memfd_create");
	mem = mmap(NULL, HOST_MEM_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mem != MAP_FAILED, "mmap");
	for (size_t at = 0; at < HOST_MEM_BYTES; at += MEM_REAL)
		CHECK(mmap(mem + at, MEM_REAL, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED,
			"mmap");
	close(fd);
	return mem;
}

/* ---- Turns ---- */

static uint64_t
turn_draw(const struct host *h)
{
	return random_between(h->turns.min, h->turns.max + 1);
}

/* Returns how far the time is into the period that begins with a stall. Hosts do not stall
 * at the same time. */
static uint64_t
after_stall_begin(const struct host *h, uint64_t when)
{
	uint64_t phase = h->index * (h->turns.stall_every / 1000000 * 618034);

	return (when + phase) % h->turns.stall_every;
}

/* Returns the end of the stall in which the time is, or the time. */
static uint64_t
after_stall(const struct host *h, uint64_t when)
{
	uint64_t into = after_stall_begin(h, when);

	return into < h->turns.stall ? when - into + h->turns.stall : when;
}

/* Returns the time of the turn before this one, in which the loop would have polled and
 * found nothing. */
static uint64_t
turn_before(const struct host *h)
{
	uint64_t when = clock_ps - (h->turns.min + h->turns.max) / 2;
	uint64_t into = after_stall_begin(h, when);

	return into < h->turns.stall ? when - into : when;
}

/* Returns the loop's first turn at or after `when`. The turns in which it would find
 * nothing are drawn only here. */
static uint64_t
turn_after(const struct host *h, uint64_t when)
{
	uint64_t at = h->next_turn;

	if (at + 100 * h->turns.max < when)
		return when + random_between(0, h->turns.max + 1);
	while (at < when)
		at += RTE_MAX(turn_draw(h), PS_PER_NS);
	return at;
}

static void
turn_at(struct host *h, uint64_t when)
{
	when = after_stall(h, when);
	if (!event_is_scheduled(&h->turn) || when < h->turn.when)
		event_at(&h->turn, when);
}

void
host_wake(struct host *h)
{
	if (event_is_scheduled(&h->turn) && h->turn.when <= h->next_turn)
		return;
	h->next_turn = turn_after(h, clock_ps);
	turn_at(h, h->next_turn);
}

static void
nic_wake(void *arg)
{
	host_wake(arg);
}

static bool
app_idle(const struct host *h)
{
	return h->send_cq.head == h->send_cq.tail;
}

static void
turn(struct event *event)
{
	struct host *h = container_of(event, struct host, turn);
	struct engine *e = h->dev->engines[0];
	uint64_t deadline = 0;
	bool idle = false;

	h->turn_count++;
	e->shared.polled_ns = RTE_MAX(e->shared.polled_ns, turn_before(h) / PS_PER_NS);
	h->next_turn = clock_ps + RTE_MAX(turn_draw(h), PS_PER_NS);
	for (unsigned i = 0; i < TURN_PASSES; i++) {
		if (h->app != NULL)
			h->app(h);
		engine_run(e, clock_ns);
		deadline = engine_deadline(e);
		idle = deadline != 0 && nic_rx_empty(&h->nic) && app_idle(h);
		if (idle || e->io.backlog_count != 0) /* or the transmit ring is full */
			break;
	}
	if (!idle)
		turn_at(h, h->next_turn);
	else if (deadline != TIME_NEVER)
		turn_at(h, turn_after(h, RTE_MAX(deadline * PS_PER_NS, h->next_turn)));
}

/* ---- Start and end ---- */

static void
device_create(struct host *h, const struct host_conf *host_conf)
{
	struct random_key random = {.word = {rand_next(&random_state)}};
	struct dev_conf conf = {
		.random = &random,
		.mtu = 4200,
		/* The QPNs choose the UDP source ports, and these the paths. */
		.qpn_base = 2 + (uint32_t)random_between(0, 1 << 23),
		.max_qp = host_conf->max_qp,
		.cc = host_conf->cc,
		.no_sack = host_conf->no_sack,
		.paths = (uint8_t)host_conf->paths,
		.net = {.addr_count = 1},
	};
	char text[32];

	snprintf(conf.name, sizeof(conf.name), "host%u", h->index);
	snprintf(text, sizeof(text), "10.9.%u.%u/8", h->index >> 8, h->index & 0xff);
	CHECK(gid_parse(text, conf.net.addr[0].gid, &conf.net.addr[0].prefix_len) == 0,
		"gid_parse");
	CHECK(dev_create(&conf, &h->nic.port, &alloc_plain, &h->dev) == 0, "dev_create");
}

void
host_init(struct host *h, unsigned index, const struct host_conf *conf)
{
	uint8_t *mem = shared_memory();

	memset(h, 0, sizeof(*h));
	h->index = index;
	h->turns = conf->turns;
	h->turn.run = turn;
	nic_init(&h->nic, index, &conf->link);
	h->nic.wake = nic_wake;
	h->nic.arg = h;
	device_create(h, conf);
	CHECK(event_queue_init(&h->events) == 0, "event_queue_init");
	CHECK(cq_init(&h->send_cq, &alloc_plain, CQ_ROOM, &h->events, h) == 0, "cq_init");
	CHECK(cq_init(&h->recv_cq, &alloc_plain, 16, &h->events, h) == 0, "cq_init");
	CHECK(key_alloc(&h->dev->keys, HOST_PD, 0, mem, HOST_MEM_BYTES,
		      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			      IBV_ACCESS_REMOTE_READ,
		      &h->key) == 0,
		"key_alloc");
	host_wake(h);
}

void
host_fini(struct host *h)
{
	event_cancel(&h->turn);
	cq_fini(&h->send_cq);
	cq_fini(&h->recv_cq);
	event_queue_fini(&h->events);
	CHECK(key_free(&h->dev->keys, h->key) == 0, "key_free");
	dev_destroy(h->dev);
	CHECK(h->nic.lent == 0, "host %u keeps %u frames", h->index, h->nic.lent);
	nic_fini(&h->nic);
}

void
host_resolve(struct host *h, const struct host *other)
{
	uint8_t mac[6];

	net_resolve(h->dev->net, other->dev->gids[0], mac, clock_ns);
	host_wake(h);
}
