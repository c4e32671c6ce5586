/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable datagram: rules of receiving (Q_Key, addresses, lengths, the 40 bytes of the
 * GRH) and of sending (docs/protocol.md 11). */
#include <string.h>

#include <rte_byteorder.h>

#include "qp_link.h"

#define GRH 40
#define SRC_QPN 0x987654

static struct qp_link p;

static void
open_ud(bool ipv6, bool srq)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.type = IBV_QPT_UD;
	conf.ipv6 = ipv6;
	conf.srq = srq;
	qp_link_init(&p, &conf);
	memset(p.b.mem, 0xEE, 0x4000);
}

static void
close_ud(void)
{
	assert_int_equal(p.b.wire_count, 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0); /* no response is sent */
	assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	qp_link_fini(&p);
}

static uint64_t
dropped(enum drop_reason why)
{
	uint64_t n = p.b.stats.drop[why];

	p.b.stats.drop[why] = 0;
	return n;
}

static struct pkt_spec
datagram(uint32_t payload_len)
{
	return (struct pkt_spec){.opcode = OPCODE_UD_SEND_ONLY,
		.payload_len = payload_len,
		.payload_key = payload_len,
		.qkey = QKEY,
		.src_qpn = SRC_QPN};
}

static void
inject_datagram(uint32_t payload_len)
{
	struct pkt_spec c = datagram(payload_len);

	inject(&p.b, &c);
}

/* All 32 bits of the Q_Key must be right, bit 31 too. Otherwise the packet is dropped and
 * counted (C9-133). */
TEST(qkey_mismatch_is_dropped)
{
	struct pkt_spec c = datagram(8);

	open_ud(false, false);
	host_recv(&p.b, 1, 0, 100);
	for (unsigned bit = 0; bit < 32; bit++) {
		c.qkey = QKEY ^ 1u << bit;
		inject(&p.b, &c);
		assert_int_equal(dropped(DROP_qkey), 1);
	}
	expect_idle(&p.b);
	inject_datagram(8);
	expect_received(&p.b, 1, GRH + 8);
	close_ud();
}

/* Dropped: another destination address, another P_Key, another service. Any source
 * address and PSN is accepted, with and without AckReq (docs/protocol.md 11.2). */
TEST(ud_admission)
{
	struct pkt_spec c;

	open_ud(false, false);
	host_recv(&p.b, 1, 0, 100);
	host_recv(&p.b, 2, 0, 100);
	c = datagram(8);
	c.dst_ip_change = 1;
	inject(&p.b, &c);
	assert_int_equal(dropped(DROP_address), 1);
	c = datagram(8);
	c.pkey = 0x8001;
	inject(&p.b, &c);
	assert_int_equal(dropped(DROP_pkey), 1);
	c.pkey = 0x7FFF; /* limited member to full member */
	c.src_ip_change = 5;
	c.psn = 0xABCDEF;
	c.ack_req = true;
	inject(&p.b, &c);
	expect_received(&p.b, 1, GRH + 8);
	c = (struct pkt_spec){.opcode = OPCODE_RC_SEND_ONLY, .payload_len = 8};
	inject(&p.b, &c);
	c.opcode = OPCODE_UC_SEND_ONLY;
	inject(&p.b, &c);
	assert_int_equal(dropped(DROP_qp_type), 2);
	c = datagram(8); /* a PSN older than the last one */
	inject(&p.b, &c);
	expect_received(&p.b, 2, GRH + 8);
	close_ud();
}

/* A receive completion has the payload's length plus 40, the sender's QPN, the immediate
 * data unchanged, and the GRH flag. */
