/* SPDX-License-Identifier: BSD-3-Clause */
/* Which engine a QP belongs to: at RTR that whose receive queue gets its packets, if the port
 * knows it (RSS). The fake port puts each frame into the queue that its headers say. */
#include <stdlib.h>
#include <string.h>

#include "../rand.h"
#include "engine/engine_state.h"
#include "engine_link.h"

#define ENGINES 4
#define QPS 32
#define MESSAGES 20
#define BYTES 3000

static struct engine_link fixture;
static struct link_qp a[QPS], b[QPS];
static struct rss rss;

static const struct link_qp_conf by_turns = {.engine = -1, .rnr_timer = 1, .srq = true};

static void
init(bool known, const struct link_qp_conf *conf)
{
	const struct engine_link_conf link = {.engines = {ENGINES, ENGINES}, .rss = &rss};
	uint64_t seed = 7;

	rss = (struct rss){.key_bytes = 40, .table_size = 128, .ipv4_udp = true};
	for (unsigned i = 0; i < 10; i++)
		rss.key[i] = (uint32_t)rand_below(&seed, UINT32_MAX);
	for (uint16_t i = 0; i < rss.table_size; i++)
		rss.table[i] = i % ENGINES;
	engine_link_init(&fixture, &link);
	for (unsigned side = 0; side < 2 && !known; side++) {
		struct dev *dev = side == 0 ? fixture.a.dev : fixture.b.dev;
		static struct port_ops blind;

		blind = *dev->port.ops;
		blind.flow_queue = NULL;
		dev->port.ops = &blind;
	}
	link_qps_create(&fixture, a, b, QPS, conf);
}

static void
messages_pass(void)
{
	struct cqe cqe;

	for (unsigned k = 0; k < MESSAGES; k++) {
		for (unsigned i = 0; i < QPS; i++) {
			assert_int_equal(link_qp_recv(&b[i], 0, 0, BYTES), 0);
			assert_int_equal(
				link_qp_send(&a[i], k, 0, BYTES, IBV_SEND_SIGNALED), 0);
		}
		engine_link_drain(&fixture);
		for (unsigned i = 0; i < QPS; i++) {
			link_qp_expect_sent(&a[i], k, 1, IBV_WC_SUCCESS);
			assert_true(link_qp_poll_recv(&b[i], &cqe));
			assert_int_equal(cqe.status, IBV_WC_SUCCESS);
		}
	}
}

struct counts {
	uint64_t received, handed, steered;
};

static struct counts
counts_of(const struct dev *dev)
{
	struct counts sum = {0};

	for (unsigned i = 0; i < ENGINES; i++) {
		const struct port_stats *stats = &dev->engines[i]->stats;

		sum.received += stats->rx_roce;
		sum.handed += stats->rx_handoff;
		sum.steered += stats->qps_steered;
	}
	return sum;
}

static unsigned
engines_in_use(const struct link_qp *qps)
{
	unsigned used = 0;

	for (unsigned i = 0; i < QPS; i++)
		used |= 1u << qps[i].qp->sched.engine->index;
	return (unsigned)__builtin_popcount(used);
}

TEST(packets_reach_the_engine_of_their_qp)
{
	struct counts counts;

	init(true, &by_turns);
	messages_pass();
	for (unsigned side = 0; side < 2; side++) {
		counts = counts_of(side == 0 ? fixture.a.dev : fixture.b.dev);
		assert_int_equal(counts.steered, QPS);
		assert_true(counts.received >= QPS * MESSAGES);
		assert_int_equal(counts.handed, 0);
	}
	assert_int_equal(engines_in_use(a), ENGINES);
	link_qps_fini(&fixture, a, b, QPS);
}

/* Without RSS that the port knows, most packets are handed over, and arrive as well. */
TEST(unknown_queues_are_served_by_hand_off)
{
	struct counts counts;

	init(false, &by_turns);
	messages_pass();
	counts = counts_of(fixture.b.dev);
	assert_int_equal(counts.steered, 0);
	assert_in_range(counts.handed, counts.received / 2, counts.received);
	link_qps_fini(&fixture, a, b, QPS);
}

/* The port knows nothing of flows whose queue is none of the device's. */
TEST(queue_of_no_engine_moves_nothing)
{
	init(true, &by_turns);
	link_qps_destroy(a, b, QPS);
	for (uint16_t i = 0; i < rss.table_size; i++)
		rss.table[i] = ENGINES;
	for (unsigned i = 0; i < QPS; i++) {
		link_qp_create(&fixture.a, &a[i], &by_turns);
		link_qp_create(&fixture.b, &b[i], &by_turns);
		link_qp_connect(&a[i], &b[i], &by_turns);
	}
	assert_int_equal(counts_of(fixture.a.dev).steered, QPS);
	assert_int_equal(engines_in_use(a), ENGINES);
	for (uint16_t i = 0; i < rss.table_size; i++)
		rss.table[i] = 0;
	messages_pass();
	link_qps_fini(&fixture, a, b, QPS);
}

