/* SPDX-License-Identifier: BSD-3-Clause */
/* What the engine does for congestion control (docs/protocol.md 17.2): the time of its polls,
 * and for which peers there is none. */
#include <string.h>

#include "engine/engine_state.h"
#include "engine_link.h"

#define US NS_PER_US
/* Timers of the next milliseconds are set for almost their time, not for a much earlier one at
 * which the wheel cascades them. */
#define WHEEL_TURN (16 * WHEEL_SLOTS * WHEEL_SLOTS * WHEEL_SLOTS * WHEEL_TICK_NS)

static struct engine_link fixture;
static struct link_qp a[1], b[1];

static const struct link_qp_conf plain = {.engine = 0, .rnr_timer = 1};

static void
init_link(const struct engine_link_conf *conf)
{
	engine_link_init(&fixture, conf);
	fixture.now = WHEEL_TURN;
	link_qps_create(&fixture, a, b, 1, &plain);
}

static void
init_engines(unsigned engines)
{
	init_link(&(struct engine_link_conf){.engines = {engines, 1}, .cc = true});
}

static void
init(void)
{
	init_engines(1);
}

static struct engine *
engine(void)
{
	return fixture.a.dev->engines[0];
}

static void
message(uint64_t wr_id)
{
	link_qp_message(&a[0], &b[0], wr_id);
}

static void
expect_message(uint64_t wr_id)
{
	link_qp_expect_message(&a[0], &b[0], wr_id);
}

/* Returns the window after a message whose ACK comes 6 us after it was sent or later: the queue
 * was empty then. The next poll is 50 us later. */
static const struct cc *
late_acknowledgement(void)
{
	message(0);
	engine_link_drain(&fixture);
	expect_message(0);
	message(1);
	engine_run(engine(), fixture.now);
	engine_link_deliver(&fixture);
	engine_run(fixture.b.dev->engines[0], fixture.now);
	fixture.now += 6 * US;
	engine_run(engine(), fixture.now); /* the ACK is still under way */
	fixture.now += 50 * US;
	engine_link_deliver(&fixture);
	engine_run(engine(), fixture.now);
	expect_message(1);
	return &a[0].qp->peer->send_cc;
}

/* The delay ends at the last poll that found the queue empty. */
TEST(delay_ends_at_the_last_empty_poll)
{
	init();
	assert_int_equal(late_acknowledgement()->delay_ns, 6 * US);
	link_qps_fini(&fixture, a, b, 1);
}

/* Where the wait of a thread may be all of a delay, its lower bound is 0. */
TEST(unknown_delay_counts_as_none)
{
	struct engine_link_conf conf = {.cc = true, .delay_unknown = true};
	const struct cc *cc;

	init_link(&conf);
	cc = late_acknowledgement();
	assert_int_equal(cc->delay_ns, 0);
	assert_int_not_equal(cc->srtt_ns, 0);
	link_qps_fini(&fixture, a, b, 1);
}

/* So does that of a packet that another engine has received: this engine has found the ring
 * empty. */
TEST(delay_ends_at_the_last_empty_ring)
{
	struct engine *other;

	init_engines(2);
	other = fixture.a.dev->engines[1];
	message(0);
	engine_link_drain(&fixture);
	expect_message(0);
	fixture.a.queue = 1;
	message(1);
	engine_run(engine(), fixture.now);
	engine_link_deliver(&fixture);
	engine_run(fixture.b.dev->engines[0], fixture.now);
	engine_link_deliver(&fixture);
	fixture.now += 6 * US;
	engine_run(engine(), fixture.now);
	engine_run(other, fixture.now); /* hands the ACK off */
	fixture.now += 50 * US;
	engine_run(engine(), fixture.now);
	assert_int_equal(a[0].qp->peer->send_cc.delay_ns, 6 * US);
	expect_message(1);
	link_qps_fini(&fixture, a, b, 1);
}

/* A ring that may hold more packets is not empty. */
TEST(full_burst_from_a_ring_is_no_empty_poll)
{
	enum { N = PKT_BURST + 8 };
	uint64_t polled;

	init_engines(2);
	message(0);
	engine_link_drain(&fixture);
	expect_message(0);
	b[0].qp->peer->send_cc.cwnd = 0; /* no control of b */
	b[0].qp->peer->send.window = N;
	for (unsigned k = 0; k < N; k++) {
		assert_int_equal(link_qp_recv(&a[0], k, 0, 64), 0);
		assert_int_equal(link_qp_send(&b[0], k, 0, 8, IBV_SEND_SIGNALED), 0);
	}
	fixture.a.queue = 1;
	engine_run(fixture.b.dev->engines[0], fixture.now);
	engine_link_deliver(&fixture);
	for (unsigned n = 0; n < 2; n++)
		engine_run(fixture.a.dev->engines[1], fixture.now);
	polled = engine()->shared.polled_ns;
	assert_int_equal(fixture.a.dev->engines[1]->stats.rx_handoff, N);
	fixture.now += 6 * US;
	engine_run(engine(), fixture.now);
	assert_int_equal(engine()->shared.polled_ns, polled);
	engine_run(engine(), fixture.now);
	assert_int_equal(engine()->shared.polled_ns, fixture.now);
	engine_link_drain(&fixture);
	link_qp_expect_sent(&b[0], 0, N, IBV_WC_SUCCESS);
	link_qp_expect_received(&a[0], 0, N);
	link_qps_fini(&fixture, a, b, 1);
}

