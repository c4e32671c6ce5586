/* SPDX-License-Identifier: BSD-3-Clause */

#include "case.h"
#include "queue/recv_ring.h"

#include "traffic.h"

typedef int (*take_fn)(struct recv_ring *r, struct recv_wqe *out);

static const take_fn takes[2] = {recv_ring_take, recv_ring_take_shared};

static struct recv_ring ring;

/* Indices that wrap around 2^32 soon, so that every test crosses the wrap. */
static void
ring_open(uint32_t max_wr, uint32_t max_sge)
{
	assert_int_equal(recv_ring_init(&ring, &alloc_counting, max_wr, max_sge), 0);
	assert_int_equal(recv_ring_outstanding(&ring), 0);
	ring.cons = UINT32_MAX - 5;
	recv_ring_clear(&ring);
	assert_int_equal(ring.prod, UINT32_MAX - 5);
}

static void
ring_close(void)
{
	recv_ring_fini(&ring);
	assert_int_equal(counting.bytes, 0);
}

static void
expect_take(take_fn take, uint64_t number, uint32_t num_sge)
{
	struct recv_wqe wqe;

	memset(&wqe, 0xEE, sizeof(wqe));
	assert_int_equal(take(&ring, &wqe), 0);
	assert_int_equal(WQE_NUMBER(wqe.wr_id), number);
	assert_int_equal(wqe.num_sge, num_sge);
	assert_true(wqe_right(&wqe));
}

static void
expect_empty(void)
{
	struct recv_wqe wqe;

	assert_int_equal(recv_ring_outstanding(&ring), 0);
	assert_int_equal(recv_ring_take(&ring, &wqe), -EAGAIN);
	assert_int_equal(recv_ring_take_shared(&ring, &wqe), -EAGAIN);
}

TEST(sizes_are_rounded_up)
{
	static const uint32_t sizes[][2] = {
		{0, 1}, {1, 1}, {2, 2}, {3, 4}, {64, 64}, {65, 128}, {1 << 20, 1 << 20}};

	for (size_t i = 0; i < RTE_DIM(sizes); i++) {
		assert_int_equal(
			recv_ring_init(&ring, &alloc_counting, sizes[i][0], i % 5), 0);
		assert_int_equal(ring.max_wr, sizes[i][1]);
		assert_int_equal(ring.max_sge, i % 5);
		ring_close();
	}
	assert_int_equal(recv_ring_init(&ring, &alloc_counting, UINT32_MAX, 1), -ENOMEM);
	counting_refuse(0);
	assert_int_equal(recv_ring_init(&ring, &alloc_counting, 4, 1), -ENOMEM);
	counting_grant();
	assert_int_equal(counting.bytes, 0);
}

/* Every number of SGEs, through every slot, with both kinds of take. */
TEST(wqes_come_out_as_they_went_in)
{
	uint64_t number = 0;

	ring_open(8, RECV_MAX_SGE);
	for (unsigned round = 0; round < 40; round++) {
		for (unsigned i = 0; i < 8; i++)
			assert_true(ring_post(&ring, number + i, (round + i) % 17));
		assert_false(ring_post(&ring, 99, 0));
		assert_int_equal(recv_ring_outstanding(&ring), 8);
		for (unsigned i = 0; i < 8; i++)
			expect_take(takes[(round + i) % 2], number + i, (round + i) % 17);
		expect_empty();
		number += 8;
	}
	ring_close();
}

/* The thread of a taker loses its core between claim and copy. */
TEST(stalled_taker_delays_no_other)
{
	struct recv_wqe wqe;
	uint32_t stalled;

	ring_open(4, 1);
	for (unsigned i = 0; i < 4; i++)
		assert_true(ring_post(&ring, i, 1));
	stalled = ring.cons++;
	for (unsigned i = 1; i < 4; i++)
		expect_take(recv_ring_take_shared, i, 1);
	assert_int_equal(recv_ring_take_shared(&ring, &wqe), -EAGAIN);
	/* Posters find its slot in use. */
	assert_false(ring_post(&ring, 4, 1));
	assert_false(ring_post(&ring, 4, 1));
	recv_ring_slot(&ring, stalled)->seq = stalled + ring.max_wr;
	for (unsigned i = 4; i < 8; i++)
		assert_true(ring_post(&ring, i, 1));
	for (unsigned i = 4; i < 8; i++)
		expect_take(recv_ring_take_shared, i, 1);
	expect_empty();
	ring_close();
}

