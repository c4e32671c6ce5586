/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA WRITE with and without immediate: packets sent, bytes written and bytes not
 * written (docs/protocol.md 5 and 8; IBA 9.4.3, 9.7.4.1). R_Keys: write_key_test.c. */
#include <rte_byteorder.h>

#include "write_fixture.h"

static uint32_t
mtu_of(void)
{
	return mtu_bytes(p.conf.mtu);
}

/* ---- Packets sent ---- */

/* FIRST, MIDDLE .., LAST or ONLY. FIRST and ONLY have a RETH with the address and length
 * of the message, the last packet the ImmDt. All packets but the last are full. SE is set
 * only with immediate. */
static void
frames_check(uint32_t len, bool imm)
{
	uint32_t mtu = mtu_of(), count = RTE_MAX((len + mtu - 1) / mtu, 1u);

	assert_int_equal(p.a.wire_count, count);
	for (uint32_t i = 0; i < count; i++) {
		struct pkt_view v = wire_view(&p.a, i);
		bool first = i == 0, last = i + 1 == count;
		uint8_t plain = last ? OPCODE_RC_WRITE_LAST : OPCODE_RC_WRITE_MIDDLE;

		if (first)
			plain = last ? OPCODE_RC_WRITE_ONLY : OPCODE_RC_WRITE_FIRST;
		assert_int_equal(v.opcode, plain + (imm && last));
		assert_int_equal(v.psn, psn_add(PSN_A, i));
		assert_int_equal(v.payload_len, last ? len - i * mtu : mtu);
		assert_int_equal(v.solicited, imm && last);
		assert_int_equal((v.op->hdrs & HDR_RETH) != 0, first);
		assert_int_equal((v.op->hdrs & HDR_IMM) != 0, imm && last);
		if (first) {
			assert_int_equal(rte_be_to_cpu_64(view_reth(&v)->va),
				(uintptr_t)p.b.mem + REMOTE);
			assert_int_equal(rte_be_to_cpu_32(view_reth(&v)->rkey), p.b.rkey);
			assert_int_equal(rte_be_to_cpu_32(view_reth(&v)->len), len);
		}
		if (imm && last)
			assert_int_equal(view_imm_be(&v), 0x11223344);
	}
}

