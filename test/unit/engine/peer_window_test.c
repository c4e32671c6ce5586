/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs that are blocked on the peer window: when a QP is blocked, and when and in what
 * order QPs leave the peer's queue. Also which doorbells and packets schedule a QP. */
#include <stdlib.h>

#include "engine/mr_fault.h"
#include "engine/engine_internal.h"
#include "engine_bed.h"

#define QPS 100

static struct bed bed;
static struct bed_qp a[QPS], b[QPS];
static unsigned count;

static const struct bed_qp_conf plain = {.engine = 0, .wr = 128, .rnr_timer = 1};

static struct engine *
engine(void)
{
	return bed.a.dev->engines[0];
}

static void
init(uint32_t window, unsigned qps)
{
	struct bed_conf conf = {.peer_window = window, .max_qp = QPS};

	bed_init(&bed, &conf);
	count = qps;
	bed_pairs_create(&bed, a, b, count, &plain);
}

static void
fini(void)
{
	bed_pairs_destroy(a, b, count);
	bed_fini(&bed);
}

static void
send(unsigned i, uint64_t wr_id)
{
	assert_int_equal(bed_send(&a[i], wr_id, 0, 8, IBV_SEND_SIGNALED), 0);
}

static void
receive(unsigned i, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		assert_int_equal(bed_recv(&b[i], k, 0, 64), 0);
}

static void
turn(void)
{
	engine_run(engine(), bed.now);
}

/* Two round trips: the neighbours are resolved and the RTT is known. */
static void
warm_up(void)
{
	for (unsigned k = 0; k < 2; k++) {
		receive(0, 1);
		send(0, k);
		turn();
		bed.now += 1000;
		bed_settle(&bed);
		bed_expect_sent(&a[0], k, 1, IBV_WC_SUCCESS);
		bed_expect_received(&b[0], 0, 1);
	}
	assert_int_not_equal(a[0].qp->req.srtt_ns, 0);
	bed.b.roce_frames = 0;
}

/* The first QP fills the window with n packets. They are lost, or b has acknowledged them
 * in frames that the engine of a has not received yet. */
static void
fill(unsigned n, bool lost)
{
	receive(0, lost ? 0 : n);
	bed.b.deaf = lost;
	for (unsigned k = 0; k < n; k++)
		send(0, k);
	while (a[0].qp->req.unacked != n) {
		turn();
		bed_carry(&bed);
	}
	bed.b.deaf = false;
	engine_run(bed.b.dev->engines[0], bed.now);
	while (engine_run(bed.b.dev->engines[0], bed.now) != 0)
		;
	bed_carry(&bed);
	assert_true(qp_peer_full(a[0].qp));
}

static unsigned
ready_count(void)
{
	unsigned n = 0;
	struct qp *qp;

	TAILQ_FOREACH (qp, &engine()->ready, ready_link)
		n++;
	return n;
}

/* Empties the cache of transmit frames: the next burst can have the maximum length. */
static void
frames_renew(void)
{
	struct engine *e = engine();

	e->queue.ops->tx_release(
		e->queue.queue, e->tx_cache + e->tx_cache_first, e->tx_cache_count);
	e->tx_cache_count = 0;
}

/* Drains the doorbells without the rest of a pass. */
static void
doorbells_serve(void)
{
	assert_true(doorbells_pending(&engine()->doorbells));
	engine_doorbells_drain(engine());
}

static void
all_through(unsigned per_qp)
{
	bed_run(&bed, 10 * SEC_NS);
	for (unsigned i = 0; i < count; i++)
		bed_expect_sent(&a[i], 0, per_qp, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < count; i++)
		bed_expect_received(&b[i], 0, per_qp);
	assert_int_equal(engine()->blocked, 0);
}

/* A QP that is posted to while the window is full is blocked when its doorbell is
 * drained, without a pass. */
static void
test_bell(void **state)
{
	(void)state;
	init(4, 3);
	warm_up();
	fill(4, true);
	for (unsigned i = 0; i < 3; i++)
		receive(i, 4);
	send(2, 0);
	send(1, 0);
	doorbells_serve();
	assert_int_equal(ready_count(), 0);
	assert_true(a[1].qp->on_blocked && a[2].qp->on_blocked);
	assert_int_equal(engine()->blocked, 2);
	/* Doorbells are drained in the order of QPNs. */
	assert_ptr_equal(TAILQ_FIRST(&a[1].qp->peer->blocked), a[1].qp);
	/* A second doorbell does not move the QP. */
	for (unsigned k = 1; k < 4; k++) {
		send(1, k);
		send(2, k);
	}
	doorbells_serve();
	assert_int_equal(engine()->blocked, 2);
	assert_ptr_equal(TAILQ_FIRST(&a[1].qp->peer->blocked), a[1].qp);
	bed.b.roce_frames = 0;
	turn();
	bed_carry(&bed);
	assert_int_equal(bed.b.roce_frames, 0);
	all_through(4);
	fini();
}

