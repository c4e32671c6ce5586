/* SPDX-License-Identifier: BSD-3-Clause */
/* The limit and the size of an SRQ: which changes are accepted, and when events are
 * raised. */
#include "srq_fixture.h"

#define SIZE_AND_LIMIT (IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)

static void
receives_take(unsigned count)
{
	struct recv_wqe wqe;

	for (unsigned i = 0; i < count; i++)
		assert_int_equal(srq_take(&srq, &wqe), 0);
}

/* ---- The limit ---- */

TEST(limit_fires_once_below)
{
	srq_open(16, 1);
	for (unsigned round = 0; round < 6; round++) {
		srq_fixture_post(10, 1);
		assert_int_equal(srq_fixture_modify(0, 0, 4, IBV_SRQ_LIMIT), 0);
		receives_take(6);
		/* 4 are outstanding: not below the limit. */
		srq_expect_no_event();
		srq_expect_attr(16, 1, 4);
		receives_take(1);
		srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
		srq_expect_attr(16, 1, 0);
		srq_fixture_post(5, 1);
		receives_take(8);
		srq_expect_no_event();
		assert_int_equal(srq.limit_fired, round + 1);
		srq.shared = !srq.shared;
	}
	srq_close();
}

TEST(limit_above_count_fires_at_once)
{
	srq_open(16, 1);
	srq_fixture_post(3, 1);
	assert_int_equal(srq_fixture_modify(0, 0, 3, IBV_SRQ_LIMIT), 0);
	srq_expect_no_event();
	assert_int_equal(srq_fixture_modify(0, 0, 4, IBV_SRQ_LIMIT), 0);
	srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	srq_expect_no_event();
	srq_expect_attr(16, 1, 0);
	receives_take(3);
	srq_expect_no_event();
	assert_int_equal(srq_fixture_modify(0, 0, 1, IBV_SRQ_LIMIT), 0);
	srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_int_equal(srq.limit_fired, 2);
	srq_close();
}

TEST(limit_is_disarmed_and_replaced)
{
	srq_open(16, 1);
	srq_fixture_post(16, 1);
	assert_int_equal(srq_fixture_modify(0, 0, 10, IBV_SRQ_LIMIT), 0);
	assert_int_equal(srq_fixture_modify(0, 0, 0, IBV_SRQ_LIMIT), 0);
	srq_expect_attr(16, 1, 0);
	receives_take(8);
	srq_expect_no_event();
	assert_int_equal(srq_fixture_modify(0, 0, 8, IBV_SRQ_LIMIT), 0);
	assert_int_equal(srq_fixture_modify(0, 0, 5, IBV_SRQ_LIMIT), 0);
	receives_take(3);
	srq_expect_no_event();
	receives_take(1);
	srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	receives_take(4);
	srq_expect_no_event();
	/* An arming that has raised nothing yet is replaced without an event. */
	srq_fixture_post(16, 1);
	assert_int_equal(srq_fixture_modify(0, 0, 16, IBV_SRQ_LIMIT), 0);
	assert_int_equal(srq_fixture_modify(0, 0, 17, IBV_SRQ_LIMIT), -EINVAL);
	srq_expect_attr(16, 1, 16);
	receives_take(1);
	srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	srq_expect_no_event();
	srq_close();
}

/* Arming the same limit again makes another word, so the exchange of an engine that read
 * the first one fails. */
TEST(armings_are_numbered)
{
	uint64_t old;

	srq_open(16, 1);
	srq_fixture_post(10, 1);
	assert_int_equal(srq_fixture_modify(0, 0, 4, IBV_SRQ_LIMIT), 0);
	old = srq.limit;
	assert_int_equal(srq_fixture_modify(0, 0, 4, IBV_SRQ_LIMIT), 0);
	assert_true(srq.limit != old);
	receives_take(7);
	srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	/* The arming's number stays when the limit fires, so that the next one differs
	 * again. */
	assert_true(srq.limit >> 32 == (old >> 32) + 1);
	srq_close();
}

/* A thread arms the limit while the store of cons by a take is under way. The end of the
 * pass, or the next take, fires for that take, also if receives were posted meanwhile. */
TEST(take_not_counted_by_arming_fires)
{
	struct srq *taken = NULL;

	srq_open(16, 1);
	srq_attach(&srq, 0, &taken);
	srq_fixture_post(10, 1);
	receives_take(7);
	assert_ptr_equal(taken, &srq);
	srq.ring.cons--;
	assert_int_equal(srq_fixture_modify(0, 0, 4, IBV_SRQ_LIMIT), 0);
	srq.ring.cons++;
	srq_expect_no_event();
	srq_fixture_post(5, 1);
	srq_settle(&taken);
	assert_null(taken);
	srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	srq_expect_attr(16, 1, 0);
	/* Takes before the arming that were made good by posts do not fire. */
	receives_take(6);
	srq_fixture_post(10, 1);
	assert_int_equal(srq_fixture_modify(0, 0, 10, IBV_SRQ_LIMIT), 0);
	srq_settle(&taken);
	receives_take(2);
	srq_expect_no_event();
	receives_take(1);
	srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	srq.ring.cons--;
	assert_int_equal(srq_fixture_modify(0, 0, 10, IBV_SRQ_LIMIT), 0);
	srq.ring.cons++;
	srq_expect_no_event();
	receives_take(1);
	srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	srq_settle(&taken);
	srq_expect_no_event();
	srq_detach(&srq, 0);
	srq_close();
}

