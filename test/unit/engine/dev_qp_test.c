/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation, destruction and refused calls of a device's QPs, also under traffic. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../rand.h"
#include "engine/engine_state.h"
#include "engine_link.h"
#include "wire/extensions.h"

#define QPS 8

static struct engine_link fixture;
static struct link_qp a[QPS], b[QPS];

static const struct link_qp_conf plain = {.engine = -1};

/* More QPs than max_qp: -ENOMEM. QPNs of destroyed QPs are reused, the oldest first. */
TEST(qpns_run_out_and_are_reused)
{
	struct engine_link_conf conf = {.max_qp = 4};
	struct cq cq;
	struct qp_conf qc = {
		.type = IBV_QPT_RC, .send_cq = &cq, .recv_cq = &cq, .max_send_wr = 1};
	static struct qp qps[4], more;

	engine_link_init(&fixture, &conf);
	assert_int_equal(cq_init(&cq, &fixture.mem, 16, NULL, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(
			dev_qp_init(fixture.a.dev, &qps[i], &qc, -1, NULL, NULL), 0);
		assert_int_equal(qps[i].qpn, 0x100 + i);
		assert_ptr_equal(qp_table_get(&fixture.a.dev->qps, 0x100 + i), &qps[i]);
	}
	assert_int_equal(cq.engine_qps[0], 8);
	assert_int_equal(dev_qp_init(fixture.a.dev, &more, &qc, -1, NULL, NULL), -ENOMEM);
	for (unsigned i = 0; i < 3; i++) {
		static const unsigned order[] = {2, 0, 3};
		struct qp *gone = &qps[order[i]];

		dev_qp_stop(fixture.a.dev, gone, fixture.now);
		assert_null(qp_table_get(&fixture.a.dev->qps, 0x100 + order[i]));
		/* A QPN is not free before dev_qp_fini(). */
		if (i == 0)
			assert_int_equal(
				dev_qp_init(fixture.a.dev, &more, &qc, -1, NULL, NULL),
				-ENOMEM);
		dev_qp_fini(fixture.a.dev, gone);
	}
	for (unsigned i = 0; i < 3; i++) {
		static const uint32_t order[] = {0x102, 0x100, 0x103};
		struct qp *qp = &qps[order[i] - 0x100];

		assert_int_equal(dev_qp_init(fixture.a.dev, qp, &qc, -1, NULL, NULL), 0);
		assert_int_equal(qp->qpn, order[i]);
	}
	for (unsigned i = 0; i < 4; i++) {
		dev_qp_stop(fixture.a.dev, &qps[i], fixture.now);
		dev_qp_fini(fixture.a.dev, &qps[i]);
	}
	assert_int_equal(cq.engines, 0);
	cq_fini(&cq);
	engine_link_fini(&fixture);
}

/* Behind the daemon only privileged users have Q_Keys with bit 31. */
TEST(controlled_qkey_needs_a_privilege)
{
	static const struct dev_hooks hooks;
	struct engine_link_conf conf = {.max_qp = 4};
	const int mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY;
	const struct qp_attr init = {
		.state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x80000005};
	struct qp_attr plain_init = init;
	struct cq cq;
	struct qp_conf qc = {
		.type = IBV_QPT_UD, .send_cq = &cq, .recv_cq = &cq, .max_send_wr = 1};
	static struct qp qp;
	struct dev *dev;

	plain_init.qkey = 5;
	engine_link_init(&fixture, &conf);
	dev = fixture.a.dev;
	assert_int_equal(cq_init(&cq, &fixture.mem, 16, NULL, NULL), 0);
	assert_int_equal(dev_qp_init(dev, &qp, &qc, -1, NULL, NULL), 0);
	dev->conf.hooks = &hooks;
	assert_int_equal(dev_qp_modify(dev, &qp, &init, mask), -EPERM);
	assert_int_equal(qp.state, IBV_QPS_RESET);
	assert_int_equal(dev_qp_modify(dev, &qp, &plain_init, mask), 0);
	dev->conf.privileged = true;
	assert_int_equal(dev_qp_modify(dev, &qp, &init, IBV_QP_QKEY), 0);
	dev->conf.hooks = NULL;
	dev->conf.privileged = false;
	assert_int_equal(dev_qp_modify(dev, &qp, &init, IBV_QP_QKEY), 0);
	dev_qp_stop(dev, &qp, fixture.now);
	dev_qp_fini(dev, &qp);
	cq_fini(&cq);
	engine_link_fini(&fixture);
}

/* Before the two ends have agreed, and again after RESET, a QP offers what it can use. */
TEST(agreed_extensions_last_until_reset)
{
	struct engine_link_conf conf = {.max_qp = 4};
	struct link_qp q;
	struct qp_attr attr;

	engine_link_init(&fixture, &conf);
	link_qp_create(&fixture.a, &q, &plain);
	assert_int_equal(dev_qp_extensions(q.qp), EXT_ALL);
	assert_int_equal(q.qp->extensions, 0);
	assert_int_equal(dev_qp_agree(q.qp, EXT_SACK | 1u << 31), 0);
	assert_int_equal(q.qp->extensions, EXT_SACK);
	assert_int_equal(dev_qp_extensions(q.qp), EXT_SACK);
	/* A QP that has agreed on nothing offers nothing. */
	assert_int_equal(dev_qp_agree(q.qp, ~EXT_ALL), 0);
	assert_int_equal(q.qp->extensions, 0);
	assert_int_equal(dev_qp_extensions(q.qp), 0);
	assert_int_equal(dev_qp_agree(q.qp, EXT_SACK), 0);
	attr = link_qp_attr(&q, &q, &plain);
	attr.state = IBV_QPS_INIT;
	assert_int_equal(dev_qp_modify(fixture.a.dev, q.qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 IBV_QP_ACCESS_FLAGS),
		0);
	assert_int_equal(q.qp->extensions, EXT_SACK);
	assert_int_equal(link_qp_modify(&q, IBV_QPS_RESET), 0);
	assert_int_equal(q.qp->extensions, 0);
	assert_int_equal(dev_qp_extensions(q.qp), EXT_ALL);
	link_qp_destroy(&q);
	engine_link_fini(&fixture);
}

/* Only reliable connections have acknowledgements. */
TEST(other_services_have_no_extensions)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};
	struct engine_link_conf conf = {.max_qp = 4};
	struct cq cq;
	struct qp_conf qc = {.send_cq = &cq, .recv_cq = &cq, .max_send_wr = 1};
	static struct qp qp;

	engine_link_init(&fixture, &conf);
	assert_int_equal(cq_init(&cq, &fixture.mem, 16, NULL, NULL), 0);
	for (unsigned i = 0; i < RTE_DIM(types); i++) {
		qc.type = types[i];
		assert_int_equal(dev_qp_init(fixture.a.dev, &qp, &qc, -1, NULL, NULL), 0);
		assert_int_equal(dev_qp_extensions(&qp), -EOPNOTSUPP);
		assert_int_equal(dev_qp_agree(&qp, EXT_SACK), -EOPNOTSUPP);
		assert_int_equal(qp.extensions, 0);
		dev_qp_stop(fixture.a.dev, &qp, fixture.now);
		dev_qp_fini(fixture.a.dev, &qp);
	}
	cq_fini(&cq);
	engine_link_fini(&fixture);
}

