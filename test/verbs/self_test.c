/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic to an address of the port itself: QPs of one host connect, and no frame
 * leaves. */
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "verbs_pair.h"

#define QKEY 7
#define GRH 40
#define HALF (1 << 19)

static struct verbs_pair pair;

static void
port_open(unsigned engines, unsigned qps, bool ipv6)
{
	struct verbs_pair_conf conf = {
		.engines = engines, .qps = qps, .ipv6 = ipv6, .unconnected = true};

	pair_open(&pair, &conf);
	for (int i = 0; i < HALF; i++)
		pair.a.mem[i] = (uint8_t)(i * 3 + (i >> 9));
}

static void
connect_to(struct ibv_qp *qp, struct ibv_qp *to)
{
	pair_to_init(qp);
	pair_to_rtr(&pair.conf, qp, &pair.a.gid, to->qp_num);
	pair_to_rts(&pair.conf, qp);
}

/* No RoCE packet reached the other port. */
static void
port_close(void)
{
	assert_int_equal(
		pair_stat(&pair.b, "rx_packets"), pair_stat(&pair.b, "rx_other"));
	assert_true(pair_stat(&pair.a, "tx_loopback") > 0);
	pair_close(&pair);
}

static void
transfer(unsigned from, unsigned to, uint32_t len)
{
	struct ibv_wc wc;

	memset(pair.a.mem + HALF, 0, HALF);
	assert_int_equal(pair_post_recv(&pair.a, to, len, HALF, len), 0);
	assert_int_equal(pair_send(&pair.a, from, len, 0, len, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.a.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, len);
	assert_memory_equal(pair.a.mem, pair.a.mem + HALF, len);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* Two QPs of one engine, then of two engines. */
TEST(rc_between_local_qps)
{
	static const uint32_t lens[] = {1, 1023, 1024, 1025, 100000, HALF};

	for (unsigned engines = 1; engines <= 2; engines++) {
		port_open(engines, 2, engines == 2);
		connect_to(pair.a.qp[0], pair.a.qp[1]);
		connect_to(pair.a.qp[1], pair.a.qp[0]);
		for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			transfer(0, 1, lens[i]);
			transfer(1, 0, lens[i]);
		}
		port_close();
	}
}

/* A QP may be connected to itself. */
TEST(rc_qp_connected_to_itself)
{
	port_open(1, 1, false);
	connect_to(pair.a.qp[0], pair.a.qp[0]);
	transfer(0, 0, 50000);
	port_close();
}

/* Packets in both directions, with engine threads. */
TEST(flood_in_both_directions)
{
	struct ibv_wc wc[64];

	port_open(2, 2, false);
	connect_to(pair.a.qp[0], pair.a.qp[1]);
	connect_to(pair.a.qp[1], pair.a.qp[0]);
	pair_threads_start(&pair);
	for (int round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 60; i++)
			assert_int_equal(
				pair_post_recv(&pair.a, i % 2, i, HALF + i * 8192, 8192),
				0);
		for (unsigned i = 0; i < 60; i++)
			assert_int_equal(pair_send(&pair.a, i % 2, i, i * 8192, 8192,
						 IBV_SEND_SIGNALED),
				0);
		pair_poll_cq(&pair, pair.a.send_cq, wc, 60);
		pair_poll_cq(&pair, pair.a.recv_cq, wc, 60);
		for (int i = 0; i < 60; i++)
			assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
	}
	pair_threads_stop(&pair);
	pair_close(&pair);
}

static struct ibv_qp *
other_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init_attr = {
		.send_cq = pair.a.send_cq,
		.recv_cq = pair.a.recv_cq,
		.cap = pair.conf.cap,
		.qp_type = type,
	};
	struct ibv_qp *qp = ibv_create_qp(pair.a.pd, &init_attr);

	assert_non_null(qp);
	return qp;
}

TEST(ud_qp_sends_to_itself)
{
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};
	struct ibv_sge sge = {0}, room = {0};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND},
			   *bad;
	struct ibv_recv_wr recv = {.sg_list = &room, .num_sge = 1}, *bad_recv;
	struct ibv_qp *qp;
	struct ibv_wc wc;

	port_open(1, 1, true);
	qp = other_qp(IBV_QPT_UD);
	pair_ud_to_rts(qp, QKEY, 0);
	to.grh.dgid = pair.a.gid;
	wr.wr.ud.ah = ibv_create_ah(pair.a.pd, &to);
	assert_non_null(wr.wr.ud.ah);
	wr.wr.ud.remote_qpn = qp->qp_num; /* sends to itself */
	wr.wr.ud.remote_qkey = QKEY;
	sge = (struct ibv_sge){(uintptr_t)pair.a.mem, 4000, pair.a.mr->lkey};
	room = (struct ibv_sge){(uintptr_t)pair.a.mem + HALF, 8192, pair.a.mr->lkey};
	assert_int_equal(ibv_post_recv(qp, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	pair_poll_cq(&pair, pair.a.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, GRH + 4000);
	assert_memory_equal(pair.a.mem, pair.a.mem + HALF + GRH, 4000);
	assert_int_equal(ibv_destroy_ah(wr.wr.ud.ah), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	port_close();
}

TEST(uc_qp_connected_to_itself)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_wc wc;
	struct ibv_qp *uc, *rc;

	port_open(1, 1, false);
	uc = other_qp(IBV_QPT_UC);
	assert_int_equal(ibv_modify_qp(uc, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 IBV_QP_ACCESS_FLAGS),
		0);
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = uc->qp_num;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = pair.a.gid;
	assert_int_equal(ibv_modify_qp(uc, &attr,
				 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
		0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(uc, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	rc = pair.a.qp[0];
	pair.a.qp[0] = uc;
	transfer(0, 0, 12345);
	pair.a.qp[0] = rc;
	assert_int_equal(ibv_poll_cq(pair.a.send_cq, 1, &wc), 0);
	assert_int_equal(ibv_destroy_qp(uc), 0);
	port_close();
}
