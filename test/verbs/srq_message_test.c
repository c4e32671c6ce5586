/* SPDX-License-Identifier: BSD-3-Clause */
/* Which receive of an SRQ a message consumes, where its data is placed, and its
 * errors. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "srq_fixture.h"

/* Receives are consumed in FIFO order by all QPs; wr_id and qp_num identify them. */
TEST_WITH(receives_are_consumed_in_fifo_order, srq_setup, srq_teardown)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, i * 64, 64), 0);
	for (unsigned i = 0; i < 16; i++) {
		pair.a.mem[0] = (uint8_t)(i + 1);
		assert_int_equal(
			pair_send(&pair.a, i % 3, i, 0, 64, IBV_SEND_SIGNALED), 0);
		pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.qp_num, pair.b.qp[i % 3]->qp_num);
		assert_int_equal(pair.b.mem[i * 64], i + 1);
		pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	}
}

/* An address handle of side a for side b. */
static struct ibv_ah *
ah_to_b(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	union ibv_gid gid;
	struct ibv_ah *ah;

	attr.grh.dgid = pair.b.gid;
	for (;; attr.grh.sgid_index++) {
		assert_int_equal(
			ibv_query_gid(pair.a.context, 1, attr.grh.sgid_index, &gid), 0);
		if (memcmp(&gid, &pair.a.gid, sizeof(gid)) == 0)
			break;
	}
	ah = ibv_create_ah(pair.a.pd, &attr);
	assert_non_null(ah);
	return ah;
}

/* Makes QP 1 of both sides a UC QP and QP 2 a UD QP. */
static void
replace_by_uc_and_ud(void)
{
	struct verbs_pair_conf conf = pair.conf;

	for (unsigned i = 1; i < 3; i++) {
		conf.type = i == 1 ? IBV_QPT_UC : IBV_QPT_UD;
		assert_int_equal(ibv_destroy_qp(pair.a.qp[i]), 0);
		assert_int_equal(ibv_destroy_qp(pair.b.qp[i]), 0);
		pair.a.qp[i] = pair_qp_create(&conf, &pair.a, 0);
		pair.b.qp[i] = pair_qp_create(&conf, &pair.b, 0);
	}
	pair_connect(&pair, 1);
	pair_ud_to_rts(pair.a.qp[2], 0x11, 1);
	pair_ud_to_rts(pair.b.qp[2], 0x11, 1);
}

/* RC, UC and UD QPs on one SRQ: the n-th message takes the n-th receive, whatever the
 * type of its QP, also when messages of all three are under way. */
TEST_WITH(test_fifo_over_rc_uc_and_ud, srq_setup, srq_teardown)
{
	static const unsigned order[] = {0, 1, 2, 2, 1, 0, 0, 2, 0, 1, 1, 2};
	enum { N = sizeof(order) / sizeof(order[0]) };
	struct ibv_sge sge = pair_sge(&pair.a, 0, 64);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_wc wc[N];

	replace_by_uc_and_ud();
	wr.opcode = IBV_WR_SEND;
	wr.wr.ud.ah = ah_to_b();
	wr.wr.ud.remote_qpn = pair.b.qp[2]->qp_num;
	wr.wr.ud.remote_qkey = 0x11;
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < N; i++) {
			assert_int_equal(pair_post_srq(&pair.b, i, i * 128, 128), 0);
			memset(pair.a.mem + i * 64, (int)(round * N + i + 1), 64);
		}
		for (unsigned i = 0; i < N; i++) {
			sge.addr = (uintptr_t)pair.a.mem + i * 64;
			assert_int_equal(
				ibv_post_send(pair.a.qp[order[i]], &wr, &bad), 0);
			/* one after another, then all at once */
			if (round == 0)
				pair_poll_cq(&pair, pair.b.recv_cq, &wc[i], 1);
		}
		if (round == 1)
			pair_poll_cq(&pair, pair.b.recv_cq, wc, N);
		for (unsigned i = 0; i < N; i++) {
			const unsigned grh =
				wc[i].qp_num == pair.b.qp[2]->qp_num ? 40 : 0;
			const uint8_t *data = pair.b.mem + i * 128 + grh;
			const unsigned message = data[0] - round * N - 1;

			assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
			assert_int_equal(wc[i].wr_id, i);
			assert_int_equal(wc[i].byte_len, grh + 64);
			assert_true(message < N && (round == 1 || message == i));
			assert_int_equal(wc[i].qp_num, pair.b.qp[order[message]]->qp_num);
			assert_memory_equal(data, pair.a.mem + message * 64, 64);
		}
	}
	assert_int_equal(ibv_destroy_ah(wr.wr.ud.ah), 0);
}

