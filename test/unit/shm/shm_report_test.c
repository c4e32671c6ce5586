/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's stats snapshot of its QPs and SRQs. */
#include <stdlib.h>
#include <string.h>

#include "engine_link.h"
#include "shm/shm.h"

static struct engine_link fixture;
static struct report report;

static const struct report_qp *
qp_row(uint32_t qpn)
{
	for (unsigned i = 0; i < RTE_MIN(report.qp_count, (uint32_t)REPORT_QPS); i++) {
		if (report.qps[i].qpn == qpn)
			return &report.qps[i];
	}
	fail_msg("no row for QP %u", qpn);
	return NULL;
}

static void
request_snapshot(void)
{
	report.requested_gen++;
	report_write(fixture.a.dev, report.requested_gen, &report);
	assert_int_equal(report.written_gen, report.requested_gen);
}

TEST(snapshot_of_srqs)
{
	static const struct link_qp_conf plain = {.srq = true, .wr = 16};
	struct srq_attr limit = {.limit = 3};
	struct recv_slot *slot;
	struct link_qp a;

	engine_link_init(&fixture, NULL);
	request_snapshot();
	assert_int_equal(report.srq_count, 0);
	assert_int_equal(report.qp_count, 0);
	fixture.a.srq.srqn = 9;
	dev_srq_add(fixture.a.dev, &fixture.a.srq);
	link_qp_create(&fixture.a, &a, &plain);
	for (unsigned i = 0; i < 5; i++) {
		slot = recv_ring_slot(&fixture.a.srq.ring, fixture.a.srq.ring.prod);
		slot->num_sge = 0;
		fixture.a.srq.ring.prod++;
	}
	assert_int_equal(
		dev_srq_modify(fixture.a.dev, &fixture.a.srq, &limit, IBV_SRQ_LIMIT), 0);
	request_snapshot();
	assert_int_equal(report.srq_count, 1);
	assert_int_equal(report.srqs[0].srqn, 9);
	assert_int_equal(report.srqs[0].fill, 5);
	assert_int_equal(report.srqs[0].size, 256);
	assert_int_equal(report.srqs[0].limit, 3);
	assert_int_equal(report.srqs[0].qps, 1);
	assert_int_equal(report.srqs[0].limit_events, 0);
	assert_false(report.srqs[0].error || report.srqs[0].xrc);
	assert_int_equal(qp_row(a.qp->qpn)->srqn, 9);
	assert_int_equal(qp_row(a.qp->qpn)->rq_size, 0);
	assert_int_equal(qp_row(a.qp->qpn)->state, IBV_QPS_RESET);
	link_qp_destroy(&a);
	dev_srq_remove(fixture.a.dev, &fixture.a.srq);
	request_snapshot();
	assert_int_equal(report.srq_count, 0);
	assert_int_equal(report.qp_count, 0);
	engine_link_fini(&fixture);
}