TEST(chosen_engine_stays)
{
	static const struct link_qp_conf chosen = {.engine = 2, .rnr_timer = 1};

	init(true, &chosen);
	for (unsigned i = 0; i < QPS; i++)
		assert_int_equal(a[i].qp->sched.engine->index, 2);
	assert_int_equal(counts_of(fixture.a.dev).steered, 0);
	messages_pass();
	link_qps_fini(&fixture, a, b, QPS);
}

/* A QP that is connected again, with another peer, moves again. */
TEST(reset_qp_moves_again)
{
	unsigned moved = 0;

	init(true, &by_turns);
	messages_pass();
	for (unsigned i = 0; i < QPS; i++) {
		assert_int_equal(link_qp_modify(&a[i], IBV_QPS_RESET), 0);
		assert_int_equal(link_qp_modify(&b[i], IBV_QPS_RESET), 0);
	}
	for (unsigned i = 0; i < QPS; i++) {
		struct engine *before = a[i].qp->sched.engine;

		link_qp_connect(&a[i], &b[QPS - 1 - i], &by_turns);
		moved += a[i].qp->sched.engine != before;
	}
	assert_in_range(moved, QPS / 4, QPS);
	assert_int_equal(counts_of(fixture.a.dev).steered, 2 * QPS);
	for (unsigned i = 0; i < QPS; i++) {
		struct cqe cqe;

		assert_int_equal(link_qp_recv(&b[QPS - 1 - i], 0, 0, BYTES), 0);
		assert_int_equal(link_qp_send(&a[i], i, 0, BYTES, IBV_SEND_SIGNALED), 0);
		engine_link_drain(&fixture);
		link_qp_expect_sent(&a[i], i, 1, IBV_WC_SUCCESS);
		assert_true(link_qp_poll_recv(&b[QPS - 1 - i], &cqe));
	}
	assert_int_equal(counts_of(fixture.a.dev).handed, 0);
	link_qps_fini(&fixture, a, b, QPS);
}

/* A modification that is refused leaves a QP that can be connected. */
TEST(refused_modification_leaves_a_usable_qp)
{
	const struct engine *before;
	struct qp_attr attr;
	struct cqe cqe;

	init(true, &by_turns);
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_RESET), 0);
	assert_int_equal(link_qp_modify(&b[0], IBV_QPS_RESET), 0);
	attr = link_qp_attr(&a[0], &b[0], &by_turns);
	attr.state = IBV_QPS_INIT;
	assert_int_equal(dev_qp_modify(fixture.a.dev, a[0].qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 IBV_QP_ACCESS_FLAGS),
		0);
	attr.state = IBV_QPS_RTR;
	before = a[0].qp->sched.engine;
	for (attr.dest_qpn = 1; attr.dest_qpn < 16; attr.dest_qpn++) {
		assert_int_not_equal(dev_qp_modify(fixture.a.dev, a[0].qp, &attr,
					     IBV_QP_STATE | IBV_QP_AV),
			0);
		assert_ptr_equal(a[0].qp->sched.engine, before);
	}
	assert_int_equal(a[0].qp->state, IBV_QPS_INIT);
	assert_int_equal(counts_of(fixture.a.dev).steered, QPS);
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_RESET), 0);
	link_qp_connect(&a[0], &b[0], &by_turns);
	assert_int_equal(link_qp_recv(&b[0], 0, 0, BYTES), 0);
	assert_int_equal(link_qp_send(&a[0], 9, 0, BYTES, IBV_SEND_SIGNALED), 0);
	engine_link_drain(&fixture);
	link_qp_expect_sent(&a[0], 9, 1, IBV_WC_SUCCESS);
	assert_true(link_qp_poll_recv(&b[0], &cqe));
	link_qps_fini(&fixture, a, b, QPS);
}

/* A thread that has looked up the engine before the QP moved rings at that one. */
TEST(doorbell_follows_the_qp)
{
	struct engine *owner, *before;

	init(true, &by_turns);
	messages_pass();
	owner = a[0].qp->sched.engine;
	before = fixture.a.dev->engines[(owner->index + 1) % ENGINES];
	assert_false(doorbells_pending(&owner->doorbells));
	doorbells_ring(&before->doorbells, a[0].qp->sq.doorbell);
	engine_run(before, fixture.now);
	assert_true(doorbells_pending(&owner->doorbells));
	assert_false(a[0].qp->sched.on_ready);
	engine_link_drain(&fixture);
	link_qps_fini(&fixture, a, b, QPS);
}

/* Queues are shared by several engines only while QPs of several engines use them. */
TEST(queues_follow_their_qp)
{
	init(true, &by_turns);
	for (unsigned i = 0; i < QPS; i++) {
		const struct qp *qp = b[i].qp;

		assert_false(qp->send_cq->shared || qp->recv_cq->shared);
		assert_int_equal(qp->send_cq->engine_qps[qp->sched.engine->index], 1);
	}
	assert_true(fixture.b.srq.shared);
	assert_int_equal(fixture.b.srq.engines, ENGINES);
	assert_int_equal(fixture.b.srq.qps, QPS);
	link_qps_fini(&fixture, a, b, QPS);
}