TEST_WITH(immediate_data_and_empty_message, srq_setup, srq_teardown)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = 0xAABBCCDD,
		.send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_recv_wr none = {.wr_id = 4}, *bad_recv;
	struct ibv_wc wc;

	/* A receive without SGEs takes an empty message. */
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &none, &bad_recv), 0);
	assert_int_equal(ibv_post_send(pair.a.qp[1], &wr, &bad), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 0);
	assert_int_equal(wc.wr_id, 4);
	assert_int_equal(wc.imm_data, 0xAABBCCDD);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
}

/* SGEs of one receive in different regions, and overlapping SGEs. */
TEST_WITH(data_is_scattered_over_sges, srq_setup, srq_teardown)
{
	struct ibv_mr *other =
		ibv_reg_mr(pair.b.pd, pair.b.mem + 4096, 100, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge to[3] = {pair_sge(&pair.b, 0, 10), pair_sge(&pair.b, 4096, 50),
		pair_sge(&pair.b, 9000, 1000)};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = to, .num_sge = 3}, *bad;
	struct ibv_wc wc;

	to[1].lkey = other->lkey;
	for (unsigned i = 0; i < 200; i++)
		pair.a.mem[i] = (uint8_t)(i + 1);
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 200, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_memory_equal(pair.b.mem, pair.a.mem, 10);
	assert_memory_equal(pair.b.mem + 4096, pair.a.mem + 10, 50);
	assert_memory_equal(pair.b.mem + 9000, pair.a.mem + 60, 140);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);

	/* Where SGEs overlap, the later one is written last. */
	to[0] = pair_sge(&pair.b, 100, 50);
	to[1] = pair_sge(&pair.b, 120, 50);
	to[2] = pair_sge(&pair.b, 100, 100);
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 200, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 200);
	assert_memory_equal(pair.b.mem + 100, pair.a.mem + 100, 100);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(ibv_dereg_mr(other), 0);
}

/* An SGE of length 0 means 2^31 bytes; the key is checked only for the bytes written. */
TEST_WITH(test_sge_length_zero, srq_setup, srq_teardown)
{
	struct ibv_sge sge = pair_sge(&pair.b, 100, 0);
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_wc wc;

	for (unsigned i = 0; i < 3000; i++)
		pair.a.mem[i] = (uint8_t)(i * 3 + 1);
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 3000, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 3000);
	assert_memory_equal(pair.b.mem + 100, pair.a.mem, 3000);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);

	/* Ten bytes before the end of the region: ten bytes fit, eleven do not. */
	sge = pair_sge(&pair.b, pair.conf.bytes - 10, 0);
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 10, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 11, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_REM_OP_ERR);
}

/* The capacity is a 64-bit sum: two SGEs of 2^31 bytes are 2^32, not 0. */
TEST_WITH(test_capacity_sum, srq_setup, srq_teardown)
{
	struct ibv_sge to[2] = {pair_sge(&pair.b, 0, 0), pair_sge(&pair.b, 0, 0)};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = to, .num_sge = 2}, *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 5000, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 5000);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
}

/* Posts a receive with this SGE, sends a message and expects these two completions; then
 * reconnects. */
