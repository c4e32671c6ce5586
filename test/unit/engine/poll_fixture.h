/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of what a thread's poll of the engine sends, and what its posts send. */
#ifndef POLL_FIXTURE_H
#define POLL_FIXTURE_H

#include "engine_link.h"
#include "test_clock.h"

#define QPS 2

static struct engine_link fixture;
static struct link_qp a[QPS], b[QPS];
static uint64_t wr;

static inline struct engine *
engine(void)
{
	return fixture.a.dev->engines[0];
}

static inline void
link_open(const struct engine_link_conf *conf, const struct link_qp_conf *qp)
{
	engine_link_init(&fixture, conf);
	test_clock = &fixture.now;
	link_qps_create(&fixture, a, b, QPS, qp);
	wr = 0;
}

/* Returns how many frames the poll has sent. */
static inline unsigned
poll(void)
{
	unsigned before = fake_sent_count(&fixture.a.port);

	engine_poll(engine());
	return fake_sent_count(&fixture.a.port) - before;
}

/* Posts a SEND to a[i]. Returns how many frames the post itself has sent. */
static inline unsigned
post(unsigned i, uint32_t len)
{
	unsigned before = fake_sent_count(&fixture.a.port);

	assert_int_equal(link_qp_recv(&b[i], wr, 0, len), 0);
	assert_int_equal(link_qp_send(&a[i], wr++, 0, len, IBV_SEND_SIGNALED), 0);
	return fake_sent_count(&fixture.a.port) - before;
}

/* A QP was reset or is in ERR. */
static inline void
link_close_unchecked(void)
{
	link_qps_fini(&fixture, a, b, QPS);
}

/* Proves that every SEND arrives. */
static inline void
link_close(void)
{
	struct cqe cqe;

	fixture.a.deaf = false;
	engine_link_advance(&fixture, NS_PER_SEC);
	for (unsigned i = 0; i < QPS; i++) {
		while (link_qp_poll_send(&a[i], &cqe))
			assert_int_equal(cqe.status, IBV_WC_SUCCESS);
		assert_int_equal(a[i].qp->req.una_idx, sq_posted(&a[i].qp->sq));
	}
	link_close_unchecked();
}

/* Proves that the requests of both sides are acknowledged, and that none was sent again. */
static inline void
link_close_acknowledged(void)
{
	engine_link_advance(&fixture, NS_PER_SEC);
	for (unsigned i = 0; i < QPS; i++) {
		assert_int_equal(a[i].qp->req.una_idx, sq_posted(&a[i].qp->sq));
		assert_int_equal(b[i].qp->req.una_idx, sq_posted(&b[i].qp->sq));
	}
	assert_int_equal(engine()->stats.retransmitted, 0);
	assert_int_equal(fixture.b.dev->engines[0]->stats.retransmitted, 0);
	link_close_unchecked();
}

/* An acknowledgement of a[0] waits. It leaves before the QP moves to ERR: the application knows of the
 * packets, and the peer is to know that they have arrived. */
static inline void
expect_acknowledgement_before_err(void)
{
	unsigned sent = fake_sent_count(&fixture.a.port);

	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_ERR), 0);
	assert_int_equal(fake_sent_count(&fixture.a.port) - sent, 1);
	engine_link_deliver(&fixture);
	engine_run(fixture.b.dev->engines[0], fixture.now);
	assert_int_equal(b[0].qp->req.una_idx, sq_posted(&b[0].qp->sq));
	assert_int_equal(poll(), 0);
}

/* sent: of the posts, those that sent at once, or without a pass. */
static inline void
expect_posts(unsigned sent, unsigned missed)
{
	assert_int_equal(engine()->stats.tx_from_post, sent);
	assert_int_equal(engine()->stats.tx_from_post_missed, missed);
}

#endif
