/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_wr_post(3): requests built by calls. */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"

#define FAR 262144 /* of b's memory: where WRITEs go */
#define UC_OPS                                                                           \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |                \
		IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define RC_OPS                                                                           \
	(UC_OPS | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |         \
		IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define UD_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define ALL_REMOTE                                                                       \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static struct pair pair;
static struct ibv_mr *remote; /* of b, everything allowed */
static struct ibv_qp_ex *ex;  /* of a */

static void
open_wr(struct pair_conf conf)
{
	conf.cap = (struct ibv_qp_cap){
		.max_send_wr = 8, .max_send_sge = 3, .max_inline_data = 64};
	conf.access = ALL_REMOTE;
	conf.depth = 4;
	pair_open(&pair, &conf);
	remote = ibv_reg_mr(
		pair.b.pd, pair.b.mem + FAR, FAR, IBV_ACCESS_LOCAL_WRITE | ALL_REMOTE);
	assert_non_null(remote);
	for (size_t i = 0; i < FAR; i++)
		pair.a.mem[i] = (uint8_t)(i * 13 + i / 251);
	ex = ibv_qp_to_qp_ex(pair.a.qp[0]);
	assert_non_null(ex);
	assert_ptr_equal(&ex->qp_base, pair.a.qp[0]);
	ex->wr_flags = IBV_SEND_SIGNALED;
	pair_settle(&pair);
}

static void
close_wr(void)
{
	assert_int_equal(ibv_dereg_mr(remote), 0);
	pair_close(&pair);
}

static uint64_t
far(size_t offset)
{
	return (uintptr_t)pair.b.mem + FAR + offset;
}

static void
set(size_t offset, uint32_t len)
{
	ibv_wr_set_sge(ex, pair.a.mr->lkey, (uintptr_t)pair.a.mem + offset, len);
}

static void
done(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_opcode opcode, struct ibv_wc *wc)
{
	pair_complete(&pair, cq, wc, 1);
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_int_equal(wc->wr_id, wr_id);
	assert_int_equal(wc->opcode, opcode);
}

/* Every builder in one section, with every setter of data. */
static void
test_each(void **state)
{
	static const size_t at[3] = {7, 5000, 9000};
	struct ibv_sge sge[3] = {{.length = 900}, {.length = 0}, {.length = 1300}};
	struct ibv_data_buf buf[2];
	uint64_t before[2] = {41, 41};
	uint8_t copy[60];
	struct ibv_wc wc;

	(void)state;
	open_wr((struct pair_conf){.ops = RC_OPS});
	memcpy(pair.b.mem + FAR + 8192, before, sizeof(before));
	for (int i = 0; i < 3; i++) {
		sge[i].addr = (uintptr_t)pair.a.mem + at[i];
		sge[i].lkey = pair.a.mr->lkey;
		assert_int_equal(
			pair_post_recv(&pair.b, 0, (uint64_t)i, (size_t)i * 4096, 4096),
			0);
	}
	buf[0] = (struct ibv_data_buf){.addr = pair.a.mem + 100, .length = 10};
	buf[1] = (struct ibv_data_buf){.addr = pair.a.mem + 200, .length = 20};

	ibv_wr_start(ex);
	ex->wr_id = 1;
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 3, sge);
	ex->wr_id = 2;
	ibv_wr_send_imm(ex, htonl(77));
	ibv_wr_set_inline_data_list(ex, 2, buf);
	ex->wr_id = 3;
	ibv_wr_rdma_write(ex, remote->rkey, far(0));
	set(3, 3000);
	ex->wr_id = 4;
	ibv_wr_rdma_write_imm(ex, remote->rkey, far(4096), htonl(78));
	ibv_wr_set_inline_data(ex, pair.a.mem + 20000, 60);
	ex->wr_id = 5;
	ibv_wr_rdma_read(ex, remote->rkey, far(0));
	set(FAR, 3000);
	ex->wr_id = 6;
	ibv_wr_atomic_fetch_add(ex, remote->rkey, far(8192), 1);
	set(FAR + 4096, 8);
	ex->wr_id = 7;
	ibv_wr_atomic_cmp_swp(ex, remote->rkey, far(8200), 41, 99);
	set(FAR + 4104, 8);
	ex->wr_id = 8;
	ibv_wr_send(ex); /* of nothing; finds the receives used: RNR until there is one */
	/* Inline data may go at once. */
	memcpy(copy, pair.a.mem + 20000, 60);
	memset(pair.a.mem + 20000, 0, 60);
	assert_int_equal(pair_poll(&pair), 0); /* nothing has been posted */
	assert_int_equal(ibv_wr_complete(ex), 0);

	done(pair.a.send_cq, 1, IBV_WC_SEND, &wc);
	done(pair.a.send_cq, 2, IBV_WC_SEND, &wc);
	done(pair.a.send_cq, 3, IBV_WC_RDMA_WRITE, &wc);
	done(pair.a.send_cq, 4, IBV_WC_RDMA_WRITE, &wc);
	done(pair.a.send_cq, 5, IBV_WC_RDMA_READ, &wc);
	assert_int_equal(wc.byte_len, 3000);
	done(pair.a.send_cq, 6, IBV_WC_FETCH_ADD, &wc);
	assert_int_equal(wc.byte_len, 8);
	done(pair.a.send_cq, 7, IBV_WC_COMP_SWAP, &wc);
	assert_int_equal(pair_post_recv(&pair.b, 0, 3, 0, 4096), 0);
	done(pair.a.send_cq, 8, IBV_WC_SEND, &wc);

	done(pair.b.recv_cq, 0, IBV_WC_RECV, &wc);
	assert_int_equal(wc.byte_len, 2200);
	assert_memory_equal(pair.b.mem, pair.a.mem + 7, 900);
	assert_memory_equal(pair.b.mem + 900, pair.a.mem + 9000, 1300);
	done(pair.b.recv_cq, 1, IBV_WC_RECV, &wc);
	assert_int_equal(wc.byte_len, 30);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htonl(77));
	assert_memory_equal(pair.b.mem + 4096, pair.a.mem + 100, 10);
	assert_memory_equal(pair.b.mem + 4106, pair.a.mem + 200, 20);
	done(pair.b.recv_cq, 2, IBV_WC_RECV_RDMA_WITH_IMM, &wc);
	assert_int_equal(wc.byte_len, 60);
	assert_int_equal(wc.imm_data, htonl(78));
	assert_memory_equal(pair.b.mem + FAR + 4096, copy, 60);
	done(pair.b.recv_cq, 3, IBV_WC_RECV, &wc);
	assert_int_equal(wc.byte_len, 0);

	assert_memory_equal(pair.a.mem + FAR, pair.b.mem + FAR, 3000);
	assert_memory_equal(pair.a.mem + FAR + 4096, before, sizeof(before));
	memcpy(before, pair.b.mem + FAR + 8192, sizeof(before));
	assert_int_equal(before[0], 42);
	assert_int_equal(before[1], 99);
	close_wr();
}

