/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random traffic over a random wire: all operations of RC and XRC, sizes, SGEs,
 * signaling, fences, depths, SRQ or RQ, late receives; packets are lost, duplicated,
 * reordered, delayed and corrupted in both directions. Every byte on both sides is
 * checked against a model of the memory when it completes. Completions must be in order,
 * each exactly once.
 *
 *   ROCADE_SEED=N   runs that seed alone
 *   ROCADE_SEEDS=N  runs this many seeds, from 1
 */
#include <stdlib.h>

#include "qp/window.h"
#include "sweep_fixture.h"

#ifdef __SANITIZE_ADDRESS__
#define SEEDS 400
#else
#define SEEDS 2000
#endif
#define SEEDS_LONG 100000
#define ROUNDS_MAX 200000

static const unsigned region_access =
	ACCESS_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;

struct sweep s;
static uint64_t seed_running; /* seed of a failure; 0: none */

static bool
flow_done(const struct flow *f)
{
	return f->recv_done == f->recv_msg_count && f->sent_done == f->total;
}

/* ---- The wire ---- */

static void
wire_impair(struct host *from, unsigned index)
{
	for (unsigned i = index; i < from->wire_count; i++) {
		if (chance(s.chances.drop))
			wire_drop(from, i--);
		else if (chance(s.chances.dup))
			wire_dup(from, i++);
		else if (chance(s.chances.move))
			wire_move(from, i, i + 1 + (unsigned)rand_below(&s.rand, 8));
		else if (chance(s.chances.corrupt))
			wire_corrupt(from, i, (uint32_t)rand_next(&s.rand) >> 1);
	}
}

static void
wire_run(struct host *from)
{
	unsigned old = from->wire_count;

	if (old < WIRE_MAX / 4) /* the wire may be slower than the QP */
		host_pull(from, (unsigned)rand_below(&s.rand, 40));
	wire_impair(from, old);
	while (from->wire_count != 0 && !chance(s.chances.hold))
		wire_deliver(from, 0);
}

static bool
host_is_idle(const struct host *h)
{
	return h->wire_count == 0 &&
	       (!qp_wants_tx(&h->qp) ||
		       (qp_peer_full(&h->qp) && h->qp.aeth_pending == 0));
}

/* The next time at which the QP has something to do, or a window of its peer opens. */
static uint64_t
host_deadline(const struct host *h)
{
	uint64_t when = RTE_MIN(peer_opens_at(&h->peer.send, s.link.now),
		peer_opens_at(&h->peer.read, s.link.now));

	return RTE_MIN(when, qp_deadline(&h->qp));
}

static void
time_run(void)
{
	uint64_t next = RTE_MIN(host_deadline(&s.link.a), host_deadline(&s.link.b));

	if (host_is_idle(&s.link.a) && host_is_idle(&s.link.b) && next != TIME_NEVER &&
		next > s.link.now)
		qp_link_advance(&s.link, next - s.link.now);
	else
		qp_link_advance(&s.link, rand_below(&s.rand, 3000));
}

static void
flow_post(struct flow *f)
{
	if (f->posted < f->total && chance(700))
		post_send(f);
	if (f->received < f->total && chance(s.recv_chance))
		post_recv(f);
}

/* ---- A run ---- */

static void
flow_init(struct flow *f, struct host *from)
{
	*f = (struct flow){.from = from, .to = from->other};
	f->total = 1 + (unsigned)rand_below(&s.rand, 90);
	for (unsigned i = 0; i < WORDS; i++)
		f->word[i] = *word_at(f->to, i) = rand_next(&s.rand);
	f->signaled_of = (unsigned)rand_below(&s.rand, 5);
	f->from_region = host_key(f->from, 0, s.link.conf.mem_bytes, region_access);
	f->to_region = host_key(f->to, 0, s.link.conf.mem_bytes, region_access);
	f->local_mw = host_mw(f->from, true);
	f->local_mw_rkey = f->local_mw->rkey;
	f->memory_mw = host_mw(f->to, false);
	assert_int_equal(mw_bind(&f->to->keys, f->to->qp.pd, f->to->qp.qpn, NULL,
				 &(struct mw_bind){ibv_inc_rkey(f->memory_mw->rkey),
					 f->to_region, (uintptr_t)f->to->mem,
					 s.link.conf.mem_bytes, ACCESS_REMOTE}),
		0);
}

static void
flow_fini(struct flow *f)
{
	for (unsigned i = 0; i < f->posted; i++) {
		if (f->msg[i].mw != NULL)
			mw_destroy(&f->to->keys, f->msg[i].mw);
	}
	mw_destroy(&f->from->keys, f->local_mw);
	mw_destroy(&f->to->keys, f->memory_mw);
	assert_int_equal(key_free(&f->from->keys, f->from_region), 0);
	assert_int_equal(key_free(&f->to->keys, f->to_region), 0);
}

