/* SPDX-License-Identifier: BSD-3-Clause */
/* Acknowledgements of a stream wait for more packets. */
#include <stdlib.h>

#include "engine/ack_coalesce.h"

#include "poll_fixture.h"
#include "progress_fixture.h"

static void
completions_poll(unsigned i)
{
	struct cqe cqe;

	while (link_qp_poll_recv(&a[i], &cqe))
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	while (link_qp_poll_send(&b[i], &cqe))
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
}

/* b[i] sends n requests to a[i], in one pass. */
static void
requests(unsigned i, unsigned n)
{
	completions_poll(i);
	for (unsigned k = 0; k < n; k++) {
		assert_int_equal(link_qp_recv(&a[i], wr, 0, 8), 0);
		assert_int_equal(link_qp_send(&b[i], wr++, 0, 8, IBV_SEND_SIGNALED), 0);
	}
	engine_run(fixture.b.dev->engines[0], fixture.now);
	engine_link_deliver(&fixture);
}

/* b[i] sends a request, and a polls. Returns how many frames a has sent. */
static unsigned
request(unsigned i)
{
	requests(i, 1);
	return poll();
}

/* b[0] learns what a has acknowledged. */
static void
acknowledgements_deliver(void)
{
	engine_link_deliver(&fixture);
	engine_run(fixture.b.dev->engines[0], fixture.now);
}

static bool
all_is_acknowledged(unsigned i)
{
	acknowledgements_deliver();
	return b[i].qp->req.una_idx == sq_posted(&b[i].qp->sq);
}

/* Packets until the next one is of a stream: each is acknowledged at once. */
static void
stream(void)
{
	uint32_t needed = engine()->ack_coalesce.stream.needed;

	for (uint32_t n = 0; n < needed; n++) {
		assert_int_equal(request(0), 1);
		assert_true(all_is_acknowledged(0));
	}
	assert_int_equal(engine()->ack_coalesce.stream.needed, needed);
}

static void
begin(void)
{
	static const struct link_qp_conf plain = {.wr = 128};
	struct engine_link_conf conf = {0};

	link_open(&conf, &plain);
	/* The neighbours get to know each other. */
	for (unsigned i = 0; i < QPS; i++) {
		request(i);
		engine_link_drain(&fixture);
	}
	fixture.now += STREAM_GAP_NS;
}

static void
expect_counts(unsigned coalesced, unsigned missed)
{
	assert_int_equal(engine()->stats.ack_coalesced, coalesced);
	assert_int_equal(engine()->stats.ack_coalesced_missed, missed);
}

TEST(one_acknowledgement_covers_many_packets)
{
	begin();
	stream();
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned n = 1; n < COALESCE_PACKETS; n++) {
			assert_int_equal(request(0), 0);
			assert_true(ack_coalesce_waits(engine()));
			assert_true(engine_deadline(engine()) == 0);
			assert_false(all_is_acknowledged(0));
		}
		assert_int_equal(request(0), 1);
		assert_true(all_is_acknowledged(0));
		assert_int_not_equal(engine_deadline(engine()), 0);
	}
	expect_counts(3 * (COALESCE_PACKETS - 1), 0);
	link_close_acknowledged();
}

/* Packets come slowly: the acknowledgement does not wait for all of them. */
TEST(waits_for_a_time)
{
	begin();
	stream();
	assert_int_equal(request(0), 0);
	fixture.now += COALESCE_WAIT_NS / 2 - 1;
	assert_int_equal(request(0), 0);
	fixture.now += COALESCE_WAIT_NS / 2 - 1;
	assert_int_equal(request(0), 0);
	fixture.now += 1;
	assert_int_equal(poll(), 0);
	fixture.now += 1;
	assert_int_equal(poll(), 1);
	assert_true(all_is_acknowledged(0));
	/* The stream goes on. Now a packet comes when the time is over. */
	assert_int_equal(request(0), 0);
	fixture.now += COALESCE_WAIT_NS / 2 - 1;
	assert_int_equal(request(0), 0);
	fixture.now += COALESCE_WAIT_NS / 2 - 1;
	assert_int_equal(request(0), 0);
	fixture.now += 2;
	assert_int_equal(request(0), 1);
	expect_counts(6, 0);
	link_close_acknowledged();
}

/* The peer may wait for the acknowledgement. */
TEST(gap_ends_the_wait)
{
	begin();
	stream();
	assert_int_equal(request(0), 0);
	fixture.now += STREAM_GAP_NS - 1;
	assert_int_equal(poll(), 0);
	fixture.now++;
	assert_int_equal(poll(), 1);
	assert_true(all_is_acknowledged(0));
	expect_counts(1, 1);
	assert_int_equal(engine()->ack_coalesce.stream.needed,
		STREAM_NEEDED_FIRST * STREAM_BACKOFF);
	stream();
	assert_int_equal(request(0), 0);
	expect_counts(2, 1);
	link_close_acknowledged();
}

