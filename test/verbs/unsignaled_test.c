/* SPDX-License-Identifier: BSD-3-Clause */
/* Which sends complete, and when the send queue has room again. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "verbs_pair.h"

#define DEPTH 16

static struct verbs_pair pair;

static int
open_with(bool sig_all)
{
	pair_open(&pair, &(struct verbs_pair_conf){.srq_wr = 256,
				 .sig_all = sig_all,
				 .cap = {.max_send_wr = DEPTH,
					 .max_send_sge = 2,
					 .max_inline_data = 100},
				 .retry = 1,
				 .timeout = 12});
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, 4096 + i * 512, 512), 0);
	return 0;
}

static int
setup(void **state)
{
	return open_with(false);
}

static int
setup_all(void **state)
{
	return open_with(true);
}

static int
teardown(void **state)
{
	pair_close(&pair);
	return 0;
}

static struct rocade_qp_info
qp_info(void)
{
	struct rocade_qp_info got;

	assert_int_equal(rocade_qp_info(pair.a.qp[0], &got), 0);
	return got;
}

static void
send_n(unsigned n, unsigned flags)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pair_send(&pair.a, 0, i, 0, 32, flags), 0);
}

static void
expect_received(unsigned n)
{
	struct ibv_wc wc[256];

	pair_poll_cq(&pair, pair.b.recv_cq, wc, (int)n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
}

/* sq_sig_all = 0: only signaled requests complete. */
TEST_WITH(only_signaled_requests_complete, setup, teardown)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(pair_send(&pair.a, 0, i, 0, 32,
					 i % 4 == 3 ? IBV_SEND_SIGNALED : 0),
			0);
	expect_received(12);
	for (unsigned i = 3; i < 12; i += 4) {
		pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
	}
	pair_no_completion(&pair, pair.a.send_cq);
	assert_int_equal(pair_stat(&pair.a, "cqe_saved"), 9);
}

/* sq_sig_all = 1: every request completes. */
TEST_WITH(sig_all_completes_every_request, setup_all, teardown)
{
	struct ibv_wc wc[5];

	send_n(5, 0);
	pair_poll_cq(&pair, pair.a.send_cq, wc, 5);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(wc[i].wr_id, i);
	assert_int_equal(pair_stat(&pair.a, "cqe_saved"), 0);
	expect_received(5);
}

/* A signaled completion means that all earlier requests are done. */
TEST_WITH(completion_covers_earlier_requests, setup, teardown)
{
	struct ibv_wc wc;

	for (unsigned round = 0; round < 8; round++) {
		memset(pair.a.mem, (int)round + 1, 32);
		send_n(DEPTH - 1, 0);
		send_n(1, IBV_SEND_SIGNALED);
		pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
		/* By now all messages are received, and the buffers may be reused. */
		memset(pair.a.mem, 0xEE, 32);
		for (unsigned i = 0; i < DEPTH; i++)
			assert_int_equal(
				pair.b.mem[4096 + (round * DEPTH + i) * 512], round + 1);
		expect_received(DEPTH);
	}
}

/* Polling the completion of a request frees its slot and all earlier ones. An
 * acknowledgement, time or a receive completion frees none. */
TEST_WITH(polling_makes_room, setup, teardown)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad = NULL;
	struct ibv_wc wc[DEPTH];

	assert_int_equal(qp_info().sq_max_wr, DEPTH);
	send_n(7, 0);
	send_n(1, IBV_SEND_SIGNALED);
	send_n(8, 0);
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, NULL), ENOMEM);
	expect_received(DEPTH);
	pair_drain(&pair); /* all are acknowledged */
	assert_int_equal(qp_info().sq_unacked, 0);
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), ENOMEM);
	/* The completion is in the CQ but not polled. */
	assert_int_equal(qp_info().sq_outstanding, DEPTH);
	assert_int_equal(qp_info().sq_signaled, 1);
	assert_int_equal(ibv_poll_cq(pair.a.send_cq, DEPTH, wc), 1);
	assert_int_equal(qp_info().sq_outstanding, 8);
	send_n(8, 0);
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), ENOMEM);
	/* A signaled request was outstanding when the queue was full: not the case
	 * counted below. */
	assert_int_equal(qp_info().sq_full_unsignaled, 1);
	expect_received(8);
}

/* Receive completions on the same CQ free no slots. */
TEST_WITH(receive_completions_make_no_room, setup, teardown)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_cq *kept = pair.a.recv_cq;
	struct ibv_qp *old = pair.a.qp[0];
	struct ibv_wc wc[DEPTH];

	pair.a.recv_cq = pair.a.send_cq;
	pair.a.qp[0] = pair_qp_create(&pair.conf, &pair.a, 0);
	pair.a.recv_cq = kept;
	pair_modify_state(pair.b.qp[0], IBV_QPS_RESET);
	pair_connect(&pair, 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pair_post_srq(&pair.a, i, 4096, 512), 0);
	send_n(DEPTH, 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pair_send(&pair.b, 0, i, 0, 32, 0), 0);
	pair_poll_cq(&pair, pair.a.send_cq, wc, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(wc[i].opcode, IBV_WC_RECV);
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), ENOMEM);
	assert_int_equal(qp_info().sq_outstanding, DEPTH);
	expect_received(DEPTH);
	assert_int_equal(ibv_destroy_qp(pair.a.qp[0]), 0);
	pair.a.qp[0] = old;
}