/* A refused create leaves nothing behind. */
TEST(refused_create_leaves_nothing)
{
	struct cq cq;
	struct qp_conf qc = {.type = IBV_QPT_RC, .send_cq = &cq, .recv_cq = &cq};
	static struct qp qp;

	engine_link_init(&fixture, NULL);
	assert_int_equal(cq_init(&cq, &fixture.mem, 16, NULL, NULL), 0);
	assert_int_equal(dev_qp_init(fixture.a.dev, &qp, &qc, -2, NULL, NULL), -EINVAL);
	assert_int_equal(dev_qp_init(fixture.a.dev, &qp, &qc, 1, NULL, NULL), -EINVAL);
	qc.type = IBV_QPT_RAW_PACKET;
	assert_int_equal(
		dev_qp_init(fixture.a.dev, &qp, &qc, 0, NULL, NULL), -EOPNOTSUPP);
	qc.type = IBV_QPT_RC;
	qc.max_send_wr = SQ_MAX_WR + 1;
	assert_int_equal(dev_qp_init(fixture.a.dev, &qp, &qc, 0, NULL, NULL), -EINVAL);
	assert_int_equal(cq.engines, 0);
	assert_int_equal(fixture.a.dev->qps.count, 0);
	cq_fini(&cq);
	engine_link_fini(&fixture);
}

