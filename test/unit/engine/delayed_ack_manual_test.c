/* SPDX-License-Identifier: BSD-3-Clause */
/* Manual progress: the acknowledgement of a WRITE that gives no completion leaves together with the
 * answer. */
#include <stdlib.h>

#include "engine/delayed_ack.h"
#include "engine/manual_progress.h"

#include "poll_fixture.h"
#include "post.h"

#define PROMPT                                                                           \
	(DELAYED_ACK_ANSWERS /                                                           \
		DELAYED_ACK_MANUAL_STEP) /* answers until acknowledgements wait */

static uint32_t asleep;

static void
no_wake(void *arg)
{
	(void)arg;
}

static const struct engine_progress_thread progress_thread = {
	.wake = no_wake, .asleep = &asleep};

static unsigned
sent_since(unsigned before)
{
	return fake_sent_count(&fixture.a.port) - before;
}

static void
write_post(struct link_qp *q, enum ibv_wr_opcode opcode)
{
	struct send_req req = {.wr_id = wr++, .opcode = opcode};

	assert_int_equal(sq_post(&q->qp->sq, &req), 0);
	engine_doorbell(q->qp);
}

/* b[i] sends a request to a[i]. */
static void
request_of(unsigned i, enum ibv_wr_opcode opcode)
{
	if (opcode != WR_RDMA_WRITE)
		assert_int_equal(link_qp_recv(&a[i], wr, 0, 8), 0);
	write_post(&b[i], opcode);
	engine_run(fixture.b.dev->engines[0], fixture.now);
	engine_link_deliver(&fixture);
}

static void
request(void)
{
	request_of(0, WR_RDMA_WRITE);
}

/* Returns how many frames a pass has sent. */
static unsigned
pass(void)
{
	unsigned before = fake_sent_count(&fixture.a.port);

	engine_try_pass(engine());
	return sent_since(before);
}

/* Posts the answer. Returns how many frames that has sent. */
static unsigned
answer(void)
{
	unsigned before = fake_sent_count(&fixture.a.port);

	write_post(&a[0], WR_RDMA_WRITE);
	return sent_since(before);
}

static void
answered(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		request();
		assert_int_equal(pass(), 1); /* the acknowledgement */
		fixture.now += DELAYED_ACK_MANUAL_NS - 1;
		assert_int_equal(pass(), 0);
		assert_int_equal(answer(), 1);
		engine_link_drain(&fixture);
	}
}

static void
begin(void)
{
	static const struct link_qp_conf plain = {.wr = 128, .no_timeout = true};
	struct engine_link_conf conf = {0};

	link_open(&conf, &plain);
	for (unsigned i = 0; i < QPS; i++) {
		a[i].qp->access = b[i].qp->access = IBV_ACCESS_REMOTE_WRITE;
		/* The neighbours get to know each other. */
		request_of(i, WR_RDMA_WRITE);
		engine_link_drain(&fixture);
	}
	engine_set_progress_thread(engine(), &progress_thread);
	engine_allow_delayed_acks(engine(), true);
}

static void
expect_counts(unsigned delayed, unsigned missed)
{
	assert_int_equal(engine()->stats.ack_delayed, delayed);
	assert_int_equal(engine()->stats.ack_delayed_missed, missed);
}

static void
end(void)
{
	engine_set_progress_thread(engine(), NULL);
	link_close_acknowledged();
}

TEST(acknowledgement_comes_with_the_answer)
{
	begin();
	answered(PROMPT - 1);
	assert_false(engine_delays_acks(engine()));
	answered(1);
	assert_true(engine_delays_acks(engine()));
	expect_counts(0, 0);
	for (unsigned i = 1; i <= 3; i++) {
		request();
		assert_int_equal(pass(), 0);
		assert_true(engine_ack_is_delayed(engine()));
		/* The progress thread may sleep for as long as it likes to. */
		assert_true(engine_sleep_until(engine()) > fixture.now);
		fixture.now += DELAYED_ACK_MANUAL_NS - 1;
		assert_int_equal(pass(), 0);
		assert_int_equal(answer(), 2);
		assert_false(engine_ack_is_delayed(engine()));
		engine_link_drain(&fixture);
		expect_counts(i, 0);
	}
	end();
}