/* The thread has not polled for a while, and packets have come meanwhile. */
TEST(late_pass_ends_the_wait)
{
	begin();
	stream();
	assert_int_equal(request(0), 0);
	fixture.now += STREAM_GAP_NS;
	assert_int_equal(request(0), 1);
	assert_true(all_is_acknowledged(0));
	expect_counts(1, 1);
	assert_int_equal(engine()->ack_coalesce.stream.needed,
		STREAM_NEEDED_FIRST * STREAM_BACKOFF);
	link_close_acknowledged();
}

/* Success makes up for the failures before. */
TEST(goes_on_after_a_gap_in_time)
{
	begin();
	stream();
	assert_int_equal(request(0), 0);
	fixture.now += STREAM_GAP_NS;
	poll();
	acknowledgements_deliver();
	stream();
	for (unsigned n = 0; n < 2 * COALESCE_PACKETS; n++)
		request(0);
	assert_in_range(engine()->ack_coalesce.stream.needed, STREAM_NEEDED_FIRST + 1,
		STREAM_NEEDED_FIRST * STREAM_BACKOFF - 1);
	link_close_acknowledged();
}

TEST(other_qp_ends_the_wait)
{
	begin();
	stream();
	assert_int_equal(request(0), 0);
	assert_int_equal(request(1), 2);
	assert_true(all_is_acknowledged(0));
	assert_true(all_is_acknowledged(1));
	/* Both in one pass. */
	requests(0, 1);
	requests(1, 1);
	assert_int_equal(poll(), 2);
	expect_counts(1, 0);
	/* A request of the other QP, and no packet. */
	fixture.now += STREAM_GAP_NS;
	stream();
	assert_int_equal(request(0), 0);
	engine()->tx_thread = 0;
	assert_int_equal(post(1, 8), 0);
	assert_int_equal(poll(), 2);
	expect_counts(2, 0);
	link_close_acknowledged();
}

/* Packets that come in a burst have one acknowledgement anyway. */
TEST(bursts_do_not_wait)
{
	begin();
	stream();
	requests(0, COALESCE_PACKETS);
	assert_int_equal(poll(), 1);
	assert_int_equal(request(0), 0);
	requests(0, COALESCE_PACKETS);
	assert_int_equal(poll(), 1);
	assert_true(all_is_acknowledged(0));
	expect_counts(1, 0);
	link_close_acknowledged();
}

/* The acknowledgement leaves with the request, or after it, and later ones leave at once. */
TEST(requests_of_the_qp_end_the_stream)
{
	begin();
	stream();
	assert_int_equal(request(0), 0);
	assert_int_equal(post(0, 8), 1);
	assert_int_equal(poll(), 1);
	assert_true(all_is_acknowledged(0));
	engine_link_drain(&fixture);
	stream();
	assert_int_equal(request(0), 0);
	expect_counts(2, 0);
	link_close_acknowledged();
}

/* A request that waits for the poll. */
TEST(acknowledgement_leaves_before_a_request)
{
	begin();
	stream();
	engine()->tx_from_post = false;
	engine()->tx_thread = 0;
	assert_int_equal(request(0), 0);
	assert_int_equal(post(0, 8), 0);
	assert_int_equal(request(0), 2);
	assert_true(all_is_acknowledged(0));
	expect_counts(1, 0);
	link_close_acknowledged();
}

TEST(naks_do_not_wait)
{
	begin();
	stream();
	assert_int_equal(link_qp_send(&b[0], wr++, 0, 8, 0), 0);
	engine_run(fixture.b.dev->engines[0], fixture.now);
	engine_link_deliver(&fixture);
	assert_int_equal(poll(), 1);
	expect_counts(0, 0);
	assert_int_equal(link_qp_recv(&a[0], 0, 0, 8), 0);
	engine_link_advance(&fixture, NS_PER_SEC);
	assert_int_equal(b[0].qp->req.una_idx, sq_posted(&b[0].qp->sq));
	link_close_unchecked();
}

static void
acknowledgement_waits(void)
{
	begin();
	stream();
	assert_int_equal(request(0), 0);
	assert_true(ack_coalesce_waits(engine()));
}

TEST(destroyed_qp_acknowledges)
{
	unsigned sent;

	acknowledgement_waits();
	sent = fake_sent_count(&fixture.a.port);
	link_qps_destroy(a, b, QPS);
	assert_int_equal(fake_sent_count(&fixture.a.port) - sent, 1);
	assert_false(ack_coalesce_waits(engine()));
	assert_false(ack_coalesce_is_on(engine()));
	assert_int_equal(poll(), 0);
	engine_link_fini(&fixture);
}

