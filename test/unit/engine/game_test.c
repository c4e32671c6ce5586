/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ball games with everything that gets in their way, at random: other lengths, lists,
 * messages of several packets and other QPs in between, frames that are lost, pauses,
 * control calls. Whatever way a message takes: it arrives once, whole, in its order.
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/answer.h"
#include "engine_link.h"
#include "test_clock.h"

#include "../rand.h"

#define SEEDS 60
#define ROUNDS 400
#define PAIRS 3
#define SLOTS 32 /* of messages, or receives, that a QP has at once */
#define SLOT 2048
#define SIDE_BYTES (2u * PAIRS * SLOTS * SLOT)

static struct engine_link fixture;
static struct link_qp a[PAIRS], b[PAIRS];
static uint64_t state;
static unsigned pairs;

/* What one QP has sent to the other of its pair. */
static struct flow {
	uint64_t posted, done;      /* requests */
	uint64_t received, offered; /* and receives of the other */
	uint32_t len[SLOTS];
} flows[2][PAIRS];

static unsigned drafts, matches;

static uint32_t
at(unsigned qp, uint64_t number, bool recv)
{
	return (uint32_t)(((recv ? PAIRS : 0) + qp) * SLOTS + number % SLOTS) * SLOT;
}

static struct link_qp *
end_of(unsigned side, unsigned qp)
{
	return side == 0 ? &a[qp] : &b[qp];
}

static void
fill(uint8_t *to, uint32_t len, unsigned qp, uint64_t number)
{
	for (uint32_t i = 0; i < len; i++)
		to[i] = (uint8_t)(number * 7 + i * 13 + qp * 31);
}

static void
offer(unsigned side, unsigned qp)
{
	struct flow *flow = &flows[side ^ 1][qp];

	for (; flow->offered - flow->received < SLOTS; flow->offered++)
		assert_int_equal(link_qp_recv(end_of(side, qp), flow->offered,
					 at(qp, flow->offered, true), SLOT),
			0);
}

static void
reap(unsigned side, unsigned qp)
{
	struct flow *flow = &flows[side][qp];
	struct cqe cqe;

	while (link_qp_poll_send(end_of(side, qp), &cqe)) {
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
		assert_true(cqe.wr_id >= flow->done && cqe.wr_id < flow->posted);
		flow->done = cqe.wr_id + 1;
	}
}

/* False: its queue is full. */
static bool
throw_one(unsigned side, unsigned qp, uint32_t len, unsigned flags)
{
	struct flow *flow = &flows[side][qp];
	uint64_t number = flow->posted;
	struct link_qp *end = end_of(side, qp);

	reap(side, qp);
	if (number - flow->done == SLOTS)
		return false;
	/* Some must be signaled, or no slot ever comes back. */
	if (number % 4 == 0)
		flags |= IBV_SEND_SIGNALED;
	fill(end->side->mem + at(qp, number, false), len, qp, number);
	flow->len[number % SLOTS] = len;
	flow->posted++;
	assert_int_equal(link_qp_send(end, number, at(qp, number, false), len, flags), 0);
	drafts += end->qp->sched.engine->answers.posted;
	return true;
}

/* How many messages there were. */
static unsigned
catch_all(unsigned side, unsigned qp)
{
	struct flow *flow = &flows[side ^ 1][qp];
	struct link_qp *end = end_of(side, qp);
	unsigned n = 0;
	struct cqe cqe;

	for (; link_qp_poll_recv(end, &cqe); n++) {
		uint32_t len = flow->len[flow->received % SLOTS];
		uint8_t want[SLOT];

		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
		assert_int_equal(cqe.wr_id, flow->received);
		assert_int_equal(cqe.byte_len, len);
		fill(want, len, qp, flow->received);
		assert_memory_equal(
			end->side->mem + at(qp, flow->received, true), want, len);
		flow->received++;
	}
	offer(side, qp);
	return n;
}

/* Mostly that of the game. */
static uint32_t
len_draw(void)
{
	static const uint32_t others[] = {1, 60, 61, 68, 1024, 1025, SLOT};

	return rand_below(&state, 20) != 0 ? 64
					   : others[rand_below(&state, RTE_DIM(others))];
}

