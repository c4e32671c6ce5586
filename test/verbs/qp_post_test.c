/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests and their completions, as ibv_post_send(3), ibv_post_recv(3) and
 * ibv_poll_cq(3) specify. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "qp_fixture.h"

static struct ibv_send_wr
send_wr(struct ibv_sge *sge, int n)
{
	return (struct ibv_send_wr){.sg_list = sge,
		.num_sge = n,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED};
}

/* Posting a list of three fails with `err` at the second; only the first is sent. */
static void
second_refused(struct ibv_send_wr *second, int err)
{
	struct ibv_sge sge = pair_sge(&pair.a, 0, 1);
	struct ibv_send_wr first = send_wr(&sge, 1), third = send_wr(&sge, 1),
			   *bad = NULL;
	struct ibv_wc wc;

	first.wr_id = 1;
	third.wr_id = 3;
	first.next = second;
	second->next = &third;
	assert_int_equal(pair_post_recv(&pair.b, 0, 7, 4096, 4096), 0);
	assert_int_equal(ibv_post_send(pair.a.qp[0], &first, &bad), err);
	assert_ptr_equal(bad, second);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	pair_no_completion(&pair, pair.a.send_cq);
	/* bad_wr may be NULL. */
	assert_int_equal(ibv_post_send(pair.a.qp[0], second, NULL), err);
	pair_no_completion(&pair, pair.a.send_cq);
}

TEST_WITH(invalid_sends_are_refused, qp_setup, qp_teardown)
{
	struct ibv_sge sge[4] = {pair_sge(&pair.a, 0, 1), pair_sge(&pair.a, 0, 1),
		pair_sge(&pair.a, 0, 1), pair_sge(&pair.a, 0, 1)};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_send_wr wr;

	wr = send_wr(sge, -1);
	second_refused(&wr, EINVAL);
	wr = send_wr(sge, 4); /* max_send_sge is 3 */
	second_refused(&wr, EINVAL);
	static const enum ibv_wr_opcode absent[] = {
		IBV_WR_TSO, IBV_WR_DRIVER1, IBV_WR_DRIVER1 + 1, IBV_WR_ATOMIC_WRITE + 1};
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		wr = send_wr(sge, 1);
		wr.opcode = absent[i];
		second_refused(&wr, EINVAL);
	}
	/* An atomic needs exactly 8 aligned bytes; a READ or atomic cannot be inline. */
	wr = send_wr(sge, 1);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	second_refused(&wr, EINVAL);
	wr = send_wr(sge, 1);
	wr.opcode = IBV_WR_RDMA_READ;
	wr.send_flags |= IBV_SEND_INLINE;
	second_refused(&wr, EINVAL);
	wr = send_wr(sge, 1);
	wr.send_flags |= IBV_SEND_IP_CSUM;
	second_refused(&wr, EINVAL);
	/* One byte more than 2^31. */
	sge[0].length = UINT32_C(1) << 31;
	wr = send_wr(sge, 2);
	second_refused(&wr, EINVAL);
	sge[0].length = UINT32_MAX; /* the sum would wrap 32 bits */
	sge[1].length = 2;
	wr = send_wr(sge, 2);
	second_refused(&wr, EINVAL);
	/* One byte more than the inline capacity. */
	assert_int_equal(ibv_query_qp(pair.a.qp[0], &attr, IBV_QP_CAP, &init), 0);
	sge[0].length = init.cap.max_inline_data + 1;
	wr = send_wr(sge, 1);
	wr.send_flags |= IBV_SEND_INLINE;
	second_refused(&wr, EINVAL);
}

TEST_WITH(sends_in_each_state, qp_setup, qp_teardown)
{
	struct ibv_qp *qp = pair_qp_create(&pair.conf, &pair.a, 0);
	struct ibv_send_wr wr = send_wr(NULL, 0), *bad;

	bad = NULL;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	pair_to_init(qp);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	pair_to_rtr(&pair.conf, qp, &pair.b.gid, 5);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	pair_to_rts(&pair.conf, qp);
	pair_modify_state(qp, IBV_QPS_SQD);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0); /* not sent in SQD */
	pair_no_completion(&pair, pair.a.send_cq);
	pair_modify_state(qp, IBV_QPS_ERR);
	struct ibv_wc wc;
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0); /* flushed */
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.qp_num, qp->qp_num);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

