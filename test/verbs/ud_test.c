/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams: UD QPs, address handles and the 40 bytes before a received payload. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "verbs_pair.h"

#define QKEY 0x11223344
#define GRH 40
/* Offset in b's memory; each receive has a slot of SLOT bytes. */
#define RECV_AREA 131072
#define SLOT 8192

static struct verbs_pair pair;
static struct verbs_pair_conf conf;
static struct ibv_qp *tx, *rx;
static struct ibv_ah *ah;

static struct ibv_qp *
ud_qp(struct verbs_side *s)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s->send_cq,
		.recv_cq = s->recv_cq,
		.srq = s->srq,
		.cap = {.max_send_wr = 16,
			.max_send_sge = 2,
			.max_recv_wr = 16,
			.max_recv_sge = 3,
			.max_inline_data = 100},
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp *qp = ibv_create_qp(s->pd, &attr);

	assert_non_null(qp);
	assert_true(attr.cap.max_inline_data >= 100);
	pair_ud_to_rts(qp, QKEY, 0xFFFFFE);
	return qp;
}

static void
open_ud(bool ipv6, unsigned srq_wr)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

	conf = (struct verbs_pair_conf){.ipv6 = ipv6, .srq_wr = srq_wr, .srq_sge = 3};
	pair_open(&pair, &conf);
	tx = ud_qp(&pair.a);
	rx = ud_qp(&pair.b);
	attr.grh.dgid = pair.b.gid;
	for (attr.grh.sgid_index = 0;; attr.grh.sgid_index++) {
		union ibv_gid gid;

		assert_int_equal(
			ibv_query_gid(pair.a.context, 1, attr.grh.sgid_index, &gid), 0);
		if (memcmp(&gid, &pair.a.gid, sizeof(gid)) == 0)
			break;
	}
	ah = ibv_create_ah(pair.a.pd, &attr);
	assert_non_null(ah);
	for (size_t i = 0; i < RECV_AREA; i++)
		pair.a.mem[i] = (uint8_t)(i * 7 + (i >> 8));
}

static void
close_ud(void)
{
	if (ah != NULL)
		assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_qp(tx), 0);
	assert_int_equal(ibv_destroy_qp(rx), 0);
	pair_close(&pair);
}

static struct ibv_send_wr
datagram(struct ibv_sge *sge, uint32_t len)
{
	*sge = (struct ibv_sge){(uintptr_t)pair.a.mem, len, pair.a.mr->lkey};
	return (struct ibv_send_wr){
		.wr_id = len,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = {.ah = ah, .remote_qpn = rx->qp_num, .remote_qkey = QKEY},
	};
}

static void
send_one(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(tx, wr, &bad), 0);
}

/* Posts a receive of len bytes in slot n, with three SGEs whose bounds are within the 40
 * bytes and within the payload. */
static void
post_receive(unsigned n, uint32_t len)
{
	uint64_t base = (uintptr_t)pair.b.mem + RECV_AREA + n * SLOT;
	uint32_t cut[2] = {len < 13 ? len : 13, len < 47 ? len : 47};
	struct ibv_sge sge[3] = {
		{base, cut[0], pair.b.mr->lkey},
		{base + cut[0], cut[1] - cut[0], pair.b.mr->lkey},
		{base + cut[1], len - cut[1], pair.b.mr->lkey},
	};
	/* A receive SGE of length 0 means 2^31 bytes: omit empty ones. */
	struct ibv_recv_wr wr = {.wr_id = n, .sg_list = sge, .num_sge = len > 47 ? 3 : 2};
	struct ibv_recv_wr *bad;

	assert_int_equal(pair.b.srq != NULL ? ibv_post_srq_recv(pair.b.srq, &wr, &bad)
					    : ibv_post_recv(rx, &wr, &bad),
		0);
}

static const uint8_t *
slot(const struct ibv_wc *wc)
{
	return pair.b.mem + RECV_AREA + wc->wr_id * SLOT;
}

static void
expect_received(const struct ibv_wc *wc, uint32_t len)
{
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_int_equal(wc->opcode, IBV_WC_RECV);
	assert_int_equal(wc->byte_len, GRH + len);
	assert_int_equal(wc->qp_num, rx->qp_num);
	assert_int_equal(wc->src_qp, tx->qp_num);
	assert_true(wc->wc_flags & IBV_WC_GRH);
	assert_memory_equal(slot(wc) + GRH, pair.a.mem, len);
}

static void
datagram_sizes_run(bool ipv6, unsigned srq_wr)
{
	static const uint32_t lens[] = {0, 1, 2, 3, 4, 5, 255, 1024, 4095, 4096};
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;

	open_ud(ipv6, srq_wr);
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		post_receive(i, SLOT);
		wr = datagram(&sge, lens[i]);
		send_one(&wr);
		pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_SEND);
		pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
		expect_received(&wc, lens[i]);
		/* The 40 bytes are the IPv6 header, or end with the IPv4 header. */
		assert_int_equal(slot(&wc)[ipv6 ? 0 : 20] >> 4, ipv6 ? 6 : 4);
		assert_int_equal(wc.sl, ipv6 ? 0x9 : 0xA);
	}
	close_ud();
}

