/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives that fail, receives of an SRQ, and their events: rows 12, 17 and 18 of
 * docs/protocol.md 8.2, and docs/protocol.md 9. */
#include <string.h>

#include "qp_link.h"

static struct qp_link p;

static void
init(bool srq, bool srq_pd)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.srq = srq;
	conf.srq_pd = srq_pd;
	qp_link_init(&p, &conf);
}

static void
recv_key(uint64_t wr_id, uint32_t offset, uint32_t len, uint32_t lkey)
{
	struct sge sge = host_sge(&p.b, offset, len);

	sge.lkey = lkey;
	assert_int_equal(host_post_recv(&p.b, wr_id, &sge, 1), 0);
}

/* a sends len bytes of pattern 5, and one more message that will be flushed. */
static void
send_two(uint32_t len)
{
	bytes_fill(p.a.mem, len, 5);
	host_send(&p.a, 1, 0, len, IBV_SEND_SIGNALED);
	host_send(&p.a, 2, 0, 8, 0);
}

/* Row 17 of docs/protocol.md 8.2: a SEND is longer than its receive, which shows in the
 * first, a middle or the last packet. NAK 0x61, LOC_LEN_ERR; nothing is written behind
 * the receive. */
TEST(receive_too_short)
{
	static const uint32_t lens[][2] = {/* message, receive */
		{1, 0}, {8, 7}, {1024, 1023}, {2049, 1000}, {3000, 1500}, {2500, 2499}};

	for (unsigned i = 0; i < RTE_DIM(lens) * 2; i++) {
		uint32_t len = lens[i / 2][0], room = lens[i / 2][1];
		bool srq = i % 2;

		init(srq, false);
		memset(p.b.mem, 0xC3, 4000);
		host_recv(&p.b, 10, 0, room);
		host_recv(&p.b, 11, 4096, 4096);
		send_two(len);
		qp_link_drain(&p);
		expect_recv_error(&p.b, 10, IBV_WC_LOC_LEN_ERR, VENDOR_RECV_SHORT);
		if (srq) /* receives of an SRQ are not flushed */
			expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
		else
			expect_recv_error(&p.b, 11, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
		expect_sent(&p.a, 1, IBV_WC_REM_INV_REQ_ERR);
		expect_sent(&p.a, 2, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(p.b.qp.state, IBV_QPS_ERR);
		for (uint32_t k = room; k < 4000; k++)
			assert_int_equal(p.b.mem[k], 0xC3);
		assert_int_equal(p.a.stats.ack_timeouts, 0);
		qp_link_fini(&p);
	}
}

/* Row 18 of docs/protocol.md 8.2: the memory of the receive cannot be written. NAK 0x63,
 * REM_OP_ERR at the sender, LOC_PROT_ERR at the receiver. The key is wrong, without local
 * write, too short or of another PD. */
TEST(receive_key_invalid)
{
	for (unsigned i = 0; i < 5 * 2 * 2; i++) {
		bool srq = i & 1;
		uint32_t len = i & 2 ? 3000 : 8;
		uint32_t readonly, other_pd, key;

		init(srq, false);
		assert_int_equal(key_alloc(&p.b.keys, PD_B, (uintptr_t)p.b.mem, p.b.mem,
					 4096, 0, &readonly),
			0);
		assert_int_equal(
			key_alloc(&p.b.keys, PD_B + 1, (uintptr_t)p.b.mem, p.b.mem, 4096,
				IBV_ACCESS_LOCAL_WRITE, &other_pd),
			0);
		key = (const uint32_t[]){p.b.recv_key ^ 1, p.b.recv_key + 0x100000,
			readonly, other_pd, p.b.recv_key}[i / 4];
		bytes_fill(p.b.mem, 4096, 77);
		recv_key(10, i / 4 == 4 ? p.conf.mem_bytes - 7 : 0, 4096, key);
		send_two(len);
		qp_link_drain(&p);
		expect_recv_error(&p.b, 10, IBV_WC_LOC_PROT_ERR, VENDOR_RECV_SGE);
		expect_sent(&p.a, 1, IBV_WC_REM_OP_ERR);
		expect_sent(&p.a, 2, IBV_WC_WR_FLUSH_ERR);
		if (srq)
			expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
		assert_true(bytes_match(p.b.mem, 4096, 77));
		assert_int_equal(key_free(&p.b.keys, readonly), 0);
		assert_int_equal(key_free(&p.b.keys, other_pd), 0);
		qp_link_fini(&p);
	}
}

/* Keys are checked for the bytes of each packet: the key of an SGE behind the message is
 * not checked, a key that is freed in the middle of the message is. */
TEST(receive_key_is_checked_per_packet)
{
	struct sge list[2];

	init(false, false);
	for (unsigned i = 0; i < 2; i++) {
		list[0] = host_sge(&p.b, 0, 1024);
		list[0].lkey = p.b.recv_key;
		list[1] = (struct sge){.addr = 5, .len = 4096, .lkey = 0xBAD};
		assert_int_equal(host_post_recv(&p.b, i, list, 2), 0);
	}
	inject_request(&p.b, OPCODE_RC_SEND_ONLY, PSN_A, 1024);
	expect_received(&p.b, 0, 1024);
	inject_request(&p.b, OPCODE_RC_SEND_FIRST, PSN_A + 1, 1024);
	assert_int_equal(p.b.qp.state, IBV_QPS_RTS);
	inject_request(&p.b, OPCODE_RC_SEND_LAST, PSN_A + 2, 1);
	expect_one_ack(&p.b, AETH_NAK_REM_OP, PSN_A + 2, 1);
	expect_recv_error(&p.b, 1, IBV_WC_LOC_PROT_ERR, VENDOR_RECV_SGE);
	qp_link_fini(&p);

	init(false, false);
	recv_key(0, 0, 4096, p.b.recv_key);
	inject_request(&p.b, OPCODE_RC_SEND_FIRST, PSN_A, 1024);
	assert_int_equal(key_free(&p.b.keys, p.b.recv_key), 0);
	inject_request(&p.b, OPCODE_RC_SEND_LAST, PSN_A + 1, 8);
	expect_one_ack(&p.b, AETH_NAK_REM_OP, PSN_A + 1, 0);
	expect_recv_error(&p.b, 0, IBV_WC_LOC_PROT_ERR, VENDOR_RECV_SGE);
	qp_link_fini(&p);
}

/* The PD of the SRQ is used, not that of the QP (ibv_create_srq(3), IBA 10.2.9.1). */
TEST(srq_pd_is_used)
{
	init(true, true);
	recv_key(10, 0, 4096, p.b.recv_key);
	recv_key(11, 0, 4096, p.b.lkey);
	send_two(100);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_received(&p.b, 10, 100);
	assert_true(bytes_match(p.b.mem, 100, 5));
	expect_recv_error(&p.b, 11, IBV_WC_LOC_PROT_ERR, VENDOR_RECV_SGE);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	expect_sent(&p.a, 2, IBV_WC_REM_OP_ERR);
	qp_link_fini(&p);
}

/* Receives are taken in the order of posting, one per message. One without SGEs takes a
 * message of 0 bytes. */
TEST(receives_in_order)
{
	for (unsigned srq = 0; srq < 2; srq++) {
		init(srq, false);
		for (unsigned i = 0; i < 60; i++) {
			host_recv(&p.b, 500 + i, 0, i % 3 == 0 ? 0 : 3000);
			host_send(&p.a, i, 0, i % 3 * 1400, 0);
		}
		qp_link_drain(&p);
		for (unsigned i = 0; i < 60; i++)
			expect_received(&p.b, 500 + i, i % 3 * 1400);
		qp_link_fini(&p);
	}
}

/* An empty SRQ: RNR NAK. The limit event of ibv_modify_srq(3) is raised before. */
TEST(empty_srq_sends_rnr_nak)
{
	struct srq_attr attr = {.limit = 2};

	init(true, false);
	for (unsigned i = 0; i < 3; i++)
		host_recv(&p.b, i, 0, 64);
	assert_int_equal(srq_modify(&p.b.srq, &attr, IBV_SRQ_LIMIT), 0);
	for (unsigned i = 0; i < 4; i++)
		host_send(&p.a, i, 0, 64, IBV_SEND_SIGNALED);
	qp_link_drain(&p);
	expect_event(&p.b, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_int_equal(p.b.stats.rnr_nak_sent, 1);
	host_recv(&p.b, 3, 0, 64);
	qp_link_advance(&p, NS_PER_MS);
	qp_link_drain(&p);
	for (unsigned i = 0; i < 4; i++) {
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
		expect_received(&p.b, i, 64);
	}
	qp_link_fini(&p);
}

/* IBA 11.5.2.18, SRQ error: no receive is taken any more. A message that needs one gets
 * NAK 0x63, and its QP goes to ERR. SRQ_ERR is raised once. */
TEST(srq_error_moves_qp_to_err)
{
	init(true, false);
	host_recv(&p.b, 0, 0, 64);
	__atomic_store_n(&p.b.srq.ring.prod, 100000, __ATOMIC_RELEASE);
	send_two(64);
	qp_link_drain(&p);
	expect_event(&p.b, IBV_EVENT_SRQ_ERR);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(p.b.qp.state, IBV_QPS_ERR);
	expect_sent(&p.a, 1, IBV_WC_REM_OP_ERR);
	expect_sent(&p.a, 2, IBV_WC_WR_FLUSH_ERR);
	qp_link_fini(&p);
}

/* Row 18 of docs/protocol.md 8.2, CQ overflow: NAK 0x63, CQ_ERR and QP_FATAL. The message
 * does not count as received. */
TEST(receive_cq_overflow)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.cqe = 2;
	qp_link_init(&p, &conf);
	for (unsigned i = 0; i < 5; i++)
		host_recv(&p.b, i, 0, 64);
	for (unsigned i = 0; i < 3; i++)
		inject_request(&p.b, OPCODE_RC_SEND_ONLY, PSN_A + i, 64);
	expect_one_ack(&p.b, AETH_NAK_REM_OP, PSN_A + 2, 2);
	expect_event(&p.b, IBV_EVENT_CQ_ERR);
	expect_event(&p.b, IBV_EVENT_QP_FATAL);
	expect_received(&p.b, 0, 64);
	expect_received(&p.b, 1, 64);
	expect_idle(&p.b);
	assert_int_equal(p.b.qp.state, IBV_QPS_ERR);
	assert_int_equal(recv_ring_outstanding(p.b.qp.rq), 0);
	qp_link_fini(&p);
}

/* docs/protocol.md 9: COMM_EST is raised once, at the first packet in RTR (IBA 11.6.3.5),
 * also at one behind a gap. A packet that is not admitted does not raise it, and neither
 * does one in RTS. */
TEST(comm_est_is_raised_once)
{
	for (unsigned gap = 0; gap < 2; gap++) {
		init(false, false);
		host_recv(&p.b, 0, 0, 64);
		host_recv(&p.b, 1, 0, 64);
		p.b.qp.state = IBV_QPS_RTR;
		inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_RC_SEND_ONLY,
				     .psn = PSN_A,
				     .pkey = 0x1234});
		expect_idle(&p.b);
		inject_request(&p.b, OPCODE_RC_SEND_ONLY, PSN_A + gap, 8);
		expect_event(&p.b, IBV_EVENT_COMM_EST);
		host_pull(&p.b, PULL_ALL); /* a QP in RTR answers */
		expect_ack(&p.b, 0, gap ? AETH_NAK_SEQ : AETH_ACK, PSN_A, !gap);
		wire_drop(&p.b, 0);
		if (!gap)
			expect_received(&p.b, 0, 8);
		inject_request(&p.b, OPCODE_RC_SEND_ONLY, PSN_A + !gap, 8);
		expect_received(&p.b, !gap, 8);
		expect_idle(&p.b);
		host_pull(&p.b, PULL_ALL);
		wire_drop_all(&p.b);
		qp_link_fini(&p);
	}
	init(false, false);
	host_recv(&p.b, 0, 0, 64);
	inject_request(&p.b, OPCODE_RC_SEND_ONLY, PSN_A, 8);
	expect_received(&p.b, 0, 8);
	expect_idle(&p.b);
	host_pull(&p.b, PULL_ALL);
	wire_drop_all(&p.b);
	qp_link_fini(&p);
}