/* A queue full of unsignaled requests stays full until RESET. sq_full_unsignaled counts
 * the refused posts. */
TEST_WITH(unsignaled_requests_fill_queue_until_reset, setup, teardown)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_wc wc;

	send_n(DEPTH, 0);
	expect_received(DEPTH);
	pair_drain(&pair);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), ENOMEM);
	assert_int_equal(ibv_poll_cq(pair.a.send_cq, 1, &wc), 0);
	assert_int_equal(qp_info().sq_outstanding, DEPTH);
	assert_int_equal(qp_info().sq_signaled, 0);
	assert_int_equal(qp_info().sq_full_unsignaled, 100);
	assert_int_equal(qp_info().sq_unacked_ns, 0);
	assert_int_not_equal(qp_info().sq_unsignaled_ns, 0);
	pair_modify_state(pair.a.qp[0], IBV_QPS_RESET);
	pair_modify_state(pair.b.qp[0], IBV_QPS_RESET);
	assert_int_equal(qp_info().sq_outstanding, 0);
	assert_int_equal(qp_info().sq_unsignaled_ns, 0);
	pair_connect(&pair, 0);
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	expect_received(1);
	/* The ring wraps: one signaled request after many unsignaled. */
	for (unsigned round = 0; round < 3; round++) {
		send_n(DEPTH - 1, 0);
		send_n(1, IBV_SEND_SIGNALED);
		assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), ENOMEM);
		pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
		expect_received(DEPTH);
	}
	assert_int_equal(qp_info().sq_full_unsignaled, 100);
}

/* A failed unsignaled request completes. Each later one is flushed with a completion, in
 * order, signaled or not. */
TEST_WITH(failed_unsignaled_request_completes, setup, teardown)
{
	struct ibv_wc wc[8];

	send_n(1, 0);
	expect_received(1);
	pair_drain(&pair);
	pair_modify_state(pair.b.qp[0], IBV_QPS_ERR); /* the peer stops responding */
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(pair_send(&pair.a, 0, 50 + i, 0, 32,
					 i == 3 ? IBV_SEND_SIGNALED : 0),
			0);
	pair_poll_cq(&pair, pair.a.send_cq, wc, 6);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(wc[i].wr_id, 50 + i);
		assert_int_equal(wc[i].qp_num, pair.a.qp[0]->qp_num);
		assert_int_equal(wc[i].status,
			i == 0 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR);
	}
	pair_no_completion(&pair, pair.a.send_cq);
	/* A request posted later is flushed too. */
	assert_int_equal(pair_send(&pair.a, 0, 60, 0, 32, 0), 0);
	pair_poll_cq(&pair, pair.a.send_cq, wc, 1);
	assert_int_equal(wc[0].wr_id, 60);
	assert_int_equal(wc[0].status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_info().sq_outstanding, 0);
}

