/* SPDX-License-Identifier: BSD-3-Clause */
/* The acknowledgement of a request that is answered at once leaves after the answer. */
#include <stdlib.h>

#include "engine/delayed_ack.h"

#include "poll_fixture.h"

/* b[i] sends a request to a[i]. */
static void
request(unsigned i)
{
	assert_int_equal(link_qp_recv(&a[i], wr, 0, 8), 0);
	assert_int_equal(link_qp_send(&b[i], wr++, 0, 8, 0), 0);
	engine_run(fixture.b.dev->engines[0], fixture.now);
	engine_link_deliver(&fixture);
}

/* Posts the answer. Returns how many frames the post has sent. */
static unsigned
answer(unsigned i)
{
	unsigned before = fake_sent_count(&fixture.a.port);

	assert_int_equal(link_qp_recv(&b[i], wr, 0, 8), 0);
	assert_int_equal(link_qp_send(&a[i], wr++, 0, 8, 0), 0);
	return fake_sent_count(&fixture.a.port) - before;
}

/* n requests that are answered at once. */
static void
answered(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		request(0);
		assert_int_equal(poll(), 1); /* the acknowledgement */
		assert_int_equal(answer(0), 1);
		assert_int_equal(poll(), 0);
		engine_link_drain(&fixture);
	}
}

static void
begin(void)
{
	static const struct link_qp_conf plain = {.wr = 128};
	struct engine_link_conf conf = {0};

	link_open(&conf, &plain);
	/* Requests follow each other without a pause here, and many have no answer. */
	engine()->ack_coalesce.off = true;
	/* The neighbours get to know each other. */
	for (unsigned i = 0; i < QPS; i++) {
		request(i);
		engine_link_drain(&fixture);
	}
}

static void
expect_counts(unsigned delayed, unsigned missed)
{
	assert_int_equal(engine()->stats.ack_delayed, delayed);
	assert_int_equal(engine()->stats.ack_delayed_missed, missed);
}

TEST(acknowledgement_follows_the_answer)
{
	begin();
	answered(DELAYED_ACK_ANSWERS);
	expect_counts(0, 0);
	for (unsigned i = 0; i < 3; i++) {
		request(0);
		assert_int_equal(poll(), 0);
		assert_true(engine_deadline(engine()) == 0);
		assert_int_equal(answer(0), 1);
		assert_true(qp_has_response_pending(a[0].qp));
		assert_int_equal(poll(), 1);
		assert_false(qp_has_response_pending(a[0].qp));
		engine_link_drain(&fixture);
	}
	expect_counts(3, 0);
	link_close_acknowledged();
}

/* There is no answer: the next poll acknowledges, and no further request waits. */
TEST(next_poll_acknowledges)
{
	begin();
	answered(DELAYED_ACK_ANSWERS);
	request(0);
	assert_int_equal(poll(), 0);
	assert_int_equal(poll(), 1);
	expect_counts(1, 1);
	answered(DELAYED_ACK_ANSWERS);
	expect_counts(1, 1);
	request(0);
	assert_int_equal(poll(), 0);
	link_close_acknowledged();
}

/* The application has computed meanwhile: the next request is acknowledged at once. */
TEST(late_answer_ends_the_delays)
{
	begin();
	answered(DELAYED_ACK_ANSWERS);
	request(0);
	assert_int_equal(poll(), 0);
	fixture.now += DELAYED_ACK_NS;
	assert_int_equal(answer(0), 1);
	assert_int_equal(poll(), 1);
	expect_counts(1, 1);
	engine_link_drain(&fixture);
	answered(1);
	link_close_acknowledged();
}

TEST(answer_over_another_qp_is_none)
{
	begin();
	answered(DELAYED_ACK_ANSWERS);
	request(0);
	assert_int_equal(poll(), 0);
	assert_int_equal(answer(1), 1);
	assert_int_equal(poll(), 1);
	expect_counts(1, 1);
	link_close_acknowledged();
}

/* Requests over two QPs, or own requests queued: there is a burst to send anyway. */
TEST(nothing_waits_when_there_is_more_to_send)
{
	begin();
	answered(DELAYED_ACK_ANSWERS);
	request(0);
	request(1);
	assert_int_equal(poll(), 2);
	engine_link_drain(&fixture);
	assert_int_equal(poll(), 0);
	assert_int_equal(answer(0), 1);
	assert_int_equal(answer(0), 0);
	request(0);
	assert_int_equal(poll(), 2); /* the second answer, and the acknowledgement */
	expect_counts(0, 0);
	link_close_acknowledged();
}

static void
delay(void)
{
	begin();
	answered(DELAYED_ACK_ANSWERS);
	request(0);
	assert_int_equal(poll(), 0);
	assert_true(engine()->delayed_ack.delayed);
}

TEST(destroyed_qp_acknowledges)
{
	unsigned sent;

	delay();
	sent = fake_sent_count(&fixture.a.port);
	link_qps_destroy(a, b, QPS);
	assert_int_equal(fake_sent_count(&fixture.a.port) - sent, 1);
	assert_false(engine()->delayed_ack.delayed);
	assert_int_equal(poll(), 0);
	engine_link_fini(&fixture);
}

/* The pass that is to send what the QP has left to send receives a request that is refused. */
static void
destroyed_case(unsigned answers)
{
	unsigned sent;

	begin();
	answered(answers);
	assert_int_equal(poll(), 0);
	assert_int_equal(answer(0), 1);
	assert_int_equal(answer(0), 0); /* not sent */
	assert_int_equal(link_qp_recv(&a[0], wr, 0, 4), 0);
	assert_int_equal(link_qp_send(&b[0], wr++, 0, 8, 0), 0);
	engine_run(fixture.b.dev->engines[0], fixture.now);
	engine_link_deliver(&fixture);
	sent = fake_sent_count(&fixture.a.port);
	link_qps_destroy(a, b, QPS);
	assert_int_equal(fake_sent_count(&fixture.a.port) - sent, 1);
	assert_null(engine()->delayed_ack.qp);
	engine_link_fini(&fixture);
}

TEST(destroyed_qp_refuses_a_request)
{
	destroyed_case(0);
	destroyed_case(DELAYED_ACK_ANSWERS);
}

TEST(acknowledgement_leaves_before_err)
{
	delay();
	expect_acknowledgement_before_err();
	assert_false(engine()->delayed_ack.delayed);
	link_close_unchecked();
}

TEST(qp_is_reset_meanwhile)
{
	delay();
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_RESET), 0);
	assert_false(engine()->delayed_ack.delayed);
	assert_int_equal(poll(), 0);
	link_close_unchecked();
}

TEST(environment_turns_it_off)
{
	setenv("ROCADE_OFF", "tx-from-post", 1);
	begin();
	unsetenv("ROCADE_OFF");
	for (unsigned i = 0; i < 2 * DELAYED_ACK_ANSWERS; i++) {
		request(0);
		assert_int_equal(poll(), 1);
		assert_int_equal(answer(0), 0);
		assert_int_equal(poll(), 1);
		engine_link_drain(&fixture);
	}
	expect_counts(0, 0);
	link_close_acknowledged();
}