TEST(rings_of_one_and_without_sges)
{
	ring_open(1, 0);
	for (unsigned i = 0; i < 20; i++) {
		expect_empty();
		assert_true(ring_post(&ring, i, 0));
		assert_false(ring_post(&ring, i, 0));
		expect_take(takes[i % 2], i, 0);
	}
	ring_close();
}

/* A list becomes visible when it is published, not before. */
TEST(lists_appear_at_once)
{
	uint32_t prod;

	ring_open(4, 1);
	recv_ring_lock(&ring);
	prod = ring.prod;
	for (unsigned i = 0; i < 4; i++)
		wqe_fill(recv_ring_next(&ring, prod++), i, 1);
	assert_null(recv_ring_next(&ring, prod));
	expect_empty();
	recv_ring_publish(&ring, prod);
	recv_ring_unlock(&ring);
	for (unsigned i = 0; i < 4; i++)
		expect_take(takes[i % 2], i, 1);
	ring_close();
}

TEST(invalid_rings_are_detected)
{
	static const int32_t ahead[] = {9, 10, 1000, INT32_MAX, -1, -2, -8};
	struct recv_wqe wqe;

	for (unsigned kind = 0; kind < 2; kind++) {
		ring_open(8, 2);
		for (size_t i = 0; i < RTE_DIM(ahead); i++) {
			ring.prod = ring.cons + (uint32_t)ahead[i];
			assert_int_equal(takes[kind](&ring, &wqe), -EIO);
		}
		/* The maximum distance is valid. */
		ring.prod = ring.cons + 8;
		assert_int_equal(takes[kind](&ring, &wqe), 0);
		/* More SGEs than a slot has. */
		recv_ring_clear(&ring);
		assert_true(ring_post(&ring, 1, 2));
		recv_ring_slot(&ring, ring.cons)->num_sge = 3;
		assert_int_equal(takes[kind](&ring, &wqe), -EIO);
		ring_close();
	}
}

/* A claim takes at most half of what is outstanding. Its slots are free at once. */
TEST(claims_take_half_in_order)
{
	static const uint32_t counts[] = {4, 4, 4, 2, 1, 1};
	struct recv_claim claim;
	struct recv_wqe wqe;
	uint64_t taken = 0, posted = 8;

	ring_open(8, RECV_MAX_SGE);
	for (unsigned i = 0; i < 8; i++)
		assert_true(ring_post(&ring, i, i * 7 % 17));
	for (unsigned round = 0; round < RTE_DIM(counts); round++) {
		assert_int_equal(recv_ring_claim(&ring, UINT32_MAX, &claim), 0);
		assert_int_equal(claim.count, counts[round]);
		for (unsigned i = 0; round < 2 && i < counts[round]; i++, posted++)
			assert_true(ring_post(&ring, posted, posted * 7 % 17));
		while (claim.next != claim.count) {
			assert_int_equal(recv_claim_take(&claim, &wqe), 0);
			assert_int_equal(WQE_NUMBER(wqe.wr_id), taken);
			assert_int_equal(wqe.num_sge, taken * 7 % 17);
			assert_true(wqe_right(&wqe));
			taken++;
		}
	}
	assert_int_equal(taken, posted);
	expect_empty();
	assert_int_equal(recv_ring_claim(&ring, 1, &claim), -EAGAIN);
	assert_int_equal(claim.next, claim.count);
	ring_close();
}

/* No more than are asked for, and no more than a claim has room for. */
TEST(claims_are_bounded)
{
	struct recv_claim claim;

	ring_open(128, 1);
	for (unsigned i = 0; i < 128; i++)
		assert_true(ring_post(&ring, i, 1));
	assert_int_equal(recv_ring_claim(&ring, 1, &claim), 0);
	assert_int_equal(claim.count, 1);
	assert_int_equal(recv_ring_claim(&ring, 5, &claim), 0);
	assert_int_equal(claim.count, 5);
	assert_int_equal(recv_ring_claim(&ring, UINT32_MAX, &claim), 0);
	assert_int_equal(claim.count, RECV_CLAIM_MAX);
	assert_int_equal(recv_ring_outstanding(&ring), 128 - 6 - RECV_CLAIM_MAX);
	ring_close();
}