/* An invalid path is refused and leaves no peer behind. */
TEST(refused_path_leaves_no_peer)
{
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	struct qp_attr good, bad;
	struct engine *e;

	engine_link_init(&fixture, NULL);
	link_qp_create(&fixture.a, &a[0], &plain);
	link_qp_create(&fixture.b, &b[0], &plain);
	e = fixture.a.dev->engines[0];
	good = link_qp_attr(&a[0], &b[0], &plain);
	good.state = IBV_QPS_INIT;
	assert_int_equal(dev_qp_modify(fixture.a.dev, a[0].qp, &good,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 IBV_QP_ACCESS_FLAGS),
		0);
	good.state = IBV_QPS_RTR;
#define REFUSE(change, mask)                                                             \
	do {                                                                             \
		bad = good;                                                              \
		change;                                                                  \
		assert_int_equal(                                                        \
			dev_qp_modify(fixture.a.dev, a[0].qp, &bad, mask), -EINVAL);     \
		assert_int_equal(qp_state(a[0].qp), IBV_QPS_INIT);                       \
		assert_int_equal(e->peers.count, 0);                                     \
		assert_null(a[0].qp->peer);                                              \
	} while (0)
	REFUSE(memset(bad.path.dgid, 0, 16), rtr);
	REFUSE(memset(bad.path.sgid, 0, 16), rtr);
	REFUSE(bad.path.dgid[12] = 0, rtr);
	REFUSE(bad.path.dgid[12] = 224, rtr);
	REFUSE(bad.path.dgid[12] = 255, rtr);
	REFUSE(bad.path.dgid[0] = 0xfe, rtr); /* family differs from the source's */
	REFUSE((bad.path.sgid[0] = 0xfe, bad.path.dgid[0] = 0xff), rtr);
	REFUSE(bad.path.port_num = 2, rtr);
	REFUSE(bad.path_mtu = (enum ibv_mtu)6, rtr);
	REFUSE(bad.state = IBV_QPS_RTS, rtr);
	REFUSE((void)bad, rtr & ~IBV_QP_RQ_PSN);
#undef REFUSE
	assert_int_equal(dev_qp_modify(fixture.a.dev, a[0].qp, &good, rtr), 0);
	assert_int_equal(a[0].qp->peer->qps, 1);
	assert_int_equal(e->peers.count, 1);
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_RESET), 0);
	assert_int_equal(e->peers.count, 0);
	dev_qp_query(a[0].qp, &bad);
	assert_int_equal(bad.state, IBV_QPS_RESET);
	link_qp_destroy(&a[0]);
	link_qp_destroy(&b[0]);
	engine_link_fini(&fixture);
}

/* Adapters send a request within a microsecond of its post, so programs destroy a QP right
 * after its last one. Here the pass that would send it is still due. */
TEST(destroyed_qp_sends_what_was_posted)
{
	struct engine_link_conf conf = {.peer_window = 2};

	engine_link_init(&fixture, &conf);
	link_qps_create(&fixture, a, b, 2, &plain);
	for (unsigned i = 0; i < 2; i++) {
		link_qp_message(&a[i], &b[i], i);
		engine_link_drain(&fixture);
		link_qp_expect_message(&a[i], &b[i], i);
	}
	for (unsigned k = 0; k < 3; k++) {
		assert_int_equal(link_qp_recv(&b[0], k, 0, 8), 0);
		assert_int_equal(link_qp_send(&a[0], k, 0, 8, 0), 0);
	}
	link_qp_destroy(&a[0]);
	engine_link_drain(&fixture);
	/* The window had room for two of them. */
	assert_int_equal(fixture.b.roce_frames, 4);
	link_qp_expect_received(&b[0], 0, 2);
	link_qp_destroy(&b[0]);
	/* In ERR nothing is sent. */
	assert_int_equal(link_qp_modify(&a[1], IBV_QPS_ERR), 0);
	assert_int_equal(link_qp_send(&a[1], 9, 0, 8, 0), 0);
	link_qps_destroy(&a[1], &b[1], 1);
	engine_link_drain(&fixture);
	assert_int_equal(fixture.b.roce_frames, 4);
	engine_link_fini(&fixture);
}