TEST(datagram_sizes_ipv4)
{
	datagram_sizes_run(false, 0);
}

TEST(datagram_sizes_ipv6)
{
	datagram_sizes_run(true, 0);
}

TEST(datagram_sizes_with_srq)
{
	datagram_sizes_run(false, 16);
}

/* The receiver replies to the source address in the 40 bytes. */
static void
answer(bool ipv6)
{
	struct ibv_ah *back;
	struct ibv_ah_attr attr;
	struct ibv_send_wr wr, *bad;
	struct ibv_recv_wr recv = {.num_sge = 1}, *bad_recv;
	struct ibv_sge sge, to;
	struct ibv_wc wc;

	open_ud(ipv6, 0);
	post_receive(0, SLOT);
	wr = datagram(&sge, 10);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = htonl(4711);
	send_one(&wr);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	expect_received(&wc, 10);
	assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), 4711);

	assert_int_equal(ibv_init_ah_from_wc(pair.b.context, 1, &wc,
				 (struct ibv_grh *)(uintptr_t)slot(&wc), &attr),
		0);
	assert_memory_equal(&attr.grh.dgid, &pair.a.gid, sizeof(pair.a.gid));
	assert_int_equal(ibv_init_ah_from_wc(pair.b.context, 2, &wc,
				 (struct ibv_grh *)(uintptr_t)slot(&wc), &attr),
		-1);
	back = ibv_create_ah_from_wc(
		pair.b.pd, &wc, (struct ibv_grh *)(uintptr_t)slot(&wc), 1);
	assert_non_null(back);
	to = (struct ibv_sge){(uintptr_t)pair.a.mem + RECV_AREA, SLOT, pair.a.mr->lkey};
	recv.sg_list = &to;
	assert_int_equal(ibv_post_recv(tx, &recv, &bad_recv), 0);
	sge = (struct ibv_sge){(uintptr_t)slot(&wc), 50, pair.b.mr->lkey};
	wr.wr.ud.ah = back;
	wr.wr.ud.remote_qpn = wc.src_qp;
	assert_int_equal(ibv_post_send(rx, &wr, &bad), 0);
	/* the post copied the address handle */
	assert_int_equal(ibv_destroy_ah(back), 0);
	pair_poll_cq(&pair, pair.b.send_cq, &wc, 1);
	pair_poll_cq(&pair, pair.a.recv_cq, &wc, 1);
	assert_int_equal(wc.byte_len, GRH + 50);
	assert_int_equal(wc.src_qp, rx->qp_num);
	close_ud();
}

TEST(reply_to_source_in_grh)
{
	answer(false);
	answer(true);
}

/* A datagram with another Q_Key is dropped and counted. Bit 31 selects the QP's own
 * Q_Key. */
TEST(qkey_mismatch_is_dropped)
{
	struct ibv_port_attr port;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;

	open_ud(false, 0);
	post_receive(0, SLOT);
	wr = datagram(&sge, 8);
	wr.wr.ud.remote_qkey = QKEY + 1;
	send_one(&wr);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	pair_no_completion(&pair, pair.b.recv_cq);
	assert_int_equal(pair_stat(&pair.b, "drop_qkey"), 1);
	assert_int_equal(ibv_query_port(pair.b.context, 1, &port), 0);
	assert_int_equal(port.qkey_viol_cntr, 1);
	assert_int_equal(port.bad_pkey_cntr, 0);
	wr.wr.ud.remote_qkey = 0x80000000;
	send_one(&wr);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	expect_received(&wc, 8);
	close_ud();
}

/* Without a receive, or with one that is too short, the datagram is dropped and counted.
 * The short receive takes the next one. */
TEST(datagram_without_room_is_dropped)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;

	open_ud(false, 0);
	wr = datagram(&sge, 100);
	send_one(&wr);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	pair_no_completion(&pair, pair.b.recv_cq);
	assert_int_equal(pair_stat(&pair.b, "drop_no_receive"), 1);
	post_receive(3, GRH + 99);
	send_one(&wr);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	pair_no_completion(&pair, pair.b.recv_cq);
	assert_int_equal(pair_stat(&pair.b, "drop_receive_short"), 1);
	wr = datagram(&sge, 99);
	send_one(&wr);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.wr_id, 3);
	expect_received(&wc, 99);
	close_ud();
}

static void
post_refused(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;

	assert_int_equal(ibv_post_send(tx, wr, &bad), EINVAL);
	assert_ptr_equal(bad, wr);
}

