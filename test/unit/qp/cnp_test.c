/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion notification packets (docs/protocol.md 17): sent for packets with CE, and
 * received. */
#include "qp/cnp.h"
#include "qp_link.h"

#define CE 3
#define SPORT 0xC242 /* of QPs QPN_A and QPN_B */

static struct qp_link p;

static void
init(enum ibv_qp_type type, bool ipv6)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.type = type;
	conf.ipv6 = ipv6;
	qp_link_init(&p, &conf);
}

static void
fini(void)
{
	wire_drop_all(&p.a);
	wire_drop_all(&p.b);
	p.a.qp.comm_est_raised = p.b.qp.comm_est_raised = true;
	qp_link_fini_reset(&p);
}

/* b receives a WRITE of no bytes with these bits of ECN. */
static void
write_arrives(unsigned ecn)
{
	struct pkt_spec c = {.opcode = OPCODE_RC_WRITE_ONLY | p.b.qp.op_base,
		.psn = p.b.qp.resp.epsn,
		.tclass = (uint8_t)(0x68 | ecn)};

	p.b.qp.comm_est_raised = true;
	inject(&p.b, &c);
}

static void
expect_cnp_at(struct host *h, unsigned index)
{
	struct pkt_view v = wire_view(h, index);

	assert_int_equal(v.opcode, OPCODE_CNP);
	assert_int_equal(v.dest_qpn, h->other->qp.qpn);
}

/* Expects b to send n packets that are CNPs, and nothing else. */
static void
expect_cnps(unsigned n)
{
	uint64_t sent = p.b.stats.cnp_sent;

	assert_int_equal(qp_wants_tx(&p.b.qp), n != 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), n);
	for (unsigned i = 0; i < n; i++)
		expect_cnp_at(&p.b, i);
	assert_int_equal(p.b.stats.cnp_sent, sent + n);
	wire_drop_all(&p.b);
}

/* The frames were computed by a script, which finds the ICRC of the CNP in
 * test/captures/z0-synthetic.pcap, too. */
static const uint8_t frame_v4[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00,
	0x00, 0x00, 0x01, 0x08, 0x00, 0x45, 0xc0, 0x00, 0x3c, 0x00, 0x00, 0x40, 0x00,
	0x40, 0x11, 0xb5, 0xed, 0xc0, 0x00, 0x02, 0x02, 0xc0, 0x00, 0x02, 0x01, 0xc2,
	0x42, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xff, 0xff, 0x40, 0x00,
	0x00, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xec, 0x52, 0x30, 0x5d};
static const uint8_t frame_vlan[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00,
	0x00, 0x00, 0x01, 0x81, 0x00, 0xc0, 0x2a, 0x08, 0x00, 0x45, 0xc0, 0x00, 0x3c,
	0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb5, 0xed, 0xc0, 0x00, 0x02, 0x02, 0xc0,
	0x00, 0x02, 0x01, 0xc2, 0x42, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00,
	0xff, 0xff, 0x40, 0x00, 0x00, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0xec, 0x52, 0x30, 0x5d};
static const uint8_t frame_v6[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00,
	0x00, 0x00, 0x01, 0x86, 0xdd, 0x6c, 0x00, 0x00, 0x00, 0x00, 0x28, 0x11, 0x40,
	0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x02, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0xc2, 0x42, 0x12, 0xb7, 0x00, 0x28, 0x00,
	0x00, 0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x00, 0x11, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x6f, 0xa3, 0x6d, 0x9e};

TEST(each_byte_of_the_frame)
{
	static const struct {
		const uint8_t *frame;
		size_t len;
		uint16_t vlan;
		bool ipv6;
	} rows[] = {{frame_v4, sizeof(frame_v4), 0, false},
		{frame_vlan, sizeof(frame_vlan), 42, false},
		{frame_v6, sizeof(frame_v6), 0, true}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct path_addr addr = {.src_mac = {2, 0, 0, 0, 0, 1},
			.dst_mac = {2, 0, 0, 0, 0, 2},
			.vlan = rows[i].vlan,
			.udp_sport = SPORT,
			.tclass = 0x6A,
			.hop_limit = 64};
		struct path_hdr before;

		init(IBV_QPT_RC, rows[i].ipv6);
		memcpy(addr.src_gid, p.b.qp.path.sgid, 16);
		memcpy(addr.dst_gid, p.b.qp.path.dgid, 16);
		path_hdr_init(&p.b.qp.hdr, &addr);
		write_arrives(CE);
		before = p.b.qp.hdr;
		assert_int_equal(host_pull(&p.b, 1), 1);
		assert_int_equal(p.b.wire[0].len, rows[i].len);
		assert_memory_equal(p.b.wire[0].data, rows[i].frame, rows[i].len);
		/* The QP's own headers have not changed. */
		assert_memory_equal(&p.b.qp.hdr, &before, sizeof(before));
		fini();
	}
}