static void
key_case(struct ibv_sge sge, enum ibv_wc_status here, enum ibv_wc_status there)
{
	struct ibv_recv_wr wr = {.wr_id = 21, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_async_event event;
	struct ibv_wc wc;

	/* posting does not check the key */
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	assert_int_equal(pair_send(&pair.a, 0, 3, 0, 64, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, here);
	assert_int_equal(wc.wr_id, 21);
	assert_int_equal(wc.qp_num, pair.b.qp[0]->qp_num);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, there);
	assert_int_equal(wc.wr_id, 3);
	do
		event = pair_event(&pair, &pair.b);
	while (event.event_type != IBV_EVENT_QP_LAST_WQE_REACHED);
	pair_modify_state(pair.a.qp[0], IBV_QPS_RESET);
	pair_modify_state(pair.b.qp[0], IBV_QPS_RESET);
	pair_connect(&pair, 0);
	pair_drain(&pair);
}

TEST_WITH(receive_key_and_length_errors, srq_setup, srq_teardown)
{
	struct ibv_pd *pd = ibv_alloc_pd(pair.b.context);
	struct ibv_mr *read_only = ibv_reg_mr(pair.b.pd, pair.b.mem, 64, 0);
	struct ibv_mr *foreign = ibv_reg_mr(pd, pair.b.mem, 64, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *gone =
		ibv_reg_mr(pair.b.pd, pair.b.mem, 64, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = pair_sge(&pair.b, 0, 64);

	assert_int_equal(pair_post_srq(&pair.b, 1, 0, 64), 0);
	srq_messages_receive(1); /* resolves the MACs of both ends */
	sge.lkey ^= 0x5500;
	key_case(sge, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	sge.lkey = read_only->lkey;
	key_case(sge, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	sge.lkey = foreign->lkey;
	key_case(sge, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	sge.lkey = gone->lkey;
	assert_int_equal(ibv_dereg_mr(gone), 0);
	key_case(sge, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	/* Too short a receive: a length error at the responder, "invalid request" at the
	 * requester. */
	sge = pair_sge(&pair.b, 0, 63);
	key_case(sge, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(ibv_dereg_mr(read_only), 0);
	assert_int_equal(ibv_dereg_mr(foreign), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* The key must be in the SRQ's PD; the QP's PD may be another. */
TEST_WITH(test_qp_of_other_pd, srq_setup, srq_teardown)
{
	struct verbs_side *b = &pair.b;
	struct ibv_pd *pd = ibv_alloc_pd(b->context), *kept_pd = b->pd;
	struct ibv_qp *kept[2] = {pair.a.qp[0], b->qp[0]};
	struct ibv_wc wc;

	b->pd = pd;
	b->qp[0] = pair_qp_create(&pair.conf, b, 0);
	pair.a.qp[0] = pair_qp_create(&pair.conf, &pair.a, 0);
	pair_connect(&pair, 0);
	b->pd = kept_pd;
	assert_int_equal(pair_post_srq(b, 1, 0, 64), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, b->recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(ibv_destroy_qp(b->qp[0]), 0);
	assert_int_equal(ibv_destroy_qp(pair.a.qp[0]), 0);
	pair.a.qp[0] = kept[0];
	b->qp[0] = kept[1];
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* Two SRQs of different size classes. */
TEST_WITH(test_two_srqs, srq_setup, srq_teardown)
{
	struct verbs_side *b = &pair.b;
	struct ibv_srq *small = b->srq, *large;
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_qp *kept = b->qp[2];
	struct ibv_wc wc;

	large = ibv_create_srq(b->pd, &attr);
	assert_non_null(large);
	b->srq = large;
	b->qp[2] = pair_qp_create(&pair.conf, b, 0);
	pair_modify_state(pair.a.qp[2], IBV_QPS_RESET);
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
		pair_poll_cq(&pair, b->recv_cq, &wc, 1);
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

/* A message to an empty SRQ gets an RNR NAK; traffic resumes after a post. */
TEST_WITH(empty_srq_answers_rnr_nak, srq_setup, srq_teardown)
{
	struct ibv_wc wc;

	for (unsigned round = 0; round < 5; round++) {
		pair.a.mem[0] = (uint8_t)(round + 1);
		assert_int_equal(
			pair_send(&pair.a, 0, round, 0, 2000, IBV_SEND_SIGNALED), 0);
		pair_no_completion(&pair, pair.b.recv_cq);
		assert_int_equal(pair_post_srq(&pair.b, round, 0, 2000), 0);
		pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, round);
		assert_int_equal(pair.b.mem[0], round + 1);
		pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	assert_true(pair_stat(&pair.b, "rnr_nak_sent") >= 5);
	assert_true(pair_stat(&pair.a, "rnr_nak_received") >= 5);
}

static int
setup_rnr(void **state)
{
	return srq_setup_conf(&(struct verbs_pair_conf){.srq_wr = 4, .rnr_retry = 2});
}

TEST_WITH(test_rnr_exceeded, setup_rnr, srq_teardown)
{
	struct ibv_wc wc;

	assert_int_equal(pair_send(&pair.a, 0, 3, 0, 16, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(pair_stat(&pair.b, "rnr_nak_sent"), 3);
}

/* ---- Engines that share the SRQ take the receives of a burst together ---- */

static int
shared_setup(void **state)
{
	return srq_setup_conf(
		&(struct verbs_pair_conf){.engines = 2, .qps = 2, .srq_wr = 16});
}

/* Posts n SENDs of 64 bytes on QP 0 as one list. */
static void
list_send(unsigned n)
{
	struct ibv_sge sge = pair_sge(&pair.a, 0, 64);
	struct ibv_send_wr wr[16] = {{.wr_id = 0}}, *bad;

	for (unsigned i = 0; i < n; i++)
		wr[i] = (struct ibv_send_wr){.wr_id = i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.next = i + 1 < n ? &wr[i + 1] : NULL};
	assert_int_equal(ibv_post_send(pair.a.qp[0], wr, &bad), 0);
}

/* A message fails in the middle of a burst: the receives that were taken for the messages behind
 * it are flushed with the QP, in order and before the last event. The others stay. */
TEST_WITH(burst_of_failed_qp_is_flushed, shared_setup, srq_teardown)
{
	static const enum ibv_wc_status status[] = {IBV_WC_SUCCESS, IBV_WC_SUCCESS,
		IBV_WC_LOC_LEN_ERR, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR,
		IBV_WC_WR_FLUSH_ERR};
	struct ibv_wc wc[6];

	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, i * 64, i == 2 ? 63 : 64), 0);
	list_send(6);
	assert_int_equal(
		pair_event(&pair, &pair.b).event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(ibv_poll_cq(pair.b.recv_cq, 6, wc), 6);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(wc[i].wr_id, i);
		assert_int_equal(wc[i].status, status[i]);
		assert_int_equal(wc[i].qp_num, pair.b.qp[0]->qp_num);
	}
	pair_no_event(&pair, &pair.b);
	/* The other engine's QP. */
	for (unsigned i = 6; i < 16; i++) {
		assert_int_equal(pair_send(&pair.a, 1, i, 0, 64, 0), 0);
		pair_poll_cq(&pair, pair.b.recv_cq, wc, 1);
		assert_int_equal(wc[0].wr_id, i);
		assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
		assert_int_equal(wc[0].qp_num, pair.b.qp[1]->qp_num);
	}
}

/* More messages than receives: those without one are sent again. */
TEST_WITH(burst_empties_shared_srq, shared_setup, srq_teardown)
{
	struct ibv_wc wc[12];

	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, i * 64, 64), 0);
	list_send(12);
	pair_poll_cq(&pair, pair.b.recv_cq, wc, 5);
	while (pair_stat(&pair.b, "rnr_nak_sent") == 0)
		pair_poll(&pair);
	for (unsigned i = 5; i < 12; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, i * 64, 64), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, wc + 5, 7);
	for (unsigned i = 0; i < 12; i++) {
		assert_int_equal(wc[i].wr_id, i);
		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
	}
}