TEST(invalid_sends_are_refused)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	open_ud(false, 0);
	wr = datagram(&sge, 4097); /* larger than a packet */
	post_refused(&wr);
	wr = datagram(&sge, 8);
	wr.wr.ud.ah = NULL;
	post_refused(&wr);
	wr = datagram(&sge, 8);
	wr.wr.ud.remote_qpn = 1 << 24;
	post_refused(&wr);
	wr = datagram(&sge, 8);
	wr.opcode = IBV_WR_RDMA_WRITE;
	post_refused(&wr);
	attr.grh.dgid = pair.b.gid;
	attr.port_num = 2;
	assert_null(ibv_create_ah(pair.a.pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.port_num = 1;
	attr.grh.sgid_index = 9; /* an empty GID entry */
	assert_null(ibv_create_ah(pair.a.pd, &attr));
	attr.grh.sgid_index = 0;
	attr.is_global = 0;
	assert_null(ibv_create_ah(pair.a.pd, &attr));
	assert_int_equal(ibv_dealloc_pd(pair.a.pd), EBUSY);
	close_ud();
}

/* Returns whether a handle can be made. */
static bool
handle_made(unsigned sgid_index, const char *dgid)
{
	struct ibv_ah_attr attr = {.is_global = 1,
		.port_num = 1,
		.grh = {.sgid_index = (uint8_t)sgid_index}};
	struct ibv_ah *made;

	assert_int_equal(rocade_gid_parse(dgid, &attr.grh.dgid), 0);
	errno = 0;
	made = ibv_create_ah(pair.a.pd, &attr);
	if (made == NULL)
		assert_int_equal(errno, EINVAL);
	else
		assert_int_equal(ibv_destroy_ah(made), 0);
	return made != NULL;
}

/* Entry 0 of the GID table is an IPv4 address, entry 1 the link-local one. */
TEST(handle_needs_addresses_of_one_ip_version)
{
	open_ud(false, 0);
	assert_true(handle_made(0, "192.0.2.2"));
	assert_true(handle_made(0, "192.0.2.1")); /* the port's own */
	assert_true(handle_made(0, "239.1.2.3"));
	assert_true(handle_made(1, "2001:db8::2"));
	assert_true(handle_made(1, "ff15::4711"));
	assert_true(handle_made(0, "ff15::4711")); /* see gid_reaches() */
	assert_false(handle_made(1, "192.0.2.2"));
	assert_false(handle_made(1, "239.1.2.3"));
	assert_false(handle_made(0, "2001:db8::2"));
	assert_false(handle_made(0, "::"));
	assert_false(handle_made(1, "::"));
	close_ud();
}

/* A failed send moves the QP to SQE: it still receives, and RTS restores the send
 * queue. */
TEST(failed_send_moves_qp_to_sqe)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_send_wr wr[3];
	struct ibv_qp_init_attr init;
	struct ibv_sge sge[3];
	struct ibv_wc wc[3];

	open_ud(false, 0);
	post_receive(0, SLOT);
	for (int i = 0; i < 3; i++) {
		wr[i] = datagram(&sge[i], 8 + i);
		wr[i].send_flags = 0; /* errors complete unsignaled requests too */
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	sge[1].lkey ^= 1;
	send_one(wr);
	pair_poll_cq(&pair, pair.a.send_cq, wc, 2);
	assert_int_equal(wc[0].wr_id, 9);
	assert_int_equal(wc[0].status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(wc[1].wr_id, 10);
	assert_int_equal(wc[1].status, IBV_WC_WR_FLUSH_ERR);
	pair_poll_cq(&pair, pair.b.recv_cq, wc, 1);
	expect_received(&wc[0], 8);
	assert_int_equal(ibv_query_qp(tx, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_SQE);
	wr[0].next = NULL;
	send_one(wr); /* in SQE: flushed */
	pair_poll_cq(&pair, pair.a.send_cq, wc, 1);
	assert_int_equal(wc[0].status, IBV_WC_WR_FLUSH_ERR);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
	assert_int_equal(ibv_modify_qp(tx, &attr, IBV_QP_STATE), 0);
	post_receive(1, SLOT);
	wr[0].send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	send_one(wr);
	pair_poll_cq(&pair, pair.a.send_cq, wc, 1);
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	pair_poll_cq(&pair, pair.b.recv_cq, wc, 1);
	expect_received(&wc[0], 8);
	close_ud();
}

/* ERR flushes both queues, in order. */
TEST(error_flushes_both_queues)
{
	struct ibv_wc wc[3];

	open_ud(false, 0);
	for (unsigned i = 0; i < 3; i++)
		post_receive(i, SLOT);
	pair_modify_state(rx, IBV_QPS_ERR);
	pair_poll_cq(&pair, pair.b.recv_cq, wc, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(wc[i].wr_id, i);
		assert_int_equal(wc[i].status, IBV_WC_WR_FLUSH_ERR);
	}
	close_ud();
}

/* No engine runs between the posts and the call. An adapter has sent the requests by then. */
TEST(sends_count_against_a_smaller_cq)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc[6];

	open_ud(false, 0);
	wr = datagram(&sge, 8);
	send_one(&wr);
	pair_poll_cq(&pair, pair.a.send_cq, wc, 1); /* the neighbour is resolved */
	for (unsigned i = 0; i < 6; i++)
		send_one(&wr);
	assert_int_equal(ibv_resize_cq(pair.a.send_cq, 5), EINVAL);
	assert_int_equal(ibv_resize_cq(pair.a.send_cq, 6), 0);
	assert_int_equal(ibv_poll_cq(pair.a.send_cq, 6, wc), 6);
	close_ud();
}