TEST_WITH(invalid_receives_are_refused, qp_setup, qp_teardown)
{
	struct ibv_sge sge[4] = {pair_sge(&pair.a, 0, 1), pair_sge(&pair.a, 0, 1),
		pair_sge(&pair.a, 0, 1), pair_sge(&pair.a, 0, 1)};
	struct ibv_recv_wr wr[3] = {
		{.wr_id = 1, .sg_list = sge, .num_sge = 3, .next = &wr[1]},
		{.wr_id = 2, .sg_list = sge, .num_sge = 4, .next = &wr[2]},
		{.wr_id = 3, .sg_list = sge, .num_sge = 1},
	};
	struct ibv_recv_wr *bad = NULL;
	struct ibv_qp *qp = pair_qp_create(&pair.conf, &pair.a, 0);
	struct rocade_qp_info info;

	assert_int_equal(ibv_post_recv(qp, wr, &bad), EINVAL); /* RESET */
	assert_ptr_equal(bad, &wr[0]);
	pair_to_init(qp);
	assert_int_equal(ibv_post_recv(qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(rocade_qp_info(qp, &info), 0);
	assert_int_equal(info.rq_outstanding, 1);
	wr[1].num_sge = -1;
	assert_int_equal(ibv_post_recv(qp, &wr[1], NULL), EINVAL);
	wr[1].num_sge = 0;
	for (uint32_t i = 1; i < info.rq_max_wr; i++)
		assert_int_equal(ibv_post_recv(qp, &wr[2], &bad), 0);
	bad = NULL;
	assert_int_equal(ibv_post_recv(qp, &wr[1], &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(ibv_post_recv(qp, &wr[1], NULL), ENOMEM);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* Lists that are posted whole leave bad_wr as it was, of receives and of sends. */
TEST_WITH(test_bad_wr_kept_on_success, qp_setup, qp_teardown)
{
	struct ibv_recv_wr recv[3] = {
		{.next = &recv[1]}, {.next = &recv[2]}, {.wr_id = 3}};
	struct ibv_recv_wr recv_sentinel, *bad_recv = &recv_sentinel;
	struct ibv_send_wr wr[3], sentinel, *bad = &sentinel;
	struct ibv_wc wc[3];

	for (unsigned i = 0; i < 3; i++) {
		wr[i] = send_wr(NULL, 0);
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	assert_int_equal(ibv_post_recv(pair.b.qp[0], recv, &bad_recv), 0);
	assert_ptr_equal(bad_recv, &recv_sentinel);
	assert_int_equal(ibv_post_send(pair.a.qp[0], wr, &bad), 0);
	assert_ptr_equal(bad, &sentinel);
	/* All of both lists was posted. */
	pair_poll_cq(&pair, pair.b.recv_cq, wc, 3);
	pair_poll_cq(&pair, pair.a.send_cq, wc, 3);
}

/* Receives posted in ERR are flushed in order, without any packet. */
TEST_WITH(receives_posted_in_error_are_flushed, qp_setup, qp_teardown)
{
	struct ibv_wc wc[3];

	assert_int_equal(pair_post_recv(&pair.a, 0, 1, 0, 16), 0);
	pair_modify_state(pair.a.qp[0], IBV_QPS_ERR);
	assert_int_equal(pair_post_recv(&pair.a, 0, 2, 0, 16), 0);
	assert_int_equal(pair_post_recv(&pair.a, 0, 3, 0, 16), 0);
	pair_poll_cq(&pair, pair.a.recv_cq, wc, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(wc[i].wr_id, i + 1);
		assert_int_equal(wc[i].status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(wc[i].qp_num, pair.a.qp[0]->qp_num);
	}
}

/* Data, immediate data and every member of a completion, with gather and scatter over
 * many SGEs. */
TEST_WITH(data_and_completion_members, qp_setup, qp_teardown)
{
	struct ibv_sge from[3] = {pair_sge(&pair.a, 10, 100), pair_sge(&pair.a, 5000, 0),
		pair_sge(&pair.a, 9000, 3001)};
	struct ibv_sge to[3] = {pair_sge(&pair.b, 1, 7), pair_sge(&pair.b, 100, 2000),
		pair_sge(&pair.b, 8000, 4000)};
	struct ibv_recv_wr recv = {.wr_id = 77, .sg_list = to, .num_sge = 3}, *bad_recv;
	struct ibv_send_wr wr = send_wr(from, 3), *bad;
	uint8_t sent[3101], got[3101];
	struct ibv_wc wc;

	for (size_t i = 0; i < 20000; i++)
		pair.a.mem[i] = (uint8_t)(i * 7 + i / 256);
	wr.wr_id = 99;
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = 0x11223344;
	assert_int_equal(ibv_post_recv(pair.b.qp[0], &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 77);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 3101);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, 0x11223344);
	assert_int_equal(wc.qp_num, pair.b.qp[0]->qp_num);
	assert_int_equal(wc.vendor_err, 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 99);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
	assert_int_equal(wc.qp_num, pair.a.qp[0]->qp_num);
	memcpy(sent, pair.a.mem + 10, 100);
	memcpy(sent + 100, pair.a.mem + 9000, 3001);
	memcpy(got, pair.b.mem + 1, 7);
	memcpy(got + 7, pair.b.mem + 100, 2000);
	memcpy(got + 2007, pair.b.mem + 8000, 1094);
	assert_memory_equal(got, sent, sizeof(sent));
	assert_int_equal(pair.b.mem[0], 0);
	assert_int_equal(pair.b.mem[8], 0);
	assert_int_equal(pair.b.mem[8000 + 1094], 0);
}

/* A region registered with another address, or from 0, is addressed by that one. */
TEST_WITH(regions_with_other_addresses, qp_setup, qp_teardown)
{
	struct ibv_mr *zero = ibv_reg_mr(pair.a.pd, pair.a.mem + 512, 4096,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
	struct ibv_mr *iova = ibv_reg_mr_iova(
		pair.b.pd, pair.b.mem + 1024, 4096, 0x7000000000, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge from = {.addr = 1, .length = 50, .lkey = zero->lkey};
	struct ibv_sge to = {.addr = 0x7000000003, .length = 50, .lkey = iova->lkey};
	struct ibv_recv_wr recv = {.sg_list = &to, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr wr = send_wr(&from, 1), *bad;
	struct ibv_wc wc;

	memset(pair.a.mem + 513, 0x5A, 50);
	assert_int_equal(ibv_post_recv(pair.b.qp[0], &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_memory_equal(pair.b.mem + 1024 + 3, pair.a.mem + 513, 50);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(ibv_dereg_mr(zero), 0);
	assert_int_equal(ibv_dereg_mr(iova), 0);
}

/* The region is deregistered before the request is sent: a local error with the
 * opcode. */
TEST_WITH(deregistered_lkey_fails_locally, qp_setup, qp_teardown)
{
	struct ibv_mr *mr = ibv_reg_mr(pair.a.pd, pair.a.mem, 64, 0);
	struct ibv_sge sge = {
		.addr = (uintptr_t)pair.a.mem, .length = 64, .lkey = mr->lkey};
	struct ibv_send_wr wr = send_wr(&sge, 1), *bad;
	struct ibv_wc wc;

	wr.wr_id = 5;
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.qp_num, pair.a.qp[0]->qp_num);
}

/* The peer does not answer: the request fails after the retries, with no other
 * completion. */
TEST_WITH(test_retry_exceeded, qp_setup, qp_teardown)
{
	struct ibv_wc wc;

	pair_drain(&pair);
	pair_modify_state(pair.b.qp[0], IBV_QPS_ERR);
	assert_int_equal(pair_send(&pair.a, 0, 8, 0, 16, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(wc.wr_id, 8);
	assert_int_equal(pair.a.qp[0]->qp_num, wc.qp_num);
}

/* A CQ that overflows raises one error and still returns the completions it has. */
TEST_WITH(test_cq_overrun, qp_setup, qp_teardown)
{
	struct verbs_side *a = &pair.a;
	struct ibv_cq *big = a->send_cq, *kept_qp_cq = big;
	struct ibv_qp *kept = a->qp[0], *kept_b = pair.b.qp[0];
	struct ibv_async_event event;
	struct rocade_cq_info info;
	struct ibv_wc wc[8];
	int n;

	a->send_cq = ibv_create_cq(a->context, 2, NULL, NULL, 0);
	assert_non_null(a->send_cq);
	a->qp[0] = pair_qp_create(&pair.conf, a, 0);
	pair.b.qp[0] = pair_qp_create(&pair.conf, &pair.b, 0);
	pair_connect(&pair, 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(pair_post_recv(&pair.b, 0, i, 0, 16), 0);
		assert_int_equal(pair_send(a, 0, i, 0, 16, IBV_SEND_SIGNALED), 0);
	}
	do
		event = pair_event(&pair, a);
	while (event.event_type != IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, a->send_cq);
	assert_int_equal(rocade_cq_info(a->send_cq, &info), 0);
	assert_true(info.error);
	assert_int_equal(info.outstanding, 2);
	n = ibv_poll_cq(a->send_cq, 8, wc);
	assert_int_equal(n, 2);
	assert_int_equal(wc[0].wr_id, 0);
	assert_int_equal(wc[1].wr_id, 1);
	assert_int_equal(ibv_poll_cq(a->send_cq, 8, wc), 0);
	assert_int_equal(ibv_destroy_qp(a->qp[0]), 0);
	assert_int_equal(ibv_destroy_qp(pair.b.qp[0]), 0);
	assert_int_equal(ibv_destroy_cq(a->send_cq), 0);
	a->qp[0] = kept;
	pair.b.qp[0] = kept_b;
	a->send_cq = kept_qp_cq;
}

TEST(test_ipv6)
{
	struct ibv_wc wc;

	pair_open(&pair, &(struct verbs_pair_conf){.ipv6 = true, .mtu = IBV_MTU_4096});
	memset(pair.a.mem, 0x5B, 100000);
	assert_int_equal(pair_post_recv(&pair.b, 0, 1, 0, 100000), 0);
	assert_int_equal(pair_send(&pair.a, 0, 2, 0, 100000, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 100000);
	assert_memory_equal(pair.a.mem, pair.b.mem, 100000);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_close(&pair);
}

/* 2^31 bytes, the largest message: sixteen times the same buffer. */
TEST(test_largest_message)
{
	const uint32_t part = UINT32_C(1) << 27;
	struct ibv_sge from[16], to[16];
	struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = to, .num_sge = 16}, *bad_recv;
	struct ibv_send_wr wr, *bad;
	struct ibv_wc wc;

	pair_open(&pair, &(struct verbs_pair_conf){.mtu = IBV_MTU_4096,
				 .bytes = part,
				 .cap = {.max_send_sge = 16, .max_recv_sge = 16}});
	for (uint32_t i = 0; i < part; i++)
		pair.a.mem[i] = (uint8_t)(i * 5 + i / 4099);
	for (int i = 0; i < 16; i++) {
		from[i] = pair_sge(&pair.a, 0, part);
		to[i] = pair_sge(&pair.b, 0, part);
	}
	wr = send_wr(from, 16);
	assert_int_equal(ibv_post_recv(pair.b.qp[0], &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	/* No time limit: it takes seconds, or a minute under a sanitizer. */
	while (ibv_poll_cq(pair.b.recv_cq, 1, &wc) == 0)
		pair_poll(&pair);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_true(wc.byte_len == UINT32_C(1) << 31);
	assert_memory_equal(pair.a.mem, pair.b.mem, part);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_close(&pair);
}