/* Indices are checked by the claim, the number of SGEs when the WQE is used. */
TEST(invalid_rings_are_detected_by_claims)
{
	struct recv_claim claim;
	struct recv_wqe wqe;

	ring_open(8, 2);
	ring.prod = ring.cons + 9;
	assert_int_equal(recv_ring_claim(&ring, 8, &claim), -EIO);
	assert_int_equal(claim.next, claim.count);
	recv_ring_clear(&ring);
	for (unsigned i = 0; i < 6; i++)
		assert_true(ring_post(&ring, i, 2));
	recv_ring_slot(&ring, ring.cons + 1)->num_sge = 3;
	recv_ring_slot(&ring, ring.cons + 2)->num_sge = UINT32_MAX;
	assert_int_equal(recv_ring_claim(&ring, 8, &claim), 0);
	assert_int_equal(claim.count, 3);
	assert_int_equal(recv_claim_take(&claim, &wqe), 0);
	assert_int_equal(recv_claim_take(&claim, &wqe), -EIO);
	assert_int_equal(WQE_NUMBER(wqe.wr_id), 1);
	assert_int_equal(recv_claim_take(&claim, &wqe), -EIO);
	assert_int_equal(WQE_NUMBER(wqe.wr_id), 2);
	assert_int_equal(recv_ring_outstanding(&ring), 3);
	ring_close();
}

TEST(clear_forgets_everything)
{
	ring_open(8, 1);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < round % 9; i++)
			assert_true(ring_post(&ring, i, 1));
		if (round % 9 > 3)
			expect_take(takes[round % 2], 0, 1);
		/* Also an invalid producer index. */
		if (round % 4 == 0)
			ring.prod += 12345;
		recv_ring_clear(&ring);
		expect_empty();
		for (unsigned i = 0; i < 8; i++)
			assert_true(ring_post(&ring, 100 + i, 1));
		assert_false(ring_post(&ring, 0, 1));
		for (unsigned i = 0; i < 8; i++)
			expect_take(takes[i % 2], 100 + i, 1);
	}
	ring_close();
}

TEST(failed_resize_changes_nothing)
{
	struct recv_ring before;

	ring_open(8, 4);
	for (unsigned i = 0; i < 5; i++)
		assert_true(ring_post(&ring, i, i == 3 ? 3 : 1));
	before = ring;
	assert_int_equal(recv_ring_resize(&ring, 4), -EINVAL);
	assert_int_equal(recv_ring_resize(&ring, 0), -EINVAL);
	assert_int_equal(recv_ring_resize(&ring, UINT32_MAX), -ENOMEM);
	counting_refuse(0);
	assert_int_equal(recv_ring_resize(&ring, 16), -ENOMEM);
	counting_grant();
	ring.prod += 100;
	assert_int_equal(recv_ring_resize(&ring, 1 << 20), -EINVAL);
	ring.prod -= 100;
	assert_memory_equal(&ring, &before, sizeof(ring));
	/* 5 outstanding WQEs fit a size of 5, which is rounded up to 8. */
	assert_int_equal(recv_ring_resize(&ring, 5), 0);
	assert_int_equal(ring.max_wr, 8);
	assert_int_equal(ring.max_sge, 4);
	for (unsigned i = 0; i < 5; i++)
		expect_take(takes[i % 2], i, i == 3 ? 3 : 1);
	ring_close();
}

/* ---- Random calls, compared with a plain list ---- */

struct sweep {
	uint64_t seed, rand;
	unsigned step;
	uint8_t num_sge[512]; /* of the numbers from first to next, modulo 512 */
	uint64_t first, next;
};

static struct sweep sweep;