static void
size_run(uint32_t len, bool imm, bool inlined)
{
	struct sge sge;
	struct send_req req = host_rdma(&p.a, &sge, len,
		imm ? IBV_WR_RDMA_WRITE_WITH_IMM : WR_RDMA_WRITE, 0, REMOTE, len);
	struct cqe cqe;

	write_target_clear(len);
	bytes_fill(p.a.mem, len, len);
	req.imm = 0x11223344;
	req.flags |= IBV_SEND_SOLICITED | (inlined ? (unsigned)IBV_SEND_INLINE : 0);
	if (imm)
		host_recv(&p.b, 7, 0, 16); /* its memory is not written */
	assert_int_equal(host_post_send(&p.a, &req), 0);
	if (inlined)
		memset(p.a.mem, 0, len); /* the post has copied the data */
	host_pull(&p.a, PULL_ALL);
	frames_check(len, imm);
	qp_link_drain(&p);
	expect_sent(&p.a, len, IBV_WC_SUCCESS);
	expect_written(len, len);
	if (imm) {
		assert_true(host_poll(&p.b, &p.b.recv_cq, &cqe));
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
		assert_int_equal(cqe.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(cqe.wr_id, 7);
		assert_int_equal(cqe.byte_len, len);
		assert_int_equal(cqe.imm, 0x11223344);
		assert_int_equal(cqe.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
	}
	expect_idle(&p.b); /* a plain WRITE completes nothing at the responder */
	qp_link_fini(&p);
}

/* Each edge of each MTU, over both IP versions. */
TEST(write_sizes)
{
	for (int variant = 0; variant < 4; variant++) {
		for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
			uint32_t m = mtu_bytes((enum ibv_mtu)mtu);
			const uint32_t lens[] = {0, 1, 3, 4, m - 1, m, m + 1, 2 * m - 1,
				2 * m, 2 * m + 1, 3 * m, 3 * m + 5};

			for (unsigned i = 0; i < RTE_DIM(lens); i++) {
				struct qp_link_conf conf = qp_link_defaults_rdma();

				conf.ipv6 = variant & 1;
				conf.mtu = (enum ibv_mtu)mtu;
				qp_link_init(&p, &conf);
				size_run(lens[i], variant & 2, false);
			}
		}
	}
}

TEST(inline_write)
{
	static const uint32_t lens[] = {0, 1, 255, 256, 257, 512};

	for (unsigned i = 0; i < 2 * RTE_DIM(lens); i++) {
		struct qp_link_conf conf = qp_link_defaults_rdma();

		conf.mtu = IBV_MTU_256;
		qp_link_init(&p, &conf);
		size_run(lens[i / 2], i % 2, true);
	}
}

/* ---- Packets built by the test ---- */

static void
expect_qp_error(uint8_t syndrome, uint32_t psn, enum ibv_event_type event)
{
	write_expect_ack(syndrome, psn, 0);
	assert_int_equal(p.b.qp.state, IBV_QPS_ERR);
	expect_event(&p.b, event);
	/* docs/protocol.md 8.8: nothing else is answered. */
	inject_write(&(struct write_packet){OPCODE_RC_WRITE_ONLY, 0, 0}, psn, 0, 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	expect_idle(&p.b);
}

/* Rows 13 and 15 of docs/protocol.md 8.2: lengths against the MTU and the DMA length. The
 * first invalid packet gets NAK 0x61, and none of its bytes is written. */
TEST(invalid_lengths_are_refused)
{
	static const struct {
		struct write_packet pkts[3];
		unsigned good; /* packets that are accepted */
	} rows[] = {
		{{{OPCODE_RC_WRITE_ONLY, 60, 100}}, 0},
		{{{OPCODE_RC_WRITE_ONLY, 100, 60}}, 0},
		{{{OPCODE_RC_WRITE_ONLY, 0, 8}}, 0},
		{{{OPCODE_RC_WRITE_ONLY, 8, 0}}, 0},
		{{{OPCODE_RC_WRITE_ONLY, 1024, 2048}}, 0},
		{{{OPCODE_RC_WRITE_ONLY, 1028, 1028}}, 0}, /* more than the MTU */
		{{{OPCODE_RC_WRITE_ONLY_IMM, 60, 100}}, 0},
		{{{OPCODE_RC_WRITE_FIRST, 1000, 3000}}, 0}, /* not full */
		{{{OPCODE_RC_WRITE_FIRST, 1028, 3000}}, 0},
		{{{OPCODE_RC_WRITE_FIRST, 1024, 1000}}, 0}, /* fits one packet */
		{{{OPCODE_RC_WRITE_FIRST, 1024, 1024}}, 0},
		{{{OPCODE_RC_WRITE_FIRST, 1024, 0}}, 0},
		{{{OPCODE_RC_WRITE_FIRST, 1024, 0x80000001}}, 0},
		{{{OPCODE_RC_WRITE_FIRST, 1024, 0xFFFFFFFF}}, 0},
		{{{OPCODE_RC_WRITE_ONLY, 1, 0x80000001}}, 0},
		{{{OPCODE_RC_WRITE_FIRST, 1024, 2000}, {OPCODE_RC_WRITE_LAST, 975, 0}},
			1}, /* short */
		{{{OPCODE_RC_WRITE_FIRST, 1024, 2000}, {OPCODE_RC_WRITE_LAST, 977, 0}},
			1}, /* excess */
		{{{OPCODE_RC_WRITE_FIRST, 1024, 2000}, {OPCODE_RC_WRITE_LAST, 0, 0}}, 1},
		{{{OPCODE_RC_WRITE_FIRST, 1024, 2000}, {OPCODE_RC_WRITE_MIDDLE, 1024, 0}},
			1}, /* more than is left */
		{{{OPCODE_RC_WRITE_FIRST, 1024, 2048}, {OPCODE_RC_WRITE_MIDDLE, 1024, 0}},
			1}, /* LAST was due */
		{{{OPCODE_RC_WRITE_FIRST, 1024, 4000}, {OPCODE_RC_WRITE_MIDDLE, 500, 0}},
			1},
		{{{OPCODE_RC_WRITE_FIRST, 1024, 4000}, {OPCODE_RC_WRITE_LAST, 1024, 0}},
			1},
		{{{OPCODE_RC_WRITE_FIRST, 1024, 3000}, {OPCODE_RC_WRITE_MIDDLE, 1024, 0},
			 {OPCODE_RC_WRITE_LAST_IMM, 951, 0}},
			2},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct qp_link_conf conf = qp_link_defaults_rdma();
		unsigned k;

		qp_link_init(&p, &conf);
		write_target_clear(8192);
		for (k = 0; k <= rows[i].good; k++) {
			inject_write(&rows[i].pkts[k], PSN_A + k, p.b.rkey,
				(uintptr_t)p.b.mem + REMOTE);
			if (k < rows[i].good)
				write_expect_ack(AETH_ACK, PSN_A + k, 0);
		}
		expect_qp_error(AETH_NAK_INV_REQ, PSN_A + k - 1, IBV_EVENT_QP_REQ_ERR);
		expect_untouched(REMOTE + 1024 * rows[i].good, 4096);
		qp_link_fini(&p);
	}
}

/* With a DMA length of 0 neither address nor R_Key is checked (docs/protocol.md 5.2). */
TEST(write_of_0_bytes)
{
	static const struct write_packet zero = {OPCODE_RC_WRITE_ONLY, 0, 0};
	struct qp_link_conf conf = qp_link_defaults_rdma();

	qp_link_init(&p, &conf);
	inject_write(&zero, PSN_A, 0xDEADBE00, UINT64_MAX);
	write_expect_ack(AETH_ACK, PSN_A, 1);
	inject_write(&zero, PSN_A + 1, 0, 0);
	write_expect_ack(AETH_ACK, PSN_A + 1, 2);
	expect_idle(&p.b);
	qp_link_fini(&p);
}

/* ---- Access flags of the QP ---- */

/* Row 10 of docs/protocol.md 8.2: without IBV_ACCESS_REMOTE_WRITE in the QP's access
 * flags a WRITE is an invalid request, whatever the key grants. */
TEST(qp_access_is_required)
{
	static const struct write_packet packets[] = {
		{OPCODE_RC_WRITE_ONLY, 8, 8},
		{OPCODE_RC_WRITE_ONLY, 0, 0},
		{OPCODE_RC_WRITE_ONLY_IMM, 8, 8},
		{OPCODE_RC_WRITE_FIRST, 1024, 2000},
	};

	for (unsigned i = 0; i < RTE_DIM(packets); i++) {
		struct qp_link_conf conf = qp_link_defaults_rdma();

		qp_link_init(&p, &conf);
		p.b.qp.access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
		write_target_clear(2000);
		inject_write(&packets[i], PSN_A, p.b.rkey, (uintptr_t)p.b.mem + REMOTE);
		expect_qp_error(AETH_NAK_INV_REQ, PSN_A, IBV_EVENT_QP_REQ_ERR);
		expect_untouched(REMOTE, 2000);
		qp_link_fini(&p);
	}
}

/* Both NAKs at the requester: status, and the requests behind are flushed. */
TEST(nak_fails_write)
{
	for (int access = 0; access < 2; access++) {
		struct qp_link_conf conf = qp_link_defaults_rdma();
		struct send_req req;
		struct sge sge;

		qp_link_init(&p, &conf);
		if (access == 0)
			p.b.qp.access = 0;
		host_recv(&p.b, 9, 0, 16);
		host_send(&p.a, 1, 0, 8, 0); /* complete before, unsignaled */
		req = host_rdma(&p.a, &sge, 2, WR_RDMA_WRITE, 0, REMOTE, 3000);
		req.flags = 0; /* a failed request always completes */
		req.rkey ^= access;
		assert_int_equal(host_post_send(&p.a, &req), 0);
		host_write(&p.a, 3, 0, REMOTE, 8);
		qp_link_drain(&p);
		expect_received(&p.b, 9, 8);
		expect_event(
			&p.b, access ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
		expect_sent(
			&p.a, 2, access ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_INV_REQ_ERR);
		expect_sent(&p.a, 3, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
		qp_link_fini(&p);
	}
}

/* ---- Immediate ---- */

static void
write_imm(uint64_t wr_id, uint32_t len)
{
	struct sge sge;
	struct send_req req =
		host_rdma(&p.a, &sge, wr_id, IBV_WR_RDMA_WRITE_WITH_IMM, 0, REMOTE, len);

	req.imm = 1;
	assert_int_equal(host_post_send(&p.a, &req), 0);
}

/* Row 12 of docs/protocol.md 8.2: the last packet takes the receive, so the RNR NAK names
 * that packet. The packets before are written once and not resent. With RQ and SRQ. */
TEST(rnr_nak_at_last_packet)
{
	for (int srq = 0; srq < 2; srq++) {
		struct qp_link_conf conf = qp_link_defaults_rdma();

		conf.srq = srq;
		qp_link_init(&p, &conf);
		write_target_clear(3000);
		bytes_fill(p.a.mem, 3000, 4);
		write_imm(1, 3000);
		host_pull(&p.a, PULL_ALL);
		wire_deliver_all(&p.a);
		assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
		expect_ack(&p.b, 0, AETH_RNR_NAK | 12, PSN_A + 2, 0);
		expect_untouched(REMOTE + 2048, 952 + GUARD);
		wire_deliver_all(&p.b);
		host_recv(&p.b, 3, 0, 0);
		host_recv(&p.b, 4, 0, 16);
		qp_link_advance(&p, 10 * NS_PER_MS);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
		expect_frame(&p.a, 0, OPCODE_RC_WRITE_LAST_IMM, PSN_A + 2, 1);
		write_imm(2, 0);
		qp_link_drain(&p);
		expect_written(3000, 4);
		expect_received(&p.b, 3, 3000);
		expect_received(&p.b, 4, 0);
		expect_sent(&p.a, 1, IBV_WC_SUCCESS);
		expect_sent(&p.a, 2, IBV_WC_SUCCESS);
		qp_link_fini(&p);
	}
}

/* A wrong key costs the receive, of an SRQ, too: it completes in error (IBA 11.6.2), and the program may post
 * it again. */
TEST(bad_key_fails_the_receive)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();
	struct sge sge;
	struct send_req req;

	conf.srq = true;
	qp_link_init(&p, &conf);
	host_recv(&p.b, 3, 0, 16);
	req = host_rdma(&p.a, &sge, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 0, REMOTE, 8);
	req.rkey ^= 0x80;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_REM_ACCESS_ERR);
	expect_recv_error(&p.b, 3, IBV_WC_LOC_ACCESS_ERR, VENDOR_RKEY);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(recv_ring_outstanding(&p.b.srq.ring), 0);
	qp_link_fini(&p);
}

/* ---- Loss ---- */

/* Each packet of a message is lost once, then its ACK. The data is right, and one receive
 * is taken. A duplicate writes nothing: the application may have changed the memory
 * since. */
TEST(lost_packets_of_write)
{
	for (unsigned lost = 0; lost < 5; lost++) {
		struct qp_link_conf conf = qp_link_defaults_rdma();

		qp_link_init(&p, &conf);
		write_target_clear(4000);
		bytes_fill(p.a.mem, 4000, lost);
		host_recv(&p.b, 1, 0, 0);
		host_recv(&p.b, 2, 0, 0);
		write_imm(1, 4000);
		host_pull(&p.a, PULL_ALL);
		if (lost < 4)
			wire_drop(&p.a, lost);
		wire_deliver_all(&p.a);
		host_pull(&p.b, PULL_ALL);
		if (lost == 4) {
			wire_drop_all(&p.b);
			p.b.mem[REMOTE] ^= 0xFF;
		}
		wire_deliver_all(&p.b);
		qp_link_advance(&p, 100 * NS_PER_MS);
		qp_link_drain(&p);
		expect_sent(&p.a, 1, IBV_WC_SUCCESS);
		expect_received(&p.b, 1, 4000);
		if (lost == 4)
			p.b.mem[REMOTE] ^= 0xFF;
		expect_written(4000, lost);
		assert_int_equal(recv_ring_outstanding(p.b.qp.rq), 1);
		assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
		qp_link_fini(&p);
	}
}

/* An unreadable local SGE: no packet of the WRITE is sent. */
TEST(unreadable_sge_sends_nothing)
{
	static const uint32_t lens[] = {8, 3000};

	for (unsigned i = 0; i < RTE_DIM(lens); i++) {
		struct qp_link_conf conf = qp_link_defaults_rdma();
		struct send_req req;
		struct sge sge;

		qp_link_init(&p, &conf);
		req = host_rdma(&p.a, &sge, 1, WR_RDMA_WRITE, 0, REMOTE, lens[i]);
		sge.lkey ^= 1;
		assert_int_equal(host_post_send(&p.a, &req), 0);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
		expect_sent_vendor(&p.a, 1, IBV_WC_LOC_PROT_ERR, VENDOR_SEND_SGE);
		qp_link_fini(&p);
	}
}
