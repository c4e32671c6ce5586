/* SPDX-License-Identifier: BSD-3-Clause */
/* Every field of a completion (ibv_poll_cq(3)), by opcode and by error, and the QPs of a
 * CQ that overflowed. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "verbs_pair.h"

#define FAR 262144
#define ALL_REMOTE                                                                       \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static struct verbs_pair pair;
static struct ibv_mr *remote;

static void
open_wc(struct verbs_pair_conf conf)
{
	conf.access = ALL_REMOTE;
	conf.depth = 4;
	pair_open(&pair, &conf);
	remote = ibv_reg_mr(
		pair.b.pd, pair.b.mem + FAR, FAR, IBV_ACCESS_LOCAL_WRITE | ALL_REMOTE);
	assert_non_null(remote);
}

static void
close_wc(void)
{
	assert_int_equal(ibv_dereg_mr(remote), 0);
	pair_close(&pair);
}

static void
post(unsigned qp, uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t len, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)pair.a.mem, len, pair.a.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(77)};
	struct ibv_send_wr *bad;

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)pair.b.mem + FAR;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)pair.b.mem + FAR;
		wr.wr.rdma.rkey = rkey;
	}
	assert_int_equal(ibv_post_send(pair.a.qp[qp], &wr, &bad), 0);
}

/* Polls into a structure of 0xAA, so that members that a poll does not write show. */
static struct ibv_wc
completion_poll(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	memset(&wc, 0xAA, sizeof(wc));
	pair_poll_cq(&pair, cq, &wc, 1);
	assert_int_equal(wc.pkey_index, 0);
	assert_int_equal(wc.slid, 0);
	assert_int_equal(wc.sl, 0);
	assert_int_equal(wc.dlid_path_bits, 0);
	return wc;
}

static void
expect_good(const struct ibv_wc *wc, uint64_t wr_id, enum ibv_wc_opcode opcode,
	uint32_t byte_len, unsigned flags, const struct ibv_qp *qp)
{
	assert_int_equal(wc->wr_id, wr_id);
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_int_equal(wc->opcode, opcode);
	assert_int_equal(wc->vendor_err, 0);
	assert_int_equal(wc->byte_len, byte_len);
	assert_int_equal(wc->wc_flags, flags);
	assert_int_equal(wc->qp_num, qp->qp_num);
	if (flags & IBV_WC_WITH_IMM)
		assert_int_equal(wc->imm_data, htonl(77));
}

static const struct {
	enum ibv_wr_opcode opcode;
	uint32_t len;
	enum ibv_wc_opcode here, there;
	unsigned flags; /* wc_flags of the receive completion */
	bool received;
} rows[] = {
	{IBV_WR_SEND, 3000, IBV_WC_SEND, IBV_WC_RECV, 0, true},
	{IBV_WR_SEND, 0, IBV_WC_SEND, IBV_WC_RECV, 0, true},
	{IBV_WR_SEND_WITH_IMM, 10, IBV_WC_SEND, IBV_WC_RECV, IBV_WC_WITH_IMM, true},
	{IBV_WR_RDMA_WRITE, 5000, IBV_WC_RDMA_WRITE, IBV_WC_RECV, 0, false},
	{IBV_WR_RDMA_WRITE_WITH_IMM, 5000, IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM,
		IBV_WC_WITH_IMM, true},
	{IBV_WR_RDMA_READ, 5000, IBV_WC_RDMA_READ, IBV_WC_RECV, 0, false},
	{IBV_WR_RDMA_READ, 0, IBV_WC_RDMA_READ, IBV_WC_RECV, 0, false},
	{IBV_WR_ATOMIC_CMP_AND_SWP, 8, IBV_WC_COMP_SWAP, IBV_WC_RECV, 0, false},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_WC_FETCH_ADD, IBV_WC_RECV, 0, false},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

TEST(successful_completion_fields)
{
	open_wc((struct verbs_pair_conf){.qps = 1});
	for (unsigned i = 0; i < ROWS; i++) {
		struct ibv_wc wc;

		assert_int_equal(pair_post_recv(&pair.b, 0, 50 + i, 0, 8192), 0);
		post(0, i, rows[i].opcode, rows[i].len, remote->rkey);
		wc = completion_poll(pair.a.send_cq);
		expect_good(&wc, i, rows[i].here, rows[i].len, 0, pair.a.qp[0]);
		if (!rows[i].received) {
			pair_no_completion(&pair, pair.b.recv_cq);
			continue;
		}
		wc = completion_poll(pair.b.recv_cq);
		/* Receives are consumed in order; earlier rows left some. */
		expect_good(&wc, wc.wr_id, rows[i].there, rows[i].len, rows[i].flags,
			pair.b.qp[0]);
		assert_int_equal(wc.src_qp, pair.a.qp[0]->qp_num);
	}
	close_wc();
}

static void
expect_bad(const struct ibv_wc *wc, uint64_t wr_id, enum ibv_wc_status status,
	enum ibv_wc_opcode opcode, const struct ibv_qp *qp)
{
	assert_int_equal(wc->wr_id, wr_id);
	assert_int_equal(wc->status, status);
	assert_int_equal(wc->opcode, opcode);
	assert_int_not_equal(wc->vendor_err, 0);
	assert_int_equal(wc->byte_len, 0);
	assert_int_equal(wc->wc_flags, 0);
	assert_int_equal(wc->qp_num, qp->qp_num);
}

