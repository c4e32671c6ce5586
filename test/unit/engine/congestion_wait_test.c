/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion control below one packet, in manual progress: the progress thread sleeps until the
 * time of the next packet, and is woken when that becomes earlier than the end of its sleep. */
#include "engine/engine_state.h"
#include "engine/manual_progress.h"
#include "engine/pass.h"
#include "engine_link.h"
#include "test_clock.h"
#include "progress_fixture.h"

#define US NS_PER_US
#define QPS 3
/* Timers of the next milliseconds are set for almost their time, not for a much earlier one at
 * which the wheel cascades them. */
#define WHEEL_TURN (16 * WHEEL_SLOTS * WHEEL_SLOTS * WHEEL_SLOTS * WHEEL_TICK_NS)

static struct engine_link fixture;
static struct link_qp a[QPS], b[QPS];
static struct engine *e;
static struct peer *peer;

static const struct link_qp_conf plain = {.engine = 0, .wr = 16};

static void
message(unsigned i)
{
	link_qp_message(&a[i], &b[i], 0);
}

static void
expect_message(unsigned i)
{
	link_qp_expect_message(&a[i], &b[i], 0);
}

static void
window_set(uint32_t cwnd)
{
	peer->send_cc.cwnd = cwnd;
	peer->send_cc.slow_start = false;
	peer_window_set(&peer->send, fixture.now);
}

/* The round trip takes 40 us. Tail-loss probes come later than anything here. */
static void
init(void)
{
	struct engine_link_conf conf = {.cc = true};

	engine_link_init(&fixture, &conf);
	fixture.now = WHEEL_TURN;
	test_clock = &fixture.now;
	link_qps_create(&fixture, a, b, QPS, &plain);
	e = fixture.a.dev->engines[0];
	peer = a[0].qp->peer;
	message(0);
	while (fixture.b.roce_frames == 0)
		engine_link_pass(&fixture);
	fixture.now += 40 * US;
	engine_link_drain(&fixture);
	expect_message(0);
	wheel_cancel(&e->wheel, &a[0].qp->sched.timer);
	for (unsigned i = 0; i < QPS; i++)
		a[i].qp->req.srtt_ns = (1 + 2 * i) * NS_PER_MS;
	engine_set_progress_thread(e, &progress_thread);
	asleep = 0;
	wakes = 0;
}

/* All packets in flight are acknowledged, and the window stays as it is. */
static void
acknowledge(void)
{
	for (unsigned i = 0; i < QPS; i++)
		a[i].qp->req.rtt_counts = false;
	engine_link_deliver(&fixture);
	engine_run(fixture.b.dev->engines[0], fixture.now);
	engine_link_deliver(&fixture);
	engine_try_pass(e);
}

/* The time of the next packet has come. Afterwards this many QPs are blocked. */
static void
next_packet(unsigned blocked)
{
	assert_int_equal(engine_sleep_until(e), peer->send_cc.send_at);
	assert_true(peer->send_cc.send_at > fixture.now);
	fixture.now = peer->send_cc.send_at - 1;
	engine_try_pass(e);
	assert_int_equal(peer->send.inflight, 0);
	fixture.now++;
	engine_try_pass(e);
	assert_int_equal(peer->send.inflight, 1);
	assert_int_equal(engine_link_blocked(e), blocked);
}

/* The window is closed when QPs are posted to. */
TEST(blocked_qp_wakes_progress_thread)
{
	init();
	window_set(CC_ONE / 4);
	message(0);
	assert_int_equal(peer->send.inflight, 1);
	assert_true(engine_sleep_until(e) > peer->send_cc.send_at);
	message(1);
	assert_int_equal(wakes, 1);
	message(2);
	assert_int_equal(wakes, 1);
	assert_int_equal(engine_link_blocked(e), 2);
	acknowledge();
	next_packet(1);
	acknowledge();
	next_packet(0);
	acknowledge();
	for (unsigned i = 0; i < QPS; i++)
		expect_message(i);
	link_qps_fini(&fixture, a, b, QPS);
}

/* The window closes while QPs wait for it. The QP that closes it has nothing more to send. */
TEST(closing_window_wakes_progress_thread)
{
	init();
	window_set(CC_ONE);
	for (unsigned i = 0; i < QPS; i++)
		message(i);
	assert_int_equal(engine_link_blocked(e), 2);
	assert_true(engine_sleep_until(e) > fixture.now + NS_PER_MS);
	window_set(CC_ONE / 4);
	acknowledge();
	assert_int_equal(a[1].qp->req.unacked, 1);
	assert_int_equal(engine_link_blocked(e), 1);
	assert_int_equal(wakes, 1);
	acknowledge();
	next_packet(0);
	acknowledge();
	for (unsigned i = 0; i < QPS; i++)
		expect_message(i);
	link_qps_fini(&fixture, a, b, QPS);
}

/* A QP waits for the window of READs, which opens at its time. Other QPs do not wait for it. */
TEST(read_waits_for_its_own_window)
{
	struct sge sge;
	struct send_req read = {.opcode = IBV_WR_RDMA_READ, .sge = &sge, .num_sge = 1};

	init();
	sge = (struct sge){(uintptr_t)fixture.a.mem, 2000, fixture.a.lkey};
	peer->read_cc.cwnd = CC_ONE / 4;
	peer->read_cc.slow_start = false;
	peer->read_cc.send_at = fixture.now + 160 * US;
	peer_window_set(&peer->read, fixture.now);
	a[0].qp->params.max_rd_atomic = 1;
	assert_int_equal(sq_allow_reads(&a[0].qp->sq), 0);
	assert_int_equal(sq_post(&a[0].qp->sq, &read), 0);
	engine_doorbell(a[0].qp);
	engine_try_pass(e);
	assert_int_equal(engine_link_blocked(e), 1);
	assert_int_equal(a[0].qp->sched.on_blocked, BLOCKED_READ);
	assert_int_equal(engine_sleep_until(e), peer->read_cc.send_at);
	message(1);
	assert_int_equal(a[1].qp->req.unacked, 1);
	assert_int_equal(engine_link_blocked(e), 1);
	acknowledge();
	expect_message(1);
	assert_int_equal(engine_link_blocked(e), 1);
	fixture.now = peer->read_cc.send_at - 1;
	engine_try_pass(e);
	assert_int_equal(peer->read.inflight, 0);
	fixture.now++;
	engine_try_pass(e);
	assert_int_equal(peer->read.inflight, 1);
	assert_int_equal(
		engine_link_blocked(e), 0); /* for the second packet: max_rd_atomic */
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_RESET), 0);
	assert_int_equal(peer->read.inflight, 0);
	assert_int_equal(engine_link_blocked(e), 0);
	link_qps_fini(&fixture, a, b, QPS);
}