/* The engine takes all that was posted when the limit was armed, and one WQE more that was
 * posted since, before it sees the limit: that fires. */
TEST(take_of_later_post_before_limit_is_seen_fires)
{
	struct srq *taken = NULL;

	srq_open(16, 1);
	srq_attach(&srq, 0, &taken);
	srq_fixture_post(8, 1);
	receives_take(5);
	srq.ring.cons -= 5;
	assert_int_equal(srq_fixture_modify(0, 0, 4, IBV_SRQ_LIMIT), 0);
	srq.ring.cons += 5;
	srq_expect_no_event();
	srq_fixture_post(6, 1);
	/* The takes that did not see the limit. */
	srq.ring.cons += 4;
	assert_int_equal(srq.ring.cons, srq.armed_prod + 1);
	srq_settle(&taken);
	srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	srq_expect_no_event();
	srq_expect_attr(16, 1, 0);
	/* A limit that is disarmed does not fire. */
	assert_int_equal(srq_fixture_modify(0, 0, 0, IBV_SRQ_LIMIT), 0);
	srq.armed_prod = srq.ring.cons - 1;
	receives_take(1);
	srq_expect_no_event();
	srq_settle(&taken);
	srq_detach(&srq, 0);
	srq_close();
}

/* The receives of a claim count as taken: the limit fires at the claim, once, and their use changes
 * nothing. */
TEST(claim_fires_limit_once)
{
	struct recv_claim claim = {.count = 0};
	struct recv_wqe wqe;

	for (unsigned below = 0; below < 2; below++) {
		srq_open(16, 1);
		srq.shared = true;
		srq_fixture_post(16, 1);
		assert_int_equal(srq_fixture_modify(0, 0, 8 + below, IBV_SRQ_LIMIT), 0);
		assert_int_equal(srq_claim(&srq, 31, &claim, &wqe), 0);
		assert_int_equal(claim.count, 8);
		if (below)
			srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
		while (claim.next != claim.count)
			assert_int_equal(srq_claim_take(&srq, &claim, &wqe), 0);
		srq_expect_no_event();
		receives_take(1);
		if (!below)
			srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
		srq_expect_no_event();
		srq_close();
	}
}

/* A corrupted WQE of a claim moves the SRQ into the error state when its turn comes. */
TEST(claim_of_failed_srq_gives_nothing)
{
	struct recv_claim claim = {.count = 0};
	struct recv_wqe wqe;

	srq_open(16, 1);
	srq.shared = true;
	srq_fixture_post(8, 1);
	recv_ring_slot(&srq.ring, srq.ring.cons + 1)->num_sge = 2;
	assert_int_equal(srq_claim(&srq, 7, &claim, &wqe), 0);
	srq_expect_no_event();
	assert_int_equal(srq_claim_take(&srq, &claim, &wqe), -EIO);
	srq_expect_event(IBV_EVENT_SRQ_ERR);
	assert_int_equal(srq_claim_take(&srq, &claim, &wqe), -EIO);
	assert_int_equal(srq_claim(&srq, 1, &claim, &wqe), -EIO);
	srq_expect_no_event();
	srq_close();
}

/* ---- Resize ---- */

TEST(bad_modifies_change_nothing)
{
	static const struct {
		uint32_t max_wr, max_sge, limit;
		int mask;
	} bad[] = {
		{0, 0, 0, IBV_SRQ_MAX_WR},
		{SRQ_MAX_WR + 1, 0, 0, IBV_SRQ_MAX_WR},
		{10, 0, 0, IBV_SRQ_MAX_WR}, /* 11 are outstanding */
		{0, 0, 33, IBV_SRQ_LIMIT},
		{0, 0, UINT32_MAX, IBV_SRQ_LIMIT},
		{16, 0, 17, SIZE_AND_LIMIT},
		{10, 0, 5, SIZE_AND_LIMIT},
		{0, 0, 0, SIZE_AND_LIMIT},
		{64, 0, 65, SIZE_AND_LIMIT},
		{64, 4, 0, 4},
		{64, 4, 8, SIZE_AND_LIMIT | 4},
		{64, 4, 8, 1 << 30},
	};
	struct recv_ring before;
	uint64_t limit;

	srq_open(32, 4);
	srq_fixture_post(9, 1);
	srq_fixture_post(3, 3);
	assert_int_equal(srq_fixture_modify(0, 0, 11, IBV_SRQ_LIMIT), 0);
	receives_take(1);
	srq_expect_no_event();
	before = srq.ring;
	limit = srq.limit;
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		struct srq_attr attr = {bad[i].max_wr, bad[i].max_sge, bad[i].limit};
		int rc = srq_modify(&srq, &attr, bad[i].mask);

		if (rc != -EINVAL)
			fail_msg("row %zu gives %d", i, rc);
		assert_memory_equal(&srq.ring, &before, sizeof(before));
		assert_true(srq.limit == limit);
		assert_int_equal(attr.max_wr, bad[i].max_wr);
		assert_int_equal(attr.max_sge, bad[i].max_sge);
	}
	srq_expect_no_event();
	receives_take(1);
	srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	srq_close();
}

