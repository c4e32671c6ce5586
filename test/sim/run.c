/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "check.h"
#include "cover.h"
#include "gen.h"
#include "quiesce.h"
#include "adversary.h"
#include "run.h"
#include "test_clock.h"
#include "xrc.h"

#define QUIESCE_NS (400 * NS_PER_SEC)
#define QUIESCE_PASSES 2000000
#define PASS_NS 100 /* of a poll loop that has to run again at once */
#define RETIRE_PASSES 32

/* The parameters of a seed */

static struct link_conf
link_choose(void)
{
	/* bits per microsecond */
	static const uint64_t rates[] = {1000, 10000, 10000, 100000};
	static const uint64_t delays[] = {500, 2000, 20000, 200000};
	static const unsigned levels[] = {0, 0, 3, 20, 80};
	struct link_conf c = {
		.bits_per_us = DRAW_OF(rates),
		.delay_ns = DRAW_OF(delays),
		.ecn = chance(300) ? 100 : 0,
		.stall = chance(200) ? 50 : 0,
		.lie = sim.seed % 4 == 0 ? 300 : 0,
	};

	if (world.perfect) {
		c.delay_ns = RTE_MIN(c.delay_ns, UINT64_C(20000));
		c.bits_per_us = RTE_MAX(c.bits_per_us, UINT64_C(10000));
		return c;
	}
	c.jitter_ns = chance(400) ? c.delay_ns / 2 : 0;
	c.route_ns = chance(400) ? c.delay_ns / 4 : 0;
	c.loss = DRAW_OF(levels);
	c.dup = DRAW_OF(levels);
	c.reorder = DRAW_OF(levels);
	c.corrupt = DRAW_OF(levels);
	c.outage = chance(300) ? 500 : 0;
	return c;
}

/* In two of three seeds for some hosts. Not drawn, so that the seed's other choices do not
 * depend on it. */
static struct cc_conf
cc_choose(unsigned host)
{
	static const uint16_t windows[] = {0, 0, 1, 64};
	uint64_t n = sim.seed + host;

	return (struct cc_conf){.on = n % 3 == 0,
		.window = windows[n / 3 % RTE_DIM(windows)],
		.target_us = n % 5 == 0 ? 300 : 0};
}

static void
hosts_open(void)
{
	static const uint32_t windows[] = {0, 0, 0, 3, 20, 60};

	for (unsigned i = 0; i < world.hosts; i++) {
		struct host_conf conf = {
			.engines = 1 + chance(400),
			.streams = chance(500) ? (unsigned)draw(1000) : 0,
			.tx_from_post = chance(500) ? (unsigned)draw(1000) : 0,
			.peer_window = DRAW_OF(windows),
			.cqs = 1 + (unsigned)draw(HOST_CQS),
			.srqs = (unsigned)draw(HOST_SRQS + 1),
			.xrc = chance(500),
			.cc = cc_choose(i),
		};

		host_open(&world.host[i], &world.link, i, &conf);
		for (unsigned s = 0; s < conf.srqs; s++)
			recv_open_srq(&world.host[i].srq[s], &world.host[i], s);
		if (conf.xrc)
			xrc_shared_plan(&world.host[i]);
	}
}

static void
conns_open(void)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

	world.conns = 1 + (unsigned)draw(CONNS_MAX);
	for (unsigned i = 0; i < world.conns; i++) {
		unsigned a = (unsigned)draw(world.hosts), b = (unsigned)draw(world.hosts);

		if (a == b && chance(800))
			b = (a + 1) % world.hosts;
		conn_plan(&world.conn[i], i, DRAW_OF(types), &world.host[a],
			&world.host[b]);
	}
	adversary_plan();
	for (unsigned h = 0; h < world.hosts; h++) {
		struct host *host = &world.host[h];
		const struct recv_model *m;
		uint32_t shared = 1;

		for (unsigned n = 0; (m = host_srq(host, n)) != NULL; n++)
			shared += m->bound;
		for (unsigned i = 0; i < host->conf.cqs; i++) {
			host->cq[i].size += shared;
			if (world.small_cq && chance(500))
				host->cq[i].size = 1 + (uint32_t)draw(40);
			cq_open(&host->cq[i], host, i, chance(600));
		}
		if (host->conf.xrc)
			xrc_shared_open(host);
	}
	for (unsigned i = 0; i < world.conns; i++)
		conn_open(&world.conn[i]);
	adversary_open();
}