/* The first n requests of the first QP complete. */
static void
arrive(unsigned n)
{
	bed_run(&bed, SEC_NS);
	bed_expect_sent(&a[0], 0, n, IBV_WC_SUCCESS);
	bed_expect_received(&b[0], 0, n);
}

/* The message of serve() completes. */
static void
served(void)
{
	bed_settle(&bed);
	bed_expect_sent(&b[0], 9, 1, IBV_WC_SUCCESS);
	bed_expect_received(&a[0], 9, 1);
}

/* The first QP's requests and one message of each other QP complete; ends the case. */
static void
all_arrive(void)
{
	arrive(QPS);
	for (unsigned i = 1; i < QPS; i++) {
		bed_expect_sent(&a[i], 0, 1, IBV_WC_SUCCESS);
		bed_expect_received(&b[i], 0, 1);
	}
	fini();
}

/* The window opens by more than a burst: as many QPs are unblocked as a burst can take,
 * the first blocked ones first. */
static void
test_burst(void **state)
{
	(void)state;
	init(QPS, QPS);
	warm_up();
	fill(QPS, false);
	for (unsigned i = 1; i < QPS; i++) {
		receive(i, 1);
		send(i, 0);
	}
	doorbells_serve();
	assert_int_equal(engine()->blocked, QPS - 1);
	/* The port takes nothing: the first burst stays in the backlog. */
	frames_renew();
	bed.a.port.q[0].tx_take = 0;
	turn();
	assert_int_equal(engine()->backlog_count, PKT_BURST);
	assert_true(ready_count() <= PKT_BURST);
	assert_int_equal(engine()->blocked, QPS - 1 - PKT_BURST - ready_count());
	for (unsigned i = 1; i < QPS; i++)
		assert_int_equal(a[i].qp->on_blocked, i > PKT_BURST + ready_count());
	bed.a.port.q[0].tx_take = UINT32_MAX;
	all_arrive();
}

/* While a QP could be unblocked, the deadline is 0: a thread that sleeps until the
 * deadline does not leave it blocked. */
static void
test_busy(void **state)
{
	(void)state;
	init(QPS, QPS);
	warm_up();
	fill(QPS, false);
	for (unsigned i = 1; i < QPS; i++) {
		receive(i, 1);
		send(i, 0);
	}
	doorbells_serve();
	frames_renew();
	while (engine()->blocked != 0) {
		turn();
		assert_true(qp_peer_full(a[0].qp) || engine()->blocked == 0 ||
			    engine_deadline(engine()) == 0);
	}
	all_arrive();
}

/* The deadline is also 0 when a control call has emptied the window and the engine has
 * not run since. */
static void
test_emptied(void **state)
{
	static const struct qp_attr reset = {.state = IBV_QPS_RESET};

	(void)state;
	init(4, 2);
	warm_up();
	fill(4, true);
	receive(1, 1);
	send(1, 0);
	turn();
	assert_true(a[1].qp->on_blocked);
	assert_true(engine_deadline(engine()) > bed.now);
	assert_int_equal(dev_qp_modify(bed.a.dev, a[0].qp, &reset, IBV_QP_STATE), 0);
	assert_true(a[1].qp->on_blocked);
	assert_int_equal(engine_deadline(engine()), 0);
	turn();
	assert_false(a[1].qp->on_blocked);
	bed_settle(&bed);
	bed_expect_sent(&a[1], 0, 1, IBV_WC_SUCCESS);
	bed_expect_received(&b[1], 0, 1);
	fini();
}

/* A tail-loss probe resends a packet that is in the window already, so a blocked QP may
 * send it. */
static void
test_probe(void **state)
{
	(void)state;
	init(4, 2);
	warm_up();
	fill(4, true);
	send(0, 4);
	doorbells_serve();
	assert_true(a[0].qp->on_blocked && !a[0].qp->on_ready);
	assert_true(a[0].qp->req.tlp_deadline < bed.now + 10 * NS_PER_MS);
	bed.now = a[0].qp->req.tlp_deadline + WHEEL_TICK_NS;
	bed.b.roce_frames = 0;
	turn();
	assert_true(a[0].qp->on_blocked);
	assert_int_equal(a[0].qp->req.tlp_state, TLP_SENT);
	bed_carry(&bed);
	assert_int_equal(bed.b.roce_frames, 1);
	receive(0, 5);
	arrive(5);
	fini();
}

/* ---- The ready list ---- */

static void
take_in(void)
{
	mr_fault_enter(&bed.a.dev->keys);
	engine_rx(engine(), 1, bed.now);
	mr_fault_leave();
}