/* Nothing of a section is posted when one request of it is wrong. */
static void
expect_refused(int err)
{
	assert_int_equal(ibv_wr_complete(ex), err);
	pair_quiet(&pair, pair.a.send_cq);
}

static void
begin_good(void)
{
	ibv_wr_start(ex);
	ex->wr_id = 11;
	ibv_wr_rdma_write(ex, remote->rkey, far(0));
	set(0, 100);
}

static void
test_errors(void **state)
{
	struct ibv_sge sge[4] = {0};
	uint8_t *inline_data;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_wc wc;

	(void)state;
	open_wr((struct pair_conf){
		.ops = RC_OPS & ~(unsigned)IBV_QP_EX_WITH_SEND_WITH_IMM});
	assert_int_equal(ibv_query_qp(pair.a.qp[0], &attr, 0, &init), 0);
	inline_data = pair.a.mem;

	begin_good();
	ibv_wr_set_sge_list(ex, 4, sge);
	expect_refused(EINVAL);
	begin_good();
	ibv_wr_set_inline_data(ex, inline_data, init.cap.max_inline_data + 1);
	expect_refused(EINVAL);
	begin_good();
	ibv_wr_set_sge(ex, 0, 0, UINT32_C(0x80000001));
	expect_refused(EINVAL);
	begin_good();
	ibv_wr_rdma_read(ex, remote->rkey, far(0));
	ibv_wr_set_inline_data(ex, inline_data, 8); /* goes nowhere */
	expect_refused(EINVAL);
	begin_good();
	ibv_wr_atomic_fetch_add(ex, remote->rkey, far(0), 1);
	set(0, 4);
	expect_refused(EINVAL);
	begin_good();
	ibv_wr_atomic_fetch_add(ex, remote->rkey, far(4), 1);
	set(0, 8);
	expect_refused(EINVAL);
	begin_good();
	ibv_wr_send_imm(ex, 0); /* was not asked for */
	set(0, 8);
	ibv_wr_send_tso(ex, inline_data, 1, 1); /* the first error stands */
	expect_refused(EINVAL);
	begin_good();
	ibv_wr_set_ud_addr(ex, NULL, 0, 0);
	expect_refused(EINVAL);
	begin_good();
	ibv_wr_set_xrc_srqn(ex, 1);
	expect_refused(EINVAL);
	begin_good();
	ibv_wr_send_tso(ex, inline_data, 1, 1);
	expect_refused(EOPNOTSUPP);
	begin_good();
	ex->wr_flags = IBV_SEND_IP_CSUM;
	ibv_wr_send(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	expect_refused(EINVAL);
	ibv_wr_start(ex);
	set(0, 8); /* of no request */
	expect_refused(EINVAL);
	/* And the next section is a new one. */
	begin_good();
	assert_int_equal(ibv_wr_complete(ex), 0);
	done(pair.a.send_cq, 11, IBV_WC_RDMA_WRITE, &wc);
	close_wr();
}

static void
test_full(void **state)
{
	struct ibv_wc wc[8];

	(void)state;
	open_wr((struct pair_conf){.ops = UC_OPS});
	ibv_wr_start(ex);
	for (int i = 0; i < 9; i++)
		ibv_wr_rdma_write(ex, remote->rkey, far(0));
	expect_refused(ENOMEM);
	ibv_wr_start(ex);
	for (int i = 0; i < 8; i++)
		ibv_wr_rdma_write(ex, remote->rkey, far(0));
	assert_int_equal(ibv_wr_complete(ex), 0);
	pair_settle(&pair);
	/* Room comes with the poll. */
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, remote->rkey, far(0));
	assert_int_equal(ibv_wr_complete(ex), ENOMEM);
	pair_complete(&pair, pair.a.send_cq, wc, 8);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, remote->rkey, far(0));
	assert_int_equal(ibv_wr_complete(ex), 0);
	pair_complete(&pair, pair.a.send_cq, wc, 1);
	close_wr();
}