/* There is no answer: a pass acknowledges when it would be late, and no further request waits. */
TEST(acknowledgement_waits_for_a_time)
{
	begin();
	answered(PROMPT);
	request();
	assert_int_equal(pass(), 0);
	fixture.now += DELAYED_ACK_MANUAL_NS - 1;
	assert_int_equal(pass(), 0);
	fixture.now++;
	assert_int_equal(pass(), 1);
	expect_counts(1, 1);
	engine_link_drain(&fixture);
	/* Half of the answers count. */
	answered(PROMPT / 2);
	request();
	assert_int_equal(pass(), 0);
	end();
}

TEST(late_answer_ends_the_delays)
{
	begin();
	answered(PROMPT);
	request();
	assert_int_equal(pass(), 0);
	fixture.now += DELAYED_ACK_MANUAL_NS;
	assert_int_equal(answer(), 2);
	expect_counts(1, 1);
	engine_link_drain(&fixture);
	answered(1);
	end();
}

/* The next request comes before the answer to this one. */
TEST(packets_before_the_answer_end_the_wait)
{
	begin();
	answered(PROMPT);
	request();
	assert_int_equal(pass(), 0);
	request_of(1, WR_RDMA_WRITE);
	assert_int_equal(pass(), 2);
	expect_counts(1, 0);
	engine_link_drain(&fixture);
	/* The count of answers is the same. */
	request();
	assert_int_equal(pass(), 0);
	assert_int_equal(answer(), 2);
	expect_counts(2, 0);
	end();
}

/* Packets of the same QP come instead of the answer. */
TEST(further_packets_do_not_prolong_the_wait)
{
	begin();
	answered(PROMPT);
	for (unsigned i = 0; i < 3; i++) {
		request();
		assert_int_equal(pass(), 0);
		fixture.now += DELAYED_ACK_MANUAL_NS / 3;
	}
	request();
	assert_int_equal(pass(), 1);
	expect_counts(3, 1);
	assert_false(engine_delays_acks(engine()));
	end();
}

/* An acknowledgement that has not waited is none that further packets prolong. */
TEST(answer_to_the_last_packet_is_in_time)
{
	begin();
	answered(PROMPT - 1);
	for (unsigned i = 0; i < 2; i++) {
		request();
		assert_int_equal(pass(), 1);
		fixture.now += DELAYED_ACK_MANUAL_NS - 1;
	}
	assert_int_equal(answer(), 1);
	assert_true(engine_delays_acks(engine()));
	end();
}

/* These give the application a completion: it polls. */
TEST(other_requests_do_not_wait)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM};

	begin();
	answered(PROMPT);
	for (unsigned i = 0; i < RTE_DIM(opcodes); i++) {
		request_of(0, opcodes[i]);
		assert_int_equal(pass(), 1);
		assert_int_equal(answer(), 1);
		engine_link_drain(&fixture);
	}
	expect_counts(0, 0);
	request();
	assert_int_equal(pass(), 0);
	end();
}

/* The progress thread will not look soon. */
TEST(forbidden_delays_end_at_once)
{
	begin();
	answered(PROMPT);
	request();
	assert_int_equal(pass(), 0);
	engine_allow_delayed_acks(engine(), false);
	assert_int_equal(engine_sleep_until(engine()), 0);
	assert_int_equal(pass(), 1);
	engine_link_drain(&fixture);
	request();
	assert_int_equal(pass(), 1);
	expect_counts(1, 0);
	end();
}

/* Brings that about. Returns how many frames were sent so far. */
static unsigned
acknowledgement_waits(void)
{
	answered(PROMPT);
	request();
	assert_int_equal(pass(), 0);
	return fake_sent_count(&fixture.a.port);
}

/* The application is about to sleep until an event. */
TEST(sleeping_application_acknowledges)
{
	unsigned before;

	begin();
	before = acknowledgement_waits();
	engine_delegate(engine());
	assert_int_equal(sent_since(before), 1);
	expect_counts(1, 0);
	asleep = 0;
	end();
}

TEST(destroyed_qp_acknowledges)
{
	unsigned before;

	begin();
	before = acknowledgement_waits();
	link_qps_destroy(a, b, QPS);
	assert_int_equal(sent_since(before), 1);
	assert_false(engine_ack_is_delayed(engine()));
	assert_int_equal(pass(), 0);
	engine_set_progress_thread(engine(), NULL);
	engine_link_fini(&fixture);
}

TEST(environment_turns_it_off)
{
	setenv("ROCADE_OFF", "tx-from-post", 1);
	begin();
	unsetenv("ROCADE_OFF");
	answered(PROMPT + 2);
	expect_counts(0, 0);
	end();
}
