/* SPDX-License-Identifier: BSD-3-Clause */
/* SRQs as ibv_create_srq(3), ibv_post_srq_recv(3) and ibv_modify_srq(3) say. What needs
 * several threads or engines is in srq_threads_test.c. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"

static struct pair pair;

static int
setup_conf(const struct pair_conf *conf)
{
	pair_open(&pair, conf);
	return 0;
}

static int
setup(void **state)
{
	(void)state;
	return setup_conf(&(struct pair_conf){.qps = 3,
		.srq_wr = 16,
		.srq_sge = 3,
		.cap = {.max_send_sge = 3, .max_send_wr = 64}});
}

static int
teardown(void **state)
{
	(void)state;
	pair_close(&pair);
	return 0;
}

static struct ibv_srq *
create(uint32_t max_wr, uint32_t max_sge, struct ibv_srq_attr *actual)
{
	struct ibv_srq_init_attr attr = {
		.srq_context = &pair,
		.attr = {.max_wr = max_wr, .max_sge = max_sge, .srq_limit = 12345},
	};
	struct ibv_srq *srq;

	errno = 0;
	srq = ibv_create_srq(pair.a.pd, &attr);
	if (actual != NULL)
		*actual = attr.attr;
	return srq;
}

static void
test_create(void **state)
{
	struct ibv_srq_attr actual, got;
	struct ibv_device_attr dev;
	struct ibv_srq *srq;

	(void)state;
	assert_int_equal(ibv_query_device(pair.a.context, &dev), 0);
	assert_null(create(0, 1, NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(create(1, 0, NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(create((uint32_t)dev.max_srq_wr + 1, 1, NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(create(1, (uint32_t)dev.max_srq_sge + 1, NULL));
	assert_int_equal(errno, EINVAL);
	srq = create((uint32_t)dev.max_srq_wr, (uint32_t)dev.max_srq_sge, NULL);
	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);

	srq = create(100, 3, &actual);
	assert_non_null(srq);
	assert_true(actual.max_wr >= 100 && actual.max_sge >= 3);
	assert_ptr_equal(srq->srq_context, &pair);
	assert_ptr_equal(srq->pd, pair.a.pd);
	assert_int_equal(ibv_query_srq(srq, &got), 0);
	assert_int_equal(got.max_wr, actual.max_wr);
	assert_int_equal(got.max_sge, actual.max_sge);
	assert_int_equal(got.srq_limit, 0); /* irrelevant at creation */
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
test_create_ex(void **state)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 5, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pair.a.pd,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(pair.a.context, &attr);

	(void)state;
	assert_non_null(srq);
	assert_true(attr.attr.max_wr >= 5);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	attr.srq_type = IBV_SRQT_TM;
	errno = 0;
	assert_null(ibv_create_srq_ex(pair.a.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
}

static uint32_t
outstanding(struct ibv_srq *srq)
{
	struct rocade_srq_info info;

	assert_int_equal(rocade_srq_info(srq, &info), 0);
	return info.outstanding;
}

static struct ibv_sge
sge_of(struct pair_side *s, size_t offset, uint32_t len)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)s->mem + offset, .length = len, .lkey = s->mr->lkey};
}

