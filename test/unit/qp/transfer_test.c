/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of each size, path MTU and IP version from end to end (IBA 9.4.1, 9.7.2). */

#include <string.h>

#include "qp_link.h"

static struct qp_link p;

struct size_case {
	enum ibv_mtu mtu;
	bool ipv6;
	bool srq;
	bool imm;
	uint32_t len;
};

/* Checks the frames of one message, alone on the wire: opcodes FIRST MIDDLE.. LAST or
 * ONLY, lengths, pads, PSNs (IBA 9.7.2, C9-113). */
static void
message_check(const struct size_case *c, uint32_t psn)
{
	uint32_t mtu = mtu_bytes(c->mtu);
	uint32_t packets = c->len == 0 ? 1 : (c->len + mtu - 1) / mtu;
	uint32_t left = c->len;

	assert_int_equal(p.a.wire_count, packets);
	for (uint32_t i = 0; i < packets; i++) {
		struct pkt_view v = wire_view(&p.a, i);
		bool last = i + 1 == packets;
		uint8_t opcode =
			last ? (i == 0 ? OPCODE_RC_SEND_ONLY : OPCODE_RC_SEND_LAST)
			     : (i == 0 ? OPCODE_RC_SEND_FIRST : OPCODE_RC_SEND_MIDDLE);

		if (last && c->imm)
			/* the variant with immediate is the next opcode in both cases */
			opcode++;
		assert_int_equal(v.opcode, opcode);
		assert_int_equal(v.psn, psn_add(psn, i));
		assert_int_equal(v.payload_len, RTE_MIN(left, mtu));
		assert_int_equal(v.pad, -v.payload_len & 3);
		assert_int_equal(v.solicited, last);
		assert_int_equal(v.ip_version, c->ipv6 ? 6 : 4);
		assert_int_equal(v.ack_req, last);
		left -= v.payload_len;
	}
}

static void
size_run(const struct size_case *c)
{
	struct qp_link_conf conf = qp_link_defaults();
	struct cqe cqe;
	struct send_req req = {.wr_id = 77, .num_sge = c->len != 0, .imm = 0x12345678};
	struct sge sge;

	conf.mtu = c->mtu;
	conf.ipv6 = c->ipv6;
	conf.srq = c->srq;
	qp_link_init(&p, &conf);
	sge = host_sge(&p.a, 3, c->len);
	req.sge = &sge;
	req.opcode = c->imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
	req.flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
	bytes_fill(p.a.mem + 3, c->len, c->len);
	p.b.mem[0] = p.b.mem[c->len + 1] = 0x5A;
	host_recv(&p.b, 99, 1, c->len);
	assert_int_equal(host_post_send(&p.a, &req), 0);
	host_pull(&p.a, PULL_ALL);
	message_check(c, PSN_A);
	qp_link_drain(&p);
	expect_sent_vendor(&p.a, 77, IBV_WC_SUCCESS, c->len);
	assert_true(host_poll(&p.b, &p.b.recv_cq, &cqe));
	assert_int_equal(cqe.wr_id, 99);
	assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	assert_int_equal(cqe.byte_len, c->len);
	assert_int_equal(cqe.wc_flags, c->imm ? IBV_WC_WITH_IMM : 0);
	assert_int_equal(cqe.imm, c->imm ? 0x12345678 : 0);
	assert_int_equal(cqe.opcode, IBV_WC_RECV);
	assert_int_equal(cqe.qpn, QPN_B);
	assert_true(bytes_match(p.b.mem + 1, c->len, c->len));
	assert_int_equal(p.b.mem[0], 0x5A);
	assert_int_equal(p.b.mem[c->len + 1], 0x5A);
	qp_link_fini(&p);
}

/* n = ceil(len / PMTU) packets FIRST, MIDDLE.., LAST, or one packet ONLY
 * (docs/protocol.md 5.2). */
TEST(send_sizes)
{
	for (unsigned code = IBV_MTU_256; code <= IBV_MTU_4096; code++) {
		uint32_t mtu = mtu_bytes(code);
		uint32_t sizes[] = {
			0, 1, 2, 3, 4, 5, mtu - 1, mtu, mtu + 1, 2 * mtu, 10 * mtu + 3};

		for (unsigned i = 0; i < RTE_DIM(sizes) * 8; i++)
			size_run(&(struct size_case){
				.mtu = (enum ibv_mtu)code,
				.ipv6 = (i & 1) != 0,
				.imm = (i & 2) != 0,
				.srq = (i & 4) != 0,
				.len = sizes[i / 8],
			});
	}
}