static unsigned
flags_draw(void)
{
	static const unsigned rare[] = {
		IBV_SEND_SOLICITED, IBV_SEND_FENCE, IBV_SEND_SIGNALED};

	return rand_below(&state, 12) != 0 ? 0 : rare[rand_below(&state, RTE_DIM(rare))];
}

/* A turn of a side's engine, and what its application says to what came. */
static void
play(unsigned side)
{
	struct engine *e = end_of(side, 0)->side->dev->engines[0];
	uint64_t thinks = rand_below(&state, 40) != 0 ? 0 : rand_below(&state, 20000);

	engine_poll(e);
	matches += e->answers.matched;
	for (unsigned qp = 0; qp < pairs; qp++) {
		unsigned n = catch_all(side, qp);

		if (n == 0)
			continue;
		fixture.now += thinks;
		if (rand_below(&state, 60) == 0)
			dev_qp_query(end_of(side, qp)->side->dev, end_of(side, qp)->qp,
				&(struct qp_attr){0});
		if (rand_below(&state, 80) == 0)
			continue; /* and the game is over */
		while (n-- != 0 && throw_one(side, qp, len_draw(), flags_draw()))
			;
		if (rand_below(&state, 60) == 0)
			throw_one(side, qp, len_draw(), flags_draw());
	}
	engine_link_deliver(&fixture);
}

/* A ball for those that have none. */
static void
serve(void)
{
	for (unsigned qp = 0; qp < pairs; qp++) {
		struct flow *to = &flows[0][qp], *back = &flows[1][qp];

		if (to->received == to->posted && back->received == back->posted &&
			(qp == 0 || rand_below(&state, 100) == 0))
			throw_one(0, qp, len_draw(), flags_draw());
	}
}

static void
game(uint64_t seed)
{
	static const struct engine_link_conf conf = {.mem_bytes = SIDE_BYTES};
	static const struct link_qp_conf plain = {.wr = SLOTS};

	state = seed;
	pairs = rand_below(&state, 3) != 0 ? 1 : PAIRS;
	memset(flows, 0, sizeof(flows));
	engine_link_init(&fixture, &conf);
	test_clock = &fixture.now;
	link_qps_create(&fixture, a, b, pairs, &plain);
	for (unsigned qp = 0; qp < pairs; qp++) {
		offer(0, qp);
		offer(1, qp);
	}
	fixture.a.drop = fixture.b.drop =
		rand_below(&state, 2) ? (unsigned)rand_below(&state, 40) : 0;
	for (unsigned i = 0; i < ROUNDS; i++) {
		serve();
		play((unsigned)rand_below(&state, 2));
		play((unsigned)rand_below(&state, 2));
		fixture.now += rand_below(&state, 30) != 0 ? rand_below(&state, 400)
							   : rand_below(&state, 200000);
	}
	fixture.a.drop = fixture.b.drop = 0;
	for (unsigned i = 0; i < 40; i++) {
		engine_link_advance(&fixture, 100 * NS_PER_MS);
		for (unsigned qp = 0; qp < pairs; qp++) {
			catch_all(0, qp);
			catch_all(1, qp);
		}
	}
	for (unsigned side = 0; side < 2; side++) {
		for (unsigned qp = 0; qp < pairs; qp++) {
			const struct flow *flow = &flows[side][qp];

			reap(side, qp);
			assert_int_equal(flow->received, flow->posted);
			assert_int_equal(end_of(side, qp)->qp->req.una_idx, flow->posted);
			assert_int_equal(end_of(side, qp)->qp->req.unacked, 0);
		}
	}
	link_qps_destroy(a, b, pairs);
	engine_link_fini(&fixture);
}

static void
test_games(void **unused)
{
	const char *only = getenv("SEED");

	(void)unused;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		if (only != NULL)
			seed = strtoull(only, NULL, 0);
		/* The last line says where it failed. */
		print_message("# SEED=%llu\n", (unsigned long long)seed);
		game(seed);
		if (only != NULL)
			return;
	}
	print_message("# %u drafts, %u expected\n", drafts, matches);
	/* It was those that were tested. */
	assert_true(drafts > SEEDS * ROUNDS / 20);
	assert_true(matches > SEEDS * ROUNDS / 40);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_games)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
