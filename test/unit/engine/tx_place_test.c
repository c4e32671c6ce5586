/* SPDX-License-Identifier: BSD-3-Clause */
/* A port that has memory for the packets of a QP: which frames it is asked to place there, and when they
 * leave. */
#include "engine/engine_state.h"
#include "engine/sched.h"
#include "engine_link.h"

#define QPS 3

static struct engine_link fixture;
static struct link_qp a[QPS], b[QPS];

/* One message for each QP resolves the neighbours. */
static int
setup(void **state)
{
	static const struct link_qp_conf plain = {.engine = -1, .wr = 64};
	struct cqe cqe;

	engine_link_init(&fixture, NULL);
	link_qps_create(&fixture, a, b, QPS, &plain);
	for (unsigned i = 0; i < QPS; i++) {
		assert_int_equal(link_qp_recv(&b[i], 0, 0, 64), 0);
		assert_int_equal(link_qp_send(&a[i], 0, 0, 64, IBV_SEND_SIGNALED), 0);
		engine_link_drain(&fixture);
		assert_true(link_qp_poll_send(&a[i], &cqe));
		assert_true(link_qp_poll_recv(&b[i], &cqe));
	}
	return 0;
}

static int
teardown(void **state)
{
	link_qps_fini(&fixture, a, b, QPS);
	return 0;
}

/* A port that has memory for packets of a QP. */
static struct {
	struct port_ops ops;
	const struct port_ops *inner;
	unsigned places; /* frames that it places at a time */
	unsigned asked, unplaced, bursts;
	bool mixed; /* a burst had packets of several QPs */
} placing;

static unsigned
placing_place(void *queue, uint32_t qpn, struct pkt *pkts, unsigned n)
{
	(void)queue, (void)qpn, (void)pkts;
	placing.asked++;
	return RTE_MIN(n, placing.places);
}

static void
placing_unplace(void *queue, struct pkt *pkts, unsigned n)
{
	(void)queue;
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pkts[i].len, 0);
	placing.unplaced += n;
}

static unsigned
placing_burst(void *queue, struct pkt *pkts, unsigned n)
{
	const unsigned dest_qpn = 14 + 20 + 8 + 7;

	for (unsigned i = 1; i < n; i++)
		placing.mixed |= pkts[i].data[dest_qpn] != pkts[0].data[dest_qpn];
	placing.bursts += n != 0;
	return placing.inner->tx_burst(queue, pkts, n);
}

static void
placing_begin(struct engine *e, unsigned places)
{
	placing.ops = *(placing.inner = e->io.queue.ops);
	placing.ops.tx_place = placing_place;
	placing.ops.tx_unplace = placing_unplace;
	placing.ops.tx_burst = placing_burst;
	placing.places = places;
	placing.asked = placing.unplaced = placing.bursts = 0;
	placing.mixed = false;
	e->io.queue.ops = &placing.ops;
}

/* The QPs send two packets each, in one pass. */
static void
placed_send(unsigned places, unsigned qps)
{
	struct engine *e = fixture.a.dev->engines[0];

	for (unsigned i = 0; i < qps; i++)
		for (unsigned k = 0; k < 2; k++) {
			assert_int_equal(link_qp_recv(&b[i], k, 0, 64), 0);
			assert_int_equal(link_qp_send(&a[i], k, 0, 64,
						 k != 0 ? IBV_SEND_SIGNALED : 0),
				0);
		}
	placing_begin(e, places);
	assert_int_equal(engine_run(e, fixture.now), 2 * qps);
	e->io.queue.ops = placing.inner;
	engine_link_drain(&fixture);
	for (unsigned i = 0; i < qps; i++) {
		struct cqe cqe;

		assert_true(link_qp_poll_send(&a[i], &cqe));
		while (link_qp_poll_recv(&b[i], &cqe))
			;
	}
}

TEST_WITH(placed_frames_leave_before_another_qp_fills_any, setup, teardown)
{
	placed_send(3, QPS);
	assert_int_equal(placing.asked, 3);
	assert_int_equal(placing.bursts, 3);
	assert_false(placing.mixed);
	assert_int_equal(placing.unplaced, 3);
	placed_send(2, QPS);
	assert_int_equal(placing.bursts, 3);
	assert_int_equal(placing.unplaced, 0);
	/* The second packet of each QP is not placed. */
	placed_send(1, QPS);
	assert_int_equal(placing.bursts, 3);
	/* Only frames of an empty burst are placed. */
	placed_send(0, QPS);
	assert_int_equal(placing.asked, 1);
	assert_int_equal(placing.bursts, 1);
	assert_true(placing.mixed);
}

/* A QP is ready and builds nothing. */
TEST_WITH(qp_that_builds_nothing_does_not_end_the_burst, setup, teardown)
{
	struct engine *e = fixture.a.dev->engines[0];

	engine_ready(e, a[2].qp);
	placed_send(2, 2);
	assert_int_equal(placing.asked, 3);
	assert_int_equal(placing.bursts, 2);
}

/* As a pass does. */
TEST_WITH(post_places_its_packets, setup, teardown)
{
	struct engine *e = fixture.a.dev->engines[0];

	(void)engine_poll(e);
	placing_begin(e, 2);
	assert_int_equal(link_qp_recv(&b[0], 0, 0, 64), 0);
	assert_int_equal(link_qp_send(&a[0], 0, 0, 64, IBV_SEND_SIGNALED), 0);
	e->io.queue.ops = placing.inner;
	assert_int_equal(e->stats.tx_from_post, 1);
	assert_int_equal(placing.asked, 1);
	assert_int_equal(placing.bursts, 1);
	assert_int_equal(placing.unplaced, 1);
	engine_link_drain(&fixture);
	link_qp_expect_sent(&a[0], 0, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(&b[0], 0, 1);
}