/* The same where rdma_disconnect(3) moves the QP to ERR. The requests are flushed all the same. */
TEST(qp_sends_what_was_posted_before_err)
{
	struct cqe cqe;

	engine_link_init(&fixture, NULL);
	link_qps_create(&fixture, a, b, 1, &plain);
	link_qp_message(&a[0], &b[0], 9);
	engine_link_drain(&fixture);
	link_qp_expect_message(&a[0], &b[0], 9);
	for (unsigned k = 0; k < 2; k++) {
		assert_int_equal(link_qp_recv(&b[0], k, 0, 8), 0);
		assert_int_equal(link_qp_send(&a[0], k, 0, 8, 0), 0);
	}
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_ERR), 0);
	engine_link_drain(&fixture);
	link_qp_expect_received(&b[0], 0, 2);
	for (unsigned k = 0; k < 2; k++) {
		assert_true(link_qp_poll_send(&a[0], &cqe));
		assert_int_equal(cqe.wr_id, k);
		assert_int_equal(cqe.status, IBV_WC_WR_FLUSH_ERR);
	}
	link_qps_destroy(a, b, 1);
	engine_link_fini(&fixture);
}

/* ---- Under traffic ---- */

static void
keep_busy(unsigned i, uint64_t *rand)
{
	struct cqe cqe;

	while (link_qp_poll_send(&a[i], &cqe) || link_qp_poll_recv(&b[i], &cqe))
		;
	if (qp_state(a[i].qp) < IBV_QPS_RTS || qp_state(b[i].qp) < IBV_QPS_RTS)
		return;
	for (unsigned k = 0; k < 3; k++) {
		link_qp_recv(&b[i], k, 0, 4000);
		link_qp_send(
			&a[i], k, 0, (uint32_t)rand_below(rand, 4000), IBV_SEND_SIGNALED);
	}
}

/* QPs are reset, moved to ERR, destroyed and created again under traffic. The others go
 * on, and at the end no list, wheel, peer window or pool has a leftover. */
TEST(churn_under_traffic_leaks_nothing)
{
	struct engine_link_conf conf = {.engines = {2, 2}, .peer_window = 40};
	const struct link_qp_conf qc = {
		.engine = -1, .srq = false, .timeout = 6, .rnr_timer = 1};
	uint64_t rand = 7, total = 0;

	engine_link_init(&fixture, &conf);
	link_qps_create(&fixture, a, b, QPS, &qc);
	for (unsigned round = 0; round < 3000; round++) {
		unsigned i = (unsigned)rand_below(&rand, QPS);

		for (unsigned k = 0; k < QPS; k++)
			keep_busy(k, &rand);
		for (unsigned k = 0; k < 1 + rand_below(&rand, 4); k++)
			engine_link_pass(&fixture);
		fixture.now += rand_below(&rand, 50000);
		fixture.b.queue = (unsigned)rand_below(&rand, 2);
		switch (rand_below(&rand, 20)) {
		case 0:
			assert_int_equal(link_qp_modify(&a[i], IBV_QPS_RESET), 0);
			assert_int_equal(link_qp_modify(&b[i], IBV_QPS_RESET), 0);
			link_qp_connect(&a[i], &b[i], &qc);
			break;
		case 1:
			link_qp_modify(&a[i], IBV_QPS_ERR);
			break;
		case 2:
			total += a[i].qp->stats.tx_msgs;
			link_qp_destroy(&a[i]);
			link_qp_destroy(&b[i]);
			link_qp_create(&fixture.a, &a[i], &qc);
			link_qp_create(&fixture.b, &b[i], &qc);
			link_qp_connect(&a[i], &b[i], &qc);
			break;
		default:
			break;
		}
	}
	for (unsigned i = 0; i < QPS; i++) {
		total += a[i].qp->stats.tx_msgs;
		link_qp_destroy(&a[i]);
		link_qp_destroy(&b[i]);
	}
	assert_true(total > 3000);
	for (unsigned i = 0; i < 2; i++) {
		struct engine *e = fixture.a.dev->engines[i];

		assert_int_equal(e->peers.count, 0);
		assert_true(TAILQ_EMPTY(&e->ready));
		assert_int_equal(e->wheel.count, 0);
		assert_int_equal(engine_link_blocked(e), 0);
	}
	engine_link_fini(&fixture);
}

/* QPs of two engines share an SRQ. Returns how many receives messages have taken together with one
 * before; each other one is counted as taken alone, or began such a claim. */
