/* SPDX-License-Identifier: BSD-3-Clause */
/* Moderated completion events: by number, by time, and the end of the moderation. Time is an
 * argument. */
#include <fcntl.h>
#include <string.h>

#include "case.h"
#include "queue/cq_gather.h"

#include "fixture.h"

#define PERIOD_US 20
#define PERIOD_NS (PERIOD_US * NS_PER_US)
#define COUNT 4
#define START 1000

static struct event_queue events, channel;
static struct cq_moderator moderator;
static struct cq cq, other;

static void
moderated_cq_open(struct cq *it)
{
	assert_int_equal(cq_init(it, &alloc_counting, 64, &events, it), 0);
	cq_set_channel(it, &channel, it);
	cq_attach(it, 0);
	it->moderator = &moderator;
}

static void
moderated_cq_close(struct cq *it)
{
	cq_moderate(it, 0, 0);
	event_purge(&it->error_event);
	event_purge(&it->comp_event);
	cq_detach(it, 0);
	cq_fini(it);
}

static int
cqs_open(void **state)
{
	(void)state;
	assert_int_equal(event_queue_init(&events), 0);
	assert_int_equal(event_queue_init(&channel), 0);
	assert_int_equal(fcntl(channel.fd, F_SETFL, O_NONBLOCK), 0);
	cq_moderator_init(&moderator);
	moderator.counts = true;
	moderated_cq_open(&cq);
	moderated_cq_open(&other);
	cq_moderate(&cq, COUNT, PERIOD_US);
	return 0;
}

static int
cqs_close(void **state)
{
	(void)state;
	moderated_cq_close(&cq);
	moderated_cq_close(&other);
	assert_true(TAILQ_EMPTY(&moderator.waiting));
	event_queue_fini(&events);
	event_queue_fini(&channel);
	assert_int_equal(counting.bytes, 0);
	return 0;
}

static void
completions_put(struct cq *it, unsigned n)
{
	const struct cqe cqe = {.wr_id = 1};
	const uint64_t now = 0;

	for (unsigned i = 0; i < n; i++)
		assert_true(cq_put(it, &cqe, &now));
}

/* Returns the CQs with an event, one bit each, of which each has one. */
static unsigned
events_read(void)
{
	struct event_record record;
	unsigned found = 0;

	while (event_next(&channel, &record) == 0) {
		unsigned bit = record.object == &cq ? 1 : 2;

		assert_int_equal(found & bit, 0);
		found |= bit;
	}
	return found;
}

TEST_WITH(count_raises_the_event, cqs_open, cqs_close)
{
	for (unsigned i = 0; i < 3; i++) {
		cq_arm(&cq, false);
		completions_put(&cq, COUNT - 1);
		assert_int_equal(events_read(), 0);
		completions_put(&cq, 1);
		assert_int_equal(events_read(), 1);
		completions_put(&cq, COUNT); /* not armed */
		assert_int_equal(events_read(), 0);
	}
	/* None waits for its time any more. */
	cq_moderator_run(&moderator, START);
	assert_true(cq_moderator_due(&moderator) == TIME_NEVER);
}

TEST_WITH(time_raises_the_event, cqs_open, cqs_close)
{
	assert_true(cq_moderator_due(&moderator) == TIME_NEVER);
	cq_arm(&cq, false);
	completions_put(&cq, 1);
	assert_int_equal(cq_moderator_due(&moderator), 0);
	cq_moderator_run(&moderator, START);
	assert_int_equal(cq_moderator_due(&moderator), START + PERIOD_NS);
	completions_put(&cq, 1); /* the first one counts */
	cq_moderator_run(&moderator, START + PERIOD_NS - 1);
	assert_int_equal(events_read(), 0);
	cq_moderator_run(&moderator, START + PERIOD_NS);
	assert_int_equal(events_read(), 1);
	assert_true(cq_moderator_due(&moderator) == TIME_NEVER);
	/* The completions before count no more. */
	cq_arm(&cq, false);
	completions_put(&cq, COUNT - 1);
	assert_int_equal(events_read(), 0);
	completions_put(&cq, 1);
	assert_int_equal(events_read(), 1);
}

/* The time of an event that the number has raised is not that of the next one. */
TEST_WITH(each_event_has_its_own_time, cqs_open, cqs_close)
{
	cq_arm(&cq, false);
	completions_put(&cq, 1);
	cq_moderator_run(&moderator, START);
	completions_put(&cq, COUNT - 1);
	assert_int_equal(events_read(), 1);
	cq_arm(&cq, false);
	completions_put(&cq, 1);
	cq_moderator_run(&moderator, START + PERIOD_NS);
	assert_int_equal(events_read(), 0);
	cq_moderator_run(&moderator, START + 2 * PERIOD_NS);
	assert_int_equal(events_read(), 1);
}

