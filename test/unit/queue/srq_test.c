/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>

#include "queue/srq.h"

#include <cmocka.h>

#include "traffic.h"

#define SIZE_AND_LIMIT (IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)

static struct event_queue events;
static struct srq srq;
static int object;

static void
srq_open(uint32_t max_wr, uint32_t max_sge)
{
	assert_int_equal(event_queue_init(&events), 0);
	assert_int_equal(fcntl(events.fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(
		srq_init(&srq, &alloc_counting, 7, max_wr, max_sge, &events, &object), 0);
	/* Indices that wrap around 2^32 soon. */
	srq.ring.cons = UINT32_MAX - 5;
	recv_ring_clear(&srq.ring);
}

static void
srq_close(void)
{
	event_purge(&srq.limit_event);
	event_purge(&srq.error_event);
	srq_fini(&srq);
	event_queue_fini(&events);
	assert_int_equal(counting.bytes, 0);
}

static void
post(unsigned count, uint32_t num_sge)
{
	static uint64_t number;

	for (unsigned i = 0; i < count; i++)
		assert_true(ring_post(&srq.ring, number++, num_sge));
}

static void
take(unsigned count)
{
	struct recv_wqe wqe;

	for (unsigned i = 0; i < count; i++)
		assert_int_equal(srq_take(&srq, &wqe), 0);
}

static int
modify(uint32_t max_wr, uint32_t max_sge, uint32_t limit, int mask)
{
	struct srq_attr attr = {.max_wr = max_wr, .max_sge = max_sge, .limit = limit};

	return srq_modify(&srq, &attr, mask);
}

static void
expect_attr(uint32_t max_wr, uint32_t max_sge, uint32_t limit)
{
	struct srq_attr attr;

	assert_int_equal(srq_query(&srq, &attr), 0);
	assert_int_equal(attr.max_wr, max_wr);
	assert_int_equal(attr.max_sge, max_sge);
	assert_int_equal(attr.limit, limit);
	assert_int_equal(srq_limit(&srq), limit);
}

static void
expect_event(enum ibv_event_type type)
{
	struct event_record record;

	assert_int_equal(event_next(&events, &record), 0);
	assert_int_equal(record.type, type);
	assert_ptr_equal(record.object, &object);
}

static void
expect_no_event(void)
{
	struct event_record record;

	assert_int_equal(event_next(&events, &record), -EAGAIN);
}

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

static void
sizes_are_checked(void **state)
{
	(void)state;
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
	expect_attr(128, 3, 0);
	assert_int_equal(srq.pd, 7);
	srq_close();
}

static void
second_engine_makes_it_shared(void **state)
{
	(void)state;
	srq_open(8, 1);
	srq_attach(&srq, 3);
	srq_attach(&srq, 3);
	assert_false(srq.shared);
	srq_attach(&srq, 31);
	assert_true(srq.shared);
	srq_detach(&srq);
	srq_detach(&srq);
	assert_true(srq.shared);
	srq_detach(&srq);
	assert_false(srq.shared);
	assert_int_equal(srq.qps, 0);
	srq_attach(&srq, 31);
	assert_false(srq.shared);
	srq_detach(&srq);
	srq_close();
}

/* FIFO goes on through the switch. */
static void
takes_are_fifo_in_both_modes(void **state)
{
	struct recv_wqe wqe;

	(void)state;
	srq_open(8, 2);
	for (uint64_t i = 0; i < 60; i++) {
		assert_true(ring_post(&srq.ring, i, i % 3));
		assert_int_equal(srq_take(&srq, &wqe), 0);
		assert_int_equal(WQE_NUMBER(wqe.wr_id), i);
		assert_true(wqe_right(&wqe));
		assert_int_equal(srq_take(&srq, &wqe), -EAGAIN);
		srq.shared = !srq.shared;
	}
	expect_no_event();
	srq_close();
}

/* ---- The limit ---- */

static void
limit_fires_once_below(void **state)
{
	(void)state;
	srq_open(16, 1);
	for (unsigned round = 0; round < 6; round++) {
		post(10, 1);
		assert_int_equal(modify(0, 0, 4, IBV_SRQ_LIMIT), 0);
		take(6);
		/* 4 are left: not below. */
		expect_no_event();
		expect_attr(16, 1, 4);
		take(1);
		expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
		expect_attr(16, 1, 0);
		post(5, 1);
		take(8);
		expect_no_event();
		assert_int_equal(srq.limit_fired, round + 1);
		srq.shared = !srq.shared;
	}
	srq_close();
}

static void
limit_above_count_fires_at_once(void **state)
{
	(void)state;
	srq_open(16, 1);
	post(3, 1);
	assert_int_equal(modify(0, 0, 3, IBV_SRQ_LIMIT), 0);
	expect_no_event();
	assert_int_equal(modify(0, 0, 4, IBV_SRQ_LIMIT), 0);
	expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	expect_no_event();
	expect_attr(16, 1, 0);
	take(3);
	expect_no_event();
	assert_int_equal(modify(0, 0, 1, IBV_SRQ_LIMIT), 0);
	expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_int_equal(srq.limit_fired, 2);
	srq_close();
}

static void
limit_is_disarmed_and_replaced(void **state)
{
	(void)state;
	srq_open(16, 1);
	post(16, 1);
	assert_int_equal(modify(0, 0, 10, IBV_SRQ_LIMIT), 0);
	assert_int_equal(modify(0, 0, 0, IBV_SRQ_LIMIT), 0);
	expect_attr(16, 1, 0);
	take(8);
	expect_no_event();
	assert_int_equal(modify(0, 0, 8, IBV_SRQ_LIMIT), 0);
	assert_int_equal(modify(0, 0, 5, IBV_SRQ_LIMIT), 0);
	take(3);
	expect_no_event();
	take(1);
	expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	take(4);
	expect_no_event();
	/* An arming that raised nothing yet is not owed anything either. */
	post(16, 1);
	assert_int_equal(modify(0, 0, 16, IBV_SRQ_LIMIT), 0);
	assert_int_equal(modify(0, 0, 17, IBV_SRQ_LIMIT), -EINVAL);
	expect_attr(16, 1, 16);
	take(1);
	expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	expect_no_event();
	srq_close();
}

/* The same limit twice makes two words: what was read of one does not exchange the other.
 */
static void
armings_are_numbered(void **state)
{
	uint64_t old;

	(void)state;
	srq_open(16, 1);
	post(10, 1);
	assert_int_equal(modify(0, 0, 4, IBV_SRQ_LIMIT), 0);
	old = srq.limit;
	assert_int_equal(modify(0, 0, 4, IBV_SRQ_LIMIT), 0);
	assert_true(srq.limit != old);
	take(7);
	expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	/* Fired: the number of the arming stays, so the next one differs again. */
	assert_true(srq.limit >> 32 == (old >> 32) + 1);
	srq_close();
}

/* ---- Resize ---- */

static void
bad_modifies_change_nothing(void **state)
{
	static const struct {
		uint32_t max_wr, max_sge, limit;
		int mask;
	} bad[] = {
		{0, 0, 0, IBV_SRQ_MAX_WR},
		{SRQ_MAX_WR + 1, 0, 0, IBV_SRQ_MAX_WR},
		{10, 0, 0, IBV_SRQ_MAX_WR}, /* 11 are outstanding */
		{64, RECV_MAX_SGE + 1, 0, IBV_SRQ_MAX_WR},
		{64, 2, 0, IBV_SRQ_MAX_WR}, /* one has 3 */
		{0, 0, 33, IBV_SRQ_LIMIT},
		{0, 0, UINT32_MAX, IBV_SRQ_LIMIT},
		{16, 0, 17, SIZE_AND_LIMIT},
		{64, 2, 5, SIZE_AND_LIMIT},
		{10, 0, 5, SIZE_AND_LIMIT},
		{0, 0, 0, SIZE_AND_LIMIT},
		{64, 0, 65, SIZE_AND_LIMIT},
		{64, 4, 0, 4},
		{64, 4, 8, SIZE_AND_LIMIT | 4},
		{64, 4, 8, 1 << 30},
	};
	struct recv_ring before;
	uint64_t limit;

	(void)state;
	srq_open(32, 4);
	post(9, 1);
	post(3, 3);
	assert_int_equal(modify(0, 0, 11, IBV_SRQ_LIMIT), 0);
	take(1);
	expect_no_event();
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
	expect_no_event();
	take(1);
	expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	srq_close();
}

static void
size_below_armed_limit_is_refused(void **state)
{
	(void)state;
	srq_open(32, 1);
	post(32, 1);
	assert_int_equal(modify(0, 0, 20, IBV_SRQ_LIMIT), 0);
	take(12);
	expect_attr(32, 1, 20);
	assert_int_equal(modify(19, 0, 0, IBV_SRQ_MAX_WR), -EINVAL);
	take(11);
	expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	/* Fired: it is in nobody's way. */
	assert_int_equal(modify(9, 0, 0, IBV_SRQ_MAX_WR), 0);
	expect_attr(16, 1, 0);
	/* With both flags the new limit counts, not the old one. */
	assert_int_equal(modify(0, 0, 9, IBV_SRQ_LIMIT), 0);
	expect_attr(16, 1, 9);
	take(1);
	expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	post(8, 1);
	assert_int_equal(modify(0, 0, 16, IBV_SRQ_LIMIT), 0);
	expect_attr(16, 1, 16);
	assert_int_equal(modify(32, 0, 8, SIZE_AND_LIMIT), 0);
	expect_attr(32, 1, 8);
	take(8);
	assert_int_equal(modify(8, 0, 8, SIZE_AND_LIMIT), 0);
	expect_attr(8, 1, 8);
	srq_close();
}

static void
refused_memory_changes_nothing(void **state)
{
	(void)state;
	srq_open(16, 1);
	post(4, 1);
	counting_refuse(0);
	assert_int_equal(modify(64, 0, 8, SIZE_AND_LIMIT), -ENOMEM);
	counting_grant();
	expect_attr(16, 1, 0);
	expect_no_event();
	take(4);
	srq_close();
}

static void
sizes_are_written_back(void **state)
{
	struct srq_attr attr = {.max_wr = 33, .max_sge = 0, .limit = 5};

	(void)state;
	srq_open(16, 2);
	post(7, 1);
	assert_int_equal(srq_modify(&srq, &attr, SIZE_AND_LIMIT), 0);
	assert_int_equal(attr.max_wr, 64);
	assert_int_equal(attr.max_sge, 2);
	expect_attr(64, 2, 5);
	attr = (struct srq_attr){.max_wr = 7, .max_sge = RECV_MAX_SGE};
	assert_int_equal(srq_modify(&srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(attr.max_wr, 8);
	assert_int_equal(attr.max_sge, RECV_MAX_SGE);
	/* Down to what the outstanding ones need. */
	attr = (struct srq_attr){.max_wr = 8, .max_sge = 1};
	assert_int_equal(srq_modify(&srq, &attr, IBV_SRQ_MAX_WR), 0);
	expect_attr(8, 1, 5);
	assert_int_equal(modify(0, 99, 99, 0), 0);
	assert_int_equal(modify(SRQ_MAX_WR, 0, 0, IBV_SRQ_MAX_WR), 0);
	expect_attr(SRQ_MAX_WR, 1, 5);
	expect_no_event();
	take(7);
	expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	srq_close();
}

/* Both flags, and the new limit is above the count. */
static void
resize_and_limit_fire_at_once(void **state)
{
	(void)state;
	srq_open(16, 1);
	post(7, 1);
	assert_int_equal(modify(32, 0, 30, SIZE_AND_LIMIT), 0);
	expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	expect_no_event();
	expect_attr(32, 1, 0);
	srq_close();
}

/* ---- The error state ---- */

static void
impossible_ring_is_the_end(void **state)
{
	struct recv_wqe wqe;
	struct srq_attr attr = {.max_wr = 77};

	(void)state;
	srq_open(16, 1);
	post(4, 1);
	assert_int_equal(modify(0, 0, 3, IBV_SRQ_LIMIT), 0);
	assert_false(srq_failed(&srq));
	srq.ring.prod += 1000;
	assert_int_equal(srq_take(&srq, &wqe), -EIO);
	expect_event(IBV_EVENT_SRQ_ERR);
	assert_true(srq_failed(&srq));
	/* For good, even when the ring looks right again. */
	assert_int_equal(srq_take(&srq, &wqe), -EIO);
	srq.ring.prod -= 1000;
	assert_int_equal(srq_take(&srq, &wqe), -EIO);
	assert_int_equal(srq_query(&srq, &attr), -EIO);
	assert_int_equal(attr.max_wr, 77);
	assert_int_equal(modify(0, 0, 0, 0), -EIO);
	assert_int_equal(modify(0, 0, 3, IBV_SRQ_LIMIT), -EIO);
	assert_int_equal(modify(64, 0, 0, IBV_SRQ_MAX_WR), -EIO);
	assert_int_equal(recv_ring_outstanding(&srq.ring), 4);
	expect_no_event();
	srq_close();
}

/* The first to look may be a modify or a post. */
static void
modify_and_post_find_it_too(void **state)
{
	(void)state;
	srq_open(16, 1);
	srq.ring.prod += 17;
	assert_int_equal(modify(64, 0, 0, IBV_SRQ_MAX_WR), -EIO);
	expect_event(IBV_EVENT_SRQ_ERR);
	assert_int_equal(modify(64, 0, 0, IBV_SRQ_MAX_WR), -EIO);
	expect_no_event();
	srq_close();

	srq_open(16, 1);
	post(16, 1);
	assert_null(recv_ring_next(&srq.ring, srq.ring.prod));
	assert_int_equal(srq_refuse(&srq), -ENOMEM);
	assert_false(srq_failed(&srq));
	expect_no_event();
	srq.ring.prod += 1;
	assert_null(recv_ring_next(&srq.ring, srq.ring.prod));
	assert_int_equal(srq_refuse(&srq), -EIO);
	assert_int_equal(srq_refuse(&srq), -EIO);
	assert_true(srq_failed(&srq));
	expect_event(IBV_EVENT_SRQ_ERR);
	expect_no_event();
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

static void
two_engines_raise_one_error(void **state)
{
	pthread_t threads[2];

	(void)state;
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
		expect_event(IBV_EVENT_SRQ_ERR);
		expect_no_event();
		srq_close();
	}
	pthread_barrier_destroy(&barrier);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_checked),
		cmocka_unit_test(second_engine_makes_it_shared),
		cmocka_unit_test(takes_are_fifo_in_both_modes),
		cmocka_unit_test(limit_fires_once_below),
		cmocka_unit_test(limit_above_count_fires_at_once),
		cmocka_unit_test(limit_is_disarmed_and_replaced),
		cmocka_unit_test(armings_are_numbered),
		cmocka_unit_test(bad_modifies_change_nothing),
		cmocka_unit_test(size_below_armed_limit_is_refused),
		cmocka_unit_test(refused_memory_changes_nothing),
		cmocka_unit_test(sizes_are_written_back),
		cmocka_unit_test(resize_and_limit_fire_at_once),
		cmocka_unit_test(impossible_ring_is_the_end),
		cmocka_unit_test(modify_and_post_find_it_too),
		cmocka_unit_test(two_engines_raise_one_error),
	};

	return cmocka_run_group_tests_name("srq", tests, NULL, NULL);
}