static void
test_abort(void **state)
{
	struct ibv_wc wc;

	(void)state;
	open_wr((struct pair_conf){.ops = UC_OPS});
	for (int i = 0; i < 20; i++) {
		begin_good();
		ibv_wr_abort(ex);
	}
	pair_quiet(&pair, pair.a.send_cq);
	ibv_wr_start(ex);
	assert_int_equal(ibv_wr_complete(ex), 0); /* of nothing */
	pair_quiet(&pair, pair.a.send_cq);
	/* Lists and sections on one queue. */
	assert_int_equal(pair_post_recv(&pair.b, 0, 0, 0, 4096), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 100, IBV_SEND_SIGNALED), 0);
	begin_good();
	assert_int_equal(ibv_wr_complete(ex), 0);
	done(pair.a.send_cq, 1, IBV_WC_SEND, &wc);
	done(pair.a.send_cq, 11, IBV_WC_RDMA_WRITE, &wc);
	close_wr();
}

static void
test_signaled(void **state)
{
	struct ibv_wc wc[3];

	(void)state;
	open_wr((struct pair_conf){.ops = UC_OPS});
	ibv_wr_start(ex);
	ex->wr_flags = 0;
	ibv_wr_rdma_write(ex, remote->rkey, far(0));
	/* As programs do that share flags with ibv_post_send(): the setter decides. */
	ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	ex->wr_id = 2;
	ibv_wr_rdma_write(ex, remote->rkey, far(0));
	set(0, 4000);
	assert_int_equal(ibv_wr_complete(ex), 0);
	done(pair.a.send_cq, 2, IBV_WC_RDMA_WRITE, wc);
	pair_quiet(&pair, pair.a.send_cq);
	assert_memory_equal(pair.b.mem + FAR, pair.a.mem, 4000);
	close_wr();

	open_wr((struct pair_conf){.ops = UC_OPS, .sig_all = true});
	ex->wr_flags = 0;
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, remote->rkey, far(0));
	ibv_wr_rdma_write(ex, remote->rkey, far(0));
	assert_int_equal(ibv_wr_complete(ex), 0);
	pair_complete(&pair, pair.a.send_cq, wc, 2);
	close_wr();
}