/* Each type of QP that has a path answers CE, and no other bits, in each state that
 * accepts the packet. */
TEST(ce_is_answered_by_a_cnp)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_XRC_SEND};
	static const enum ibv_qp_state states[] = {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD};

	for (unsigned i = 0; i < 2 * RTE_DIM(types); i++) {
		for (unsigned j = 0; j < 4 * RTE_DIM(states); j++) {
			init(types[i / 2], i % 2 != 0);
			p.b.qp.state = (uint8_t)states[j / 4];
			write_arrives(j % 4);
			assert_int_equal(p.b.stats.rx_roce, 1);
			assert_int_equal(p.b.stats.ecn_marked, j % 4 == CE);
			p.b.qp.aeth_pending = 0;
			expect_cnps(j % 4 == CE);
			p.b.qp.state = IBV_QPS_RTS;
			fini();
		}
	}
}

/* The requester answers marked responses. */
TEST(ce_of_a_response_is_answered)
{
	struct pkt_spec c = {.opcode = OPCODE_RC_ACKNOWLEDGE,
		.syndrome = AETH_ACK,
		.psn = PSN_A,
		.tclass = CE};

	init(IBV_QPT_RC, false);
	host_send(&p.a, 1, 0, 8, IBV_SEND_SIGNALED);
	(void)host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	inject(&p.a, &c);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_cnp_at(&p.a, 0);
	fini();
}

TEST(one_cnp_in_50_us)
{
	init(IBV_QPT_UC, false);
	/* Several marked packets before the QP sends. */
	for (unsigned i = 0; i < 5; i++)
		write_arrives(CE);
	expect_cnps(1);
	qp_link_advance(&p, CNP_INTERVAL_NS - 1);
	write_arrives(CE);
	expect_cnps(0);
	qp_link_advance(&p, 1);
	expect_cnps(0); /* the mark was not remembered */
	write_arrives(CE);
	expect_cnps(1);
	/* The interval begins when the CNP is sent. */
	qp_link_advance(&p, CNP_INTERVAL_NS);
	write_arrives(CE);
	qp_link_advance(&p, CNP_INTERVAL_NS);
	write_arrives(CE);
	expect_cnps(1);
	write_arrives(CE);
	expect_cnps(0);
	assert_int_equal(p.b.stats.ecn_marked, 10);
	assert_int_equal(p.b.stats.cnp_sent, 3);
	fini();
}

/* Both QPs of the link send a CNP at the same time. */
TEST(the_limit_is_per_qp)
{
	struct pkt_spec c = {.opcode = OPCODE_UC_WRITE_ONLY, .psn = PSN_B, .tclass = CE};

	init(IBV_QPT_UC, false);
	p.a.qp.shared = p.b.qp.shared; /* as QPs of one engine */
	p.a.qp.comm_est_raised = true;
	write_arrives(CE);
	expect_cnps(1);
	inject(&p.a, &c);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_cnp_at(&p.a, 0);
	assert_int_equal(p.b.stats.cnp_sent, 2);
	fini();
}

/* Before the READ response and the ACK, one packet at a time. */
TEST(cnp_leaves_before_other_responses)
{
	struct pkt_spec read = {.opcode = OPCODE_RC_READ_REQUEST,
		.psn = PSN_A,
		.va = (uintptr_t)p.b.mem,
		.dma_len = 2000,
		.tclass = CE};

	init(IBV_QPT_RC, false);
	p.b.qp.comm_est_raised = true;
	read.va = (uintptr_t)p.b.mem;
	read.rkey = p.b.rkey;
	inject(&p.b, &read);
	/* A second request does not take the CNP away. */
	read.psn += 2;
	read.dma_len = 8;
	read.tclass = 0;
	inject(&p.b, &read);
	write_arrives(0);
	p.b.qp.aeth_pending = AETH_ACK + 1;
	p.b.qp.resp.ack_psn = PSN_A + 3;
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(host_pull(&p.b, 1), 1);
	expect_cnp_at(&p.b, 0);
	expect_response(&p.b, 1, OPCODE_RC_READ_RESPONSE_FIRST, PSN_A, 1, 1024);
	expect_response(&p.b, 2, OPCODE_RC_READ_RESPONSE_LAST, PSN_A + 1, 1, 976);
	expect_response(&p.b, 3, OPCODE_RC_READ_RESPONSE_ONLY, PSN_A + 2, 2, 8);
	expect_ack(&p.b, 4, AETH_ACK, PSN_A + 3, 3);
	assert_int_equal(host_pull(&p.b, 1), 0);
	fini();
}