/* Sends a message of b, which arrives at a's port. */
static void
serve(uint32_t len)
{
	assert_int_equal(bed_recv(&a[0], 9, 0, 4096), 0);
	assert_int_equal(bed_send(&b[0], 9, 0, len, IBV_SEND_SIGNALED), 0);
	engine_run(bed.b.dev->engines[0], bed.now);
	bed_carry(&bed);
}

/* A request of the peer schedules its QP to respond, also while the QP is blocked on the
 * peer window. It moves no timer: only responses do. */
static void
test_request(void **state)
{
	uint64_t when;

	(void)state;
	init(4, 2);
	warm_up();
	fill(4, true);
	send(0, 4);
	doorbells_serve();
	when = a[0].qp->timer.when_ns;
	assert_true(when > bed.now && when != TIME_NEVER);
	/* An earlier deadline, which moves the timer when it is looked at. */
	a[0].qp->req.tlp_deadline = when - NS_PER_MS;
	serve(8);
	take_in();
	assert_true(a[0].qp->on_ready && a[0].qp->on_blocked);
	assert_true(qp_has_response_pending(a[0].qp));
	assert_int_equal(a[0].qp->timer.when_ns, when);
	turn();
	assert_false(a[0].qp->on_ready);
	assert_int_equal(a[0].qp->timer.when_ns,
		wheel_cascade_time(&engine()->wheel, a[0].qp->req.tlp_deadline));
	assert_true(a[0].qp->timer.when_ns < when);
	served();
	receive(0, 5);
	arrive(5);
	fini();
}

/* A packet that needs no response does not schedule its QP, even if requests have been
 * posted to it: their doorbell does. */
static void
test_part(void **state)
{
	struct fake_list *rx = &bed.a.port.q[0].rx;
	struct pkt last;

	(void)state;
	init(0, 1);
	warm_up();
	serve(2000); /* two packets */
	assert_int_equal(rx->count, 2);
	last = rx->pkts[(rx->head + 1) % FAKE_FRAMES];
	rx->count = 1;
	receive(0, 1);
	send(0, 0);
	take_in();
	assert_int_equal(rx->count, 0);
	assert_false(a[0].qp->on_ready);
	assert_int_equal(ready_count(), 0);
	assert_true(fake_arrive(&bed.a.port, 0, &last));
	free(last.data);
	take_in();
	assert_true(a[0].qp->on_ready);
	served();
	arrive(1);
	fini();
}

/* A response moves the QP's timer, here to the end of an RNR wait. */
static void
test_response(void **state)
{
	(void)state;
	init(0, 1);
	warm_up();
	send(0, 0);
	turn();
	bed_carry(&bed);
	engine_run(bed.b.dev->engines[0], bed.now);
	bed_carry(&bed);
	assert_true(a[0].qp->timer.when_ns > bed.now + rnr_timer_ns[plain.rnr_timer]);
	take_in();
	assert_int_equal(a[0].qp->timer.when_ns, bed.now + rnr_timer_ns[plain.rnr_timer]);
	assert_false(a[0].qp->on_ready);
	receive(0, 1);
	arrive(1);
	fini();
}

/* A QP in ERR on the unresolved list is flushed when it is posted to: its doorbell is not
 * ignored as that of a ready QP is. */
static void
test_unresolved(void **state)
{
	struct event_record event;

	(void)state;
	init(0, 1);
	bed.b.deaf = true;
	send(0, 0);
	turn();
	turn();
	assert_true(a[0].qp->on_ready && a[0].qp->on_unresolved);
	/* An error of the QP alone, after which no pass has run. */
	engine_lock(engine());
	qp_fail(a[0].qp);
	engine_unlock(engine());
	assert_int_equal(event_next(&bed.a.events, &event), 0);
	assert_true(a[0].qp->on_unresolved);
	send(0, 1);
	doorbells_serve();
	assert_true(a[0].qp->on_ready && !a[0].qp->on_unresolved);
	turn();
	bed_expect_sent(&a[0], 0, 2, IBV_WC_WR_FLUSH_ERR);
	assert_false(a[0].qp->on_ready);
	fini();
}

/* A doorbell of a ready QP does not move it in the ready list. */
static void
test_ready(void **state)
{
	(void)state;
	init(0, 3);
	warm_up();
	for (unsigned i = 3; i-- > 0;) {
		receive(i, 2);
		send(i, 0);
		doorbells_serve();
	}
	assert_int_equal(ready_count(), 3);
	send(2, 1);
	send(0, 1);
	send(1, 1);
	doorbells_serve();
	assert_int_equal(ready_count(), 3);
	assert_ptr_equal(TAILQ_FIRST(&engine()->ready), a[2].qp);
	all_through(2);
	fini();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bell),
		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_emptied),
		cmocka_unit_test(test_probe),
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_part),
		cmocka_unit_test(test_response),
		cmocka_unit_test(test_unresolved),
		cmocka_unit_test(test_ready),
	};

	return cmocka_run_group_tests_name("engine peer_window", tests, NULL, NULL);
}