static void
test_post_list(void **state)
{
	struct ibv_sge sge = sge_of(&pair.b, 0, 64);
	struct ibv_sge many[4] = {sge, sge, sge, sge};
	struct ibv_recv_wr wr[4], *bad;
	struct ibv_wc wc[4];

	(void)state;
	for (int bad_sges = -1; bad_sges <= 4; bad_sges += 5) {
		for (unsigned i = 0; i < 4; i++)
			wr[i] = (struct ibv_recv_wr){.wr_id = 10 + i,
				.next = i < 3 ? &wr[i + 1] : NULL,
				.sg_list = many,
				.num_sge = 1};
		wr[2].num_sge = bad_sges;
		bad = NULL;
		assert_int_equal(ibv_post_srq_recv(pair.b.srq, wr, &bad), EINVAL);
		assert_ptr_equal(bad, &wr[2]);
		/* Those before stay, of it and those after nothing was done. */
		assert_int_equal(outstanding(pair.b.srq), 2);
		assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr[2], NULL), EINVAL);
		/* The list and its SGEs may be reused at once. */
		memset(wr, 0xFF, sizeof(wr));
		memset(many, 0xFF, sizeof(many));
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(
				pair_send(&pair.a, 0, i, 0, 64, IBV_SEND_SIGNALED), 0);
		pair_complete(&pair, pair.b.recv_cq, wc, 2);
		assert_int_equal(wc[0].wr_id, 10);
		assert_int_equal(wc[1].wr_id, 11);
		assert_int_equal(wc[1].status, IBV_WC_SUCCESS);
		pair_complete(&pair, pair.a.send_cq, wc, 2);
		for (unsigned i = 0; i < 4; i++)
			many[i] = sge;
	}
}

static void
test_post_full(void **state)
{
	struct ibv_recv_wr wr = {.wr_id = 5}, second = {.wr_id = 6}, *bad = NULL;
	struct ibv_srq_attr attr;

	(void)state;
	assert_int_equal(ibv_query_srq(pair.b.srq, &attr), 0);
	/* Duplicate wr_ids are legal. */
	for (uint32_t i = 0; i + 1 < attr.max_wr; i++)
		assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	wr.next = &second;
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &second);
	assert_int_equal(outstanding(pair.b.srq), attr.max_wr);
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &second, NULL), ENOMEM);
	/* There is room again once one was taken; duplicates come one by one. */
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 0, IBV_SEND_SIGNALED), 0);
	pair_settle(&pair);
	assert_int_equal(outstanding(pair.b.srq), attr.max_wr - 1);
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &second, &bad), 0);
}

/* Posting works whatever QPs there are, and only QPs from RTR on take. */
static void
test_states(void **state)
{
	static const enum ibv_qp_state taking[] = {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD};
	struct pair_side *b = &pair.b;
	struct ibv_srq *srq = create(4, 1, NULL);
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
	struct ibv_wc wc;

	(void)state;
	/* With no QP at all. */
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	for (unsigned i = 0; i < 3; i++) {
		pair_to(b->qp[0], IBV_QPS_RESET);
		pair_to(pair.a.qp[0], IBV_QPS_RESET);
		assert_int_equal(pair_post_srq(b, i, 0, 64), 0);
		pair_to_init(b->qp[0]);
		pair_to_init(pair.a.qp[0]);
		pair_to_rtr(&pair.conf, pair.a.qp[0], &b->gid, b->qp[0]->qp_num);
		pair_to_rts(&pair.conf, pair.a.qp[0]);
		assert_int_equal(pair_send(&pair.a, 0, 1, 0, 64, IBV_SEND_SIGNALED), 0);
		pair_quiet(&pair, b->recv_cq); /* INIT takes nothing */
		assert_int_equal(outstanding(b->srq), 1);
		pair_to_rtr(&pair.conf, b->qp[0], &pair.a.gid, pair.a.qp[0]->qp_num);
		if (taking[i] != IBV_QPS_RTR)
			pair_to_rts(&pair.conf, b->qp[0]);
		if (taking[i] == IBV_QPS_SQD)
			pair_to(b->qp[0], IBV_QPS_SQD);
		pair_complete(&pair, b->recv_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
		pair_complete(&pair, pair.a.send_cq, &wc, 1);
	}
	/* ERR takes nothing, and posting goes on. */
	pair_to(b->qp[0], IBV_QPS_ERR);
	assert_int_equal(pair_post_srq(b, 9, 0, 64), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	pair_quiet(&pair, b->recv_cq);
	assert_int_equal(outstanding(b->srq), 1);
	pair_to(pair.a.qp[0], IBV_QPS_RESET);
	pair_to(b->qp[0], IBV_QPS_RESET);
	while (ibv_poll_cq(pair.a.send_cq, 1, &wc) == 1)
		;
	pair_settle(&pair);
}

static void
test_post_recv_on_srq_qp(void **state)
{
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	(void)state;
	assert_int_equal(ibv_post_recv(pair.b.qp[0], &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_post_recv(pair.b.qp[0], &wr, NULL), EINVAL);
	assert_int_equal(outstanding(pair.b.srq), 0);
	/* A query names the SRQ, and no receive queue of the QP's own. */
	assert_int_equal(ibv_query_qp(pair.b.qp[0], &attr, IBV_QP_CAP, &init), 0);
	assert_ptr_equal(init.srq, pair.b.srq);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	assert_int_equal(attr.cap.max_recv_sge, 0);
	assert_memory_equal(&init.cap, &attr.cap, sizeof(attr.cap));
}

/* FIFO over all QPs; wr_id and qp_num tell who got which. */
static void
test_fifo(void **state)
{
	struct ibv_wc wc;

	(void)state;
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, i * 64, 64), 0);
	for (unsigned i = 0; i < 16; i++) {
		pair.a.mem[0] = (uint8_t)(i + 1);
		assert_int_equal(
			pair_send(&pair.a, i % 3, i, 0, 64, IBV_SEND_SIGNALED), 0);
		pair_complete(&pair, pair.b.recv_cq, &wc, 1);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.qp_num, pair.b.qp[i % 3]->qp_num);
		assert_int_equal(pair.b.mem[i * 64], i + 1);
		pair_complete(&pair, pair.a.send_cq, &wc, 1);
	}
}

