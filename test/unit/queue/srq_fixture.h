/* SPDX-License-Identifier: BSD-3-Clause */
/* An SRQ and its event queue. */
#ifndef ROCADE_TEST_QUEUE_SRQ_FIXTURE_H
#define ROCADE_TEST_QUEUE_SRQ_FIXTURE_H

#include <fcntl.h>

#include "case.h"
#include "queue/srq.h"

#include "traffic.h"

static struct event_queue srq_events;
static struct srq srq;
static int srq_object;

static inline void
srq_open(uint32_t max_wr, uint32_t max_sge)
{
	assert_int_equal(event_queue_init(&srq_events), 0);
	assert_int_equal(fcntl(srq_events.fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(srq_init(&srq, &alloc_counting, 7, max_wr, max_sge, &srq_events,
				 &srq_object),
		0);
	/* Indices that wrap around 2^32 soon. */
	srq.ring.cons = UINT32_MAX - 5;
	recv_ring_clear(&srq.ring);
}

static inline void
srq_close(void)
{
	event_purge(&srq.events);
	srq_fini(&srq);
	event_queue_fini(&srq_events);
	assert_int_equal(counting.bytes, 0);
}

/* Posts `count` receives of num_sge SGEs each. */
static inline void
srq_fixture_post(unsigned count, uint32_t num_sge)
{
	static uint64_t number;

	for (unsigned i = 0; i < count; i++)
		assert_true(ring_post(&srq.ring, number++, num_sge));
}

/* Returns the result of srq_modify(). */
static inline int
srq_fixture_modify(uint32_t max_wr, uint32_t max_sge, uint32_t limit, int mask)
{
	struct srq_attr attr = {.max_wr = max_wr, .max_sge = max_sge, .limit = limit};

	return srq_modify(&srq, &attr, mask);
}

static inline void
srq_expect_attr(uint32_t max_wr, uint32_t max_sge, uint32_t limit)
{
	struct srq_attr attr;

	assert_int_equal(srq_query(&srq, &attr), 0);
	assert_int_equal(attr.max_wr, max_wr);
	assert_int_equal(attr.max_sge, max_sge);
	assert_int_equal(attr.limit, limit);
	assert_int_equal(srq_limit(&srq), limit);
}

static inline void
srq_expect_event(enum ibv_event_type type)
{
	struct event_record record;

	assert_int_equal(event_next(&srq_events, &record), 0);
	assert_int_equal(record.type, type);
	assert_ptr_equal(record.object, &srq_object);
}

static inline void
srq_expect_no_event(void)
{
	struct event_record record;

	assert_int_equal(event_next(&srq_events, &record), -EAGAIN);
}

#endif
