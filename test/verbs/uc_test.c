/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connections: a message arrives whole or not at all, and is never
 * acknowledged. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "verbs_pair.h"

#define FAR 262144 /* offset in b's memory that WRITEs go to */
#define MESSAGES 3000

static struct verbs_pair pair;
static struct ibv_qp *tx, *rx;
static struct ibv_mr *remote;

static struct ibv_qp *
uc_qp(struct verbs_side *s)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s->send_cq,
		.recv_cq = s->recv_cq,
		.srq = s->srq,
		.cap = {.max_send_wr = 16,
			.max_send_sge = 1,
			.max_recv_wr = 16,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_UC,
	};
	struct ibv_qp *qp = ibv_create_qp(s->pd, &attr);

	assert_non_null(qp);
	return qp;
}

static void
connect_uc(struct ibv_qp *qp, const struct ibv_qp *peer, const union ibv_gid *gid)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	assert_int_equal(ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 IBV_QP_ACCESS_FLAGS),
		0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.rq_psn = 0xFFFFFE,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = *gid, .hop_limit = 64}},
	};
	assert_int_equal(ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
		0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = 0xFFFFFE};
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void
open_uc(unsigned srq_wr)
{
	struct verbs_pair_conf conf = {.srq_wr = srq_wr};

	pair_open(&pair, &conf);
	tx = uc_qp(&pair.a);
	rx = uc_qp(&pair.b);
	connect_uc(tx, rx, &pair.b.gid);
	connect_uc(rx, tx, &pair.a.gid);
	remote = ibv_reg_mr(pair.b.pd, pair.b.mem + FAR, FAR,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(remote);
	for (size_t i = 0; i < FAR; i++)
		pair.a.mem[i] = (uint8_t)(i * 7 + (i >> 8));
}

static void
close_uc(void)
{
	assert_int_equal(ibv_dereg_mr(remote), 0);
	assert_int_equal(ibv_destroy_qp(tx), 0);
	assert_int_equal(ibv_destroy_qp(rx), 0);
	pair_close(&pair);
}

static int
post(enum ibv_wr_opcode opcode, uint64_t wr_id, size_t offset, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)pair.a.mem + offset, len, pair.a.mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl((uint32_t)wr_id),
		.wr.rdma = {.remote_addr = (uintptr_t)pair.b.mem + FAR,
			.rkey = remote->rkey},
	};
	struct ibv_send_wr *bad;

	return ibv_post_send(tx, &wr, &bad);
}

static void
sent(uint64_t wr_id)
{
	struct ibv_wc wc;

	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
}

static void
receive(uint64_t wr_id, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)pair.b.mem, len, pair.b.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(pair.b.srq != NULL ? ibv_post_srq_recv(pair.b.srq, &wr, &bad)
					    : ibv_post_recv(rx, &wr, &bad),
		0);
}

static void
message_sizes_run(unsigned srq_wr)
{
	static const uint32_t lens[] = {0, 1, 1023, 1024, 1025, 2048, 5000, 100000};
	struct ibv_wc wc;

	open_uc(srq_wr);
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		receive(i, FAR);
		assert_int_equal(post(IBV_WR_SEND_WITH_IMM, i, i, lens[i]), 0);
		sent(i);
		pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, lens[i]);
		assert_int_equal(ntohl(wc.imm_data), i);
		assert_memory_equal(pair.b.mem, pair.a.mem + i, lens[i]);

		memset(pair.b.mem + FAR, 0xEE, lens[i] + 1);
		assert_int_equal(post(IBV_WR_RDMA_WRITE, i, i, lens[i]), 0);
		sent(i);
		receive(100 + i, 1);
		assert_int_equal(post(IBV_WR_RDMA_WRITE_WITH_IMM, i, i, lens[i]), 0);
		sent(i);
		pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
		assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(wc.byte_len, lens[i]);
		assert_memory_equal(pair.b.mem + FAR, pair.a.mem + i, lens[i]);
		assert_int_equal(pair.b.mem[FAR + lens[i]], 0xEE);
	}
	/* b sent no RoCE packet: UC has no responses. */
	assert_int_equal(pair_stat(&pair.a, "rx_roce"), 0);
	close_uc();
}