/* Nothing is sent: cnps are off, the QP has no path, the packet was refused. */
TEST(no_cnp_is_sent)
{
	struct pkt_spec c = {.opcode = OPCODE_UC_WRITE_ONLY, .psn = PSN_A, .tclass = CE};

	init(IBV_QPT_UC, false);
	p.b.shared.cnp_off = true;
	write_arrives(CE);
	assert_int_equal(p.b.stats.ecn_marked, 1);
	expect_cnps(0);
	p.b.shared.cnp_off = false;
	c.src_ip_change = 1;
	inject(&p.b, &c);
	c.src_ip_change = 0;
	p.b.qp.state = IBV_QPS_INIT;
	inject(&p.b, &c);
	p.b.qp.state = IBV_QPS_RTS;
	c.opcode = OPCODE_CNP; /* itself marked */
	inject(&p.b, &c);
	assert_int_equal(p.b.stats.ecn_marked, 1);
	expect_cnps(0);
	fini();
	init(IBV_QPT_UD, false);
	c = (struct pkt_spec){.opcode = OPCODE_UD_SEND_ONLY,
		.qkey = QKEY,
		.src_qpn = QPN_A,
		.tclass = CE};
	inject(&p.b, &c);
	assert_int_equal(p.b.stats.ecn_marked, 1);
	expect_cnps(0);
	fini();
}

/* ERR and RESET forget a CNP that is due, RESET the time of the last one, too. */
TEST(errors_and_reset_forget)
{
	init(IBV_QPT_UC, false);
	write_arrives(CE);
	assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
	expect_cnps(0);
	assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	host_connect(&p.b);
	write_arrives(CE);
	assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	expect_cnps(0);
	host_connect(&p.b);
	write_arrives(CE);
	expect_cnps(1);
	assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	host_connect(&p.b);
	write_arrives(CE);
	expect_cnps(1);
	fini();
}

static void
cnp_arrives(const struct pkt_spec *change, enum drop_reason why)
{
	struct pkt_spec c = *change;
	uint64_t dropped = p.b.stats.drop[why];
	uint32_t received = p.b.qp.stats.cnp_received;
	struct qp before = p.b.qp;

	c.opcode = OPCODE_CNP;
	c.payload_len = CNP_PAYLOAD;
	inject(&p.b, &c);
	assert_int_equal(p.b.stats.drop[why], dropped + (why != DROP_none));
	assert_int_equal(p.b.stats.cnp_received, received + (why == DROP_none));
	assert_int_equal(p.b.qp.stats.cnp_received, received + (why == DROP_none));
	/* Nothing else has changed, and nothing is sent. */
	before.stats.cnp_received = p.b.qp.stats.cnp_received;
	assert_memory_equal(&p.b.qp, &before, sizeof(before));
	assert_int_equal(p.b.stats.rx_roce, 0);
	assert_false(qp_wants_tx(&p.b.qp));
	expect_idle(&p.b);
}

TEST(received_cnps_are_believed_after_checks)
{
	static const struct pkt_spec good = {.tclass = CNP_TCLASS},
				     source = {.src_ip_change = 1},
				     destination = {.dst_ip_change = 1},
				     version = {.other_version = true};
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_XRC_SEND};

	for (unsigned i = 0; i < 2 * RTE_DIM(types); i++) {
		init(types[i / 2], i % 2 != 0);
		cnp_arrives(&source, DROP_address);
		cnp_arrives(&destination, DROP_address);
		cnp_arrives(&version, DROP_address);
		for (unsigned s = IBV_QPS_RESET; s <= IBV_QPS_ERR; s++) {
			p.b.qp.state = (uint8_t)s;
			cnp_arrives(&good, s == IBV_QPS_RTS || s == IBV_QPS_SQD
						   ? DROP_none
						   : DROP_qp_state);
		}
		assert_int_equal(p.b.stats.cnp_received, 2);
		p.b.qp.state = IBV_QPS_RTS;
		fini();
	}
	init(IBV_QPT_UD, false);
	cnp_arrives(&good, DROP_cnp);
	fini();
}

/* The two ECN bits of the traffic class are sent as they are, in requests and in
 * responses. */
TEST(ecn_bits_of_the_traffic_class_are_sent)
{
	for (unsigned i = 0; i < 8; i++) {
		bool ipv6 = i >= 4;
		struct path_addr addr = {.tclass = (uint8_t)(0x68 | (i & 3))};

		init(IBV_QPT_RC, ipv6);
		memcpy(addr.src_gid, p.b.qp.path.sgid, 16);
		memcpy(addr.dst_gid, p.b.qp.path.dgid, 16);
		path_hdr_init(&p.b.qp.hdr, &addr);
		write_arrives(0);
		p.b.qp.aeth_pending = AETH_ACK + 1;
		host_send(&p.b, 1, 0, 8, 0);
		assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
		assert_int_equal(wire_view(&p.b, 0).tclass, addr.tclass);
		assert_int_equal(wire_view(&p.b, 1).tclass, addr.tclass);
		fini();
	}
}