TEST(size_below_armed_limit_is_refused)
{
	srq_open(32, 1);
	srq_fixture_post(32, 1);
	assert_int_equal(srq_fixture_modify(0, 0, 20, IBV_SRQ_LIMIT), 0);
	receives_take(12);
	srq_expect_attr(32, 1, 20);
	assert_int_equal(srq_fixture_modify(19, 0, 0, IBV_SRQ_MAX_WR), -EINVAL);
	receives_take(11);
	srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	/* A limit that has fired does not matter. */
	assert_int_equal(srq_fixture_modify(9, 0, 0, IBV_SRQ_MAX_WR), 0);
	srq_expect_attr(16, 1, 0);
	/* With both flags the new limit applies, not the old one. */
	assert_int_equal(srq_fixture_modify(0, 0, 9, IBV_SRQ_LIMIT), 0);
	srq_expect_attr(16, 1, 9);
	receives_take(1);
	srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	srq_fixture_post(8, 1);
	assert_int_equal(srq_fixture_modify(0, 0, 16, IBV_SRQ_LIMIT), 0);
	srq_expect_attr(16, 1, 16);
	assert_int_equal(srq_fixture_modify(32, 0, 8, SIZE_AND_LIMIT), 0);
	srq_expect_attr(32, 1, 8);
	receives_take(8);
	assert_int_equal(srq_fixture_modify(8, 0, 8, SIZE_AND_LIMIT), 0);
	srq_expect_attr(8, 1, 8);
	srq_close();
}

TEST(refused_memory_changes_nothing)
{
	srq_open(16, 1);
	srq_fixture_post(4, 1);
	counting_refuse(0);
	assert_int_equal(srq_fixture_modify(64, 0, 8, SIZE_AND_LIMIT), -ENOMEM);
	counting_grant();
	srq_expect_attr(16, 1, 0);
	srq_expect_no_event();
	receives_take(4);
	srq_close();
}

/* max_sge is ignored, and that of the SRQ is written back. */
TEST(sizes_are_written_back)
{
	struct srq_attr attr = {.max_wr = 33, .max_sge = 0, .limit = 5};

	srq_open(16, 2);
	srq_fixture_post(7, 1);
	assert_int_equal(srq_modify(&srq, &attr, SIZE_AND_LIMIT), 0);
	assert_int_equal(attr.max_wr, 64);
	assert_int_equal(attr.max_sge, 2);
	srq_expect_attr(64, 2, 5);
	attr = (struct srq_attr){.max_wr = 7, .max_sge = RECV_MAX_SGE};
	assert_int_equal(srq_modify(&srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(attr.max_wr, 8);
	assert_int_equal(attr.max_sge, 2);
	attr = (struct srq_attr){.max_wr = 8, .max_sge = RECV_MAX_SGE + 1};
	assert_int_equal(srq_modify(&srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(attr.max_sge, 2);
	attr = (struct srq_attr){.max_wr = 8, .max_sge = 1};
	assert_int_equal(srq_modify(&srq, &attr, IBV_SRQ_MAX_WR), 0);
	srq_expect_attr(8, 2, 5);
	assert_int_equal(srq_fixture_modify(0, 99, 99, 0), 0);
	assert_int_equal(srq_fixture_modify(SRQ_MAX_WR, 0, 0, IBV_SRQ_MAX_WR), 0);
	srq_expect_attr(SRQ_MAX_WR, 2, 5);
	srq_expect_no_event();
	receives_take(7);
	srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	srq_close();
}

/* With both flags a new limit above the count fires at once. */
TEST(resize_and_limit_fire_at_once)
{
	srq_open(16, 1);
	srq_fixture_post(7, 1);
	assert_int_equal(srq_fixture_modify(32, 0, 30, SIZE_AND_LIMIT), 0);
	srq_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	srq_expect_no_event();
	srq_expect_attr(32, 1, 0);
	srq_close();
}