/* SGEs on both sides are cut differently. Some SGEs that are sent are empty. */
TEST(sges_cut_differently)
{
	struct sge from[4], to[4];
	struct send_req req = {
		.wr_id = 1, .flags = IBV_SEND_SIGNALED, .sge = from, .num_sge = 4};

	qp_link_init_default(&p);
	from[0] = host_sge(&p.a, 100, 1);
	from[1] = host_sge(&p.a, 0, 0);
	from[1].lkey = 0xBAD; /* of 0 bytes: the key is not checked */
	from[2] = host_sge(&p.a, 5000, 1500);
	from[3] = host_sge(&p.a, 9000, 999);
	bytes_fill(p.a.mem + 40000, 2500, 8);
	memcpy(p.a.mem + 100, p.a.mem + 40000, 1);
	memcpy(p.a.mem + 5000, p.a.mem + 40001, 1500);
	memcpy(p.a.mem + 9000, p.a.mem + 41501, 999);
	for (unsigned i = 0; i < 4; i++) {
		to[i] = host_sge(&p.b, 1000 * i, i == 3 ? 1000 : 700);
		to[i].lkey = p.b.recv_key;
	}
	assert_int_equal(host_post_recv(&p.b, 2, to, 4), 0);
	assert_int_equal(host_post_send(&p.a, &req), 0);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_received(&p.b, 2, 2500);
	for (unsigned i = 0; i < 3; i++)
		memmove(p.b.mem + 20000 + 700 * i, p.b.mem + 1000 * i, 700);
	memmove(p.b.mem + 20000 + 2100, p.b.mem + 3000, 400);
	assert_true(bytes_match(p.b.mem + 20000, 2500, 8));
	qp_link_fini(&p);
}

/* Buffers of inline data may be reused when ibv_post_send() returns (ibv_post_send(3)).
 * With two packets the second one is read from the WQE, too. */
TEST(inline_data_is_copied)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.mtu = IBV_MTU_256;
	qp_link_init(&p, &conf);
	bytes_fill(p.a.mem, 512, 6);
	host_recv(&p.b, 2, 0, 512);
	host_send(&p.a, 1, 0, 511, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	memset(p.a.mem, 0, 512);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	wire_drop_all(&p.a);
	/* the retransmission reads from the WQE, too */
	qp_link_advance(&p, 1000 * NS_PER_MS);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_received(&p.b, 2, 511);
	assert_true(bytes_match(p.b.mem, 511, 6));
	qp_link_fini(&p);
}

/* Unsignaled requests complete without a CQE. Polling the next signaled one frees their
 * slots (ibv_post_send(3)). */
TEST(signaled_completion_frees_slots)
{
	qp_link_init_default(&p);
	for (unsigned i = 0; i < 63; i++) {
		host_recv(&p.b, i, 0, 8);
		host_send(&p.a, i, 0, 8, 0);
	}
	qp_link_drain(&p);
	for (unsigned i = 0; i < 63; i++)
		expect_received(&p.b, i, 8);
	expect_idle(&p.a);
	assert_int_equal(p.a.stats.cqe_saved, 63);
	assert_int_equal(p.a.qp.sq.freed, 0);
	host_recv(&p.b, 63, 0, 8);
	host_send(&p.a, 63, 0, 8, IBV_SEND_SIGNALED);
	qp_link_drain(&p);
	assert_int_equal(p.a.qp.sq.freed, 0);
	expect_sent(&p.a, 63, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.sq.freed, 64);
	expect_received(&p.b, 63, 8);
	qp_link_fini(&p);
}

/* Traffic in both directions at once: an acknowledgement and requests share a pull. */
TEST(traffic_in_both_directions)
{
	qp_link_init_default(&p);
	for (unsigned i = 0; i < 32; i++) {
		host_recv(&p.a, i, 30000, 4000);
		host_recv(&p.b, i, 30000, 4000);
		host_send(&p.a, i, 0, 3000, IBV_SEND_SIGNALED);
		host_send(&p.b, i, 0, 2000, IBV_SEND_SIGNALED);
	}
	qp_link_drain(&p);
	for (unsigned i = 0; i < 32; i++) {
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
		expect_received(&p.a, i, 2000);
		expect_sent(&p.b, i, IBV_WC_SUCCESS);
		expect_received(&p.b, i, 3000);
	}
	assert_memory_equal(p.a.mem, p.b.mem + 30000, 3000);
	qp_link_fini(&p);
}

#define GIANT (UINT32_C(1) << 31)

/* 16 SGEs over the same bytes: 2^31 bytes in total. */
static void
giant_list(struct sge *list, const struct host *h, uint32_t key)
{
	for (unsigned i = 0; i < 16; i++) {
		list[i] = host_sge(h, 0, GIANT / 16);
		list[i].lkey = key;
	}
}

/* The longest message has 2^31 bytes (IBA 9.4.1). One byte more, which a hostile peer may
 * send, is an invalid request (IBA 9.7.4.1.7). */
