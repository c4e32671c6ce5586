/* SPDX-License-Identifier: BSD-3-Clause */
/* Limit and size of an SRQ, as ibv_modify_srq(3) specifies. */
#include <errno.h>
#include <stdint.h>

#include "case.h"
#include "srq_fixture.h"

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

TEST_WITH(limit_event_is_raised_once, srq_setup, srq_teardown)
{
	struct ibv_srq *srq = pair.b.srq;

	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, 0, 64), 0);
	srq_messages_receive(1);
	assert_int_equal(srq_modify(srq, 0, 0, 5, IBV_SRQ_LIMIT), 0);
	assert_int_equal(limit_of(srq), 5);
	srq_messages_receive(4); /* 5 left: not below the limit */
	pair_no_event(&pair, &pair.b);
	assert_int_equal(limit_of(srq), 5);
	srq_messages_receive(1);
	limit_event(srq);
	assert_int_equal(limit_of(srq), 0);
	srq_messages_receive(1); /* the event is raised once */
	pair_no_event(&pair, &pair.b);

	/* A limit above the number of receives raises the event at once; an equal one
	 * does not. */
	assert_int_equal(srq_modify(srq, 0, 0, 3, IBV_SRQ_LIMIT), 0);
	pair_no_event(&pair, &pair.b);
	assert_int_equal(srq_modify(srq, 0, 0, 4, IBV_SRQ_LIMIT), 0);
	limit_event(srq);
	assert_int_equal(limit_of(srq), 0);

	/* Arming again replaces the limit; 0 disarms it. */
	assert_int_equal(srq_modify(srq, 0, 0, 3, IBV_SRQ_LIMIT), 0);
	assert_int_equal(srq_modify(srq, 0, 0, 1, IBV_SRQ_LIMIT), 0);
	assert_int_equal(limit_of(srq), 1);
	srq_messages_receive(1);
	pair_no_event(&pair, &pair.b);
	assert_int_equal(srq_modify(srq, 0, 0, 0, IBV_SRQ_LIMIT), 0);
	assert_int_equal(limit_of(srq), 0);
	srq_messages_receive(2);
	pair_no_event(&pair, &pair.b);

	/* A limit above max_wr is EINVAL and changes nothing. */
	struct ibv_srq_attr attr;
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, 0, 64), 0);
	assert_int_equal(srq_modify(srq, 0, 0, 2, IBV_SRQ_LIMIT), 0);
	assert_int_equal(srq_modify(srq, 0, 0, attr.max_wr + 1, IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(limit_of(srq), 2);
	pair_no_event(&pair, &pair.b);
}

TEST_WITH(resize_keeps_outstanding_receives, srq_setup, srq_teardown)
{
	struct ibv_srq *srq = pair.b.srq;
	struct ibv_device_attr dev;
	struct ibv_srq_attr attr, got;
	struct ibv_wc wc;

	assert_int_equal(ibv_query_device(pair.b.context, &dev), 0);
	assert_true(dev.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, 0, 64), 0);
	attr = (struct ibv_srq_attr){.max_wr = 100};
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_true(attr.max_wr >= 100);
	assert_int_equal(ibv_query_srq(srq, &got), 0);
	assert_int_equal(got.max_wr, attr.max_wr);
	assert_int_equal(got.max_sge, 3);
	for (unsigned i = 10; i < 60; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, 0, 64), 0);
	/* Invalid sizes change nothing. */
	assert_int_equal(srq_modify(srq, 0, 0, 0, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(
		srq_modify(srq, (uint32_t)dev.max_srq_wr + 1, 0, 0, IBV_SRQ_MAX_WR),
		EINVAL);
	assert_int_equal(srq_modify(srq, 59, 0, 0, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(srq_modify(srq, 100, 1, 0, 1 << 2), EINVAL);
	assert_int_equal(srq_modify(srq, 100, 1, 0, 1 << 2 | IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(srq_modify(srq, 1, 1, 1, 0), 0); /* a mask of 0 does nothing */
	assert_int_equal(ibv_query_srq(srq, &got), 0);
	assert_int_equal(got.max_wr, attr.max_wr);
	assert_int_equal(got.max_sge, 3);
	/* To exactly the number outstanding. */
	attr = (struct ibv_srq_attr){.max_wr = 60};
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	for (unsigned i = 0; i < 60; i++) {
		assert_int_equal(
			pair_send(&pair.a, i % 3, 1, 0, 1, IBV_SEND_SIGNALED), 0);
		pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
		assert_int_equal(wc.wr_id, i);
		pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	}
}

#define ANY 6

/* ibv_modify_srq(3): max_sge is irrelevant, whatever programs leave there. */
TEST_WITH(max_sge_is_ignored, srq_setup, srq_teardown)
{
	static const uint32_t any[ANY] = {0, 1, 2, 16, 17, UINT32_MAX};
	struct ibv_sge sge[4] = {pair_sge(&pair.b, 0, 1), pair_sge(&pair.b, 1, 1),
		pair_sge(&pair.b, 2, 1), pair_sge(&pair.b, 3, 1)};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = sge, .num_sge = 3}, *bad;
	struct ibv_wc wc[ANY];

	for (unsigned i = 0; i < ANY; i++) {
		struct ibv_srq_attr attr = {.max_wr = 16 << i, .max_sge = any[i]};

		assert_int_equal(ibv_modify_srq(pair.b.srq, &attr, IBV_SRQ_MAX_WR), 0);
		assert_int_equal(attr.max_sge, 3);
		assert_int_equal(ibv_query_srq(pair.b.srq, &attr), 0);
		assert_int_equal(attr.max_wr, 16 << i);
		assert_int_equal(attr.max_sge, 3);
		wr.num_sge = 4;
		assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), EINVAL);
		wr.num_sge = 3;
		assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	}
	for (unsigned i = 0; i < ANY; i++)
		assert_int_equal(pair_send(&pair.a, 0, 1, 0, 3, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, wc, ANY);
	for (unsigned i = 0; i < ANY; i++) {
		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		assert_int_equal(wc[i].byte_len, 3);
	}
}

/* Both attributes change together, or neither. */
TEST_WITH(size_and_limit_change_together, srq_setup, srq_teardown)
{
	struct ibv_srq *srq = pair.b.srq;
	struct ibv_srq_attr before, after;
	int both = IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT;

	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, 0, 64), 0);
	srq_messages_receive(1);
	assert_int_equal(ibv_query_srq(srq, &before), 0);
	/* limit above the size */
	assert_int_equal(srq_modify(srq, 100, 0, 101, both), EINVAL);
	/* size below the number outstanding */
	assert_int_equal(srq_modify(srq, 4, 0, 2, both), EINVAL);
	assert_int_equal(ibv_query_srq(srq, &after), 0);
	assert_memory_equal(&after, &before, sizeof(before));
	pair_no_event(&pair, &pair.b);
	assert_int_equal(srq_modify(srq, 100, 0, 9, both), 0);
	assert_int_equal(ibv_query_srq(srq, &after), 0);
	assert_true(after.max_wr >= 100);
	assert_int_equal(after.srq_limit, 9);
	/* A size below an armed limit. */
	assert_int_equal(srq_modify(srq, 8, 0, 0, IBV_SRQ_MAX_WR), EINVAL);
	srq_messages_receive(2);
	pair_no_event(&pair, &pair.b);
	srq_messages_receive(1);
	limit_event(srq);
	/* The resize arms a limit above the number of receives: it applies and raises the
	 * event. */
	assert_int_equal(srq_modify(srq, 200, 0, 150, both), 0);
	limit_event(srq);
}