static void
world_open(void)
{
	static const unsigned often[] = {0, 0, 2, 10};
	struct link_conf conf;

	world.perfect = chance(300);
	world.quiescing = false;
	world.small_cq = chance(30);
	world.next_key = 0;
	world.hosts = chance(700) ? 2 : 3;
	world.disruption = DRAW_OF(often);
	world.bad_requests = DRAW_OF(often);
	conf = link_choose();
	link_init(&world.link, &conf);
	TRACE("%" PRIu64 " Mb/s, %" PRIu64 " ns + %" PRIu64 ", loss %" PRIu64
	      " dup %" PRIu64 " reorder %" PRIu64 " corrupt %" PRIu64,
		conf.bits_per_us, conf.delay_ns, conf.jitter_ns, conf.loss, conf.dup,
		conf.reorder, conf.corrupt);
	hosts_open();
	conns_open();
}

/* Passes */

static uint64_t passes;

static void
ends_check(void)
{
	passes++;
	for (unsigned i = 0; i < world.conns; i++) {
		struct conn *c = &world.conn[i];

		for (unsigned n = 0; n < c->ends; n++) {
			struct end *e = &c->end[n];

			end_sync(e);
			CHECK(e->last_wqe == e->last_wqe_got,
				"end %u: %u LAST_WQE_REACHED, expected %u", e->number,
				e->last_wqe_got, e->last_wqe);
			/* It scans all frames in flight, so not in every pass. */
			if (e->type != IBV_QPT_RC && e->retired != e->posted &&
				passes % RETIRE_PASSES == 0)
				end_retire(e);
		}
	}
}

static void
world_check(void)
{
	for (unsigned h = 0; h < world.hosts; h++) {
		struct host *host = &world.host[h];
		struct recv_model *m;

		host_events(host);
		for (unsigned n = 0; (m = host_srq(host, n)) != NULL; n++)
			srq_check(m);
		for (unsigned i = 0; i < host->conf.cqs; i++)
			cq_check_events(&host->cq[i]);
	}
	ends_check();
}

static void
world_pass(void)
{
	unsigned first = (unsigned)draw(world.hosts);

	link_run(&world.link);
	for (unsigned i = 0; i < world.hosts; i++)
		host_run(&world.host[(first + i) % world.hosts]);
	world_check();
}

static uint64_t
world_deadline(void)
{
	uint64_t when = link_deadline(&world.link);

	for (unsigned i = 0; i < world.hosts; i++)
		when = RTE_MIN(when, host_deadline(&world.host[i]));
	return when;
}

/* Advances the clock to the next event, or by a short time. */
static void
time_pass(void)
{
	uint64_t next = world_deadline();

	/* Rarely skips a long wait, which is mostly for an ARP or ND timer. */
	if (next > sim.now && next != TIME_NEVER &&
		(next - sim.now < NS_PER_MS ? chance(700) : chance(30)))
		sim.now = next;
	else
		sim.now += draw(2000);
}

static void
ends_trace(void)
{
	for (unsigned i = 0; i < world.conns; i++) {
		for (unsigned n = 0; n < world.conn[i].ends; n++) {
			const struct end *e = &world.conn[i].end[n];

			TRACE("end %" PRIu64 ": state %" PRIu64 ", up %" PRIu64
			      ", posted %" PRIu64 ", done %" PRIu64 ", receives %" PRIu64
			      ", arrived %" PRIu64,
				e->number, (uint64_t)e->state, e->conn->up, e->posted,
				e->done, e->recv_msgs_posted, e->recv_msgs_arrived);
		}
	}
}

