/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of a stream leave several in a burst. */
#include <stdlib.h>

#include "engine/post_gather.h"

#include "poll_fixture.h"
#include "progress_fixture.h"

static void
begin(void)
{
	static const struct link_qp_conf plain = {.wr = 256};
	struct engine_link_conf conf = {0};

	link_open(&conf, &plain);
	/* The neighbours get to know each other. */
	for (unsigned i = 0; i < QPS; i++) {
		assert_int_equal(post(i, 8), 0);
		engine_link_drain(&fixture);
	}
	fixture.now += STREAM_GAP_NS;
	fixture.a.deaf = true; /* so that requests stay in flight */
}

static void
expect_counts(unsigned gathered, unsigned missed)
{
	assert_int_equal(engine()->stats.posts_gathered, gathered);
	assert_int_equal(engine()->stats.posts_gathered_missed, missed);
}

/* Posts a request that waits for the poll, and polls. Returns how many packets that has sent. */
static unsigned
turn(unsigned i)
{
	engine()->tx_thread = 0;
	assert_int_equal(post(i, 8), 0);
	return poll();
}

/* Requests until the next one is of a stream: each is sent at once. */
static void
stream(void)
{
	uint32_t needed = engine()->post_gather.stream.needed;

	for (uint32_t n = 0; n < needed; n++)
		assert_int_equal(turn(0), 1);
}

TEST(requests_leave_in_one_burst)
{
	begin();
	stream();
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned n = 1; n < GATHER_REQUESTS; n++) {
			assert_int_equal(turn(0), 0);
			assert_true(engine_deadline(engine()) == 0);
		}
		assert_int_equal(turn(0), GATHER_REQUESTS);
		assert_int_not_equal(engine_deadline(engine()), 0);
	}
	expect_counts(3 * (GATHER_REQUESTS - 1), 0);
	link_close();
}

/* No further request: what waits leaves with the next pass. The stream goes on if that was in time. */
TEST(pass_without_a_request_sends)
{
	begin();
	stream();
	assert_int_equal(turn(0), 0);
	assert_int_equal(turn(0), 0);
	fixture.now += STREAM_GAP_NS - 1;
	assert_int_equal(poll(), 2);
	expect_counts(2, 0);
	assert_int_equal(turn(0), 0);
	link_close();
}

TEST(late_pass_ends_the_stream)
{
	begin();
	stream();
	assert_int_equal(turn(0), 0);
	fixture.now += STREAM_GAP_NS;
	assert_int_equal(poll(), 1);
	expect_counts(1, 1);
	assert_int_equal(engine()->post_gather.stream.needed,
		STREAM_NEEDED_FIRST * STREAM_BACKOFF);
	assert_int_equal(turn(0), 1);
	link_close();
}

/* A late pass that finds a request is one of no stream. */
TEST(late_request_is_sent)
{
	begin();
	stream();
	assert_int_equal(turn(0), 0);
	fixture.now += STREAM_GAP_NS;
	assert_int_equal(turn(0), 2);
	expect_counts(1, 1);
	assert_int_equal(engine()->post_gather.stream.needed,
		STREAM_NEEDED_FIRST * STREAM_BACKOFF);
	link_close();
}

/* Success makes up for the failures before. */
TEST(gathered_requests_count_as_success)
{
	begin();
	stream();
	assert_int_equal(turn(0), 0);
	engine()->post_gather.stream.needed = STREAM_NEEDED_FIRST + 1;
	for (unsigned n = 2; n < GATHER_REQUESTS; n++)
		assert_int_equal(turn(0), 0);
	assert_int_equal(engine()->post_gather.stream.needed, STREAM_NEEDED_FIRST + 1);
	assert_int_equal(turn(0), GATHER_REQUESTS);
	assert_int_equal(engine()->post_gather.stream.needed, STREAM_NEEDED_FIRST);
	link_close();
}

/* Fewer are in flight: the peer may have nothing else to do. */
TEST(few_requests_in_flight_do_not_wait)
{
	begin();
	fixture.a.deaf = false;
	for (unsigned n = 0; n < 2 * STREAM_NEEDED_FIRST; n++) {
		assert_int_equal(turn(0), 1);
		engine_link_deliver(&fixture);
		engine_run(fixture.b.dev->engines[0], fixture.now);
		engine_link_deliver(&fixture);
	}
	assert_true(engine()->post_gather.stream.is_on);
	expect_counts(0, 0);
	poll();
	fixture.a.deaf = true;
	for (unsigned n = 0; n < GATHER_IN_FLIGHT; n++)
		assert_int_equal(turn(0), 1);
	assert_int_equal(turn(0), 0);
	expect_counts(1, 0);
	link_close();
}

