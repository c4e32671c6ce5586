/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "case.h"
#include "queue/event_queue.h"

#include "event_pipe.h"

#include "../rand.h"
#include "fixture.h"

static struct event_queue queue;
static struct async_event events[3];
static int objects[3];
static const enum ibv_event_type types[3] = {
	IBV_EVENT_SRQ_LIMIT_REACHED, IBV_EVENT_SRQ_ERR, IBV_EVENT_CQ_ERR};

static int
queue_setup(void **state)
{
	assert_int_equal(event_queue_init(&queue), 0);
	for (unsigned i = 0; i < 3; i++)
		async_event_init(&events[i], &queue, &objects[i]);
	return 0;
}

static int
queue_teardown(void **state)
{
	int fd = queue.fd;

	for (unsigned i = 0; i < 3; i++)
		event_purge(&events[i]);
	event_queue_fini(&queue);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	return 0;
}

static void
queue_nonblocking(void)
{
	int flags = fcntl(queue.fd, F_GETFL);

	assert_int_equal(fcntl(queue.fd, F_SETFL, flags | O_NONBLOCK), 0);
}

static void
raise_event(unsigned i)
{
	event_raise(&events[i], types[i]);
}

static bool
readable(void)
{
	struct pollfd p = {.fd = queue.fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void
expect_next(unsigned i)
{
	struct event_record record;

	assert_true(readable());
	assert_int_equal(event_next(&queue, &record), 0);
	assert_int_equal(record.type, types[i]);
	assert_ptr_equal(record.object, &objects[i]);
}

static void
expect_none(void)
{
	struct event_record record = {.object = &record};

	assert_false(readable());
	assert_int_equal(event_next(&queue, &record), -EAGAIN);
	assert_ptr_equal(record.object, &record);
}

TEST_WITH(events_come_in_order, queue_setup, queue_teardown)
{
	queue_nonblocking();
	expect_none();
	raise_event(1);
	raise_event(0);
	raise_event(2);
	expect_next(1);
	expect_next(0);
	raise_event(1);
	expect_next(2);
	expect_next(1);
	expect_none();
}

TEST_WITH(each_raise_is_read_once, queue_setup, queue_teardown)
{
	queue_nonblocking();
	raise_event(0);
	raise_event(0);
	raise_event(1);
	raise_event(0);
	expect_next(0);
	expect_next(1);
	expect_next(0);
	expect_next(0);
	expect_none();
	assert_int_equal(event_purge(&events[0]), 3);
	assert_int_equal(event_purge(&events[1]), 1);
	assert_int_equal(event_purge(&events[2]), 0);
}

/* Several types of one object: after each event the object goes to the end of the
 * queue. */
TEST_WITH(types_of_one_object_alternate, queue_setup, queue_teardown)
{
	static const enum ibv_event_type order[] = {IBV_EVENT_COMM_EST, IBV_EVENT_SRQ_ERR,
		IBV_EVENT_SQ_DRAINED, IBV_EVENT_COMM_EST, IBV_EVENT_QP_FATAL,
		IBV_EVENT_COMM_EST};
	struct event_record record;

	queue_nonblocking();
	event_raise(&events[0], IBV_EVENT_COMM_EST);
	event_raise(&events[0], IBV_EVENT_SQ_DRAINED);
	raise_event(1);
	event_raise(&events[0], IBV_EVENT_COMM_EST);
	event_raise(&events[0], IBV_EVENT_COMM_EST);
	for (unsigned i = 0; i < RTE_DIM(order); i++) {
		if (i == 2) /* behind the object's earlier types */
			event_raise(&events[0], IBV_EVENT_QP_FATAL);
		assert_int_equal(event_next(&queue, &record), 0);
		assert_int_equal(record.type, order[i]);
		assert_ptr_equal(record.object, &objects[i == 1]);
	}
	expect_none();
	assert_int_equal(event_purge(&events[0]), 5);
}

TEST_WITH(maximum_number_of_types, queue_setup, queue_teardown)
{
	struct event_record record;

	queue_nonblocking();
	for (unsigned round = 0; round < 3; round++) {
		for (int type = 0; type < EVENT_TYPES_MAX; type++)
			event_raise(&events[0], (enum ibv_event_type)type);
		for (int type = 0; type < EVENT_TYPES_MAX; type++) {
			assert_int_equal(event_next(&queue, &record), 0);
			assert_int_equal(record.type, type);
		}
	}
	event_raise(&events[0], IBV_EVENT_WQ_FATAL);
	assert_int_equal(event_next(&queue, &record), 0);
	assert_int_equal(record.type, IBV_EVENT_WQ_FATAL);
	expect_none();
}

TEST_WITH(unread_count_saturates, queue_setup, queue_teardown)
{
	queue_nonblocking();
	for (unsigned i = 0; i < EVENT_UNREAD_MAX + 10; i++)
		raise_event(0);
	raise_event(1);
	expect_next(0);
	expect_next(1);
	for (unsigned i = 1; i < EVENT_UNREAD_MAX; i++)
		expect_next(0);
	expect_none();
	raise_event(0);
	expect_next(0);
	assert_int_equal(event_purge(&events[0]), EVENT_UNREAD_MAX + 1);
}

TEST_WITH(purge_takes_back, queue_setup, queue_teardown)
{
	queue_nonblocking();
	raise_event(0);
	raise_event(1);
	raise_event(0);
	raise_event(2);
	expect_next(0);
	assert_int_equal(event_purge(&events[0]), 1);
	expect_next(1);
	raise_event(1);
	assert_int_equal(event_purge(&events[2]), 0);
	expect_next(1);
	expect_none();
	assert_int_equal(event_purge(&events[1]), 2);
	/* The event can be raised again, more than once. */
	for (unsigned i = 0; i < 3; i++)
		raise_event(0);
	assert_int_equal(event_purge(&events[0]), 1);
	expect_none();
}

/* The descriptor counts more than the list holds, as while another reader is between the
 * two: no event is delivered that was not raised. */
TEST_WITH(counts_without_events_are_skipped, queue_setup, queue_teardown)
{
	queue_nonblocking();
	assert_int_equal(write(queue.own_fd, "12", 2), 2);
	raise_event(2);
	expect_next(2);
	assert_true(readable());
	assert_int_equal(event_next(&queue, &(struct event_record){0}), -EAGAIN);
	assert_false(readable());
}

/* While a thread takes the events, the descriptor does not count them. */
TEST_WITH(taker_gets_the_events, queue_setup, queue_teardown)
{
	struct event_taker taker = {0}, other = {0};
	struct event_record record;
	uint32_t wakes, next;

	assert_true(event_take_begin(&queue, &taker));
	assert_false(event_take_begin(&queue, &other));
	assert_false(event_take_ready(&queue));
	assert_true(event_take_sleep(&queue, &wakes));
	raise_event(1);
	assert_int_not_equal(taker.wakes, wakes); /* once is enough */
	wakes = taker.wakes;
	raise_event(0);
	assert_int_equal(taker.wakes, wakes);
	event_take_awake(&queue);
	assert_true(event_take_ready(&queue));
	assert_false(event_take_sleep(&queue, &next));
	assert_false(readable());
	assert_true(event_take_end(&queue, &record));
	assert_ptr_equal(record.object, &objects[1]);
	assert_false(event_take_begin(&queue, &taker)); /* an event waits */
	expect_next(0);
	assert_false(readable());
	/* A taker that does not sleep any more is not woken. */
	wakes = taker.wakes;
	assert_true(event_take_begin(&queue, &taker));
	assert_true(event_take_sleep(&queue, &wakes));
	event_take_awake(&queue);
	raise_event(2);
	assert_int_equal(taker.wakes, wakes);
	assert_false(event_take_end(&queue, NULL));
	expect_next(2);
	assert_true(event_take_begin(&queue, &taker));
	assert_false(event_take_end(&queue, &record));
	queue_nonblocking();
	assert_false(event_take_begin(&queue, &taker));
	expect_none();
	event_purge(&events[0]);
}

TEST_WITH(purge_takes_from_the_taker, queue_setup, queue_teardown)
{
	struct event_taker taker = {0};
	struct event_record record;

	assert_true(event_take_begin(&queue, &taker));
	raise_event(0);
	raise_event(0);
	raise_event(1);
	assert_int_equal(event_purge(&events[0]), 0);
	assert_true(event_take_end(&queue, &record));
	assert_ptr_equal(record.object, &objects[1]);
	assert_false(readable());
	assert_true(event_take_begin(&queue, &taker));
	raise_event(0);
	assert_int_equal(event_purge(&events[0]), 0);
	assert_false(event_take_ready(&queue));
	assert_false(event_take_end(&queue, &record));
	assert_false(readable());
}

TEST_WITH(event_without_queue_is_ignored, queue_setup, queue_teardown)
{
	struct async_event ev;

	queue_nonblocking();
	async_event_init(&ev, NULL, NULL);
	event_raise(&ev, IBV_EVENT_CQ_ERR);
	assert_int_equal(event_purge(&ev), 0);
	expect_none();
}

static void
on_signal(int number)
{
	(void)number;
}

static pid_t reader_tid;

static void *
reader_main(void *arg)
{
	struct event_record record;

	(void)arg;
	__atomic_store_n(&reader_tid, gettid(), __ATOMIC_RELEASE);
	return (void *)(intptr_t)event_next(&queue, &record);
}

TEST_WITH(signal_ends_the_wait, queue_setup, queue_teardown)
{
	struct sigaction action = {.sa_handler = on_signal}, old;
	pthread_t reader;
	void *rc;

	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	assert_int_equal(pthread_create(&reader, NULL, reader_main, NULL), 0);
	await(thread_sleeps(__atomic_load_n(&reader_tid, __ATOMIC_ACQUIRE)));
	assert_int_equal(pthread_kill(reader, SIGUSR1), 0);
	await(pthread_tryjoin_np(reader, &rc) == 0);
	assert_int_equal((intptr_t)rc, -EINTR);
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
}

/* ---- Two threads raise, two block in a read, one purges. ---- */

#define RAISES 20000

static struct async_event stop_event;
static uint32_t got[3];
static int queued; /* of the first two objects, approximately */

static void *
raiser_main(void *arg)
{
	uint64_t rand = (uintptr_t)arg;

	for (unsigned i = 0; i < RAISES; i++) {
		/* Stays below the maximum of unread events. */
		while (__atomic_load_n(&queued, __ATOMIC_RELAXED) > EVENT_UNREAD_MAX / 2)
			sched_yield();
		__atomic_fetch_add(&queued, 1, __ATOMIC_RELAXED);
		raise_event(rand_below(&rand, 2));
	}
	return NULL;
}

static void *
blocked_reader_main(void *arg)
{
	struct event_record record;

	(void)arg;
	for (;;) {
		THREAD_CHECK(event_next(&queue, &record) == 0);
		if (record.object == &stop_event)
			return NULL;
		__atomic_fetch_add(
			&got[(int *)record.object - objects], 1, __ATOMIC_RELAXED);
		if (record.object != &objects[2])
			__atomic_fetch_sub(&queued, 1, __ATOMIC_RELAXED);
	}
}

TEST_WITH(threads_lose_nothing, queue_setup, queue_teardown)
{
	pthread_t raisers[2], readers[2];
	uint32_t purges = 0;

	memset(got, 0, sizeof(got));
	queued = 0;
	thread_failure = NULL;
	async_event_init(&stop_event, &queue, &stop_event);
	for (uintptr_t i = 0; i < 2; i++) {
		pthread_create(&raisers[i], NULL, raiser_main, (void *)(i + 1));
		pthread_create(&readers[i], NULL, blocked_reader_main, NULL);
	}
	/* Meanwhile one event is raised and purged repeatedly. */
	for (unsigned i = 0; i < RAISES; i++) {
		raise_event(2);
		purges = event_purge(&events[2]);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(raisers[i], NULL);
	event_raise(&stop_event, IBV_EVENT_DEVICE_FATAL);
	event_raise(&stop_event, IBV_EVENT_DEVICE_FATAL);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
	assert_null(thread_failure);

	/* Events that the readers left are delivered here. */
	queue_nonblocking();
	while (readable()) {
		struct event_record record;

		if (event_next(&queue, &record) == 0)
			got[(int *)record.object - objects]++;
	}
	assert_int_equal(got[0] + got[1], 2 * RAISES);
	assert_int_equal(got[2], purges);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(event_purge(&events[i]), got[i]);
	assert_int_equal(event_purge(&stop_event), 2);
}

static void *
raise_one(void *arg)
{
	event_raise(arg, types[0]);
	return NULL;
}

/* The woken reader may have a higher priority on the same core: it must not find the lock
 * held by the thread that it preempts. Here the waking write blocks, as the pipe is full. */
TEST_WITH(reader_is_woken_without_the_lock, queue_setup, queue_teardown)
{
	unsigned filled = pipe_fill(&queue);
	struct await trying = {.pauses = 0};
	pthread_t raiser;

	assert_int_equal(fcntl(queue.own_fd, F_SETFL, 0), 0);
	assert_int_equal(pthread_create(&raiser, NULL, raise_one, &events[0]), 0);
	for (bool raised = false; !raised; sched_yield()) {
		assert_true(await_goes_on(&trying));
		if (rte_spinlock_trylock(&queue.lock)) {
			raised = events[0].pending[0].unread != 0;
			rte_spinlock_unlock(&queue.lock);
		}
	}
	bytes_take(&queue, filled);
	pthread_join(raiser, NULL);
	assert_int_equal(fcntl(queue.own_fd, F_SETFL, O_NONBLOCK), 0);
	expect_next(0);
	assert_false(readable());
}