/* The opcode is set even where the man page does not promise it. */
TEST(failed_completion_fields)
{
	for (unsigned i = 0; i < ROWS; i++) {
		struct ibv_wc wc;

		if (rows[i].len == 0 || rows[i].opcode == IBV_WR_SEND ||
			rows[i].opcode == IBV_WR_SEND_WITH_IMM)
			continue;
		open_wc((struct verbs_pair_conf){.qps = 1});
		assert_int_equal(pair_post_recv(&pair.b, 0, 9, 0, 8192), 0);
		assert_int_equal(pair_post_recv(&pair.a, 0, 8, 0, 8192), 0);
		post(0, 1, rows[i].opcode, rows[i].len, remote->rkey ^ 1);
		post(0, 2, rows[i].opcode, rows[i].len, remote->rkey);
		post(0, 3, IBV_WR_SEND, 1, 0);
		wc = completion_poll(pair.a.send_cq);
		expect_bad(&wc, 1, IBV_WC_REM_ACCESS_ERR, rows[i].here, pair.a.qp[0]);
		wc = completion_poll(pair.a.send_cq);
		expect_bad(&wc, 2, IBV_WC_WR_FLUSH_ERR, rows[i].here, pair.a.qp[0]);
		wc = completion_poll(pair.a.send_cq);
		expect_bad(&wc, 3, IBV_WC_WR_FLUSH_ERR, IBV_WC_SEND, pair.a.qp[0]);
		wc = completion_poll(pair.a.recv_cq);
		expect_bad(&wc, 8, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, pair.a.qp[0]);
		close_wc();
	}
}

TEST(too_long_message_completion_fields)
{
	struct ibv_wc wc;

	open_wc((struct verbs_pair_conf){.qps = 1});
	assert_int_equal(pair_post_recv(&pair.b, 0, 9, 0, 99), 0);
	post(0, 1, IBV_WR_SEND, 100, 0);
	wc = completion_poll(pair.b.recv_cq);
	expect_bad(&wc, 9, IBV_WC_LOC_LEN_ERR, IBV_WC_RECV, pair.b.qp[0]);
	wc = completion_poll(pair.a.send_cq);
	expect_bad(&wc, 1, IBV_WC_REM_INV_REQ_ERR, IBV_WC_SEND, pair.a.qp[0]);
	close_wc();
}

static unsigned
fatal_of(const struct ibv_async_event *event, const struct ibv_qp *qp)
{
	return event->event_type == IBV_EVENT_QP_FATAL && event->element.qp == qp;
}

/* An overflow raises one CQ_ERR. Each QP of the CQ fails with one QP_FATAL: when it has
 * something to complete, or when the event is read. */
TEST(cq_overrun_fails_its_qps)
{
	unsigned errors = 0, fatal[3] = {0};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc[8];

	open_wc((struct verbs_pair_conf){.qps = 4, .cqe = 4});
	for (uint64_t i = 0; i < 6; i++)
		post(0, i, IBV_WR_RDMA_WRITE, 8, remote->rkey);
	pair_drain(&pair);
	for (uint64_t i = 0; i < 3; i++)
		post(1, i, IBV_WR_RDMA_WRITE, 8, remote->rkey);
	assert_int_equal(pair_post_recv(&pair.a, 2, 30, 0, 16), 0);
	pair_modify_state(pair.a.qp[3], IBV_QPS_RESET);
	for (unsigned i = 0; i < 4; i++) {
		struct ibv_async_event event = pair_event(&pair, &pair.a);

		errors += event.event_type == IBV_EVENT_CQ_ERR &&
			  event.element.cq == pair.a.send_cq;
		for (unsigned n = 0; n < 3; n++)
			fatal[n] += fatal_of(&event, pair.a.qp[n]);
	}
	assert_int_equal(errors, 1);
	assert_int_equal(fatal[0], 1);
	assert_int_equal(fatal[1], 1);
	assert_int_equal(fatal[2], 1);
	pair_no_event(&pair, &pair.a);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ibv_query_qp(pair.a.qp[i], &attr, 0, &init), 0);
		assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	}
	assert_int_equal(ibv_query_qp(pair.a.qp[3], &attr, 0, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RESET);
	/* The QP's other CQ still works. */
	assert_int_equal(ibv_poll_cq(pair.a.recv_cq, 8, wc), 1);
	assert_int_equal(wc[0].wr_id, 30);
	assert_int_equal(wc[0].status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_poll_cq(pair.a.send_cq, 8, wc), 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(wc[i].wr_id, i);
	/* The CQ stays in error: it gets no more completions, not even after a resize. */
	assert_int_equal(ibv_resize_cq(pair.a.send_cq, 64), 0);
	post(0, 20, IBV_WR_RDMA_WRITE, 8, remote->rkey);
	pair_no_completion(&pair, pair.a.send_cq);
	pair_no_event(&pair, &pair.a);
	close_wc();
}