/* Runs until no request is in progress and the wire is empty. */
static void
world_quiesce(void)
{
	uint64_t end = sim.now + QUIESCE_NS;
	unsigned rounds = 0, idle_passes = 0;

	world.quiescing = true;
	if (chance(500)) {
		struct link_conf *c = &world.link.conf;

		c->loss = c->corrupt = c->outage = c->dup = c->reorder = 0;
	}
	while (!world_quiesce_step()) {
		uint64_t next;

		if (rounds % RETIRE_PASSES == 0)
			quiesce_peers_check();
		world_pass();
		next = world_deadline();
		idle_passes = next == TIME_NEVER ? idle_passes + 1 : 0;
		if (sim.now >= end || rounds++ >= QUIESCE_PASSES || idle_passes > 200) {
			ends_trace();
			sim_fail("requests stay in progress");
		}
		if (idle_passes != 0)
			sim.now++;
		else
			sim.now = next > sim.now ? next : sim.now + PASS_NS;
	}
	while (link_deadline(&world.link) != TIME_NEVER) {
		sim.now = RTE_MAX(sim.now + 1, link_deadline(&world.link));
		world_pass();
		world_quiesce_step();
		if (sim.now >= end) {
			ends_trace();
			sim_fail("frames stay in flight");
		}
	}
}

/* Checks that no receive is lost: each one is completed, in the SRQ's ring or held by a
 * QP. */
static void
srq_count(struct recv_model *m)
{
	struct rocade_srq_info info;
	uint32_t held = adversary_held(m);

	if (world.small_cq) /* receives are lost with overflowed completions */
		return;
	CHECK(rocade_srq_info(m->srq, &info) == 0, "rocade_srq_info");
	for (unsigned i = 0; i < world.conns; i++) {
		struct conn *c = &world.conn[i];

		for (unsigned n = 0; n < c->ends; n++)
			held += c->end[n].recv == m &&
				to_qp(c->end[n].qp)->qp->resp.wqe_held;
	}
	CHECK(m->live == info.outstanding + held,
		"host %u srq %u: %u receives in use, %u in the ring and %u held",
		m->host->index, m->number, m->live, info.outstanding, held);
}

static void
words_check(const struct end *e)
{
	if (e->type == IBV_QPT_RC && e->conn->up && e->state == IBV_QPS_RTS &&
		e->peer->state == IBV_QPS_RTS && e->peer->done == e->peer->posted)
		CHECK(memcmp(e->words.data, e->word_value, sizeof(e->word_value)) == 0,
			"end %u: the words differ from the results of the atomics",
			e->number);
}

static void
world_close(void)
{
	for (unsigned i = 0; i < world.conns; i++) {
		for (unsigned n = 0; n < world.conn[i].ends; n++)
			words_check(&world.conn[i].end[n]);
	}
	for (unsigned h = 0; h < world.hosts; h++) {
		struct recv_model *m;

		for (unsigned n = 0; (m = host_srq(&world.host[h], n)) != NULL; n++)
			srq_count(m);
		host_stats(&world.host[h]);
	}
	adversary_close();
	for (unsigned i = 0; i < world.conns; i++)
		conn_close(&world.conn[i]);
	gen_end();
	for (unsigned h = 0; h < world.hosts; h++) {
		struct host *host = &world.host[h];

		for (unsigned s = 0; s < host->conf.srqs; s++)
			recv_close_srq(&host->srq[s]);
		if (host->conf.xrc)
			xrc_shared_close(host);
		for (unsigned i = 0; i < host->conf.cqs; i++)
			cq_close(&host->cq[i]);
		host_close(host);
	}
	link_fini(&world.link);
}

void
seed_run(uint64_t seed, unsigned ops)
{
	sim.seed = seed;
	sim.rand = seed * UINT64_C(0x9E3779B97F4A7C15);
	sim.now = 1;
	test_clock = &sim.now;
	sim.ops = 0;
	passes = 0;
	trace_clear();
	world_open();
	for (unsigned idle = 0; sim.ops < ops;) {
		unsigned burst = 1 + (unsigned)draw(chance(200) ? 12 : 3);

		while (burst-- != 0) {
			bool did = gen_op();

			sim.ops += did || ++idle % 16 == 0;
		}
		world_pass();
		time_pass();
		if (chance(300))
			world_pass();
	}
	world_quiesce();
	quiesce_peers_check();
	world_close();
	cover.seeds++;
	cover.virtual_ns += sim.now;
	cover.lost += world.link.lost;
}