TEST(acknowledgement_leaves_before_err)
{
	acknowledgement_waits();
	expect_acknowledgement_before_err();
	assert_false(ack_coalesce_waits(engine()));
	assert_false(ack_coalesce_is_on(engine()));
	link_close_unchecked();
}

TEST(qp_is_reset_meanwhile)
{
	acknowledgement_waits();
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_RESET), 0);
	assert_false(ack_coalesce_waits(engine()));
	assert_false(ack_coalesce_is_on(engine()));
	assert_int_equal(poll(), 0);
	link_close_unchecked();
}

TEST(failed_qp_waits_no_longer)
{
	acknowledgement_waits();
	dev_cq_fail(fixture.a.dev, a[0].qp->recv_cq);
	link_close_unchecked();
}

/* The port takes a frame at a time, and others wait for it. */
TEST(acknowledgement_leaves_after_the_backlog)
{
	unsigned sent;

	acknowledgement_waits();
	fixture.a.port.q[0].tx_take = 1;
	assert_int_equal(post(1, 3 * 1024), 1);
	assert_int_equal(engine()->io.backlog_count, 2);
	sent = fake_sent_count(&fixture.a.port);
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_ERR), 0);
	assert_int_equal(fake_sent_count(&fixture.a.port) - sent, 3);
	assert_true(all_is_acknowledged(0));
	fixture.a.port.q[0].tx_take = UINT32_MAX;
	link_close_unchecked();
}

TEST(environment_turns_it_off)
{
	setenv("ROCADE_OFF", "ack-coalesce", 1);
	begin();
	unsetenv("ROCADE_OFF");
	stream();
	stream();
	assert_false(ack_coalesce_is_on(engine()));
	expect_counts(0, 0);
	link_close_acknowledged();
}

/* ---- Manual progress ---- */

static unsigned
pass(void)
{
	unsigned before = fake_sent_count(&fixture.a.port);

	engine_try_pass(engine());
	return fake_sent_count(&fixture.a.port) - before;
}

static unsigned
request_pass(void)
{
	requests(0, 1);
	return pass();
}

static void
manual_begin(void)
{
	begin();
	asleep = 0;
	engine_set_progress_thread(engine(), &progress_thread);
	engine_allow_delayed_acks(engine(), true);
	assert_false(engine_delays_acks(engine()));
	for (unsigned n = 0; n < STREAM_NEEDED_FIRST; n++) {
		assert_int_equal(request_pass(), 1);
		assert_true(all_is_acknowledged(0));
	}
	assert_int_equal(request_pass(), 0);
	assert_true(engine_delays_acks(engine()));
	assert_true(engine_ack_is_delayed(engine()));
}

static void
manual_end(void)
{
	engine_set_progress_thread(engine(), NULL);
	asleep = 0;
	link_close_acknowledged();
}

TEST(manual_progress_waits_too)
{
	manual_begin();
	for (unsigned n = 2; n < COALESCE_PACKETS; n++)
		assert_int_equal(request_pass(), 0);
	assert_int_equal(request_pass(), 1);
	assert_false(engine_ack_is_delayed(engine()));
	expect_counts(COALESCE_PACKETS - 1, 0);
	manual_end();
}

/* The progress thread will not look soon. */
TEST(forbidden_waits_end)
{
	manual_begin();
	engine_allow_delayed_acks(engine(), false);
	assert_int_equal(engine_sleep_until(engine()), 0);
	assert_int_equal(pass(), 1);
	assert_int_equal(request_pass(), 1);
	engine_allow_delayed_acks(engine(), true);
	assert_int_equal(request_pass(), 0);
	expect_counts(2, 0);
	manual_end();
}

/* The application goes to sleep until an event. */
TEST(sleeping_application_acknowledges)
{
	unsigned before;

	manual_begin();
	before = fake_sent_count(&fixture.a.port);
	engine_delegate(engine());
	assert_int_equal(fake_sent_count(&fixture.a.port) - before, 1);
	/* It does not poll while it sleeps. */
	engine_allow_delayed_acks(engine(), true);
	assert_int_equal(request_pass(), 1);
	asleep = 0;
	assert_int_equal(request_pass(), 0);
	manual_end();
}

/* The next pass may come a time slice later. */
TEST(nothing_waits_where_threads_offer_the_core)
{
	manual_begin();
	engine()->idle.in_turns = true;
	assert_int_equal(pass(), 1);
	assert_int_equal(request_pass(), 1);
	engine()->idle.in_turns = false;
	assert_int_equal(request_pass(), 0);
	manual_end();
}