static void
test_immediate(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = 0xAABBCCDD,
		.send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_recv_wr none = {.wr_id = 4}, *bad_recv;
	struct ibv_wc wc;

	(void)state;
	/* A receive with no SGE takes a message of no bytes. */
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &none, &bad_recv), 0);
	assert_int_equal(ibv_post_send(pair.a.qp[1], &wr, &bad), 0);
	pair_complete(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 0);
	assert_int_equal(wc.wr_id, 4);
	assert_int_equal(wc.imm_data, 0xAABBCCDD);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	pair_complete(&pair, pair.a.send_cq, &wc, 1);
}

/* SGEs of one WR in different regions; overlapping ones do no harm. */
static void
test_sges(void **state)
{
	struct ibv_mr *other =
		ibv_reg_mr(pair.b.pd, pair.b.mem + 4096, 100, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge to[3] = {sge_of(&pair.b, 0, 10), sge_of(&pair.b, 4096, 50),
		sge_of(&pair.b, 9000, 1000)};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = to, .num_sge = 3}, *bad;
	struct ibv_wc wc;

	(void)state;
	to[1].lkey = other->lkey;
	for (unsigned i = 0; i < 200; i++)
		pair.a.mem[i] = (uint8_t)(i + 1);
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 200, IBV_SEND_SIGNALED), 0);
	pair_complete(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_memory_equal(pair.b.mem, pair.a.mem, 10);
	assert_memory_equal(pair.b.mem + 4096, pair.a.mem + 10, 50);
	assert_memory_equal(pair.b.mem + 9000, pair.a.mem + 60, 140);
	pair_complete(&pair, pair.a.send_cq, &wc, 1);

	/* The later piece wins. */
	to[0] = sge_of(&pair.b, 100, 50);
	to[1] = sge_of(&pair.b, 120, 50);
	to[2] = sge_of(&pair.b, 100, 100);
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 200, IBV_SEND_SIGNALED), 0);
	pair_complete(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 200);
	assert_memory_equal(pair.b.mem + 100, pair.a.mem + 100, 100);
	pair_complete(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(ibv_dereg_mr(other), 0);
}

