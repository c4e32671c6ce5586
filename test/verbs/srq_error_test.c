/* SPDX-License-Identifier: BSD-3-Clause */
/* An SRQ with a corrupted ring. The test corrupts it through the private structure. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "verbs/objects.h"

#include "verbs_pair.h"

static struct verbs_pair pair;

static int
setup(void **state)
{
	struct ibv_wc wc;

	pair_open(&pair, &(struct verbs_pair_conf){.qps = 2, .srq_wr = 16, .srq_sge = 2});
	/* Resolve the MACs of both ends. */
	assert_int_equal(pair_post_srq(&pair.b, 1, 0, 64), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 1, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	return 0;
}

static int
teardown(void **state)
{
	pair_close(&pair);
	return 0;
}

static void
ring_corrupt(struct ibv_srq *srq)
{
	to_srq(srq)->srq.ring.prod += 1000;
}

static void
next_event(enum ibv_event_type type, void *object)
{
	struct ibv_async_event event = pair_event(&pair, &pair.b);

	assert_int_equal(event.event_type, type);
	assert_ptr_equal(event.element.srq, object);
}

/* Posts succeed but keep nothing, and other calls fail, until the SRQ is destroyed. */
static void
expect_srq_error_state(struct ibv_srq *srq)
{
	struct ibv_recv_wr wr[2] = {{.wr_id = 1, .next = &wr[1]}, {.wr_id = 2}}, *bad;
	struct ibv_srq_attr attr = {.max_wr = 32};
	struct rocade_srq_info info;

	for (int i = 0; i < 100; i++)
		assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), 0);
	wr[1].num_sge = 3;
	assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(ibv_query_srq(srq, &attr), EIO);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EIO);
	attr.srq_limit = 1;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EIO);
	assert_int_equal(rocade_srq_info(srq, &info), 0);
	assert_true(info.error);
}

/* A message detects the corruption. */
TEST_WITH(message_detects_corruption, setup, teardown)
{
	struct ibv_srq *srq = pair.b.srq;
	struct ibv_wc wc;

	assert_int_equal(pair_post_srq(&pair.b, 2, 0, 64), 0);
	ring_corrupt(srq);
	assert_int_equal(pair_send(&pair.a, 0, 7, 0, 16, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_REM_OP_ERR); /* NAK 0x63 */
	assert_int_equal(wc.wr_id, 7);
	next_event(IBV_EVENT_SRQ_ERR, srq);
	next_event(IBV_EVENT_QP_LAST_WQE_REACHED, pair.b.qp[0]);
	expect_srq_error_state(srq);
	/* Another QP's message fails alike; the SRQ's event is not raised again. */
	assert_int_equal(pair_send(&pair.a, 1, 8, 0, 16, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_REM_OP_ERR);
	next_event(IBV_EVENT_QP_LAST_WQE_REACHED, pair.b.qp[1]);
	pair_no_event(&pair, &pair.b);
	pair_no_completion(&pair, pair.b.recv_cq); /* no receive was consumed */
	struct ibv_qp_attr attr;
	assert_int_equal(ibv_query_qp(pair.b.qp[0], &attr, IBV_QP_STATE, NULL), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
}

/* A post detects the corruption. */
TEST_WITH(post_detects_corruption, setup, teardown)
{
	ring_corrupt(pair.b.srq);
	assert_int_equal(pair_post_srq(&pair.b, 2, 0, 64), 0);
	next_event(IBV_EVENT_SRQ_ERR, pair.b.srq);
	expect_srq_error_state(pair.b.srq);
	pair_no_event(&pair, &pair.b);
}

/* A control call detects the corruption. */
TEST_WITH(modify_detects_corruption, setup, teardown)
{
	struct ibv_srq_attr attr = {.srq_limit = 1};

	ring_corrupt(pair.b.srq);
	assert_int_equal(ibv_modify_srq(pair.b.srq, &attr, IBV_SRQ_LIMIT), EIO);
	next_event(IBV_EVENT_SRQ_ERR, pair.b.srq);
	expect_srq_error_state(pair.b.srq);
	pair_no_event(&pair, &pair.b);
}