TEST_WITH(several_cqs_wait, cqs_open, cqs_close)
{
	cq_moderate(&other, COUNT, 2 * PERIOD_US);
	cq_arm(&cq, false);
	cq_arm(&other, false);
	completions_put(&other, 1);
	cq_moderator_run(&moderator, START);
	completions_put(&cq, 1);
	cq_moderator_run(&moderator, START + 1);
	assert_int_equal(cq_moderator_due(&moderator), START + 1 + PERIOD_NS);
	cq_moderator_run(&moderator, START + 1 + PERIOD_NS);
	assert_int_equal(events_read(), 1);
	assert_int_equal(cq_moderator_due(&moderator), START + 2 * PERIOD_NS);
	cq_moderator_run(&moderator, START + 2 * PERIOD_NS);
	assert_int_equal(events_read(), 2);
	/* The other way round. */
	cq_arm(&cq, false);
	cq_arm(&other, false);
	completions_put(&cq, 1);
	completions_put(&other, 1);
	cq_moderator_run(&moderator, START);
	assert_int_equal(cq_moderator_due(&moderator), START + PERIOD_NS);
	cq_moderator_run(&moderator, START + 2 * PERIOD_NS);
	assert_int_equal(events_read(), 3);
}

/* Completions that the CQ is not armed for do not count. */
TEST_WITH(only_solicited_completions_count, cqs_open, cqs_close)
{
	const struct cqe solicited = {.wr_id = 1, .flags = CQE_SOLICITED};
	const uint64_t now = 0;

	cq_arm(&cq, true);
	completions_put(&cq, 2 * COUNT);
	assert_true(cq_moderator_due(&moderator) == TIME_NEVER);
	for (unsigned i = 0; i < COUNT; i++) {
		assert_int_equal(events_read(), 0);
		assert_true(cq_put(&cq, &solicited, &now));
	}
	assert_int_equal(events_read(), 1);
}

TEST_WITH(gathered_completions_count_each, cqs_open, cqs_close)
{
	static struct cq_gather gather;
	const struct cqe cqe = {.wr_id = 1};
	const uint64_t now = 0;

	cq_attach(&cq, 1); /* CQs of several engines gather */
	cq_arm(&cq, false);
	cq_gather_begin(&gather);
	for (unsigned i = 0; i < COUNT; i++)
		assert_true(cq_complete(&gather, &cq, &cqe, &now));
	assert_int_equal(events_read(), 0);
	cq_gather_end(&gather);
	assert_int_equal(events_read(), 1);
	cq_detach(&cq, 1);
}

TEST_WITH(end_of_moderation_raises_what_waits, cqs_open, cqs_close)
{
	cq_arm(&cq, false);
	completions_put(&cq, 1);
	cq_moderate(&cq, COUNT, 0);
	assert_int_equal(events_read(), 1);
	cq_arm(&cq, false);
	completions_put(&cq, 1);
	assert_int_equal(events_read(), 1);
	cq_moderate(&cq, 0, PERIOD_US);
	cq_arm(&cq, false);
	completions_put(&cq, 1);
	assert_int_equal(events_read(), 1);
	/* Nothing is raised that was not due. */
	cq_moderate(&cq, COUNT, PERIOD_US);
	cq_arm(&cq, false);
	cq_moderate(&cq, 0, 0);
	assert_int_equal(events_read(), 0);
}

/* CQs that are armed for a program that sleeps on the channel's descriptor, and not in ibv_get_cq_event(). */
TEST_WITH(armed_cqs_are_counted, cqs_open, cqs_close)
{
	struct event_taker taker = {0};
	struct event_record record;

	assert_false(cq_moderator_armed(&moderator));
	cq_arm(&cq, false);
	cq_arm(&cq, true); /* is armed for all */
	assert_int_equal(moderator.armed, 1);
	cq_arm(&other, true);
	assert_int_equal(moderator.armed, 2);
	cq_arm(&other, false);
	assert_int_equal(moderator.armed, 2);
	completions_put(&other, 1);
	assert_int_equal(moderator.armed, 1);
	assert_int_equal(cq_moderator_raised(&moderator), 1);
	assert_int_equal(event_next(&channel, &record), 0);
	assert_int_equal(fcntl(channel.fd, F_SETFL, 0), 0);
	assert_true(event_take_begin(&channel, &taker));
	cq_arm(&other, false); /* the taker sleeps otherwise */
	assert_int_equal(moderator.armed, 1);
	completions_put(&other, 1);
	assert_int_equal(moderator.armed, 1);
	assert_true(event_take_end(&channel, &record));
	cq_arm(&cq, false);
	assert_int_equal(moderator.armed, 0);
	/* Until it has taken this number of events that were raised before. */
	assert_int_equal(fcntl(channel.fd, F_SETFL, O_NONBLOCK), 0);
	for (unsigned i = 0; i < EVENT_UNWAITED; i++) {
		cq_arm(&other, false);
		assert_int_equal(moderator.armed, 0);
		completions_put(&other, 1);
		assert_int_equal(event_next(&channel, &record), 0);
	}
	cq_arm(&other, false);
	assert_true(cq_moderator_armed(&moderator));
	completions_put(&other, 1);
	assert_int_equal(event_next(&channel, &record), 0);
	cq_arm(&other, false);
	cq_moderate(&other, 0, 0);
	moderated_cq_close(&other); /* while it is armed */
	assert_int_equal(moderator.armed, 0);
	assert_int_equal(other.armed, CQ_IDLE);
	moderated_cq_open(&other);
	/* Without a progress thread none is counted. */
	moderator.counts = false;
	moderator.raised = 0;
	cq_arm(&other, false);
	assert_int_equal(moderator.armed, 0);
	completions_put(&other, 1);
	assert_int_equal(event_next(&channel, &record), 0);
	assert_int_equal(cq_moderator_raised(&moderator), 0);
}