static void
sweep_init(uint64_t seed)
{
	static const unsigned levels[] = {0, 0, 0, 5, 30, 120};
	struct qp_link_conf conf = qp_link_defaults();

#define LEVEL() levels[rand_below(&s.rand, RTE_DIM(levels))]
	s.rand = seed * UINT64_C(0x9E3779B97F4A7C15);
	conf.mtu = (enum ibv_mtu)(1 + rand_below(&s.rand, 5));
	conf.ipv6 = chance(500);
	conf.srq = chance(500);
	conf.srq_pd = chance(500);
	conf.sig_all = chance(200);
	conf.psn[0] = chance(300) ? 0xFFFFF0 : (uint32_t)rand_below(&s.rand, 1 << 24);
	conf.psn[1] = (uint32_t)rand_below(&s.rand, 1 << 24);
	conf.timeout = (uint8_t)(6 + rand_below(&s.rand, 8));
	conf.min_rnr_timer = (uint8_t)rand_below(&s.rand, 32);
	/* 7 RNR retries have no limit; 7 retries may still be exceeded. */
	conf.retry_cnt = 7;
	conf.rnr_retry = 7;
	conf.cc = chance(500);
	conf.peer_window = chance(300) ? 1 + (uint32_t)rand_below(&s.rand, 40) : 4096;
	conf.mem_bytes = 3 * SLOTS * SLOT_BYTES + WORDS * 8;
	conf.access = ACCESS_REMOTE | ACCESS_FLUSH;
	conf.max_rd = (uint8_t)(1 + rand_magnitude(&s.rand, 4));
	conf.max_dest_rd = (uint8_t)RTE_MIN(
		conf.max_rd + rand_below(&s.rand, 3), (uint64_t)QP_MAX_RD_ATOMIC);
	s.chances = (struct chances){LEVEL(), LEVEL(), LEVEL(), LEVEL(), LEVEL()};
	s.recv_chance = chance(500) ? 900 : 20;
	if (seed % 5 == 0)
		conf.type = IBV_QPT_XRC_SEND;
	qp_link_init(&s.link, &conf);
	flow_init(&s.flow[0], &s.link.a);
	flow_init(&s.flow[1], &s.link.b);
	if (qp_link_is_xrc(&s.link))
		s.flow[1].total = 0; /* an XRC target sends nothing */
#undef LEVEL
}

/* Packets still on the wire have no effect any more. */
static void
sweep_end(void)
{
	qp_link_drain(&s.link);
	for (unsigned i = 0; i < 2; i++) {
		struct host *h = s.flow[i].from;

		assert_int_equal(h->qp.state, IBV_QPS_RTS);
		assert_int_equal(h->qp.req.una_idx, s.flow[i].total);
		assert_int_equal(h->peer.send.inflight, 0);
		assert_int_equal(qp_deadline(&h->qp), TIME_NEVER);
		/* Congestion control cuts READs into smaller requests. */
		assert_true(s.link.conf.cc ? h->qp.resp.msn >= s.flow[!i].requests
					   : h->qp.resp.msn == s.flow[!i].requests);
		assert_memory_equal(
			word_at(s.flow[i].to, 0), s.flow[i].word, sizeof(s.flow[i].word));
		assert_int_equal(h->stats.drop[DROP_address], 0);
		assert_int_equal(h->stats.drop[DROP_qp_state], 0);
		assert_int_equal(key_find(&h->keys, s.flow[i].local_mw_rkey) != NULL,
			s.flow[i].local_mw_bound);
	}
	flow_fini(&s.flow[0]);
	flow_fini(&s.flow[1]);
	qp_link_fini(&s.link);
}

/* Losses can exceed 7 retries. The QP is then in ERR, and the seed is abandoned. */
static bool
retries_exceeded(const struct flow *f)
{
	return f->from->qp.state == IBV_QPS_ERR;
}

static void
sweep_abandon(void)
{
	struct cqe cqe;

	for (unsigned i = 0; i < 2; i++) {
		struct host *h = s.flow[i].from;

		assert_int_equal(host_modify(h, IBV_QPS_RESET), 0);
		while (host_poll(h, &h->send_cq, &cqe) || host_poll(h, &h->recv_cq, &cqe))
			;
		wire_drop_all(h);
		event_purge(&h->qp.events);
	}
	flow_fini(&s.flow[0]);
	flow_fini(&s.flow[1]);
	qp_link_fini(&s.link);
}

/* Returns false if retries were exceeded. */
static bool
seed_run(uint64_t seed)
{
	seed_running = seed;
	sweep_init(seed);
	for (unsigned round = 0; !flow_done(&s.flow[0]) || !flow_done(&s.flow[1]);
		round++) {
		assert_true(round < ROUNDS_MAX);
		for (unsigned i = 0; i < 2; i++) {
			flow_post(&s.flow[i]);
			wire_run(s.flow[i].from);
		}
		if (retries_exceeded(&s.flow[0]) || retries_exceeded(&s.flow[1])) {
			sweep_abandon();
			return false;
		}
		for (unsigned i = 0; i < 2; i++) {
			sent_check(&s.flow[i]);
			received_check(&s.flow[i]);
		}
		time_run();
	}
	sweep_end();
	return true;
}

static int
teardown(void **state)
{
	if (seed_running != 0)
		print_error("failed with ROCADE_SEED=%lu\n", (unsigned long)seed_running);
	return 0;
}

TEST_WITH(random_traffic_matches_model, NULL, teardown)
{
	const char *one = getenv("ROCADE_SEED"), *many = getenv("ROCADE_SEEDS");
	uint64_t seeds = getenv("ROCADE_TEST_LONG") != NULL ? SEEDS_LONG : SEEDS;
	uint64_t from = 1, abandoned = 0;

	if (one != NULL)
		seeds = from = strtoull(one, NULL, 0);
	else if (many != NULL)
		seeds = strtoull(many, NULL, 0);
	for (uint64_t seed = from; seed <= seeds; seed++)
		abandoned += !seed_run(seed);
	seed_running = 0;
	assert_true(abandoned <= 1 + (seeds - from) / 50);
	assert_true(one != NULL || ops_all_seen());
}