/* An SGE of length 0 is 2^31 bytes long, and the key is checked for what is written. */
static void
test_sge_length_zero(void **state)
{
	struct ibv_sge sge = sge_of(&pair.b, 100, 0);
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_wc wc;

	(void)state;
	for (unsigned i = 0; i < 3000; i++)
		pair.a.mem[i] = (uint8_t)(i * 3 + 1);
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 3000, IBV_SEND_SIGNALED), 0);
	pair_complete(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 3000);
	assert_memory_equal(pair.b.mem + 100, pair.a.mem, 3000);
	pair_complete(&pair, pair.a.send_cq, &wc, 1);

	/* Ten bytes before the end of the region: eleven do not fit. */
	sge = sge_of(&pair.b, pair.conf.bytes - 10, 0);
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 10, IBV_SEND_SIGNALED), 0);
	pair_complete(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_complete(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 11, IBV_SEND_SIGNALED), 0);
	pair_complete(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	pair_complete(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_REM_OP_ERR);
}

/* The capacity is a 64-bit sum: two of 2^31 are 2^32, not 0. */
static void
test_capacity_sum(void **state)
{
	struct ibv_sge to[2] = {sge_of(&pair.b, 0, 0), sge_of(&pair.b, 0, 0)};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = to, .num_sge = 2}, *bad;
	struct ibv_wc wc;

	(void)state;
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 5000, IBV_SEND_SIGNALED), 0);
	pair_complete(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 5000);
	pair_complete(&pair, pair.a.send_cq, &wc, 1);
}

static void
take(unsigned n)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(pair_send(&pair.a, 0, 1, 0, 1, IBV_SEND_SIGNALED), 0);
		pair_complete(&pair, pair.b.recv_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		pair_complete(&pair, pair.a.send_cq, &wc, 1);
	}
}

/* Posts a receive over this SGE, sends, and wants these completions; the QPs come up
 * again. */
static void
key_case(struct ibv_sge sge, enum ibv_wc_status here, enum ibv_wc_status there)
{
	struct ibv_recv_wr wr = {.wr_id = 21, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_async_event event;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0); /* not seen here */
	assert_int_equal(pair_send(&pair.a, 0, 3, 0, 64, IBV_SEND_SIGNALED), 0);
	pair_complete(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, here);
	assert_int_equal(wc.wr_id, 21);
	assert_int_equal(wc.qp_num, pair.b.qp[0]->qp_num);
	pair_complete(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, there);
	assert_int_equal(wc.wr_id, 3);
	do
		event = pair_event(&pair, &pair.b);
	while (event.event_type != IBV_EVENT_QP_LAST_WQE_REACHED);
	pair_to(pair.a.qp[0], IBV_QPS_RESET);
	pair_to(pair.b.qp[0], IBV_QPS_RESET);
	pair_connect(&pair, 0);
	pair_settle(&pair);
}