static void
test_states(void **state)
{
	struct ibv_wc wc;

	(void)state;
	open_wr((struct pair_conf){.ops = UC_OPS, .unconnected = true});
	begin_good();
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	pair_connect(&pair, 0);
	pair_to(pair.a.qp[0], IBV_QPS_ERR);
	begin_good();
	assert_int_equal(ibv_wr_complete(ex), 0);
	pair_complete(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, 11);
	close_wr();
}

static void
test_uc(void **state)
{
	struct ibv_wc wc;

	(void)state;
	open_wr((struct pair_conf){.ops = UC_OPS, .type = IBV_QPT_UC});
	assert_int_equal(pair_post_recv(&pair.b, 0, 5, 0, 4096), 0);
	begin_good();
	ex->wr_id = 12;
	ibv_wr_send_imm(ex, htonl(5));
	ibv_wr_set_inline_data(ex, pair.a.mem + 70, 64);
	assert_int_equal(ibv_wr_complete(ex), 0);
	done(pair.a.send_cq, 11, IBV_WC_RDMA_WRITE, &wc);
	done(pair.a.send_cq, 12, IBV_WC_SEND, &wc);
	done(pair.b.recv_cq, 5, IBV_WC_RECV, &wc);
	assert_int_equal(wc.imm_data, htonl(5));
	assert_memory_equal(pair.b.mem, pair.a.mem + 70, 64);
	assert_memory_equal(pair.b.mem + FAR, pair.a.mem, 100);
	close_wr();
}

