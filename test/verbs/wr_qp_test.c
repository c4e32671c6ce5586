/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_wr_post(3): which QPs support it, and datagrams. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>

#include <rocade/flush.h>

#include "case.h"
#include "wr_fixture.h"

#define UD_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)

static struct ibv_qp *
create(struct verbs_side *s, enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = s->send_cq,
		.recv_cq = s->recv_cq,
		.cap = {.max_send_wr = 4,
			.max_send_sge = 2,
			.max_recv_wr = 4,
			.max_recv_sge = 1,
			.max_inline_data = 100},
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = s->pd,
		.send_ops_flags = ops,
	};

	errno = 0;
	return ibv_create_qp_ex(s->context, &attr);
}

static void
ud_receive(struct ibv_qp *qp, uint64_t n)
{
	struct ibv_sge sge = {(uintptr_t)pair.b.mem + n * 4096, 4096, pair.b.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

TEST(ud_requests_by_sections)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_qp *tx, *rx;
	struct ibv_pd *other;
	struct ibv_ah *ah, *foreign;
	struct ibv_wc wc;

	wr_open((struct verbs_pair_conf){.ops = WR_RC_OPS});
	tx = create(&pair.a, IBV_QPT_UD, UD_OPS);
	rx = create(&pair.b, IBV_QPT_UD, UD_OPS);
	assert_non_null(tx);
	assert_non_null(rx);
	pair_ud_to_rts(tx, 9, 0);
	pair_ud_to_rts(rx, 9, 0);
	attr.grh.dgid = pair.b.gid;
	ah = ibv_create_ah(pair.a.pd, &attr);
	assert_non_null(ah);
	other = ibv_alloc_pd(pair.a.context);
	foreign = ibv_create_ah(other, &attr);
	assert_non_null(foreign);
	ex = ibv_qp_to_qp_ex(tx);
	ex->wr_flags = IBV_SEND_SIGNALED;

	ud_receive(rx, 1);
	ud_receive(rx, 2);
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ibv_wr_send(ex);
	wr_set_local_sge(30, 1000);
	ibv_wr_set_ud_addr(ex, ah, rx->qp_num, 9);
	ex->wr_id = 2;
	ibv_wr_send_imm(ex, htonl(6));
	ibv_wr_set_ud_addr(ex, ah, rx->qp_num, 9);
	ibv_wr_set_inline_data(ex, pair.a.mem + 60, 100);
	assert_int_equal(ibv_wr_complete(ex), 0);
	wr_expect_success(pair.a.send_cq, 1, IBV_WC_SEND, &wc);
	wr_expect_success(pair.a.send_cq, 2, IBV_WC_SEND, &wc);
	wr_expect_success(pair.b.recv_cq, 1, IBV_WC_RECV, &wc);
	assert_int_equal(wc.byte_len, 1040);
	assert_int_equal(wc.src_qp, tx->qp_num);
	assert_memory_equal(pair.b.mem + 4096 + 40, pair.a.mem + 30, 1000);
	wr_expect_success(pair.b.recv_cq, 2, IBV_WC_RECV, &wc);
	assert_int_equal(wc.imm_data, htonl(6));
	assert_memory_equal(pair.b.mem + 8192 + 40, pair.a.mem + 60, 100);

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	wr_set_local_sge(0, 10);
	wr_expect_refused(EINVAL); /* no address */
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, foreign, rx->qp_num, 9);
	wr_expect_refused(EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, ah, 1 << 24, 9);
	wr_expect_refused(EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	wr_set_local_sge(0, 8192); /* larger than a packet */
	ibv_wr_set_ud_addr(ex, ah, rx->qp_num, 9);
	wr_expect_refused(EINVAL);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_ah(foreign), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	assert_int_equal(ibv_destroy_qp(tx), 0);
	assert_int_equal(ibv_destroy_qp(rx), 0);
	wr_close();
}

static void
expect_absent(enum ibv_qp_type type, uint64_t ops)
{
	assert_null(create(&pair.a, type, ops));
	assert_int_equal(errno, EOPNOTSUPP);
}

TEST(create_checks_operations)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RC, .pd = NULL};
	static const uint32_t masks[] = {IBV_QP_INIT_ATTR_XRCD,
		IBV_QP_INIT_ATTR_MAX_TSO_HEADER, IBV_QP_INIT_ATTR_IND_TABLE,
		IBV_QP_INIT_ATTR_RX_HASH, 1 << 20};
	struct ibv_qp *qp;

	wr_open((struct verbs_pair_conf){.ops = WR_RC_OPS});
	expect_absent(IBV_QPT_RC, IBV_QP_EX_WITH_TSO);
	expect_absent(IBV_QPT_RC, UINT64_C(1) << 40);
	expect_absent(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ);
	expect_absent(IBV_QPT_UC, ROCADE_QP_EX_WITH_FLUSH);
	expect_absent(IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP);
	expect_absent(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE);
	expect_absent(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_READ);
	expect_absent(IBV_QPT_UD, IBV_QP_EX_WITH_TSO);
	/* An empty set of operations is allowed. */
	qp = create(&pair.a, IBV_QPT_RC, 0);
	assert_non_null(qp);
	assert_non_null(ibv_qp_to_qp_ex(qp));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	for (unsigned i = 0; i < sizeof(masks) / sizeof(*masks); i++) {
		attr.send_cq = attr.recv_cq = pair.a.send_cq;
		attr.pd = pair.a.pd;
		attr.comp_mask = IBV_QP_INIT_ATTR_PD | masks[i];
		assert_null(ibv_create_qp_ex(pair.a.context, &attr));
		assert_true(errno == EOPNOTSUPP || errno == EINVAL);
	}
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	/* a PD of another context */
	assert_null(ibv_create_qp_ex(pair.b.context, &attr));
	assert_int_equal(errno, EINVAL);
	wr_close();
}
