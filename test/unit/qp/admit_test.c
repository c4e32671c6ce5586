/* SPDX-License-Identifier: BSD-3-Clause */
/* Admission of a packet to a QP: rows 3 to 5 of docs/protocol.md 8.2. Each dropped packet
 * is counted by its reason, and nothing is answered. */
#include "qp_link.h"

static struct qp_link p;

static void
expect_dropped(enum drop_reason why)
{
	for (unsigned i = 0; i < DROP_COUNT; i++)
		assert_int_equal(p.b.stats.drop[i], i == (unsigned)why);
	p.b.stats.drop[why] = 0;
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	assert_int_equal(p.b.stats.rx_roce, 0);
	expect_idle(&p.b);
}

static void
expect_accepted(void)
{
	assert_int_equal(p.b.stats.rx_roce, 1);
	p.b.stats.rx_roce = 0;
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	wire_drop(&p.b, 0);
}

static void
init(bool ipv6)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.ipv6 = ipv6;
	qp_link_init(&p, &conf);
}

/* A CNP is not a drop. The port and the QP count it in any state. */
static void
expect_cnp(void)
{
	assert_int_equal(p.b.stats.cnp_received, 1);
	assert_int_equal(p.b.qp.stats.cnp_received, 1);
	p.b.stats.cnp_received = 0;
	p.b.qp.stats.cnp_received = 0;
	for (unsigned i = 0; i < DROP_COUNT; i++)
		assert_int_equal(p.b.stats.drop[i], 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	expect_idle(&p.b);
}

/* Row 3 of docs/protocol.md 8.2: the opcodes of UC, UD and XRC are not for an RC QP. */
TEST(other_service_is_dropped)
{
	init(false);
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		if (op_rows[opcode].kind == OP_UNKNOWN || opcode < 0x20)
			continue;
		inject_request(&p.b, (uint8_t)opcode, PSN_A, 0);
		if (opcode == OPCODE_CNP)
			expect_cnp();
		else
			expect_dropped(opcode == OPCODE_SACK ? DROP_sack : DROP_qp_type);
	}
	qp_link_fini(&p);
}

/* Row 3 of docs/protocol.md 8.2: requests are taken in RTR, RTS, SQD and SQE, responses
 * in RTS and SQD. */
TEST(admission_by_qp_state)
{
	static const struct {
		enum ibv_qp_state state;
		bool requests, responses;
	} rows[] = {{IBV_QPS_RESET, false, false}, {IBV_QPS_INIT, false, false},
		{IBV_QPS_RTR, true, false}, {IBV_QPS_RTS, true, true},
		{IBV_QPS_SQD, true, true}, {IBV_QPS_SQE, true, false},
		{IBV_QPS_ERR, false, false}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		init(false);
		p.b.qp.comm_est_raised = true;
		p.b.qp.state = (uint8_t)rows[i].state;
		inject_request(&p.b, OPCODE_RC_SEND_ONLY, PSN_A, 0);
		if (rows[i].requests)
			expect_accepted(); /* answered by an RNR NAK */
		else
			expect_dropped(DROP_qp_state);
		inject_ack(&p.b, AETH_ACK, PSN_B);
		if (rows[i].responses)
			assert_int_equal(p.b.stats.drop[DROP_ghost], 1);
		else
			expect_dropped(DROP_qp_state);
		p.b.qp.state = IBV_QPS_RTS;
		qp_link_fini(&p);
	}
}

/* A CE mark is counted and has no other effect. */
TEST(ce_mark_is_counted)
{
	for (unsigned ipv6 = 0; ipv6 < 2; ipv6++) {
		init(ipv6);
		for (unsigned ecn = 0; ecn < 4; ecn++) {
			struct pkt_spec c = {.opcode = OPCODE_RC_SEND_ONLY,
				.psn = PSN_A,
				.ack_req = true,
				.tclass = (uint8_t)(0x68 | ecn)};

			inject(&p.b, &c);
			assert_int_equal(p.b.stats.ecn_marked, ecn == 3);
			p.b.qp.resp.wait = RESP_OPEN;
			p.b.stats.rx_roce = 0;
			(void)host_pull(&p.b, PULL_ALL);
			wire_drop_all(&p.b);
		}
		qp_link_fini(&p);
	}
}

/* Row 4 of docs/protocol.md 8.2: both addresses are those of the QP's path. */
TEST(wrong_addresses_are_dropped)
{
	for (unsigned ipv6 = 0; ipv6 < 2; ipv6++) {
		struct pkt_spec c = {
			.opcode = OPCODE_RC_SEND_ONLY, .psn = PSN_A, .ack_req = true};

		init(ipv6);
		c.src_ip_change = 1;
		inject(&p.b, &c);
		expect_dropped(DROP_address);
		c.src_ip_change = 0;
		c.dst_ip_change = 5;
		inject(&p.b, &c);
		expect_dropped(DROP_address);
		c.dst_ip_change = 0;
		c.other_version = true;
		inject(&p.b, &c);
		expect_dropped(DROP_address);
		c.other_version = false;
		inject(&p.b, &c);
		expect_accepted();
		qp_link_fini(&p);
	}
}

/* Row 5 of docs/protocol.md 8.2, docs/protocol.md 3: P_Keys match when their low 15 bits
 * are equal and not 0 and at least one side is a full member. So 0xFFFF accepts 0xFFFF
 * and 0x7FFF. */
TEST(pkey_matching)
{
	static const struct {
		uint16_t ours, theirs;
		bool fits;
	} rows[] = {
		{0xFFFF, 0xFFFF, true},
		{0xFFFF, 0x7FFF, true},
		{0x7FFF, 0xFFFF, true},
		{0x7FFF, 0x7FFF, false},
		{0xFFFF, 0xFFFE, false},
		{0xFFFF, 0x8000, false},
		{0xFFFF, 0x0000, false},
		{0x8000, 0x8000, false},
		{0x8000, 0x0000, false},
		{0x8123, 0x0123, true},
		{0x0123, 0x0123, false},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct pkt_spec c = {.opcode = OPCODE_RC_SEND_ONLY,
			.psn = PSN_A,
			.pkey = rows[i].theirs,
			.pkey_zero = true};

		init(false);
		p.b.qp.pkey = rows[i].ours;
		inject(&p.b, &c);
		if (rows[i].fits)
			expect_accepted();
		else
			expect_dropped(DROP_pkey);
		qp_link_fini(&p);
	}
}

/* The checks run in the order type, state, address, P_Key. */
TEST(checks_run_in_order)
{
	struct pkt_spec c = {.opcode = OPCODE_UC_SEND_ONLY,
		.psn = PSN_A,
		.pkey = 0x1111,
		.src_ip_change = 1};

	init(false);
	p.b.qp.state = IBV_QPS_INIT;
	inject(&p.b, &c);
	expect_dropped(DROP_qp_type);
	c.opcode = OPCODE_RC_SEND_ONLY;
	inject(&p.b, &c);
	expect_dropped(DROP_qp_state);
	p.b.qp.state = IBV_QPS_RTS;
	inject(&p.b, &c);
	expect_dropped(DROP_address);
	c.src_ip_change = 0;
	inject(&p.b, &c);
	expect_dropped(DROP_pkey);
	qp_link_fini(&p);
}
