/* SPDX-License-Identifier: BSD-3-Clause */
/* A CQ of two engines overflows while one of them has gathered completions for it: the QPs of these
 * completions enter the error state, as if each completion had been written at once. */
#include <errno.h>

#include "engine/engine_state.h"

#include "engine_link.h"

#define QPS 2

static struct engine_link fixture;
static struct link_qp a[QPS], b[QPS];

static struct cq_gather *
gather(void)
{
	return &fixture.b.dev->engines[0]->shared.gather;
}

static void
message(struct link_qp *from, struct link_qp *to, uint64_t wr_id)
{
	link_qp_message(from, to, wr_id);
	engine_link_drain(&fixture);
	link_qp_expect_message(from, to, wr_id);
}

static void
begin(void)
{
	static const struct engine_link_conf link = {.engines = {1, 2}};
	static const struct link_qp_conf conf = {.engine = 0};

	engine_link_init(&fixture, &link);
	link_qps_create(&fixture, a, b, QPS, &conf);
	for (unsigned i = 0; i < QPS; i++) {
		message(&a[i], &b[i], i);
		message(&b[i], &a[i], i);
	}
	/* Of QPs of another engine, too. */
	cq_attach(&b[0].recv_cq, 1);
	cq_attach(&b[0].send_cq, 1);
}

static void
end(void)
{
	cq_detach(&b[0].recv_cq, 1);
	cq_detach(&b[0].send_cq, 1);
	for (unsigned i = 0; i < QPS; i++) {
		assert_int_equal(link_qp_modify(&a[i], IBV_QPS_ERR), 0);
		assert_int_equal(link_qp_modify(&b[i], IBV_QPS_ERR), 0);
	}
	link_qps_fini(&fixture, a, b, QPS);
}

/* The engine gathers a completion of b[0]. Then the other one fills the CQ. */
static void
gathered_then_full(struct cq *cq, enum ibv_wc_opcode opcode)
{
	const struct cqe cqe = {.qpn = b[0].qp->qpn, .opcode = (uint8_t)opcode};
	const uint64_t now = fixture.now;

	cq_gather_begin(gather());
	assert_true(cq_complete(gather(), cq, &cqe, &now));
	assert_int_equal(gather()->count, 1);
	while (cq->head - cq->tail != cq->size)
		assert_true(cq_put(cq, &cqe, &now));
	assert_false(cq->error);
}

static void
expect_failed(void)
{
	unsigned cq_err = 0, qp_fatal = 0;
	struct event_record record;

	while (event_next(&fixture.b.events, &record) == 0) {
		cq_err += record.type == IBV_EVENT_CQ_ERR;
		qp_fatal += record.type == IBV_EVENT_QP_FATAL;
	}
	assert_int_equal(cq_err, 1);
	assert_int_equal(qp_fatal, 1);
	assert_int_equal(b[0].qp->state, IBV_QPS_ERR);
	assert_int_equal(gather()->lost, 0);
	/* A QP with other CQs goes on. */
	message(&a[1], &b[1], 9);
}

/* The peer learns that its request was not completed. */
TEST(lost_receive_fails_its_qp)
{
	begin();
	gathered_then_full(&b[0].recv_cq, IBV_WC_RECV);
	assert_int_equal(link_qp_recv(&b[0], 5, 0, 8), 0);
	assert_int_equal(link_qp_send(&a[0], 5, 0, 8, IBV_SEND_SIGNALED), 0);
	engine_link_drain(&fixture);
	link_qp_expect_sent(&a[0], 5, 1, IBV_WC_REM_OP_ERR);
	expect_failed();
	end();
}

TEST(lost_send_fails_its_qp)
{
	begin();
	gathered_then_full(&b[0].send_cq, IBV_WC_SEND);
	message(&a[1], &b[1], 5);
	expect_failed();
	end();
}
