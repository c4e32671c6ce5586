/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs that are blocked on the peer window: when a QP is blocked, and when and in what
 * order QPs leave the peer's queue. Also which doorbells and packets schedule a QP. */
#include <stdlib.h>

#include "engine/mr_fault.h"
#include "engine/pass.h"
#include "engine/sched.h"
#include "engine_link.h"
#include "qp/window.h"

#define QPS 100

static struct engine_link fixture;
static struct link_qp a[QPS], b[QPS];
static unsigned count;

static const struct link_qp_conf plain = {.engine = 0, .wr = 128, .rnr_timer = 1};

static struct engine *
engine(void)
{
	return fixture.a.dev->engines[0];
}

static void
init(uint32_t window, unsigned qps)
{
	struct engine_link_conf conf = {.peer_window = window, .max_qp = QPS};

	engine_link_init(&fixture, &conf);
	count = qps;
	link_qps_create(&fixture, a, b, count, &plain);
}

static void
send_post(unsigned i, uint64_t wr_id)
{
	assert_int_equal(link_qp_send(&a[i], wr_id, 0, 8, IBV_SEND_SIGNALED), 0);
}

static void
receives_post(unsigned i, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		assert_int_equal(link_qp_recv(&b[i], k, 0, 64), 0);
}

static void
tx_pass(void)
{
	engine_run(engine(), fixture.now);
}

/* Two round trips: the neighbours are resolved and the RTT is known. */
static void
warm_up(void)
{
	for (unsigned k = 0; k < 2; k++) {
		receives_post(0, 1);
		send_post(0, k);
		tx_pass();
		fixture.now += 1000;
		engine_link_drain(&fixture);
		link_qp_expect_sent(&a[0], k, 1, IBV_WC_SUCCESS);
		link_qp_expect_received(&b[0], 0, 1);
	}
	assert_int_not_equal(a[0].qp->req.srtt_ns, 0);
	fixture.b.roce_frames = 0;
}

/* The first QP fills the window with n packets. They are lost, or b has acknowledged them
 * in frames that the engine of a has not received yet. */
static void
window_fill(unsigned n, bool lost)
{
	receives_post(0, lost ? 0 : n);
	fixture.b.deaf = lost;
	for (unsigned k = 0; k < n; k++)
		send_post(0, k);
	while (a[0].qp->req.unacked != n) {
		tx_pass();
		engine_link_deliver(&fixture);
	}
	fixture.b.deaf = false;
	engine_run(fixture.b.dev->engines[0], fixture.now);
	while (engine_run(fixture.b.dev->engines[0], fixture.now) != 0)
		;
	engine_link_deliver(&fixture);
	assert_true(qp_peer_full(a[0].qp));
}

static unsigned
ready_count(void)
{
	unsigned n = 0;
	struct qp *qp;

	TAILQ_FOREACH (qp, &engine()->ready, sched.ready_link)
		n++;
	return n;
}

/* Empties the cache of transmit frames: the next burst can have the maximum length. */
static void
tx_cache_empty(void)
{
	struct engine *e = engine();

	e->io.queue.ops->tx_release(
		e->io.queue.queue, e->io.cache + e->io.cache_first, e->io.cache_count);
	e->io.cache_count = 0;
}

/* Drains the doorbells without the rest of a pass. */
static void
doorbells_serve(void)
{
	assert_true(doorbells_pending(&engine()->doorbells));
	engine_doorbells_drain(engine());
}

static void
expect_all(unsigned per_qp)
{
	engine_link_advance(&fixture, 10 * NS_PER_SEC);
	for (unsigned i = 0; i < count; i++)
		link_qp_expect_sent(&a[i], 0, per_qp, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < count; i++)
		link_qp_expect_received(&b[i], 0, per_qp);
	assert_int_equal(engine_link_blocked(engine()), 0);
}

/* A QP that is posted to while the window is full is blocked when its doorbell is
 * drained, without a pass. */