/* The first message: its round trip takes this long. */
static void
first_message(uint64_t ns)
{
	message(0);
	while (fixture.b.roce_frames == 0)
		engine_link_pass(&fixture);
	fixture.now += ns;
	engine_link_drain(&fixture);
	expect_message(0);
}

/* Below one packet the deadline is the time of the next one, and it leaves then. */
TEST(next_packet_leaves_at_its_time)
{
	struct peer *peer;
	uint32_t psn;

	init();
	first_message(40 * US);
	peer = a[0].qp->peer;
	peer->send_cc.cwnd = CC_ONE / 4;
	peer->send_cc.slow_start = false;
	peer_window_set(&peer->send, fixture.now);
	a[0].qp->req.srtt_ns = 100 * US; /* the tail-loss probe is due later */
	message(1);
	message(2);
	engine_run(engine(), fixture.now);
	psn = a[0].qp->req.next_psn;
	assert_int_equal(peer->send.inflight, 1);
	assert_int_equal(engine_link_blocked(engine()), 1);
	assert_int_equal(peer->send_cc.send_at, fixture.now + 160 * US);
	assert_true(wheel_next(&engine()->wheel) > peer->send_cc.send_at);
	assert_int_equal(engine_deadline(engine()), peer->send_cc.send_at);
	/* The first packet is no longer in flight, and still the second one waits. */
	fixture.now = peer->send_cc.send_at - 1;
	peer->send.inflight = 0;
	engine_run(engine(), fixture.now);
	assert_int_equal(engine_link_blocked(engine()), 1);
	assert_int_equal(a[0].qp->req.next_psn, psn);
	fixture.now++;
	engine_run(engine(), fixture.now);
	assert_int_equal(a[0].qp->req.next_psn, psn_add(psn, 1));
	assert_int_equal(engine()->stats.tlp_sent, 0);
	assert_int_equal(engine()->stats.cc_waits, 2);
	peer->send.inflight = a[0].qp->req.unacked;
	engine_link_advance(&fixture, 10 * NS_PER_MS);
	expect_message(1);
	expect_message(2);
	link_qps_fini(&fixture, a, b, 1);
}

/* The time of the next packet has come while no QP was blocked. A control call schedules a QP,
 * which finds the window closed: the next pass is due at once. */
TEST(control_call_meets_a_window_of_the_past)
{
	struct peer *peer;

	init();
	first_message(40 * US);
	peer = a[0].qp->peer;
	peer->send_cc.cwnd = CC_ONE / 4;
	message(1);
	engine_run(engine(), fixture.now);
	a[0].qp->req.rtt_counts = false;
	engine_link_drain(&fixture);
	expect_message(1);
	assert_int_equal(peer->send.window, 0);
	fixture.now = peer->send_cc.send_at + US;
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_SQD), 0);
	message(2);
	engine_run(engine(), fixture.now);
	assert_int_equal(engine_link_blocked(engine()), 0);
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_RTS), 0);
	assert_int_equal(engine_link_blocked(engine()), 1);
	assert_int_equal(engine_deadline(engine()), 0);
	engine_link_drain(&fixture);
	expect_message(2);
	link_qps_fini(&fixture, a, b, 1);
}

/* Packets to an address of the port itself, or of another client of the daemon, stay in
 * the host. */
TEST(no_control_towards_an_own_address)
{
	struct qp_attr attr;

	init();
	assert_true(cc_is_on(&a[0].qp->peer->send_cc));
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_RESET), 0);
	attr = link_qp_attr(&a[0], &b[0], &plain);
	attr.state = IBV_QPS_INIT;
	assert_int_equal(dev_qp_modify(fixture.a.dev, a[0].qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 IBV_QP_ACCESS_FLAGS),
		0);
	memcpy(attr.path.dgid, fixture.a.dev->gids[0], 16);
	attr.state = IBV_QPS_RTR;
	assert_int_equal(
		dev_qp_modify(fixture.a.dev, a[0].qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				IBV_QP_MIN_RNR_TIMER),
		0);
	assert_false(cc_is_on(&a[0].qp->peer->send_cc));
	assert_int_equal(a[0].qp->peer->send.window, fixture.a.dev->conf.peer_window);
	link_qps_fini(&fixture, a, b, 1);
}