TEST(message_of_2_31_bytes)
{
	struct qp_link_conf conf = qp_link_defaults();
	struct sge list[16];
	struct send_req req = {
		.wr_id = 1, .flags = IBV_SEND_SIGNALED, .sge = list, .num_sge = 16};

	conf.mtu = IBV_MTU_4096;
	conf.sge = 16;
	conf.mem_bytes = GIANT / 16;
	qp_link_init(&p, &conf);
	bytes_fill(p.a.mem, conf.mem_bytes, 3);
	giant_list(list, &p.b, p.b.recv_key);
	assert_int_equal(host_post_recv(&p.b, 2, list, 16), 0);
	giant_list(list, &p.a, p.a.lkey);
	assert_int_equal(host_post_send(&p.a, &req), 0);
	qp_link_drain(&p);
	expect_sent_vendor(&p.a, 1, IBV_WC_SUCCESS, GIANT);
	expect_received(&p.b, 2, GIANT);
	assert_memory_equal(p.a.mem, p.b.mem, conf.mem_bytes);
	assert_int_equal(p.b.stats.rx_roce, GIANT / 4096);

	/* The receive has room for more than a message can have. All but the last packet
	 * have come. */
	for (unsigned i = 0; i < 16; i++)
		list[i] = (struct sge){.addr = (uintptr_t)p.b.mem,
			.len = GIANT / 16,
			.lkey = p.b.recv_key};
	list[15].len = GIANT;
	assert_int_equal(host_post_recv(&p.b, 3, list, 16), 0);
	inject_request(&p.b, OPCODE_RC_SEND_FIRST, psn_add(PSN_A, GIANT / 4096), 4096);
	p.b.qp.resp.received = GIANT - 4096;
	inject_request(
		&p.b, OPCODE_RC_SEND_MIDDLE, psn_add(PSN_A, GIANT / 4096 + 1), 4096);
	assert_int_equal(p.b.qp.state, IBV_QPS_RTS);
	inject_request(&p.b, OPCODE_RC_SEND_LAST, psn_add(PSN_A, GIANT / 4096 + 2), 1);
	expect_recv_error(&p.b, 3, IBV_WC_LOC_LEN_ERR, VENDOR_RECV_SHORT);
	host_pull(&p.b, PULL_ALL);
	expect_ack(&p.b, 0, AETH_NAK_INV_REQ, psn_add(PSN_A, GIANT / 4096 + 2), 1);
	wire_drop_all(&p.b);
	qp_link_fini(&p);
}

/* 2^31 bytes at path MTU 256 are 2^23 packets: the first and the last PSN are as far
 * apart as PSNs can be distinguished (IBA 9.7.1). The first packet is lost twice. */
TEST(message_of_2_23_packets)
{
	struct qp_link_conf conf = qp_link_defaults();
	struct sge list[16];
	struct send_req req = {
		.wr_id = 2, .flags = IBV_SEND_SIGNALED, .sge = list, .num_sge = 16};

	conf.mtu = IBV_MTU_256;
	conf.sge = 16;
	conf.mem_bytes = GIANT / 16;
	qp_link_init(&p, &conf);
	giant_list(list, &p.b, p.b.recv_key);
	host_recv(&p.b, 11, 0, 8);
	assert_int_equal(host_post_recv(&p.b, 12, list, 16), 0);
	host_send(&p.a, 1, 0, 8, IBV_SEND_SIGNALED);
	giant_list(list, &p.a, p.a.lkey);
	assert_int_equal(host_post_send(&p.a, &req), 0);
	host_send(&p.a, 3, 0, 8, IBV_SEND_SIGNALED);
	host_pull(&p.a, 32);
	wire_drop(&p.a, 1);
	wire_deliver_all(&p.a);
	host_pull(&p.b, 1);
	expect_ack(&p.b, 0, AETH_NAK_SEQ, psn_add(PSN_A, 1), 1);
	wire_deliver(&p.b, 0);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_idle(&p.a);
	host_pull(&p.a, 4);
	expect_frame(&p.a, 0, OPCODE_RC_SEND_FIRST, psn_add(PSN_A, 1), -1);
	wire_drop_all(&p.a);
	qp_link_advance(&p, NS_PER_SEC);
	host_pull(&p.a, 4);
	expect_frame(&p.a, 0, OPCODE_RC_SEND_FIRST, psn_add(PSN_A, 1), -1);
	wire_deliver_all(&p.a);
	expect_received(&p.b, 11, 8);
	host_pull(&p.b, 1);
	expect_ack(&p.b, 0, AETH_ACK, psn_add(PSN_A, 4), 1);
	wire_deliver(&p.b, 0);
	expect_idle(&p.a);
	assert_int_equal(p.a.qp.req.una_psn, psn_add(PSN_A, 5));
	qp_link_fini_reset(&p);
}