TEST(doorbell_blocks_qp_without_a_pass)
{
	init(4, 3);
	warm_up();
	window_fill(4, true);
	for (unsigned i = 0; i < 3; i++)
		receives_post(i, 4);
	send_post(2, 0);
	send_post(1, 0);
	doorbells_serve();
	assert_int_equal(ready_count(), 0);
	assert_true(a[1].qp->sched.on_blocked && a[2].qp->sched.on_blocked);
	assert_int_equal(engine_link_blocked(engine()), 2);
	/* Doorbells are drained in the order of QPNs. */
	assert_ptr_equal(TAILQ_FIRST(&a[1].qp->peer->send.blocked), a[1].qp);
	/* A second doorbell does not move the QP. */
	for (unsigned k = 1; k < 4; k++) {
		send_post(1, k);
		send_post(2, k);
	}
	doorbells_serve();
	assert_int_equal(engine_link_blocked(engine()), 2);
	assert_ptr_equal(TAILQ_FIRST(&a[1].qp->peer->send.blocked), a[1].qp);
	fixture.b.roce_frames = 0;
	tx_pass();
	engine_link_deliver(&fixture);
	assert_int_equal(fixture.b.roce_frames, 0);
	expect_all(4);
	link_qps_fini(&fixture, a, b, count);
}

/* The first n requests of the first QP complete. */
static void
expect_first_qp(unsigned n)
{
	engine_link_advance(&fixture, NS_PER_SEC);
	link_qp_expect_sent(&a[0], 0, n, IBV_WC_SUCCESS);
	link_qp_expect_received(&b[0], 0, n);
}