static void
test_keys(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(pair.b.context);
	struct ibv_mr *read_only = ibv_reg_mr(pair.b.pd, pair.b.mem, 64, 0);
	struct ibv_mr *foreign = ibv_reg_mr(pd, pair.b.mem, 64, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *gone =
		ibv_reg_mr(pair.b.pd, pair.b.mem, 64, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = sge_of(&pair.b, 0, 64);

	(void)state;
	assert_int_equal(pair_post_srq(&pair.b, 1, 0, 64), 0);
	take(1); /* both know each other's MAC */
	sge.lkey ^= 0x5500;
	key_case(sge, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	sge.lkey = read_only->lkey;
	key_case(sge, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	sge.lkey = foreign->lkey;
	key_case(sge, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	sge.lkey = gone->lkey;
	assert_int_equal(ibv_dereg_mr(gone), 0);
	key_case(sge, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	/* Too short: a length error here, "invalid request" there. */
	sge = sge_of(&pair.b, 0, 63);
	key_case(sge, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(ibv_dereg_mr(read_only), 0);
	assert_int_equal(ibv_dereg_mr(foreign), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* The key must be of the SRQ's PD; the QP's may be another. */
static void
test_qp_of_other_pd(void **state)
{
	struct pair_side *b = &pair.b;
	struct ibv_pd *pd = ibv_alloc_pd(b->context), *kept_pd = b->pd;
	struct ibv_qp *kept[2] = {pair.a.qp[0], b->qp[0]};
	struct ibv_wc wc;

	(void)state;
	b->pd = pd;
	b->qp[0] = pair_qp(&pair.conf, b, 0);
	pair.a.qp[0] = pair_qp(&pair.conf, &pair.a, 0);
	pair_connect(&pair, 0);
	b->pd = kept_pd;
	assert_int_equal(pair_post_srq(b, 1, 0, 64), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	pair_complete(&pair, b->recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_complete(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(ibv_destroy_qp(b->qp[0]), 0);
	assert_int_equal(ibv_destroy_qp(pair.a.qp[0]), 0);
	pair.a.qp[0] = kept[0];
	b->qp[0] = kept[1];
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* Two SRQs of different size classes side by side. */
static void
test_two_srqs(void **state)
{
	struct pair_side *b = &pair.b;
	struct ibv_srq *small = b->srq, *large;
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_qp *kept = b->qp[2];
	struct ibv_wc wc;

	(void)state;
	large = ibv_create_srq(b->pd, &attr);
	assert_non_null(large);
	b->srq = large;
	b->qp[2] = pair_qp(&pair.conf, b, 0);
	pair_to(pair.a.qp[2], IBV_QPS_RESET);
	pair_connect(&pair, 2);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pair_post_srq(b, 100 + i, 65536 + i * 65536, 65536), 0);
	b->srq = small;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pair_post_srq(b, i, i * 64, 64), 0);
	memset(pair.a.mem, 0x77, 60000);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(
			pair_send(&pair.a, 2, 1, 0, 60000, IBV_SEND_SIGNALED), 0);
		assert_int_equal(pair_send(&pair.a, 0, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	}
	for (unsigned i = 0; i < 8; i++) {
		pair_complete(&pair, b->recv_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.qp_num == b->qp[2]->qp_num)
			assert_true(wc.wr_id >= 100 && wc.byte_len == 60000);
		else
			assert_true(wc.wr_id < 4 && wc.byte_len == 64);
	}
	assert_memory_equal(b->mem + 65536, pair.a.mem, 60000);
	assert_int_equal(ibv_destroy_srq(large), EBUSY);
	assert_int_equal(ibv_destroy_qp(b->qp[2]), 0);
	assert_int_equal(ibv_destroy_srq(large), 0);
	b->qp[2] = kept;
}

static int
modify(struct ibv_srq *srq, uint32_t max_wr, uint32_t max_sge, uint32_t limit, int mask)
{
	struct ibv_srq_attr attr = {
		.max_wr = max_wr, .max_sge = max_sge, .srq_limit = limit};

	return ibv_modify_srq(srq, &attr, mask);
}

static uint32_t
limit_of(struct ibv_srq *srq)
{
	struct ibv_srq_attr attr;

	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	return attr.srq_limit;
}

static void
limit_event(struct ibv_srq *srq)
{
	struct ibv_async_event event = pair_event(&pair, &pair.b);

	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, srq);
}

static void
test_limit(void **state)
{
	struct ibv_srq *srq = pair.b.srq;

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, 0, 64), 0);
	take(1);
	assert_int_equal(modify(srq, 0, 0, 5, IBV_SRQ_LIMIT), 0);
	assert_int_equal(limit_of(srq), 5);
	take(4); /* 5 left: not below */
	pair_no_event(&pair, &pair.b);
	assert_int_equal(limit_of(srq), 5);
	take(1);
	limit_event(srq);
	assert_int_equal(limit_of(srq), 0);
	take(1); /* once */
	pair_no_event(&pair, &pair.b);

	/* Above what is there: at once. Equal: not. */
	assert_int_equal(modify(srq, 0, 0, 3, IBV_SRQ_LIMIT), 0);
	pair_no_event(&pair, &pair.b);
	assert_int_equal(modify(srq, 0, 0, 4, IBV_SRQ_LIMIT), 0);
	limit_event(srq);
	assert_int_equal(limit_of(srq), 0);

	/* Re-arming replaces; 0 disarms. */
	assert_int_equal(modify(srq, 0, 0, 3, IBV_SRQ_LIMIT), 0);
	assert_int_equal(modify(srq, 0, 0, 1, IBV_SRQ_LIMIT), 0);
	assert_int_equal(limit_of(srq), 1);
	take(1);
	pair_no_event(&pair, &pair.b);
	assert_int_equal(modify(srq, 0, 0, 0, IBV_SRQ_LIMIT), 0);
	assert_int_equal(limit_of(srq), 0);
	take(2);
	pair_no_event(&pair, &pair.b);

	/* Above max_wr is EINVAL and changes nothing. */
	struct ibv_srq_attr attr;
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, 0, 64), 0);
	assert_int_equal(modify(srq, 0, 0, 2, IBV_SRQ_LIMIT), 0);
	assert_int_equal(modify(srq, 0, 0, attr.max_wr + 1, IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(limit_of(srq), 2);
	pair_no_event(&pair, &pair.b);
}

static void
test_resize(void **state)
{
	struct ibv_srq *srq = pair.b.srq;
	struct ibv_device_attr dev;
	struct ibv_srq_attr attr, got;
	struct ibv_wc wc;

	(void)state;
	assert_int_equal(ibv_query_device(pair.b.context, &dev), 0);
	assert_true(dev.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, 0, 64), 0);
	attr = (struct ibv_srq_attr){.max_wr = 100};
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_true(attr.max_wr >= 100);
	assert_int_equal(attr.max_sge, 3); /* 0 keeps it */
	assert_int_equal(ibv_query_srq(srq, &got), 0);
	assert_int_equal(got.max_wr, attr.max_wr);
	assert_int_equal(got.max_sge, 3);
	for (unsigned i = 10; i < 60; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, 0, 64), 0);
	/* What cannot be, changes nothing. */
	assert_int_equal(modify(srq, 0, 0, 0, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(
		modify(srq, (uint32_t)dev.max_srq_wr + 1, 0, 0, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(modify(srq, 59, 0, 0, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(
		modify(srq, 100, (uint32_t)dev.max_srq_sge + 1, 0, IBV_SRQ_MAX_WR),
		EINVAL);
	assert_int_equal(modify(srq, 100, 1, 0, 1 << 2), EINVAL);
	assert_int_equal(modify(srq, 100, 1, 0, 1 << 2 | IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(modify(srq, 1, 1, 1, 0), 0); /* asks for nothing */
	assert_int_equal(ibv_query_srq(srq, &got), 0);
	assert_int_equal(got.max_wr, attr.max_wr);
	assert_int_equal(got.max_sge, 3);
	/* To the very number, and fewer SGEs. */
	attr = (struct ibv_srq_attr){.max_wr = 60, .max_sge = 1};
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(attr.max_sge, 1);
	for (unsigned i = 0; i < 60; i++) {
		assert_int_equal(
			pair_send(&pair.a, i % 3, 1, 0, 1, IBV_SEND_SIGNALED), 0);
		pair_complete(&pair, pair.b.recv_cq, &wc, 1);
		assert_int_equal(wc.wr_id, i);
		pair_complete(&pair, pair.a.send_cq, &wc, 1);
	}
}

/* Fewer SGEs than an outstanding request has. */
static void
test_resize_sges(void **state)
{
	struct ibv_sge sge[3] = {
		sge_of(&pair.b, 0, 1), sge_of(&pair.b, 1, 1), sge_of(&pair.b, 2, 1)};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = sge, .num_sge = 2}, *bad;
	struct ibv_srq_attr got;

	(void)state;
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	assert_int_equal(modify(pair.b.srq, 16, 1, 0, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(modify(pair.b.srq, 16, 2, 0, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(ibv_query_srq(pair.b.srq, &got), 0);
	assert_int_equal(got.max_sge, 2);
	wr.num_sge = 3;
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), EINVAL);
	assert_int_equal(modify(pair.b.srq, 16, 16, 0, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 2, IBV_SEND_SIGNALED), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 3, IBV_SEND_SIGNALED), 0);
	struct ibv_wc wc[2];
	pair_complete(&pair, pair.b.recv_cq, wc, 2);
	assert_int_equal(wc[0].byte_len, 2);
	assert_int_equal(wc[1].byte_len, 3);
}

/* Both flags together, or not at all. */
static void
test_resize_and_limit(void **state)
{
	struct ibv_srq *srq = pair.b.srq;
	struct ibv_srq_attr before, after;
	int both = IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT;

	(void)state;
	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, 0, 64), 0);
	take(1);
	assert_int_equal(ibv_query_srq(srq, &before), 0);
	assert_int_equal(
		modify(srq, 100, 0, 101, both), EINVAL); /* limit above the size */
	assert_int_equal(
		modify(srq, 4, 0, 2, both), EINVAL); /* size below what is there */
	assert_int_equal(ibv_query_srq(srq, &after), 0);
	assert_memory_equal(&after, &before, sizeof(before));
	pair_no_event(&pair, &pair.b);
	assert_int_equal(modify(srq, 100, 0, 9, both), 0);
	assert_int_equal(ibv_query_srq(srq, &after), 0);
	assert_true(after.max_wr >= 100);
	assert_int_equal(after.srq_limit, 9);
	/* Below an armed limit. */
	assert_int_equal(modify(srq, 8, 0, 0, IBV_SRQ_MAX_WR), EINVAL);
	take(2);
	pair_no_event(&pair, &pair.b);
	take(1);
	limit_event(srq);
	/* A limit above what is there, with the resize: applied and raised. */
	assert_int_equal(modify(srq, 200, 0, 150, both), 0);
	limit_event(srq);
}

/* An empty SRQ answers "receiver not ready", and traffic resumes after a post. */
static void
test_empty(void **state)
{
	struct ibv_wc wc;

	(void)state;
	for (unsigned round = 0; round < 5; round++) {
		pair.a.mem[0] = (uint8_t)(round + 1);
		assert_int_equal(
			pair_send(&pair.a, 0, round, 0, 2000, IBV_SEND_SIGNALED), 0);
		pair_quiet(&pair, pair.b.recv_cq);
		assert_int_equal(pair_post_srq(&pair.b, round, 0, 2000), 0);
		pair_complete(&pair, pair.b.recv_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, round);
		assert_int_equal(pair.b.mem[0], round + 1);
		pair_complete(&pair, pair.a.send_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	assert_true(pair_stat(&pair.b, "rnr_nak_sent") >= 5);
	assert_true(pair_stat(&pair.a, "rnr_nak_received") >= 5);
}

static int
setup_rnr(void **state)
{
	(void)state;
	return setup_conf(&(struct pair_conf){.srq_wr = 4, .rnr_retry = 2});
}

static void
test_rnr_exceeded(void **state)
{
	struct ibv_wc wc;

	(void)state;
	assert_int_equal(pair_send(&pair.a, 0, 3, 0, 16, IBV_SEND_SIGNALED), 0);
	pair_complete(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(pair_stat(&pair.b, "rnr_nak_sent"), 3);
}

static void
test_destroy(void **state)
{
	struct ibv_async_event event;
	struct ibv_srq *srq = pair.b.srq;

	(void)state;
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	/* Still whole. */
	assert_int_equal(pair_post_srq(&pair.b, 1, 0, 64), 0);
	take(1);
	/* Events that nobody read go with their object. */
	srq = ibv_create_srq(pair.b.pd,
		&(struct ibv_srq_init_attr){.attr = {.max_wr = 4, .max_sge = 1}});
	assert_int_equal(modify(srq, 0, 0, 2, IBV_SRQ_LIMIT), 0);
	assert_int_equal(
		modify(srq, 0, 0, 2, IBV_SRQ_LIMIT), 0); /* twice armed, twice raised */
	assert_int_equal(ibv_get_async_event(pair.b.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	pair_no_event(&pair, &pair.b);
}

struct destroyer {
	struct ibv_srq *srq;
	bool done;
};

static void *
destroy(void *arg)
{
	struct destroyer *d = arg;

	assert_int_equal(ibv_destroy_srq(d->srq), 0);
	__atomic_store_n(&d->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Waits for what was delivered and not acknowledged. */
static void
test_destroy_waits(void **state)
{
	struct destroyer d = {.srq = create(4, 1, NULL)};
	struct ibv_async_event event;
	pthread_t thread;

	(void)state;
	assert_int_equal(modify(d.srq, 0, 0, 2, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_get_async_event(pair.a.context, &event), 0);
	assert_int_equal(pthread_create(&thread, NULL, destroy, &d), 0);
	for (int i = 0; i < 50; i++) {
		pair_settle(&pair);
		assert_false(__atomic_load_n(&d.done, __ATOMIC_ACQUIRE));
	}
	ibv_ack_async_event(&event);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(d.done);
}

/* A QP on an SRQ that enters ERR says so once, behind its last receive completion. */
static void
test_last_wqe(void **state)
{
	struct ibv_async_event event;
	struct ibv_wc wc;

	(void)state;
	assert_int_equal(pair_post_srq(&pair.b, 1, 0, 64), 0);
	take(1);
	pair_to(pair.b.qp[0], IBV_QPS_ERR);
	event = pair_event(&pair, &pair.b);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, pair.b.qp[0]);
	pair_to(pair.b.qp[0], IBV_QPS_ERR); /* it is there already */
	pair_no_event(&pair, &pair.b);
	/* The SRQ's requests belong to no QP: none is flushed. */
	assert_int_equal(pair_post_srq(&pair.b, 2, 0, 64), 0);
	pair_quiet(&pair, pair.b.recv_cq);
	assert_int_equal(outstanding(pair.b.srq), 1);
	(void)wc;
}

/* When the event can be read, the completion is there. */
static void
test_last_wqe_order(void **state)
{
	struct ibv_sge sge = sge_of(&pair.b, 0, 64);
	struct ibv_recv_wr wr = {.wr_id = 6, .sg_list = &sge, .num_sge = 1}, *bad;
	struct pollfd event_waits = {.fd = pair.b.context->async_fd, .events = POLLIN};
	struct ibv_wc wc;

	(void)state;
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	assert_int_equal(pair_send(&pair.a, 0, 3, 0, 65, IBV_SEND_SIGNALED), 0);
	while (poll(&event_waits, 1, 0) == 0)
		pair_poll(&pair);
	assert_int_equal(ibv_poll_cq(pair.b.recv_cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 6);
	assert_int_equal(wc.status, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(
		pair_event(&pair, &pair.b).event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	pair_no_event(&pair, &pair.b);
}

#define with_pair(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		with_pair(test_create),
		with_pair(test_create_ex),
		with_pair(test_post_list),
		with_pair(test_post_full),
		with_pair(test_states),
		with_pair(test_post_recv_on_srq_qp),
		with_pair(test_fifo),
		with_pair(test_immediate),
		with_pair(test_sges),
		with_pair(test_sge_length_zero),
		with_pair(test_capacity_sum),
		with_pair(test_keys),
		with_pair(test_qp_of_other_pd),
		with_pair(test_two_srqs),
		with_pair(test_limit),
		with_pair(test_resize),
		with_pair(test_resize_sges),
		with_pair(test_resize_and_limit),
		with_pair(test_empty),
		cmocka_unit_test_setup_teardown(test_rnr_exceeded, setup_rnr, teardown),
		with_pair(test_destroy),
		with_pair(test_destroy_waits),
		with_pair(test_last_wqe),
		with_pair(test_last_wqe_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
