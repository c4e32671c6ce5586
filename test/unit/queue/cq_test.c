/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "case.h"
#include "queue/cq.h"

#include "../rand.h"
#include "fixture.h"

static struct event_queue events;
static struct cq cq;
static int object;
static uint64_t now; /* of the next CQE */

static void
cq_open(uint32_t cqe)
{
	assert_int_equal(event_queue_init(&events), 0);
	assert_int_equal(fcntl(events.fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(cq_init(&cq, &alloc_counting, cqe, &events, &object), 0);
}

/* Sets indices that wrap around 2^32 soon; the ring's entries get the previous phase. */
static void
cq_advance(void)
{
	const uint32_t start = UINT32_MAX - 5;

	cq.head = cq.tail = cq.tail_seen = start;
	for (uint32_t i = 0; i < cq.size; i++)
		cq.ring[(start + i) & cq.mask].flags = cq_phase(&cq, start + i - cq.size);
}

static void
cq_close(void)
{
	event_purge(&cq.error_event);
	cq_fini(&cq);
	event_queue_fini(&events);
	assert_int_equal(counting.bytes, 0);
}

static struct cqe
cqe_make(uint64_t number, uint32_t qpn)
{
	return (struct cqe){
		.wr_id = number,
		.byte_len = (uint32_t)number * 3,
		.imm = (uint32_t)number * 5,
		.qpn = qpn,
		.src_qpn = (uint32_t)number * 7,
		.sq_end = (uint32_t)number * 11,
		.opcode = (uint8_t)(number * 13),
		.status = (uint8_t)(number * 17),
		.wc_flags = (uint8_t)(number * 19),
		.flags = 0xFF, /* not compared */
	};
}

static bool
cqe_right(const struct cqe *cqe)
{
	struct cqe want = cqe_make(cqe->wr_id, cqe->qpn);

	return memcmp(cqe, &want, offsetof(struct cqe, flags)) == 0;
}

static bool
cqe_put(uint64_t number, uint32_t qpn)
{
	struct cqe cqe = cqe_make(number, qpn);

	return cq_put(&cq, &cqe, &now);
}

/* Polls one CQE and returns its number, or UINT64_MAX. */
static uint64_t
poll_one(void)
{
	uint64_t number = UINT64_MAX;
	const struct cqe *cqe;
	uint32_t tail;

	cq_lock(&cq);
	tail = cq.tail;
	cqe = cq_peek(&cq, &tail);
	if (cqe != NULL) {
		assert_true(cqe_right(cqe));
		number = cqe->wr_id;
		tail++;
	}
	cq_consume(&cq, tail);
	cq_unlock(&cq);
	return number;
}

static void
expect_error_once(void)
{
	struct event_record record;

	assert_true(cq.error);
	assert_int_equal(event_next(&events, &record), 0);
	assert_int_equal(record.type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(record.object, &object);
	assert_int_equal(event_next(&events, &record), -EAGAIN);
}

TEST(sizes_are_checked)
{
	assert_int_equal(cq_init(&cq, &alloc_counting, 0, NULL, NULL), -EINVAL);
	assert_int_equal(
		cq_init(&cq, &alloc_counting, CQ_MAX_CQE + 1, NULL, NULL), -EINVAL);
	counting_refuse(0);
	assert_int_equal(cq_init(&cq, &alloc_counting, 4, NULL, NULL), -ENOMEM);
	counting_grant();
	assert_int_equal(counting.bytes, 0);
	cq_open(CQ_MAX_CQE);
	assert_int_equal(cq.size, CQ_MAX_CQE + 1);
	cq_close();
	cq_open(5);
	assert_int_equal(cq.size, 8);
	cq_close();
}

TEST(second_engine_makes_it_shared)
{
	cq_open(4);
	cq_attach(&cq, ENGINES_MAX - 1);
	cq_attach(&cq, ENGINES_MAX - 1);
	assert_false(cq.shared);
	cq_attach(&cq, 0);
	assert_true(cq.shared);
	cq_detach(&cq, ENGINES_MAX - 1);
	assert_true(cq.shared);
	cq_detach(&cq, ENGINES_MAX - 1);
	assert_false(cq.shared);
	cq_detach(&cq, 0);
	assert_false(cq.shared);
	assert_int_equal(cq.engines, 0);
	cq_close();
}

/* Every fill level, with both kinds of write, over many rounds of the ring and the wrap
 * of the indices. */
TEST(cqes_come_out_as_they_went_in)
{
	static const uint32_t sizes[] = {1, 2, 8, 64};
	uint64_t in = 0, out = 0, seed = 1;

	for (size_t i = 0; i < RTE_DIM(sizes); i++) {
		cq_open(sizes[i]);
		assert_int_equal(poll_one(), UINT64_MAX);
		cq_advance();
		for (unsigned round = 0; round < 500; round++) {
			unsigned fill = rand_below(&seed, sizes[i] + 1);

			cq.shared = rand_below(&seed, 2);
			while (in - out < fill)
				assert_true(cqe_put(in++, 7));
			while (in - out > fill / 2)
				assert_int_equal(poll_one(), out++);
		}
		while (in != out)
			assert_int_equal(poll_one(), out++);
		assert_int_equal(poll_one(), UINT64_MAX);
		assert_false(cq.error);
		cq_close();
	}
}

TEST(overrun_keeps_queued_cqes)
{
	for (unsigned kind = 0; kind < 2; kind++) {
		cq_open(8);
		cq.shared = kind != 0;
		/* The indices do not start at 0, and the writer has seen a tail. */
		for (unsigned i = 0; i < 11; i++) {
			assert_true(cqe_put(i, 7));
			assert_int_equal(poll_one(), i);
		}
		for (unsigned i = 0; i < 8; i++)
			assert_true(cqe_put(i, 7));
		assert_false(cq.error);
		assert_false(cqe_put(100, 7));
		expect_error_once();
		assert_false(cqe_put(101, 7));
		for (unsigned i = 0; i < 8; i++)
			assert_int_equal(poll_one(), i);
		assert_int_equal(poll_one(), UINT64_MAX);
		/* The error stays, also when the CQ is empty. */
		assert_false(cqe_put(102, 7));
		assert_int_equal(poll_one(), UINT64_MAX);
		assert_int_equal(event_purge(&cq.error_event), 1);
		cq_close();
	}
}

/* A shared writer that was stalled while others wrote and a poller polled sees a tail
 * beyond its head, as tail or as tail_seen. Its exchange would fail; no error is
 * raised. */
TEST(stale_head_is_no_overrun)
{
	for (unsigned kind = 0; kind < 2; kind++) {
		cq_open(8);
		cq.shared = true;
		cq.tail = 20;
		cq.tail_seen = kind == 0 ? 20 : 0;
		cq.head = 12;
		assert_true(cqe_put(1, 7));
		assert_false(cq.error);
		cq_close();
	}
}

TEST(purge_takes_one_qp)
{
	cq_open(16);
	cq_advance();
	for (unsigned round = 0; round < 10; round++) {
		for (unsigned i = 0; i < 15; i++)
			assert_true(cqe_put(i, i % 3));
		/* CQEs that were polled are neither cleaned nor counted. */
		assert_int_equal(poll_one(), 0);
		assert_int_equal(poll_one(), 1);
		cq_clean(&cq, 2);
		cq_clean(&cq, 99);
		/* A new QP with the same number gets its CQEs. */
		assert_true(cqe_put(15, 2));
		for (unsigned i = 2; i < 15; i++) {
			if (i % 3 != 2)
				assert_int_equal(poll_one(), i);
		}
		assert_int_equal(poll_one(), 15);
		assert_int_equal(poll_one(), UINT64_MAX);
		assert_int_equal(cq.tail, cq.head);
	}
	/* A full ring of cleaned CQEs: a poll that finds no CQE releases the slots. */
	for (unsigned i = 0; i < 16; i++)
		assert_true(cqe_put(i, 5));
	cq_clean(&cq, 5);
	assert_int_equal(poll_one(), UINT64_MAX);
	for (unsigned i = 0; i < 16; i++)
		assert_true(cqe_put(i, 5));
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(poll_one(), i);
	cq_close();
}

/* Cleaned CQEs are removed without a poll. The others keep their order and time stamps,
 * also around the end of the ring. */
TEST(purge_gives_slots_back)
{
	uint64_t time;

	for (unsigned stamps = 0; stamps < 2; stamps++) {
		cq_open(8);
		if (stamps != 0)
			assert_int_equal(cq_enable_stamps(&cq), 0);
		cq_advance();
		for (unsigned life = 0; life < 40; life++) {
			for (unsigned i = 0; i < 8; i++)
				assert_true(cqe_put(i, i == 2 || i == 7 ? 1 : 5));
			time = stamps != 0 ? cq.stamps[(cq.head - 1) & cq.mask] : 0;
			cq_clean(&cq, 5);
			assert_int_equal(cq.head - cq.tail, 2);
			if (stamps != 0)
				assert_int_equal(
					cq.stamps[(cq.head - 1) & cq.mask], time);
			for (unsigned i = 0; i < 6; i++)
				assert_true(cqe_put(i, 5));
			cq_clean(&cq, 5);
			assert_int_equal(poll_one(), 2);
			assert_int_equal(poll_one(), 7);
			assert_int_equal(poll_one(), UINT64_MAX);
		}
		assert_false(cq.error);
		cq_close();
	}
}

/* A poller in the middle of a batch, without the lock in a thread domain, continues from
 * its position. */
TEST(purge_inside_a_batch)
{
	const struct cqe *cqe;
	uint32_t tail;

	cq_open(8);
	cq.unlocked = true;
	for (unsigned i = 0; i < 8; i++)
		assert_true(cqe_put(i, i % 2));
	tail = cq.tail;
	for (unsigned i = 0; i < 2; i++, tail++)
		assert_int_equal(cq_peek(&cq, &tail)->wr_id, i);
	cq_clean(&cq, 0);
	for (unsigned i = 3; i < 8; i += 2, tail++) {
		cqe = cq_peek(&cq, &tail);
		assert_non_null(cqe);
		assert_int_equal(cqe->wr_id, i);
	}
	assert_null(cq_peek(&cq, &tail));
	cq_consume(&cq, tail);
	assert_int_equal(poll_one(), UINT64_MAX);
	cq_close();
}

/* ---- Writers and a poller, each in its thread ---- */

#define WRITERS_MAX 2

static struct writer {
	pthread_t thread;
	uint64_t total;
	uint64_t put LINE_ALIGNED;    /* by the writer */
	uint64_t polled LINE_ALIGNED; /* by the poller */
} writers[WRITERS_MAX];
static unsigned writers_num;

/* Has at most its share of the queue outstanding, as QPs that respect its size. */
static void *
writer_main(void *arg)
{
	struct writer *w = arg;
	uint32_t qpn = (uint32_t)(w - writers);
	uint64_t share = cq.size / writers_num;

	while (w->put < w->total) {
		if (w->put - __atomic_load_n(&w->polled, __ATOMIC_ACQUIRE) == share) {
			sched_yield();
			continue;
		}
		THREAD_CHECK(cqe_put(w->put, qpn));
		w->put++;
	}
	return NULL;
}

/* Polls a batch under one lock, as ibv_poll_cq() does. Returns the number of CQEs. */
static unsigned
poll_batch(unsigned max)
{
	uint64_t seen[WRITERS_MAX] = {0};
	unsigned n = 0;
	uint32_t tail;

	cq_lock(&cq);
	for (tail = cq.tail; n < max; n++, tail++) {
		const struct cqe *cqe = cq_peek(&cq, &tail);

		if (cqe == NULL)
			break;
		THREAD_CHECK(cqe_right(cqe));
		THREAD_CHECK(cqe->qpn < writers_num);
		/* Each writer's CQEs come in order. */
		THREAD_CHECK(cqe->wr_id == writers[cqe->qpn].polled + seen[cqe->qpn]);
		seen[cqe->qpn]++;
	}
	cq_consume(&cq, tail);
	/* Only now may the writers reuse the slots. */
	for (unsigned i = 0; i < writers_num; i++)
		__atomic_fetch_add(&writers[i].polled, seen[i], __ATOMIC_RELEASE);
	cq_unlock(&cq);
	return n;
}

static void
run_writers(unsigned num, uint32_t size, uint64_t total)
{
	uint64_t left = total * num, seed = 9;

	thread_failure = NULL;
	cq_open(size);
	cq_advance();
	writers_num = num;
	for (unsigned i = 0; i < num; i++)
		cq_attach(&cq, i);
	for (unsigned i = 0; i < num; i++) {
		writers[i] = (struct writer){.total = total};
		pthread_create(&writers[i].thread, NULL, writer_main, &writers[i]);
	}
	while (left != 0 && !threads_failed()) {
		unsigned n = poll_batch(1 + rand_below(&seed, 32));

		left -= n;
		if (n == 0)
			sched_yield();
	}
	if (threads_failed())
		fail_msg("%u writers: failed: %s", num, thread_failure);
	for (unsigned i = 0; i < num; i++) {
		pthread_join(writers[i].thread, NULL);
		cq_detach(&cq, i);
	}
	assert_null(thread_failure);
	assert_int_equal(poll_one(), UINT64_MAX);
	assert_false(cq.error);
	cq_close();
}

TEST(one_writer_and_a_poller)
{
	run_writers(1, 1, 20000);
	run_writers(1, 8, 200000);
	run_writers(1, 256, 1000000);
}

TEST(two_writers_and_a_poller)
{
	run_writers(2, 2, 20000);
	run_writers(2, 8, 200000);
	run_writers(2, 256, 500000);
}

static void *
overrunner_main(void *arg)
{
	struct writer *w = arg;

	while (cqe_put(w->put, (uint32_t)(w - writers)))
		w->put++;
	THREAD_CHECK(!cqe_put(w->put, 0));
	return NULL;
}

/* Both writers overrun the CQ: the CQEs that fit are intact, and the error is raised
 * once. */
TEST(two_writers_overrun)
{
	thread_failure = NULL;
	writers_num = 2;
	for (unsigned round = 0; round < 300; round++) {
		cq_open(64);
		cq_advance();
		cq.shared = true;
		for (unsigned i = 0; i < 2; i++)
			writers[i] = (struct writer){0};
		for (unsigned i = 0; i < 2; i++)
			pthread_create(
				&writers[i].thread, NULL, overrunner_main, &writers[i]);
		for (unsigned i = 0; i < 2; i++)
			pthread_join(writers[i].thread, NULL);
		assert_int_equal(writers[0].put + writers[1].put, 64);
		expect_error_once();
		assert_int_equal(poll_batch(65), 64);
		assert_int_equal(writers[0].polled, writers[0].put);
		assert_null(thread_failure);
		cq_close();
	}
}
