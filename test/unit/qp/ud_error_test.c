/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams of different paths, and full CQs. */
#include <stdlib.h>

#include "qp_link.h"

#define GRH 40
#define ROOM 4500

static struct qp_link fixture;
static struct host *const a = &fixture.a, *const b = &fixture.b;

static struct qp_link_conf
ud_conf(void)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.type = IBV_QPT_UD;
	return conf;
}

static struct pkt_spec
datagram(uint32_t len)
{
	return (struct pkt_spec){.opcode = OPCODE_UD_SEND_ONLY,
		.payload_len = len,
		.payload_key = 3,
		.qkey = QKEY,
		.src_qpn = QPN_A};
}

static void
send_to(struct host *h, uint64_t wr_id, const struct ud_dest *dest)
{
	struct sge sge = host_sge(h, 0, 16);
	struct send_req req = {.wr_id = wr_id,
		.flags = IBV_SEND_SIGNALED,
		.sge = &sge,
		.num_sge = 1,
		.dest = dest};

	assert_int_equal(host_post_send(h, &req), 0);
}

/* A pull builds datagrams of one path only. The caller needs the headers of the next path
 * for the rest. */
TEST(one_path_per_pull)
{
	struct qp_link_conf conf = ud_conf();
	struct ud_dest here, there;
	struct pkt pkts[4];

	qp_link_init(&fixture, &conf);
	here = there = host_dest(a);
	there.flow_label = 7;
	send_to(a, 1, &here);
	send_to(a, 2, &here);
	send_to(a, 3, &there);
	for (unsigned i = 0; i < 4; i++)
		pkts[i] = (struct pkt){.data = malloc(ROOM), .room = ROOM};
	assert_int_equal(qp_tx(&a->qp, pkts, 4, fixture.now), 2);
	assert_int_equal(qp_next_dest(&a->qp)->flow_label, 7);
	assert_int_equal(qp_tx(&a->qp, pkts, 4, fixture.now), 1);
	assert_null(qp_next_dest(&a->qp));
	for (unsigned i = 0; i < 4; i++)
		free(pkts[i].data);
	for (uint64_t id = 1; id <= 3; id++)
		expect_sent(a, id, IBV_WC_SUCCESS);
	qp_link_fini(&fixture);
}

/* A CQ that overflows keeps its completions, and its QP goes to ERR (IBA 11.6.3.1). */
TEST(send_cq_overflow)
{
	struct qp_link_conf conf = ud_conf();
	struct ud_dest dest;

	conf.cqe = 2;
	qp_link_init(&fixture, &conf);
	dest = host_dest(a);
	for (uint64_t id = 1; id <= 4; id++)
		send_to(a, id, &dest);
	host_pull(a, PULL_ALL);
	/* The third packet is sent; nothing after it is. */
	assert_int_equal(a->wire_count, 3);
	assert_int_equal(a->qp.state, IBV_QPS_ERR);
	expect_event(a, IBV_EVENT_CQ_ERR);
	expect_event(a, IBV_EVENT_QP_FATAL);
	expect_sent(a, 1, IBV_WC_SUCCESS);
	expect_sent(a, 2, IBV_WC_SUCCESS);
	wire_drop_all(a);
	qp_link_fini(&fixture);
}

/* The same for a request that was posted in SQE: the QP does not get from ERR to RTS. */
TEST(send_cq_overflow_between_sqe_and_rts)
{
	struct qp_link_conf conf = ud_conf();
	struct ud_dest dest;
	struct sge sge;
	struct send_req bad = {.wr_id = 1, .sge = &sge, .num_sge = 1, .dest = &dest};

	conf.cqe = 1;
	qp_link_init(&fixture, &conf);
	dest = host_dest(a);
	sge = host_sge(a, 0, 16);
	sge.lkey++;
	assert_int_equal(host_post_send(a, &bad), 0);
	host_pull(a, PULL_ALL);
	assert_int_equal(a->qp.state, IBV_QPS_SQE);
	send_to(a, 2, &dest);
	(void)host_modify(a, IBV_QPS_RTS);
	assert_int_equal(a->qp.state, IBV_QPS_ERR);
	expect_event(a, IBV_EVENT_CQ_ERR);
	expect_event(a, IBV_EVENT_QP_FATAL);
	expect_sent(a, 1, IBV_WC_LOC_PROT_ERR);
	qp_link_fini(&fixture);
}

TEST(receive_cq_overflow)
{
	struct qp_link_conf conf = ud_conf();
	struct pkt_spec c = datagram(8);

	conf.cqe = 1;
	qp_link_init(&fixture, &conf);
	host_recv(b, 1, 0, 256);
	host_recv(b, 2, 0, 256);
	inject(b, &c);
	inject(b, &c);
	assert_int_equal(b->qp.state, IBV_QPS_ERR);
	expect_event(b, IBV_EVENT_CQ_ERR);
	expect_event(b, IBV_EVENT_QP_FATAL);
	expect_received(b, 1, GRH + 8);
	inject(b, &c);
	assert_int_equal(b->stats.drop[DROP_qp_state], 1);
	qp_link_fini(&fixture);
}