TEST(message_sizes)
{
	message_sizes_run(0);
}

TEST(message_sizes_with_srq)
{
	message_sizes_run(16);
}

/* An impaired wire: messages that arrive are whole and correct, the others are lost, and
 * the QPs keep working. */
TEST(impaired_messages_arrive_whole_or_not)
{
	const struct rocade_impair bad = {.loss_ppm = 30000,
		.duplicate_ppm = 10000,
		.reorder_ppm = 10000,
		.corrupt_ppm = 10000,
		.seed = 3};
	const struct rocade_impair good = {.loss_ppm = 0};
	unsigned got = 0;
	struct ibv_wc wc;

	open_uc(0);
	receive(0, FAR);
	assert_int_equal(post(IBV_WR_SEND, 0, 0, 1), 0); /* resolves the next hop */
	sent(0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(rocade_port_impair(pair.b.port, &bad), 0);
	receive(0, FAR);
	for (unsigned i = 0; i < MESSAGES; i++) {
		uint32_t len = 1 + i * 37 % 5000;

		assert_int_equal(post(IBV_WR_SEND_WITH_IMM, i, i, len), 0);
		sent(i);
		pair_drain(&pair);
		while (ibv_poll_cq(pair.b.recv_cq, 1, &wc) == 1) {
			uint32_t number = ntohl(wc.imm_data);

			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_true(number <= i);
			assert_int_equal(wc.byte_len, 1 + number * 37 % 5000);
			assert_memory_equal(pair.b.mem, pair.a.mem + number, wc.byte_len);
			got++;
			receive(i, FAR);
		}
	}
	assert_true(got > MESSAGES / 2 && got < MESSAGES);
	assert_true(pair_stat(&pair.b, "drop_discarded") > 0);
	assert_int_equal(rocade_port_impair(pair.b.port, &good), 0);
	pair_drain(&pair);
	while (ibv_poll_cq(pair.b.recv_cq, 1, &wc) == 1)
		receive(0, FAR);
	assert_int_equal(post(IBV_WR_SEND, 1, 0, 3000), 0);
	sent(1);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	close_uc();
}

/* Messages that cannot be received are discarded; later ones arrive. */
TEST(unreceivable_messages_are_discarded)
{
	struct ibv_wc wc;

	open_uc(0);
	assert_int_equal(post(IBV_WR_SEND, 1, 0, 3000), 0); /* no receive is posted */
	sent(1);
	pair_drain(&pair);
	assert_int_equal(pair_stat(&pair.b, "drop_no_receive"), 1);
	receive(7, 1500); /* too short for the first message; stays for the second */
	assert_int_equal(post(IBV_WR_SEND, 2, 0, 3000), 0);
	sent(2);
	pair_no_completion(&pair, pair.b.recv_cq);
	assert_int_equal(post(IBV_WR_SEND, 3, 0, 1500), 0);
	sent(3);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.byte_len, 1500);
	assert_memory_equal(pair.b.mem, pair.a.mem, 1500);
	memset(pair.b.mem + FAR, 0xEE, 3000);
	remote->rkey ^= 1; /* a wrong key: nothing is written and no NAK is sent */
	assert_int_equal(post(IBV_WR_RDMA_WRITE, 4, 0, 3000), 0);
	remote->rkey ^= 1;
	sent(4);
	pair_drain(&pair);
	for (unsigned i = 0; i < 3000; i++)
		assert_int_equal(pair.b.mem[FAR + i], 0xEE);
	pair_no_event(&pair, &pair.b);
	assert_int_equal(post(IBV_WR_RDMA_WRITE, 5, 0, 3000), 0);
	sent(5);
	pair_drain(&pair);
	assert_memory_equal(pair.b.mem + FAR, pair.a.mem, 3000);
	close_uc();
}

TEST(read_and_atomic_are_refused)
{
	open_uc(0);
	assert_int_equal(post(IBV_WR_RDMA_READ, 1, 0, 8), EINVAL);
	assert_int_equal(post(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8), EINVAL);
	close_uc();
}