#define CHECK(condition)                                                                 \
	do {                                                                             \
		if (!(condition))                                                        \
			fail_msg("seed %" PRIu64 ", step %u: %s", sweep.seed,            \
				sweep.step, #condition);                                 \
	} while (0)

static void
sweep_post(void)
{
	uint32_t num_sge = rand_below(&sweep.rand, ring.max_sge + 1);
	bool room = sweep.next - sweep.first < ring.max_wr;

	CHECK(ring_post(&ring, sweep.next, num_sge) == room);
	if (room)
		sweep.num_sge[sweep.next++ % 512] = num_sge;
}

static void
sweep_take(void)
{
	struct recv_wqe wqe;
	int rc = takes[rand_below(&sweep.rand, 2)](&ring, &wqe);

	CHECK(rc == (sweep.first == sweep.next ? -EAGAIN : 0));
	if (rc != 0)
		return;
	CHECK(wqe_right(&wqe));
	CHECK(WQE_NUMBER(wqe.wr_id) == sweep.first);
	CHECK(wqe.num_sge == sweep.num_sge[sweep.first % 512]);
	sweep.first++;
}

static void
sweep_resize(void)
{
	uint32_t max_wr = 1 + rand_below(&sweep.rand, 256);
	bool fits = max_wr >= sweep.next - sweep.first;

	CHECK(recv_ring_resize(&ring, max_wr) == (fits ? 0 : -EINVAL));
	if (fits)
		CHECK(ring.max_wr == rte_align32pow2(max_wr));
}

TEST(random_calls_agree_with_a_list)
{
	unsigned phase = 0;

	sweep = (struct sweep){.seed = test_seed(4)};
	sweep.rand = sweep.seed;
	ring_open(4, 2);
	for (sweep.step = 0; sweep.step < 500000; sweep.step++) {
		uint64_t what = rand_below(&sweep.rand, 64);

		/* Phases of mostly posts and mostly takes. */
		if (what == 0)
			phase = rand_below(&sweep.rand, 2);
		else if (what == 1)
			sweep_resize();
		else if (what < 22 || (what < 44 && phase == 0))
			sweep_post();
		else
			sweep_take();
		CHECK(recv_ring_outstanding(&ring) == sweep.next - sweep.first);
	}
	ring_close();
}

/* ---- Threads ---- */

static int
take_plain(void *arg, struct recv_wqe *out)
{
	return recv_ring_take(arg, out);
}

static int
take_shared(void *arg, struct recv_wqe *out)
{
	return recv_ring_take_shared(arg, out);
}

/* Claims of 1 to 40. */
static int
take_claimed(void *arg, struct recv_wqe *out)
{
	static __thread struct recv_claim claim;
	static __thread uint64_t rand;

	if (claim.next == claim.count) {
		int rc = recv_ring_claim(arg, 1 + rand_below(&rand, 40), &claim);

		if (rc != 0)
			return rc;
	}
	return recv_claim_take(&claim, out);
}

static void
traffic_run(unsigned takers, int (*take)(void *arg, struct recv_wqe *out),
	uint32_t max_wr, uint64_t total)
{
	struct traffic t = {.ring = &ring,
		.take = take,
		.take_arg = &ring,
		.takers = takers,
		.total = total};
	const char *wrong;

	ring_open(max_wr, 4);
	traffic_start(&t);
	wrong = traffic_finish(&t);
	if (wrong != NULL)
		fail_msg("%u takers, max_wr %u: failed: %s", takers, max_wr, wrong);
	assert_int_equal(t.posted, total);
	expect_empty();
	ring_close();
}

static void
run_traffic(unsigned takers, uint32_t max_wr, uint64_t total)
{
	traffic_run(takers, takers == 1 ? take_plain : take_shared, max_wr, total);
}

TEST(one_taker_sees_fifo)
{
	run_traffic(1, 1, 20000);
	run_traffic(1, 16, 300000);
	run_traffic(1, 1024, 1000000);
}

TEST(two_takers_see_fifo)
{
	run_traffic(2, 1, 20000);
	run_traffic(2, 2, 50000);
	run_traffic(2, 16, 300000);
	run_traffic(2, 1024, 1000000);
}

TEST(claimants_see_fifo)
{
	traffic_run(2, take_claimed, 1, 20000);
	traffic_run(2, take_claimed, 16, 300000);
	traffic_run(2, take_claimed, 1024, 1000000);
}

/* A signal stalls a taker between its reads of cons and prod and its exchange, while the
 * small ring wraps around. */
TEST(stalled_takers_see_fifo)
{
	struct traffic t = {.ring = &ring,
		.take = take_shared,
		.take_arg = &ring,
		.takers = 2,
		.total = UINT64_MAX};
	struct sigaction old;
	const char *wrong;

	ring_open(8, 1);
	stalls_open(&old);
	traffic_start(&t);
	for (unsigned i = 0; i < 5000 && !threads_failed(); i++)
		stall(t.taker[0].thread);
	traffic_stop(&t);
	wrong = traffic_finish(&t);
	stalls_close(&old);
	if (wrong != NULL)
		fail_msg("failed: %s", wrong);
	ring_close();
}
