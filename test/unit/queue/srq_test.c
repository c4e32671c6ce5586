/* SPDX-License-Identifier: BSD-3-Clause */
/* An SRQ: sizes, takes by one and by several engines, an invalid ring. The limit and
 * resizing are in srq_modify_test.c. */
#include "srq_fixture.h"

static int
init_only(uint32_t max_wr, uint32_t max_sge)
{
	struct srq s;
	int rc = srq_init(&s, &alloc_counting, 7, max_wr, max_sge, NULL, NULL);

	if (rc == 0)
		srq_fini(&s);
	assert_int_equal(counting.bytes, 0);
	return rc;
}

TEST(sizes_are_checked)
{
	assert_int_equal(init_only(0, 1), -EINVAL);
	assert_int_equal(init_only(SRQ_MAX_WR + 1, 1), -EINVAL);
	assert_int_equal(init_only(1, 0), -EINVAL);
	assert_int_equal(init_only(1, RECV_MAX_SGE + 1), -EINVAL);
	assert_int_equal(init_only(SRQ_MAX_WR, 1), 0);
	assert_int_equal(init_only(1, RECV_MAX_SGE), 0);
	counting_refuse(0);
	assert_int_equal(init_only(1, 1), -ENOMEM);
	counting_grant();

	srq_open(100, 3);
	srq_expect_attr(128, 3, 0);
	assert_int_equal(srq.pd, 7);
	srq_close();
}

TEST(second_engine_makes_it_shared)
{
	struct srq *first = NULL, *second = NULL;

	srq_open(8, 1);
	srq_attach(&srq, 3, &first);
	srq_attach(&srq, 3, &first);
	assert_false(srq.shared);
	srq_attach(&srq, ENGINES_MAX - 1, &second);
	assert_true(srq.shared);
	srq_detach(&srq, 3);
	assert_true(srq.shared);
	srq_detach(&srq, 3);
	assert_false(srq.shared);
	/* The engine that is left notes its takes. */
	assert_ptr_equal(srq.taken_list, &second);
	srq_attach(&srq, 3, &first);
	srq_detach(&srq, ENGINES_MAX - 1);
	assert_false(srq.shared);
	assert_ptr_equal(srq.taken_list, &first);
	srq_detach(&srq, 3);
	assert_int_equal(srq.engines, 0);
	assert_int_equal(srq.qps, 0);
	srq_close();
}

/* The FIFO order continues when takes become shared. */
TEST(takes_are_fifo_in_both_modes)
{
	struct recv_wqe wqe;

	srq_open(8, 2);
	for (uint64_t i = 0; i < 60; i++) {
		assert_true(ring_post(&srq.ring, i, i % 3));
		assert_int_equal(srq_take(&srq, &wqe), 0);
		assert_int_equal(WQE_NUMBER(wqe.wr_id), i);
		assert_true(wqe_right(&wqe));
		assert_int_equal(srq_take(&srq, &wqe), -EAGAIN);
		srq.shared = !srq.shared;
	}
	srq_expect_no_event();
	srq_close();
}

/* ---- The error state ---- */

TEST(invalid_ring_is_a_permanent_error)
{
	struct recv_wqe wqe;
	struct srq_attr attr = {.max_wr = 77};

	srq_open(16, 1);
	srq_fixture_post(4, 1);
	assert_int_equal(srq_fixture_modify(0, 0, 3, IBV_SRQ_LIMIT), 0);
	assert_false(srq_failed(&srq));
	srq.ring.prod += 1000;
	assert_int_equal(srq_take(&srq, &wqe), -EIO);
	srq_expect_event(IBV_EVENT_SRQ_ERR);
	assert_true(srq_failed(&srq));
	/* The error stays, even when the ring is valid again. */
	assert_int_equal(srq_take(&srq, &wqe), -EIO);
	srq.ring.prod -= 1000;
	assert_int_equal(srq_take(&srq, &wqe), -EIO);
	assert_int_equal(srq_query(&srq, &attr), -EIO);
	assert_int_equal(attr.max_wr, 77);
	assert_int_equal(srq_fixture_modify(0, 0, 0, 0), -EIO);
	assert_int_equal(srq_fixture_modify(0, 0, 3, IBV_SRQ_LIMIT), -EIO);
	assert_int_equal(srq_fixture_modify(64, 0, 0, IBV_SRQ_MAX_WR), -EIO);
	assert_int_equal(recv_ring_outstanding(&srq.ring), 4);
	srq_expect_no_event();
	srq_close();
}

/* A modify or a post finds the invalid ring, too. */
TEST(modify_and_post_detect_invalid_ring)
{
	srq_open(16, 1);
	srq.ring.prod += 17;
	assert_int_equal(srq_fixture_modify(64, 0, 0, IBV_SRQ_MAX_WR), -EIO);
	srq_expect_event(IBV_EVENT_SRQ_ERR);
	assert_int_equal(srq_fixture_modify(64, 0, 0, IBV_SRQ_MAX_WR), -EIO);
	srq_expect_no_event();
	srq_close();

	srq_open(16, 1);
	srq_fixture_post(16, 1);
	assert_null(recv_ring_next(&srq.ring, srq.ring.prod));
	assert_int_equal(srq_refuse(&srq), -ENOMEM);
	assert_false(srq_failed(&srq));
	srq_expect_no_event();
	srq.ring.prod += 1;
	assert_null(recv_ring_next(&srq.ring, srq.ring.prod));
	assert_int_equal(srq_refuse(&srq), -EIO);
	assert_int_equal(srq_refuse(&srq), -EIO);
	assert_true(srq_failed(&srq));
	srq_expect_event(IBV_EVENT_SRQ_ERR);
	srq_expect_no_event();
	srq_close();
}

static pthread_barrier_t barrier;

static void *
take_in_error_main(void *arg)
{
	struct recv_wqe wqe;

	(void)arg;
	pthread_barrier_wait(&barrier);
	THREAD_CHECK(srq_take(&srq, &wqe) == -EIO);
	THREAD_CHECK(srq_take(&srq, &wqe) == -EIO);
	return NULL;
}

TEST(two_engines_raise_one_error)
{
	pthread_t threads[2];

	thread_failure = NULL;
	pthread_barrier_init(&barrier, NULL, 2);
	for (unsigned round = 0; round < 500; round++) {
		srq_open(16, 1);
		srq.shared = true;
		srq.ring.prod += 17;
		for (unsigned i = 0; i < 2; i++)
			pthread_create(&threads[i], NULL, take_in_error_main, NULL);
		for (unsigned i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		assert_null(thread_failure);
		srq_expect_event(IBV_EVENT_SRQ_ERR);
		srq_expect_no_event();
		srq_close();
	}
	pthread_barrier_destroy(&barrier);
}