static uint64_t
srq_of_two_engines(uint32_t len, bool claims)
{
	struct engine_link_conf conf = {.engines = {1, 2}};
	struct link_qp_conf qc = {.engine = -1, .srq = true, .rnr_timer = 1};
	unsigned received = 0;
	uint64_t claimed = 0, missed = 0;

	engine_link_init(&fixture, &conf);
	for (unsigned i = 0; i < 2; i++)
		fixture.b.dev->engines[i]->claim.off = !claims;
	for (unsigned i = 0; i < QPS; i++) {
		link_qp_create(&fixture.a, &a[i], &plain);
		link_qp_create(&fixture.b, &b[i], &qc);
		link_qp_connect(&a[i], &b[i], &qc);
		for (unsigned k = 0; k < 20; k++)
			assert_int_equal(link_qp_send(&a[i], k, 0, len, 0), 0);
	}
	assert_true(fixture.b.srq.shared);
	for (unsigned turn = 0; turn < 100000 && received < QPS * 20; turn++) {
		struct cqe cqe;

		while (recv_ring_outstanding(&fixture.b.srq.ring) < 7)
			assert_int_equal(link_qp_recv(&b[0], 0, 0, len), 0);
		engine_link_pass(&fixture);
		fixture.now += 5000;
		for (unsigned i = 0; i < QPS; i++) {
			while (link_qp_poll_recv(&b[i], &cqe)) {
				assert_int_equal(cqe.status, IBV_WC_SUCCESS);
				assert_int_equal(cqe.byte_len, len);
				received++;
			}
		}
	}
	assert_int_equal(received, QPS * 20);
	for (unsigned i = 0; i < 2; i++) {
		claimed += fixture.b.dev->engines[i]->stats.srq_claimed;
		missed += fixture.b.dev->engines[i]->stats.srq_claim_missed;
		assert_null(fixture.b.dev->engines[i]->shared.burst.end);
	}
	assert_true(claims || missed == received);
	assert_true(!claims || missed <= received - claimed);
	link_qps_destroy(a, b, QPS);
	assert_int_equal(fixture.b.srq.qps, 0);
	engine_link_fini(&fixture);
	return claimed;
}

TEST(qps_of_two_engines_share_an_srq)
{
	assert_int_equal(srq_of_two_engines(2000, true), 0);
}

/* Small messages of a burst take their receives together, unless that is off. */
TEST(receives_are_claimed_unless_that_is_off)
{
	assert_int_not_equal(srq_of_two_engines(16, true), 0);
	assert_int_equal(srq_of_two_engines(16, false), 0);
}

/* ibv_modify_srq(3): a receive that a QP holds stays intact. */
TEST(srq_grows_under_a_held_receive)
{
	const struct link_qp_conf qc = {.engine = -1, .srq = true};
	struct srq_attr attr = {.max_wr = 256};
	struct sge list[2];
	struct pkt frame;

	engine_link_init(&fixture, NULL);
	link_qp_create(&fixture.a, &a[0], &plain);
	link_qp_create(&fixture.b, &b[0], &qc);
	link_qp_connect(&a[0], &b[0], &qc);
	bytes_fill(fixture.a.mem, 3000, 5);
	assert_int_equal(link_qp_recv(&b[0], 0, 8000, 8), 0);
	assert_int_equal(link_qp_send(&a[0], 0, 0, 8, IBV_SEND_SIGNALED), 0);
	engine_link_drain(&fixture);
	link_qp_expect_sent(&a[0], 0, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(&b[0], 0, 1);

	list[0] = (struct sge){(uintptr_t)fixture.b.mem, 1000, fixture.b.lkey};
	list[1] = (struct sge){(uintptr_t)fixture.b.mem + 1000, 2000, fixture.b.lkey};
	assert_int_equal(ring_post(&fixture.b.srq.ring, 1, list, 2), 0);
	assert_int_equal(link_qp_send(&a[0], 1, 0, 3000, IBV_SEND_SIGNALED), 0);
	engine_run(fixture.a.dev->engines[0], fixture.now);
	assert_true(fake_sent(&fixture.a.port, &frame));
	fake_arrive(&fixture.b.port, 0, &frame);
	free(frame.data);
	engine_run(fixture.b.dev->engines[0], fixture.now);
	assert_true(b[0].qp->resp.wqe_held);
	assert_int_equal(
		dev_srq_modify(fixture.b.dev, &fixture.b.srq, &attr, IBV_SRQ_MAX_WR), 0);
	engine_link_drain(&fixture);
	link_qp_expect_sent(&a[0], 1, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(&b[0], 1, 1);
	assert_true(bytes_match(fixture.b.mem, 3000, 5));
	link_qp_destroy(&a[0]);
	link_qp_destroy(&b[0]);
	engine_link_fini(&fixture);
}