/* Unsignaled requests acknowledged before the failed one are done: no completion. */
TEST_WITH(requests_before_failure_do_not_complete, setup, teardown)
{
	struct ibv_mr *mr = ibv_reg_mr(pair.a.pd, pair.a.mem, 64, 0);
	struct ibv_sge sge = {
		.addr = (uintptr_t)pair.a.mem, .length = 32, .lkey = mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad;
	struct ibv_wc wc[4];

	assert_int_equal(ibv_dereg_mr(mr), 0);
	send_n(3, 0);
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	send_n(2, 0);
	pair_poll_cq(&pair, pair.a.send_cq, wc, 3);
	assert_int_equal(wc[0].wr_id, 9);
	assert_int_equal(wc[0].status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(wc[1].status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc[2].status, IBV_WC_WR_FLUSH_ERR);
	expect_received(3);
	pair_no_completion(&pair, pair.a.send_cq);
}

/* Inline data may be overwritten after the post, needs no key, and is limited in size. */
TEST_WITH(inline_data_is_copied, setup, teardown)
{
	uint8_t data[100], other[20];
	struct ibv_sge sge[2] = {{.addr = (uintptr_t)data, .length = 80, .lkey = 0xDEAD},
		{.addr = (uintptr_t)other, .length = 20}};
	struct ibv_send_wr wr = {.wr_id = 3,
		.sg_list = sge,
		.num_sge = 2,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad = NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	memset(data, 0x21, sizeof(data));
	memset(other, 0x22, sizeof(other));
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	memset(data, 0xFF, sizeof(data));
	memset(other, 0xFF, sizeof(other));
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(pair.b.mem[4096 + i], i < 80 ? 0x21 : 0x22);
	expect_received(1);

	assert_int_equal(ibv_query_qp(pair.a.qp[0], &attr, IBV_QP_CAP, &init), 0);
	assert_true(attr.cap.max_inline_data >= 100);
	wr.num_sge = 1;
	sge[0].addr = (uintptr_t)pair.a.mem;
	sge[0].length = attr.cap.max_inline_data + 1;
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	sge[0].length--;
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	expect_received(1);
	/* Inline with no data. */
	wr.num_sge = 0;
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	expect_received(1);
}

/* After a loss the data comes from the slot, although the buffer has changed. */
TEST_WITH(inline_data_is_resent_from_slot, setup, teardown)
{
	struct ibv_sge sge = {.addr = (uintptr_t)pair.a.mem, .length = 64};
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED};
	const struct rocade_impair all = {.loss_ppm = 1000000}, none = {0};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	send_n(1, IBV_SEND_SIGNALED);
	expect_received(1);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	memset(pair.a.mem, 0x33, 64);
	assert_int_equal(rocade_port_impair(pair.b.port, &all), 0);
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	memset(pair.a.mem, 0x44, 64);
	pair_poll(&pair); /* sent, and lost */
	pair_poll(&pair);
	assert_int_equal(rocade_port_impair(pair.b.port, &none), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_true(pair_stat(&pair.a, "retransmitted") >= 1);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(pair.b.mem[4096 + 512 + i], 0x33);
	expect_received(1);
}

/* Replaces QP 0 of side a by one without an SRQ, whose sends complete into a CQ of one
 * entry. */
static int
setup_cq_of_one(void **state)
{
	setup(state);
	assert_int_equal(ibv_destroy_qp(pair.a.qp[0]), 0);
	assert_int_equal(ibv_destroy_cq(pair.a.send_cq), 0);
	pair.a.send_cq = ibv_create_cq(pair.a.context, 1, NULL, NULL, 0);
	assert_non_null(pair.a.send_cq);
	assert_int_equal(pair.a.send_cq->cqe, 1);
	assert_int_equal(ibv_destroy_srq(pair.a.srq), 0);
	pair.a.srq = NULL;
	pair.a.qp[0] = pair_qp_create(&pair.conf, &pair.a, 0);
	pair_modify_state(pair.b.qp[0], IBV_QPS_RESET);
	pair_connect(&pair, 0);
	return 0;
}

/* A CQ of one entry is enough for a queue with one signaled request at a time. */
TEST_WITH(test_cq_of_one_suffices, setup_cq_of_one, teardown)
{
	struct ibv_wc wc[2];

	for (unsigned round = 0; round < 1000; round++) {
		send_n(DEPTH - 1, 0);
		send_n(1, IBV_SEND_SIGNALED);
		expect_received(DEPTH);
		/* Nothing is polled before all are acknowledged. */
		while (qp_info().sq_unacked != 0)
			pair_poll(&pair);
		assert_int_equal(ibv_poll_cq(pair.a.send_cq, 2, wc), 1);
		assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
		for (unsigned i = 0; i < DEPTH; i++)
			assert_int_equal(pair_post_srq(&pair.b, i, 4096, 512), 0);
	}
	pair_no_event(&pair, &pair.a);
}

/* A QP fails with 8 unsignaled requests outstanding, whose completions find a full CQ:
 * one event of the CQ, one of the QP, and the completion that was there stays. */
TEST_WITH(test_flush_overruns_a_full_cq, setup_cq_of_one, teardown)
{
	unsigned overruns = 0, fatal = 0;
	struct rocade_cq_info cq;
	struct ibv_wc wc[DEPTH];

	assert_int_equal(pair_send(&pair.a, 0, 77, 0, 32, IBV_SEND_SIGNALED), 0);
	pair_no_event(&pair, &pair.a);
	pair_modify_state(pair.b.qp[0], IBV_QPS_ERR); /* the peer stops responding */
	send_n(8, 0);
	assert_int_equal(qp_info().sq_outstanding, 9);
	for (unsigned i = 0; i < 2; i++) {
		struct ibv_async_event event = pair_event(&pair, &pair.a);

		overruns += event.event_type == IBV_EVENT_CQ_ERR &&
			    event.element.cq == pair.a.send_cq;
		fatal += event.event_type == IBV_EVENT_QP_FATAL &&
			 event.element.qp == pair.a.qp[0];
	}
	assert_int_equal(overruns, 1);
	assert_int_equal(fatal, 1);
	pair_no_event(&pair, &pair.a);
	assert_int_equal(rocade_cq_info(pair.a.send_cq, &cq), 0);
	assert_true(cq.error);
	assert_int_equal(ibv_poll_cq(pair.a.send_cq, DEPTH, wc), 1);
	assert_int_equal(wc[0].wr_id, 77);
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	pair_no_completion(&pair, pair.a.send_cq);
}
