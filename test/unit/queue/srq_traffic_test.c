/* SPDX-License-Identifier: BSD-3-Clause */
/* An SRQ with engines and posting threads at work: limit, resize, and the change between
 * the kinds of take. srq_test.c has a case for each rule. */
#include <fcntl.h>

#include "case.h"
#include "queue/srq.h"

#include "traffic.h"

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
	event_purge(&srq.events);
	srq_fini(&srq);
	event_queue_fini(&events);
	assert_int_equal(counting.bytes, 0);
}

static int
traffic_take(void *arg, struct recv_wqe *out)
{
	return srq_take(arg, out);
}

static struct srq *taken;
static unsigned takes;

/* As the only engine: passes of up to 8 takes. */
static int
traffic_take_alone(void *arg, struct recv_wqe *out)
{
	int rc = srq_take(arg, out);

	if ((rc != 0 || ++takes % 8 == 0) && taken != NULL)
		srq_settle(&taken);
	return rc;
}

static void
traffic_init(struct traffic *t)
{
	*t = (struct traffic){.ring = &srq.ring,
		.take = traffic_take,
		.take_arg = &srq,
		.takers = 2,
		.waves = true,
		.total = UINT64_MAX};
	srq_attach(&srq, 0, NULL);
	srq_attach(&srq, 1, NULL);
}

static void
traffic_end(struct traffic *t)
{
	const char *wrong;

	traffic_stop(t);
	wrong = traffic_finish(t);
	if (wrong != NULL)
		fail_msg("failed: %s", wrong);
	srq_detach(&srq, 0);
	srq_detach(&srq, 1);
}

#define ARMINGS 30000
#define LIMIT_RING 64

static void
limit_arm(uint32_t limit)
{
	struct srq_attr attr = {.limit = limit};

	assert_int_equal(srq_modify(&srq, &attr, IBV_SRQ_LIMIT), 0);
}

/* Waits until the arming has fired, and returns the number of events since the last
 * call. */
static uint64_t
limit_wait(void)
{
	struct event_record record;
	uint64_t read = 0;

	while (srq_limit(&srq) != 0 && !threads_failed())
		sched_yield();
	/* No taker is between the exchange and the event when it releases its lock. */
	engine_locks_take();
	engine_locks_release();
	while (event_next(&events, &record) == 0) {
		assert_int_equal(record.type, IBV_EVENT_SRQ_LIMIT_REACHED);
		read++;
	}
	return read;
}

/* Arms beside takers and posters. One in eight armings is replaced or disarmed at once,
 * perhaps after it has fired. */
static void
armings_run(struct traffic *t)
{
	uint64_t rand = test_seed(5), fired = 0;

	traffic_start(t);
	for (unsigned round = 0; round < ARMINGS && !threads_failed(); round++) {
		bool replaced = rand_below(&rand, 8) == 0;
		uint32_t second = rand_below(&rand, LIMIT_RING + 1);
		uint64_t read;

		limit_arm(1 + rand_below(&rand, LIMIT_RING));
		if (replaced)
			limit_arm(second);
		read = limit_wait();
		fired += read;
		if (!replaced)
			assert_int_equal(read, 1);
		else
			assert_in_range(read, second != 0, second != 0 ? 2 : 1);
	}
	traffic_stop(t);
	assert_null(traffic_finish(t));
	assert_int_equal(srq.limit_fired, fired);
	assert_int_equal(limit_wait(), 0);
}

TEST(one_event_for_each_arming)
{
	struct traffic t;

	srq_open(LIMIT_RING, 4);
	traffic_init(&t);
	armings_run(&t);
	srq_detach(&srq, 0);
	srq_detach(&srq, 1);
	srq_close();
}

TEST(one_event_for_each_arming_of_one_engine)
{
	struct traffic t = {.ring = &srq.ring,
		.take = traffic_take_alone,
		.take_arg = &srq,
		.takers = 1,
		.waves = true,
		.total = UINT64_MAX};

	srq_open(LIMIT_RING, 4);
	srq_attach(&srq, 0, &taken);
	armings_run(&t);
	srq_detach(&srq, 0);
	srq_close();
}

#define RESIZES 10000

/* Resizes once with the engine locks held: no taker runs, posters run until the SRQ's
 * lock. */
static bool
resize_once(uint64_t *rand)
{
	uint32_t max_wr = 1 + rand_below(rand, rand_below(rand, 2) ? 32 : 300);
	uint32_t max_sge = rand_below(rand, RECV_MAX_SGE + 1);
	struct srq_attr attr = {.max_wr = max_wr, .max_sge = max_sge};
	uint32_t outstanding;
	int rc;

	engine_locks_take();
	outstanding = recv_ring_outstanding(&srq.ring);
	rc = srq_modify(&srq, &attr, IBV_SRQ_MAX_WR);
	if (rc == 0) {
		assert_in_range(max_wr, outstanding, UINT32_MAX);
		assert_int_equal(attr.max_wr, rte_align32pow2(max_wr));
		assert_int_equal(attr.max_sge, 2);
	} else {
		assert_int_equal(rc, -EINVAL);
		assert_true(recv_ring_outstanding(&srq.ring) > max_wr);
	}
	engine_locks_release();
	return rc == 0;
}

TEST(resizes_under_traffic)
{
	uint64_t rand = test_seed(6);
	unsigned done = 0;
	struct traffic t;

	srq_open(8, 2);
	traffic_init(&t);
	t.waves = false;
	traffic_start(&t);
	while (done < RESIZES && !threads_failed()) {
		done += resize_once(&rand);
		sched_yield();
	}
	traffic_end(&t);
	/* Traffic went on meanwhile. */
	assert_in_range(t.posted, RESIZES, UINT64_MAX);
	assert_int_equal(recv_ring_outstanding(&srq.ring), 0);
	assert_int_equal(srq.limit_fired, 0);
	srq_close();
}

/* Engines attach and detach while threads post: takes change between the two kinds. */
TEST(attaches_under_traffic)
{
	struct traffic t;

	srq_open(32, 2);
	traffic_init(&t);
	traffic_start(&t);
	for (unsigned round = 0; round < 3000 && !threads_failed(); round++) {
		engine_locks_take();
		/* At most one taker holds its lock while the unshared take is used. */
		srq.shared = false;
		ticket_lock_release(&engine_locks[round % 2]);
		sched_yield();
		ticket_lock_take(&engine_locks[round % 2]);
		srq.shared = true;
		engine_locks_release();
		sched_yield();
	}
	traffic_end(&t);
	srq_close();
}