TEST(lists_do_not_wait)
{
	begin();
	stream();
	engine()->tx_thread = 0;
	for (unsigned n = 0; n < GATHER_REQUESTS; n++)
		post(0, 8);
	assert_int_equal(poll(), GATHER_REQUESTS);
	expect_counts(0, 0);
	link_close();
}

TEST(other_qp_ends_the_wait)
{
	begin();
	stream();
	assert_int_equal(turn(0), 0);
	assert_int_equal(turn(1), 2);
	expect_counts(1, 0);
	link_close();
}

/* Requests of two QPs in a pass are a burst anyway. */
TEST(two_qps_do_not_wait)
{
	begin();
	stream();
	engine()->tx_thread = 0;
	assert_int_equal(post(0, 8), 0);
	assert_int_equal(post(1, 8), 0);
	assert_int_equal(poll(), 2);
	expect_counts(0, 0);
	link_close();
}

/* An acknowledgement of the first requests makes the QP ready, and no request was posted. */
TEST(acknowledgements_are_no_requests)
{
	uint32_t una_idx;

	begin();
	stream();
	assert_int_equal(turn(0), 0);
	una_idx = a[0].qp->req.una_idx;
	engine_link_deliver(&fixture);
	engine_run(fixture.b.dev->engines[0], fixture.now);
	fixture.a.deaf = false;
	engine_link_deliver(&fixture);
	assert_int_equal(poll(), 1);
	assert_int_not_equal(a[0].qp->req.una_idx, una_idx);
	assert_true(a[0].qp->req.next_idx - a[0].qp->req.una_idx > GATHER_IN_FLIGHT);
	link_close();
}

TEST(responses_do_not_wait)
{
	begin();
	stream();
	assert_int_equal(turn(0), 0);
	assert_int_equal(link_qp_recv(&a[0], 0, 0, 8), 0);
	assert_int_equal(link_qp_send(&b[0], 0, 0, 8, 0), 0);
	engine_run(fixture.b.dev->engines[0], fixture.now);
	fixture.a.deaf = false;
	engine_link_deliver(&fixture);
	/* The acknowledgement, and two requests. */
	assert_int_equal(turn(0), 3);
	link_close();
}

static void
request_waits(void)
{
	begin();
	stream();
	assert_int_equal(turn(0), 0);
	assert_non_null(engine()->post_gather.qp);
}

TEST(destroyed_qp_sends)
{
	unsigned sent;

	request_waits();
	sent = fake_sent_count(&fixture.a.port);
	link_qps_destroy(a, b, QPS);
	assert_int_equal(fake_sent_count(&fixture.a.port) - sent, 1);
	assert_null(engine()->post_gather.qp);
	assert_null(engine()->post_gather.stream.qp);
	assert_int_equal(poll(), 0);
	engine_link_fini(&fixture);
}

TEST(qp_is_reset_meanwhile)
{
	request_waits();
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_RESET), 0);
	assert_null(engine()->post_gather.qp);
	assert_null(engine()->post_gather.stream.qp);
	assert_int_equal(poll(), 0);
	link_close_unchecked();
}

TEST(environment_turns_it_off)
{
	setenv("ROCADE_POST_GATHER", "0", 1);
	begin();
	unsetenv("ROCADE_POST_GATHER");
	for (unsigned n = 0; n < 2 * STREAM_NEEDED_FIRST; n++)
		assert_int_equal(turn(0), 1);
	expect_counts(0, 0);
	link_close();
}

/* There a post may be the last call of the application for a while. */
TEST(manual_progress_does_not_gather)
{
	begin();
	engine_set_progress_thread(engine(), &progress_thread);
	engine()->tx_from_post = false; /* each post runs a pass */
	for (unsigned n = 0; n < 2 * STREAM_NEEDED_FIRST; n++)
		assert_int_equal(post(0, 8), 1);
	expect_counts(0, 0);
	engine_set_progress_thread(engine(), NULL);
	link_close();
}
