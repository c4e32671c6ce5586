/* SPDX-License-Identifier: BSD-3-Clause */
/* The completions of a burst, gathered and written together. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "case.h"
#include "queue/cq_gather.h"

#include "fixture.h"

#define SIZE 128 /* room for what two engines gather, twice */
static_assert(SIZE == 2 * 2 * CQ_GATHER_MAX, "the number of completions below");

static struct event_queue events, channel;
static struct cq cq, other;
static struct cq_gather gather;

static void
gather_cq_open(struct cq *it, uint32_t cqe)
{
	assert_int_equal(cq_init(it, &alloc_counting, cqe, &events, it), 0);
	cq_set_channel(it, &channel, it);
	cq_attach(it, 0);
	cq_attach(it, 1);
}

static void
gather_cq_close(struct cq *it)
{
	event_purge(&it->error_event);
	event_purge(&it->comp_event);
	cq_detach(it, 0);
	cq_detach(it, 1);
	cq_fini(it);
}

static int
cqs_open(void **state)
{
	(void)state;
	assert_int_equal(event_queue_init(&events), 0);
	assert_int_equal(event_queue_init(&channel), 0);
	assert_int_equal(fcntl(events.fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(fcntl(channel.fd, F_SETFL, O_NONBLOCK), 0);
	gather_cq_open(&cq, SIZE);
	gather_cq_open(&other, SIZE);
	gather = (struct cq_gather){.on = false};
	return 0;
}

static int
cqs_close(void **state)
{
	(void)state;
	gather_cq_close(&cq);
	gather_cq_close(&other);
	event_queue_fini(&events);
	event_queue_fini(&channel);
	assert_int_equal(counting.bytes, 0);
	return 0;
}

static bool
gathered_put(struct cq *to, uint64_t number)
{
	const struct cqe cqe = {.wr_id = number, .qpn = 0x100};
	const uint64_t now = number;

	return cq_complete(&gather, to, &cqe, &now);
}

/* Polls, and expects the completions first, first + 1 .. */
static void
expect_polled(struct cq *from, uint64_t first, unsigned n)
{
	uint32_t tail = from->tail;
	unsigned got = 0;

	for (const struct cqe *cqe; (cqe = cq_peek(from, &tail)) != NULL; tail++)
		assert_int_equal(cqe->wr_id, first + got++);
	cq_consume(from, tail);
	assert_int_equal(got, n);
}

static unsigned
channel_events(void)
{
	struct event_record record;
	unsigned n = 0;

	while (event_next(&channel, &record) == 0)
		n++;
	return n;
}

TEST_WITH(burst_is_written_at_its_end, cqs_open, cqs_close)
{
	cq_gather_begin(&gather);
	for (unsigned i = 0; i < 5; i++)
		assert_true(gathered_put(&cq, i));
	expect_polled(&cq, 0, 0);
	cq_gather_end(&gather);
	expect_polled(&cq, 0, 5);
	cq_gather_begin(&gather);
	cq_gather_end(&gather);
	expect_polled(&cq, 5, 0);
}

TEST_WITH(burst_is_written_before_an_event, cqs_open, cqs_close)
{
	cq_gather_begin(&gather);
	assert_true(gathered_put(&cq, 0));
	cq_gather_flush(&gather);
	expect_polled(&cq, 0, 1);
	assert_true(gathered_put(&cq, 1));
	expect_polled(&cq, 1, 0);
	cq_gather_end(&gather);
	expect_polled(&cq, 1, 1);
}

TEST_WITH(outside_a_burst_each_is_written, cqs_open, cqs_close)
{
	assert_true(gathered_put(&cq, 1));
	expect_polled(&cq, 1, 1);
}

TEST_WITH(one_engines_cq_is_written_at_once, cqs_open, cqs_close)
{
	cq_detach(&cq, 1);
	cq_gather_begin(&gather);
	assert_true(gathered_put(&cq, 1));
	expect_polled(&cq, 1, 1);
	cq_gather_end(&gather);
	cq_attach(&cq, 1);
}

TEST_WITH(long_burst_is_written_in_parts, cqs_open, cqs_close)
{
	cq_gather_begin(&gather);
	for (unsigned i = 0; i < CQ_GATHER_MAX + 1; i++)
		assert_true(gathered_put(&cq, i));
	expect_polled(&cq, 0, CQ_GATHER_MAX);
	cq_gather_end(&gather);
	expect_polled(&cq, CQ_GATHER_MAX, 1);
}

TEST_WITH(another_cq_ends_the_gathering, cqs_open, cqs_close)
{
	cq_gather_begin(&gather);
	assert_true(gathered_put(&cq, 0));
	assert_true(gathered_put(&cq, 1));
	assert_true(gathered_put(&other, 10));
	expect_polled(&cq, 0, 2);
	assert_true(gathered_put(&cq, 2));
	expect_polled(&other, 10, 1);
	cq_gather_end(&gather);
	expect_polled(&cq, 2, 1);
}

TEST_WITH(a_burst_raises_one_event, cqs_open, cqs_close)
{
	cq_arm(&cq, false);
	cq_gather_begin(&gather);
	for (unsigned i = 0; i < 3; i++)
		assert_true(gathered_put(&cq, i));
	assert_int_equal(channel_events(), 0);
	cq_gather_end(&gather);
	assert_int_equal(channel_events(), 1);
}

TEST_WITH(solicited_completion_of_a_burst_raises_the_event, cqs_open, cqs_close)
{
	const struct cqe solicited = {.wr_id = 1, .flags = CQE_SOLICITED};
	const uint64_t now = 0;

	cq_arm(&cq, true);
	cq_gather_begin(&gather);
	assert_true(gathered_put(&cq, 0));
	cq_gather_end(&gather);
	assert_int_equal(channel_events(), 0);
	cq_gather_begin(&gather);
	assert_true(cq_complete(&gather, &cq, &solicited, &now));
	assert_true(gathered_put(&cq, 2));
	cq_gather_end(&gather);
	assert_int_equal(channel_events(), 1);
	/* The mark is not that of the next burst. */
	cq_arm(&cq, true);
	cq_gather_begin(&gather);
	assert_true(gathered_put(&cq, 3));
	cq_gather_end(&gather);
	assert_int_equal(channel_events(), 0);
}

/* One engine reserves a slot, another writes a solicited completion behind it. The event comes before
 * either can be polled: the write of the first one raises another. */
TEST_WITH(write_before_a_solicited_completion_raises_its_event, cqs_open, cqs_close)
{
	const struct cqe first = {.wr_id = 0},
			 last = {.wr_id = 1, .flags = CQE_SOLICITED};
	const uint64_t now = 0;

	for (unsigned gathered = 0; gathered < 2; gathered++) {
		int64_t index = cq_reserve(&cq, &now);

		assert_true(index >= 0);
		cq_arm(&cq, true);
		if (gathered)
			cq_gather_begin(&gather);
		assert_true(cq_complete(&gather, &cq, &last, &now));
		cq_gather_end(&gather);
		assert_int_equal(channel_events(), 1);
		cq_arm(&cq, true);
		expect_polled(&cq, 0, 0);
		cqe_write(&cq, (uint32_t)index, &first);
		cq_notify(&cq, false, (uint32_t)index + 1, 1);
		assert_int_equal(channel_events(), 1);
		expect_polled(&cq, 0, 2);
		/* Not solicited, and nothing is behind it. */
		cq_arm(&cq, true);
		assert_true(cq_put(&cq, &first, &now));
		assert_int_equal(channel_events(), 0);
		expect_polled(&cq, 0, 1);
	}
}

/* With less room than two engines may gather, the first completion that does not fit is refused
 * when it is put. */
TEST_WITH(full_cq_refuses_as_without_gathering, cqs_open, cqs_close)
{
	for (unsigned i = 0; i < SIZE - 2 * CQ_GATHER_MAX + 1; i++)
		assert_true(gathered_put(&cq, i));
	cq_gather_begin(&gather);
	for (unsigned i = SIZE - 2 * CQ_GATHER_MAX + 1; i < SIZE; i++)
		assert_true(gathered_put(&cq, i));
	expect_polled(&other, 0, 0);
	assert_false(cq.error);
	assert_false(gathered_put(&cq, SIZE));
	assert_true(cq.error);
	cq_gather_end(&gather);
	expect_polled(&cq, 0, SIZE);
}

/* Another engine has taken the room of what is gathered. */
TEST_WITH(lost_room_is_an_overrun, cqs_open, cqs_close)
{
	const struct cqe cqe = {.wr_id = 0};
	const uint64_t now = 0;

	cq_gather_begin(&gather);
	for (unsigned i = 0; i < 2; i++)
		assert_true(gathered_put(&cq, i));
	for (unsigned i = 0; i < SIZE - 1; i++)
		assert_true(cq_put(&cq, &cqe, &now));
	assert_false(cq.error);
	cq_gather_end(&gather);
	assert_true(cq.error);
	assert_int_equal(gather.lost, 2);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(gather.cqes[i].wr_id, i);
	gather.lost = 0;
	cq_gather_begin(&gather);
	assert_false(gathered_put(&cq, 2));
	cq_gather_end(&gather);
	assert_int_equal(gather.lost, 0);
}

/* The CQ is in the error state when the completions are written. The rest of the burst leaves the
 * lost ones where they are. */
TEST_WITH(error_of_the_cq_loses_what_is_gathered, cqs_open, cqs_close)
{
	cq_gather_begin(&gather);
	for (unsigned i = 0; i < 2; i++)
		assert_true(gathered_put(&cq, i));
	assert_false(cq_overrun(&cq));
	for (unsigned i = 0; i < 3; i++)
		assert_true(gathered_put(&other, 10 + i));
	expect_polled(&other, 10, 3);
	cq_gather_end(&gather);
	assert_int_equal(gather.lost, 2);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(gather.cqes[i].wr_id, i);
	/* The next burst is gathered again. */
	gather.lost = 0;
	cq_gather_begin(&gather);
	assert_true(gathered_put(&other, 13));
	expect_polled(&other, 13, 0);
	cq_gather_end(&gather);
	expect_polled(&other, 13, 1);
}

TEST_WITH(stamped_cq_is_written_at_once, cqs_open, cqs_close)
{
	struct cq stamped;

	assert_int_equal(cq_init(&stamped, &alloc_counting, SIZE, &events, &stamped), 0);
	assert_int_equal(cq_enable_stamps(&stamped), 0);
	cq_attach(&stamped, 0);
	cq_attach(&stamped, 1);
	cq_gather_begin(&gather);
	assert_true(gathered_put(&stamped, 7));
	assert_int_equal(stamped.stamps[0], 7);
	expect_polled(&stamped, 7, 1);
	cq_gather_end(&gather);
	cq_detach(&stamped, 0);
	cq_detach(&stamped, 1);
	cq_fini(&stamped);
}