TEST(snapshot_of_qps)
{
	static const struct link_qp_conf plain = {.wr = 16};
	const struct report_qp *row;
	struct link_qp a, b;

	engine_link_init(&fixture, NULL);
	link_qp_create(&fixture.a, &a, &plain);
	link_qp_create(&fixture.b, &b, &plain);
	link_qp_connect(&a, &b, &plain);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(link_qp_recv(&b, i, 0, 64), 0);
	assert_int_equal(link_qp_recv(&a, 9, 0, 64), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(link_qp_send(&a, i, 0, 64, IBV_SEND_SIGNALED), 0);
	engine_link_drain(&fixture);
	request_snapshot();
	row = qp_row(a.qp->qpn);
	assert_int_equal(report.qp_count, 1);
	assert_int_equal(row->type, IBV_QPT_RC);
	assert_int_equal(row->state, IBV_QPS_RTS);
	assert_int_equal(row->dest_qpn, b.qp->qpn);
	assert_int_equal(row->sq_fill, 3); /* until the CQ is polled */
	assert_int_equal(row->sq_size, 16);
	assert_int_equal(row->rq_fill, 1);
	assert_int_equal(row->rq_size, 16);
	assert_int_equal(row->srqn, 0);
	assert_int_equal(row->stats.tx_msgs, 3);
	assert_true(report.stats.tx_packets >= 3);
	link_qp_expect_sent(&a, 0, 3, IBV_WC_SUCCESS);
	request_snapshot();
	assert_int_equal(qp_row(a.qp->qpn)->sq_fill, 0);
	assert_int_equal(qp_row(a.qp->qpn)->sq_unacked_ns, 0);
	assert_int_equal(qp_row(a.qp->qpn)->sq_unsignaled_ns, 0);
	link_qp_expect_received(&b, 0, 3);
	assert_int_equal(link_qp_send(&a, 3, 0, 64, 0), 0);
	request_snapshot();
	assert_int_not_equal(qp_row(a.qp->qpn)->sq_unacked_ns, 0);
	engine_link_drain(&fixture);
	request_snapshot();
	assert_int_equal(qp_row(a.qp->qpn)->sq_unacked_ns, 0);
	assert_int_not_equal(qp_row(a.qp->qpn)->sq_unsignaled_ns, 0);
	link_qp_expect_received(&b, 3, 1);
	link_qp_destroy(&a);
	link_qp_destroy(&b);
	engine_link_fini(&fixture);
}

TEST(record_of_a_qp)
{
	static const struct link_qp_conf plain = {.wr = 16};
	struct report_flight *flight = &report.flight;
	struct link_qp a, b;
	uint32_t qpn;

	setenv("ROCADE_FLIGHT_RECORDER", "1", 1);
	engine_link_init(&fixture, NULL);
	unsetenv("ROCADE_FLIGHT_RECORDER");
	link_qp_create(&fixture.a, &a, &plain);
	link_qp_create(&fixture.b, &b, &plain);
	link_qp_connect(&a, &b, &plain);
	qpn = a.qp->qpn;
	report_flight_write(fixture.a.dev, qpn, 3, flight);
	assert_int_equal(flight->written_gen, 3);
	assert_int_equal(flight->state, REPORT_FLIGHT_KEPT);
	assert_int_equal(flight->copy.qpn, qpn);
	assert_int_equal(flight->copy.dest_qpn, b.qp->qpn);
	assert_int_equal(flight->copy.flight.count, 3); /* RESET, INIT, RTR, RTS */
	assert_int_not_equal(flight->copy.asked, 0);
	link_qp_destroy(&a);
	report_flight_write(fixture.a.dev, qpn, 4, flight);
	assert_int_equal(flight->written_gen, 4);
	assert_int_equal(flight->state, REPORT_FLIGHT_NO_QP);
	link_qp_destroy(&b);
	engine_link_fini(&fixture);
	/* Without the recorder. */
	engine_link_init(&fixture, NULL);
	link_qp_create(&fixture.a, &a, &plain);
	report_flight_write(fixture.a.dev, a.qp->qpn, 5, flight);
	assert_int_equal(flight->written_gen, 5);
	assert_int_equal(flight->state, REPORT_FLIGHT_OFF);
	link_qp_destroy(&a);
	engine_link_fini(&fixture);
}

TEST(snapshot_is_limited_to_its_rows)
{
	static const struct link_qp_conf plain = {.wr = 1};
	struct link_qp *qps = calloc(REPORT_QPS + 10, sizeof(*qps));

	engine_link_init(&fixture, &(struct engine_link_conf){.max_qp = 2048});
	for (unsigned i = 0; i < REPORT_QPS + 10; i++)
		link_qp_create(&fixture.a, &qps[i], &plain);
	memset(&report.qps[REPORT_QPS - 1], 0, sizeof(report.qps[0]));
	request_snapshot();
	assert_int_equal(report.qp_count, REPORT_QPS + 10);
	assert_int_not_equal(report.qps[REPORT_QPS - 1].qpn, 0);
	for (unsigned i = 0; i < REPORT_QPS + 10; i++)
		link_qp_destroy(&qps[i]);
	free(qps);
	engine_link_fini(&fixture);
}

TEST(snapshot_of_peers)
{
	static const struct link_qp_conf plain = {.wr = 16};
	const struct peer_info *row;
	struct link_qp a[3], b[3];

	engine_link_init(&fixture, &(struct engine_link_conf){.cc = true});
	request_snapshot();
	assert_int_equal(report.peer_count, 0);
	link_qps_create(&fixture, a, b, 2, &plain);
	link_qp_create(&fixture.a, &a[2], &plain);
	link_qp_create(&fixture.a, &b[2], &plain);
	link_qp_connect(&a[2], &b[2], &plain); /* to itself: without congestion control */
	link_qp_message(&a[0], &b[0], 1);
	engine_link_drain(&fixture);
	link_qp_expect_message(&a[0], &b[0], 1);
	fixture.b.deaf = true;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(link_qp_send(&a[0], i, 0, 64, IBV_SEND_SIGNALED), 0);
	engine_link_drain(&fixture);
	request_snapshot();
	assert_int_equal(report.peer_count, 2);
	for (unsigned i = 0; i < 2; i++) {
		row = &report.peers[i];
		assert_int_equal(row->engine, 0);
		assert_int_equal(row->qps, 2);
		assert_int_equal(row->cap, 512);
	}
	row = &report.peers[!peer_info_cc_is_on(&report.peers[0])];
	assert_memory_equal(row->gid, fixture.b.dev->gids[0], 16);
	assert_int_equal(row->send.inflight, 3);
	assert_int_equal(row->send.window, row->send.cc_window >> CC_SHIFT);
	assert_true(row->send.cc_target_ns >= CC_TARGET_US * NS_PER_US);
	row = row == report.peers ? &report.peers[1] : &report.peers[0];
	assert_memory_equal(row->gid, fixture.a.dev->gids[0], 16);
	assert_false(peer_info_cc_is_on(row));
	assert_int_equal(row->send.inflight, 0);
	assert_int_equal(row->send.window, 512);
	link_qps_destroy(a, b, 3);
	request_snapshot();
	assert_int_equal(report.peer_count, 0);
	engine_link_fini(&fixture);
}

/* Connects a QP to a host of its own. */
static void
host_connect(struct link_qp *q, uint8_t host)
{
	struct qp_attr attr = link_qp_attr(q, q, &(struct link_qp_conf){.wr = 1});

	attr.path.dgid[15] = host;
	attr.state = IBV_QPS_INIT;
	assert_int_equal(dev_qp_modify(q->side->dev, q->qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 IBV_QP_ACCESS_FLAGS),
		0);
	attr.state = IBV_QPS_RTR;
	assert_int_equal(
		dev_qp_modify(q->side->dev, q->qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				IBV_QP_MIN_RNR_TIMER),
		0);
}

TEST(snapshot_is_limited_to_its_peers)
{
	struct link_qp qps[REPORT_PEERS + 10];

	engine_link_init(
		&fixture, &(struct engine_link_conf){.max_qp = 128, .engines = {2, 1}});
	for (unsigned i = 0; i < REPORT_PEERS + 10; i++) {
		link_qp_create(&fixture.a, &qps[i],
			&(struct link_qp_conf){.wr = 1, .engine = (int)(i % 2)});
		host_connect(&qps[i], (uint8_t)(100 + i));
	}
	memset(&report, 0, sizeof(report));
	request_snapshot();
	assert_int_equal(report.peer_count, REPORT_PEERS + 10);
	for (unsigned i = 0; i < REPORT_PEERS; i++)
		assert_int_equal(report.peers[i].qps, 1);
	assert_int_equal(report.peers[0].engine, 0);
	assert_int_equal(report.peers[REPORT_PEERS - 1].engine, 1);
	/* Nothing was written behind the peers' rows. */
	assert_int_equal(report.qps[0].state, IBV_QPS_RTR);
	for (unsigned i = 0; i < REPORT_PEERS + 10; i++)
		link_qp_destroy(&qps[i]);
	engine_link_fini(&fixture);
}