static struct ibv_qp *
create(struct pair_side *s, enum ibv_qp_type type, uint64_t ops)
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
ud_to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 9};

	assert_int_equal(
		ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void
ud_receive(struct ibv_qp *qp, uint64_t n)
{
	struct ibv_sge sge = {(uintptr_t)pair.b.mem + n * 4096, 4096, pair.b.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

static void
test_ud(void **state)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_qp *tx, *rx;
	struct ibv_pd *other;
	struct ibv_ah *ah, *foreign;
	struct ibv_wc wc;

	(void)state;
	open_wr((struct pair_conf){.ops = RC_OPS});
	tx = create(&pair.a, IBV_QPT_UD, UD_OPS);
	rx = create(&pair.b, IBV_QPT_UD, UD_OPS);
	assert_non_null(tx);
	assert_non_null(rx);
	ud_to_rts(tx);
	ud_to_rts(rx);
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
	set(30, 1000);
	ibv_wr_set_ud_addr(ex, ah, rx->qp_num, 9);
	ex->wr_id = 2;
	ibv_wr_send_imm(ex, htonl(6));
	ibv_wr_set_ud_addr(ex, ah, rx->qp_num, 9);
	ibv_wr_set_inline_data(ex, pair.a.mem + 60, 100);
	assert_int_equal(ibv_wr_complete(ex), 0);
	done(pair.a.send_cq, 1, IBV_WC_SEND, &wc);
	done(pair.a.send_cq, 2, IBV_WC_SEND, &wc);
	done(pair.b.recv_cq, 1, IBV_WC_RECV, &wc);
	assert_int_equal(wc.byte_len, 1040);
	assert_int_equal(wc.src_qp, tx->qp_num);
	assert_memory_equal(pair.b.mem + 4096 + 40, pair.a.mem + 30, 1000);
	done(pair.b.recv_cq, 2, IBV_WC_RECV, &wc);
	assert_int_equal(wc.imm_data, htonl(6));
	assert_memory_equal(pair.b.mem + 8192 + 40, pair.a.mem + 60, 100);

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	set(0, 10);
	expect_refused(EINVAL); /* nowhere to go */
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, foreign, rx->qp_num, 9);
	expect_refused(EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, ah, 1 << 24, 9);
	expect_refused(EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	set(0, 8192); /* no one packet */
	ibv_wr_set_ud_addr(ex, ah, rx->qp_num, 9);
	expect_refused(EINVAL);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_ah(foreign), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	assert_int_equal(ibv_destroy_qp(tx), 0);
	assert_int_equal(ibv_destroy_qp(rx), 0);
	close_wr();
}

static void
expect_absent(enum ibv_qp_type type, uint64_t ops)
{
	assert_null(create(&pair.a, type, ops));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void
test_create(void **state)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RC, .pd = NULL};
	static const uint32_t masks[] = {IBV_QP_INIT_ATTR_XRCD,
		IBV_QP_INIT_ATTR_MAX_TSO_HEADER, IBV_QP_INIT_ATTR_IND_TABLE,
		IBV_QP_INIT_ATTR_RX_HASH, 1 << 20};
	struct ibv_qp *qp;

	(void)state;
	open_wr((struct pair_conf){.ops = RC_OPS});
	expect_absent(IBV_QPT_RC, IBV_QP_EX_WITH_TSO);
	expect_absent(IBV_QPT_RC, UINT64_C(1) << 40);
	expect_absent(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ);
	expect_absent(IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP);
	expect_absent(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE);
	expect_absent(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_READ);
	expect_absent(IBV_QPT_UD, IBV_QP_EX_WITH_TSO);
	/* No operations are fine, and none can be built. */
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
	assert_null(ibv_create_qp_ex(pair.b.context, &attr)); /* another context's PD */
	assert_int_equal(errno, EINVAL);
	close_wr();
}

#define THREADS 3
#define SECTIONS 2000

/* Sections of two WRITEs and posts of one, from several threads: a section stays
 * together. */
static void *
poster(void *arg)
{
	uint64_t number = (uintptr_t)arg;

	for (int i = 0; i < SECTIONS;) {
		bool posted;

		if (number == 0) {
			struct ibv_send_wr wr = {.wr_id = 0,
				.opcode = IBV_WR_RDMA_WRITE,
				.send_flags = IBV_SEND_SIGNALED,
				.wr.rdma = {far(0), remote->rkey}};
			struct ibv_send_wr *bad;

			posted = ibv_post_send(pair.a.qp[0], &wr, &bad) == 0;
		} else {
			ibv_wr_start(ex);
			ex->wr_flags = IBV_SEND_SIGNALED;
			ex->wr_id = number * 2;
			ibv_wr_rdma_write(ex, remote->rkey, far(0));
			ex->wr_id = number * 2 + 1;
			ibv_wr_rdma_write(ex, remote->rkey, far(0));
			posted = ibv_wr_complete(ex) == 0;
		}
		i += posted;
		if (!posted)
			sched_yield();
	}
	return NULL;
}

static void
test_threads(void **state)
{
	pthread_t threads[THREADS];
	uint64_t half = 0;

	(void)state;
	open_wr((struct pair_conf){.ops = UC_OPS});
	pair_run(&pair);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, poster, (void *)i), 0);
	for (int n = 0; n < SECTIONS * (2 * THREADS - 1); n++) {
		struct ibv_wc wc;

		pair_complete(&pair, pair.a.send_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (half != 0)
			assert_int_equal(wc.wr_id, half + 1);
		half = half == 0 && wc.wr_id != 0 ? wc.wr_id : 0;
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	pair_halt(&pair);
	close_wr();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_abort),
		cmocka_unit_test(test_signaled),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_uc),
		cmocka_unit_test(test_ud),
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