TEST(completion_fields)
{
	struct pkt_spec c = datagram(12);
	struct cqe cqe;

	open_ud(false, false);
	host_recv(&p.b, 1, 0, 100);
	host_recv(&p.b, 2, 0, 100);
	inject(&p.b, &c);
	assert_true(host_poll(&p.b, &p.b.recv_cq, &cqe));
	assert_int_equal(cqe.byte_len, GRH + 12);
	assert_int_equal(cqe.src_qpn & 0xFFFFFF, SRC_QPN);
	assert_int_equal(cqe.opcode, IBV_WC_RECV);
	assert_int_equal(cqe.wc_flags, IBV_WC_GRH);
	assert_true(bytes_match(p.b.mem + GRH, 12, 12));
	c.opcode = OPCODE_UD_SEND_ONLY_IMM;
	c.imm = rte_cpu_to_be_32(0xCAFE);
	c.solicited = true;
	inject(&p.b, &c);
	assert_true(host_poll(&p.b, &p.b.recv_cq, &cqe));
	assert_int_equal(cqe.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(cqe.imm, rte_cpu_to_be_32(0xCAFE));
	close_ud();
}

/* Opens both ends, and sends a datagram without payload. Returns the packet on the wire. */
static struct pkt_view
datagram_send(bool ipv6)
{
	struct send_req req = {.wr_id = 1, .flags = IBV_SEND_SIGNALED};
	struct ud_dest dest;

	open_ud(ipv6, false);
	host_recv(&p.b, 1, 0, 100);
	dest = host_dest(&p.a);
	req.dest = &dest;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	host_pull(&p.a, PULL_ALL);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	return wire_view(&p.a, 0);
}

/* IPv4: 20 zero bytes and the IPv4 header. IPv6: the header. It is unchanged, with the
 * sender's traffic class and hop limit. */
TEST(grh_of_ipv4_and_ipv6)
{
	for (unsigned ipv6 = 0; ipv6 < 2; ipv6++) {
		struct pkt_view v = datagram_send(ipv6 != 0);

		if (ipv6) {
			uint8_t header[GRH];

			memcpy(header, v.ip, GRH);
			wire_deliver(&p.a, 0);
			assert_memory_equal(p.b.mem, header, GRH);
		} else {
			uint8_t header[20];

			memcpy(header, v.ip, 20);
			wire_deliver(&p.a, 0);
			for (unsigned i = 0; i < 20; i++)
				assert_int_equal(p.b.mem[i], 0);
			assert_memory_equal(p.b.mem + 20, header, 20);
		}
		expect_received(&p.b, 1, GRH);
		assert_int_equal(p.b.mem[GRH], 0xEE);
		close_ud();
	}
}

/* A datagram between programs of one host: its sender has left the checksum to a port. */
TEST(header_without_checksum_gets_it)
{
	struct pkt_view v = datagram_send(false);
	struct frame *frame = &p.a.wire[0];
	uint8_t header[20];
	struct pkt pkt;

	memcpy(header, v.ip, sizeof(header));
	assert_true(header[10] != 0 || header[11] != 0);
	memset((uint8_t *)(uintptr_t)v.ip + 10, 0, 2);
	pkt = (struct pkt){.data = frame->data,
		.len = (uint16_t)frame->len,
		.room = (uint16_t)frame->len,
		.flags = PKT_RX_IPV4_CKSUM_OK};
	assert_int_equal(pkt_parse_headers(&pkt, 0, &v), DROP_none);
	assert_true(qp_icrc_check(&p.b.qp, &v));
	qp_rx(&p.b.qp, &v, p.now);
	wire_drop(&p.a, 0);
	assert_memory_equal(p.b.mem + 20, header, sizeof(header));
	expect_received(&p.b, 1, GRH);
	close_ud();
}

/* The 40 bytes and the payload are scattered over SGEs of any length, without gaps, and
 * nothing is written behind them. */
TEST(grh_across_sges)
{
	for (unsigned srq = 0; srq < 2; srq++) {
		for (uint32_t cut = 1; cut < GRH + 24; cut++) {
			struct sge sges[3];

			open_ud(false, srq != 0);
			sges[0] = host_sge(&p.b, 0x1000, cut);
			sges[1] = host_sge(&p.b, 0x2000, 5);
			sges[2] = host_sge(&p.b, 0x3000, GRH + 24);
			for (unsigned i = 0; i < 3; i++)
				sges[i].lkey = p.b.recv_key;
			assert_int_equal(host_post_recv(&p.b, 1, sges, 3), 0);
			inject_datagram(24);
			expect_received(&p.b, 1, GRH + 24);
			memcpy(p.b.mem, p.b.mem + 0x1000, cut);
			memcpy(p.b.mem + cut, p.b.mem + 0x2000, 5);
			memcpy(p.b.mem + cut + 5, p.b.mem + 0x3000, GRH + 24);
			assert_int_equal(p.b.mem[20], 0x45); /* the IPv4 header */
			assert_true(bytes_match(p.b.mem + GRH, 24, 24));
			assert_int_equal(p.b.mem[0x1000 + cut], 0xEE);
			assert_int_equal(p.b.mem[0x2000 + 5], 0xEE);
			close_ud();
		}
	}
}

/* A receive that is too short is kept for a datagram that fits. One without room for the
 * GRH takes none (row 17 of docs/protocol.md 8.2; docs/protocol.md 19). */
TEST(short_receive_is_kept)
{
	static const struct {
		uint32_t room, len;
		bool fits;
	} rows[] = {{GRH, 0, true}, {GRH, 1, false}, {GRH + 20, 21, false},
		{GRH + 20, 20, true}, {GRH - 1, 0, false}, {1, 0, false},
		{GRH + 4096, 4096, true}, {GRH + 4095, 4096, false}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		open_ud(false, false);
		host_recv(&p.b, 1, 0, rows[i].room);
		inject_datagram(rows[i].len);
		if (rows[i].fits) {
			expect_received(&p.b, 1, GRH + rows[i].len);
		} else {
			expect_idle(&p.b);
			assert_int_equal(dropped(DROP_receive_short), 1);
			assert_int_equal(p.b.mem[0], 0xEE); /* no byte is written */
		}
		assert_int_equal(p.b.mem[rows[i].room], 0xEE);
		assert_int_equal(qp_state(&p.b.qp), IBV_QPS_RTS);
		if (!rows[i].fits && rows[i].room > GRH) {
			inject_datagram(rows[i].room - GRH);
			expect_received(&p.b, 1, rows[i].room);
		} else if (!rows[i].fits) {
			assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
			expect_recv_error(&p.b, 1, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
		}
		close_ud();
	}
}

/* Without a receive the datagram is dropped and counted. The next one that finds a
 * receive is taken. */
TEST(datagram_without_receive)
{
	open_ud(false, false);
	inject_datagram(8);
	assert_int_equal(dropped(DROP_no_receive), 1);
	host_recv(&p.b, 1, 0, 100);
	inject_datagram(9);
	expect_received(&p.b, 1, GRH + 9);
	close_ud();
}

/* An SRQ: a datagram is dropped when it is empty, the limit event is raised, and an SRQ
 * error moves the QP to ERR. */
TEST(datagrams_to_srq)
{
	struct srq_attr attr = {.limit = 1};

	open_ud(false, true);
	inject_datagram(8);
	assert_int_equal(dropped(DROP_no_receive), 1);
	assert_int_equal(qp_state(&p.b.qp), IBV_QPS_RTS);
	host_recv(&p.b, 1, 0, GRH + 8);
	assert_int_equal(srq_modify(&p.b.srq, &attr, IBV_SRQ_LIMIT), 0);
	inject_datagram(9); /* too long for the receive, which is kept for the next one */
	assert_int_equal(dropped(DROP_receive_short), 1);
	expect_event(&p.b, IBV_EVENT_SRQ_LIMIT_REACHED);
	inject_datagram(8);
	expect_received(&p.b, 1, GRH + 8);
	host_recv(&p.b, 2, 0, 100);
	p.b.srq.error = true;
	inject_datagram(8);
	assert_int_equal(qp_state(&p.b.qp), IBV_QPS_ERR);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(dropped(DROP_no_receive), 1);
	assert_int_equal(recv_ring_outstanding(&p.b.srq.ring), 1);
	close_ud();
}

/* Row 18 of docs/protocol.md 8.2: a receive whose memory cannot be written moves the QP
 * to ERR. */
TEST(unwritable_receive_moves_qp_to_err)
{
	struct sge sge;

	open_ud(false, false);
	sge = host_sge(&p.b, 0, 100);
	sge.lkey = p.b.recv_key ^ 1;
	assert_int_equal(host_post_recv(&p.b, 1, &sge, 1), 0);
	host_recv(&p.b, 2, 0, 100);
	inject_datagram(8);
	expect_recv_error(&p.b, 1, IBV_WC_LOC_PROT_ERR, VENDOR_RECV_SGE);
	expect_recv_error(&p.b, 2, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
	assert_int_equal(qp_state(&p.b.qp), IBV_QPS_ERR);
	inject_datagram(8);
	assert_int_equal(dropped(DROP_qp_state), 1);
	close_ud();
}

/* A datagram has the Q_Key of the request, or that of the QP if bit 31 is set (IBA
 * 10.2.5), the QP's QPN, consecutive PSNs, no AckReq. Inline data makes no difference. */
TEST(sent_datagram_fields)
{
	struct ud_dest dest;
	struct sge sge;
	struct send_req req = {.sge = &sge, .num_sge = 1, .dest = &dest};

	open_ud(false, false);
	sge = host_sge(&p.a, 0, 300);
	bytes_fill(p.a.mem, 300, 4);
	dest = host_dest(&p.a);
	for (unsigned i = 0; i < 4; i++) {
		req.wr_id = i;
		req.flags = i == 3 ? IBV_SEND_SIGNALED | IBV_SEND_SOLICITED : 0;
		req.flags |= i & 1 ? IBV_SEND_INLINE : 0;
		dest.qkey = i < 2 ? 0x7FFFFFFF : 0x80000001;
		assert_int_equal(host_post_send(&p.a, &req), 0);
	}
	assert_int_equal(host_pull(&p.a, PULL_ALL), 4);
	for (unsigned i = 0; i < 4; i++) {
		struct pkt_view v = wire_view(&p.a, i);

		expect_frame(&p.a, i, OPCODE_UD_SEND_ONLY, PSN_A + i, 0);
		assert_int_equal(
			rte_be_to_cpu_32(view_deth(&v)->qkey), i < 2 ? 0x7FFFFFFF : QKEY);
		assert_int_equal(be24_get(view_deth(&v)->src_qpn), QPN_A);
		assert_int_equal(v.solicited, i == 3);
		assert_int_equal(v.payload_len, 300);
		assert_true(bytes_match(v.payload, 300, 4));
	}
	wire_drop_all(&p.a);
	expect_sent(&p.a, 3, IBV_WC_SUCCESS);
	close_ud();
}

/* An unreadable SGE: SQE. Requests behind it are flushed, receiving goes on. */
TEST(send_error_moves_qp_to_sqe)
{
	struct ud_dest dest;
	struct sge sge;
	struct send_req req = {.wr_id = 1, .sge = &sge, .num_sge = 1, .dest = &dest};

	open_ud(false, false);
	dest = host_dest(&p.a);
	sge = host_sge(&p.a, 0, 8);
	sge.lkey ^= 1;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	sge.lkey ^= 1;
	req.wr_id = 2;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	host_pull(&p.a, PULL_ALL);
	expect_sent_vendor(&p.a, 1, IBV_WC_LOC_PROT_ERR, VENDOR_SEND_SGE);
	expect_sent(&p.a, 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(p.a.wire_count, 0);
	assert_int_equal(qp_state(&p.a.qp), IBV_QPS_SQE);
	host_recv(&p.a, 3, 0x4000, 100);
	inject(&p.a, &(struct pkt_spec){.opcode = OPCODE_UD_SEND_ONLY, .qkey = QKEY});
	expect_received(&p.a, 3, GRH);
	assert_int_equal(host_modify(&p.a, IBV_QPS_RTS), 0);
	req.wr_id = 4;
	req.flags = IBV_SEND_SIGNALED;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_drop_all(&p.a);
	expect_sent(&p.a, 4, IBV_WC_SUCCESS);
	close_ud();
}