/* The message of message_from_peer() completes. */
static void
expect_served(void)
{
	engine_link_drain(&fixture);
	link_qp_expect_sent(&b[0], 9, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(&a[0], 9, 1);
}

/* The first QP's requests and one message of each other QP complete; ends the case. */
static void
expect_all_filled(void)
{
	expect_first_qp(QPS);
	for (unsigned i = 1; i < QPS; i++) {
		link_qp_expect_sent(&a[i], 0, 1, IBV_WC_SUCCESS);
		link_qp_expect_received(&b[i], 0, 1);
	}
	link_qps_fini(&fixture, a, b, count);
}

/* The window opens by more than a burst: as many QPs are unblocked as a burst can take,
 * the first blocked ones first. */
TEST(at_most_one_burst_is_unblocked)
{
	init(QPS, QPS);
	warm_up();
	window_fill(QPS, false);
	for (unsigned i = 1; i < QPS; i++) {
		receives_post(i, 1);
		send_post(i, 0);
	}
	doorbells_serve();
	assert_int_equal(engine_link_blocked(engine()), QPS - 1);
	/* The port takes nothing: the first burst stays in the backlog. */
	tx_cache_empty();
	fixture.a.port.q[0].tx_take = 0;
	tx_pass();
	assert_int_equal(engine()->io.backlog_count, PKT_BURST);
	assert_true(ready_count() <= PKT_BURST);
	assert_int_equal(engine_link_blocked(engine()), QPS - 1 - PKT_BURST);
	for (unsigned i = 1; i < QPS; i++) {
		assert_int_equal(a[i].qp->sched.on_blocked, i > PKT_BURST);
		assert_int_equal(a[i].qp->sched.on_ready,
			i > PKT_BURST && i <= PKT_BURST + ready_count());
	}
	fixture.a.port.q[0].tx_take = UINT32_MAX;
	expect_all_filled();
}

/* While a QP could be unblocked, the deadline is 0: a thread that sleeps until the
 * deadline does not leave it blocked. */
TEST(deadline_is_zero_while_qps_can_be_unblocked)
{
	init(QPS, QPS);
	warm_up();
	window_fill(QPS, false);
	for (unsigned i = 1; i < QPS; i++) {
		receives_post(i, 1);
		send_post(i, 0);
	}
	doorbells_serve();
	tx_cache_empty();
	while (engine_link_blocked(engine()) != 0) {
		tx_pass();
		assert_true(qp_peer_full(a[0].qp) || engine_link_blocked(engine()) == 0 ||
			    engine_deadline(engine()) == 0);
	}
	expect_all_filled();
}

/* The deadline is also 0 when a control call has emptied the window and the engine has
 * not run since. */
TEST(emptied_window_makes_deadline_zero)
{
	static const struct qp_attr reset = {.state = IBV_QPS_RESET};

	init(4, 2);
	warm_up();
	window_fill(4, true);
	receives_post(1, 1);
	send_post(1, 0);
	tx_pass();
	assert_true(a[1].qp->sched.on_blocked);
	assert_true(engine_deadline(engine()) > fixture.now);
	assert_int_equal(dev_qp_modify(fixture.a.dev, a[0].qp, &reset, IBV_QP_STATE), 0);
	assert_true(a[1].qp->sched.on_blocked);
	assert_int_equal(engine_deadline(engine()), 0);
	tx_pass();
	assert_false(a[1].qp->sched.on_blocked);
	engine_link_drain(&fixture);
	link_qp_expect_sent(&a[1], 0, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(&b[1], 0, 1);
	link_qps_fini(&fixture, a, b, count);
}

/* A tail-loss probe resends a packet that is in the window already, so a blocked QP may
 * send it. */
TEST(blocked_qp_sends_tail_loss_probe)
{
	init(4, 2);
	warm_up();
	window_fill(4, true);
	send_post(0, 4);
	doorbells_serve();
	assert_true(a[0].qp->sched.on_blocked && !a[0].qp->sched.on_ready);
	assert_true(a[0].qp->req.tlp_deadline < fixture.now + 10 * NS_PER_MS);
	fixture.now = a[0].qp->req.tlp_deadline + WHEEL_TICK_NS;
	fixture.b.roce_frames = 0;
	tx_pass();
	assert_true(a[0].qp->sched.on_blocked);
	assert_int_equal(a[0].qp->req.loss_state, LOSS_TLP_SENT);
	engine_link_deliver(&fixture);
	assert_int_equal(fixture.b.roce_frames, 1);
	receives_post(0, 5);
	expect_first_qp(5);
	link_qps_fini(&fixture, a, b, count);
}

/* ---- The ready list ---- */

static void
rx_pass(void)
{
	mr_fault_enter(&fixture.a.dev->keys);
	engine_rx(engine(), fixture.now);
	mr_fault_leave();
}

/* Sends a message of b, which arrives at a's port. */
static void
message_from_peer(uint32_t len)
{
	assert_int_equal(link_qp_recv(&a[0], 9, 0, 4096), 0);
	assert_int_equal(link_qp_send(&b[0], 9, 0, len, IBV_SEND_SIGNALED), 0);
	engine_run(fixture.b.dev->engines[0], fixture.now);
	engine_link_deliver(&fixture);
}

/* A request of the peer schedules its QP to respond, also while the QP is blocked on the
 * peer window. It moves no timer: only responses do. */
TEST(request_schedules_blocked_qp)
{
	uint64_t when;

	init(4, 2);
	warm_up();
	window_fill(4, true);
	send_post(0, 4);
	doorbells_serve();
	when = a[0].qp->sched.timer.when_ns;
	assert_true(when > fixture.now && when != TIME_NEVER);
	/* An earlier deadline, which moves the timer when the engine checks it. */
	a[0].qp->req.tlp_deadline = when - NS_PER_MS;
	message_from_peer(8);
	rx_pass();
	assert_true(a[0].qp->sched.on_ready && a[0].qp->sched.on_blocked);
	assert_true(qp_has_response_pending(a[0].qp));
	assert_int_equal(a[0].qp->sched.timer.when_ns, when);
	tx_pass();
	assert_false(a[0].qp->sched.on_ready);
	assert_int_equal(a[0].qp->sched.timer.when_ns,
		wheel_cascade_time(&engine()->wheel, a[0].qp->req.tlp_deadline));
	assert_true(a[0].qp->sched.timer.when_ns < when);
	expect_served();
	receives_post(0, 5);
	expect_first_qp(5);
	link_qps_fini(&fixture, a, b, count);
}

/* A packet that needs no response does not schedule its QP, even if requests have been
 * posted to it: their doorbell does. */
TEST(partial_message_schedules_no_qp)
{
	struct fake_list *rx = &fixture.a.port.q[0].rx;
	struct pkt last;

	init(0, 1);
	warm_up();
	message_from_peer(2000); /* two packets */
	assert_int_equal(rx->count, 2);
	last = rx->pkts[(rx->head + 1) % FAKE_FRAMES];
	rx->count = 1;
	receives_post(0, 1);
	send_post(0, 0);
	rx_pass();
	assert_int_equal(rx->count, 0);
	assert_false(a[0].qp->sched.on_ready);
	assert_int_equal(ready_count(), 0);
	assert_true(fake_arrive(&fixture.a.port, 0, &last));
	free(last.data);
	rx_pass();
	assert_true(a[0].qp->sched.on_ready);
	expect_served();
	expect_first_qp(1);
	link_qps_fini(&fixture, a, b, count);
}

/* A response moves the QP's timer, here to the end of an RNR wait. */
TEST(response_moves_qp_timer)
{
	init(0, 1);
	warm_up();
	send_post(0, 0);
	tx_pass();
	engine_link_deliver(&fixture);
	engine_run(fixture.b.dev->engines[0], fixture.now);
	engine_link_deliver(&fixture);
	assert_true(a[0].qp->sched.timer.when_ns >
		    fixture.now + rnr_timer_ns[plain.rnr_timer]);
	rx_pass();
	assert_int_equal(a[0].qp->sched.timer.when_ns,
		fixture.now + rnr_timer_ns[plain.rnr_timer]);
	assert_false(a[0].qp->sched.on_ready);
	receives_post(0, 1);
	expect_first_qp(1);
	link_qps_fini(&fixture, a, b, count);
}

/* A QP in ERR on the unresolved list is flushed when it is posted to: its doorbell is not
 * ignored as that of a ready QP is. */
TEST(doorbell_flushes_unresolved_qp_in_err)
{
	struct event_record event;

	init(0, 1);
	fixture.b.deaf = true;
	send_post(0, 0);
	tx_pass();
	tx_pass();
	assert_true(a[0].qp->sched.on_ready && a[0].qp->sched.on_unresolved);
	/* An error of the QP alone, after which no pass has run. */
	engine_lock(engine());
	qp_fail(a[0].qp);
	engine_unlock(engine());
	assert_int_equal(event_next(&fixture.a.events, &event), 0);
	assert_true(a[0].qp->sched.on_unresolved);
	send_post(0, 1);
	doorbells_serve();
	assert_true(a[0].qp->sched.on_ready && !a[0].qp->sched.on_unresolved);
	tx_pass();
	link_qp_expect_sent(&a[0], 0, 2, IBV_WC_WR_FLUSH_ERR);
	assert_false(a[0].qp->sched.on_ready);
	link_qps_fini(&fixture, a, b, count);
}

/* A doorbell of a ready QP does not move it in the ready list. */
TEST(doorbell_keeps_ready_list_order)
{
	init(0, 3);
	warm_up();
	for (unsigned i = 3; i-- > 0;) {
		receives_post(i, 2);
		send_post(i, 0);
		doorbells_serve();
	}
	assert_int_equal(ready_count(), 3);
	send_post(2, 1);
	send_post(0, 1);
	send_post(1, 1);
	doorbells_serve();
	assert_int_equal(ready_count(), 3);
	assert_ptr_equal(TAILQ_FIRST(&engine()->ready), a[2].qp);
	expect_all(2);
	link_qps_fini(&fixture, a, b, count);
}
