/* SPDX-License-Identifier: BSD-3-Clause */
/* SRQs as ibv_create_srq(3), ibv_post_srq_recv(3) and ibv_destroy_srq(3) specify.
 * srq_modify_test.c covers ibv_modify_srq(3), srq_message_test.c messages,
 * srq_threads_test.c several threads and engines. */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "srq_fixture.h"
#include "../lib/emulated.h"

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

TEST_WITH(sizes_are_checked_and_rounded_up, srq_setup, srq_teardown)
{
	struct ibv_srq_attr actual, got;
	struct ibv_device_attr dev;
	struct ibv_srq *srq;

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
	assert_int_equal(got.srq_limit, 0); /* ignored at creation */
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

TEST_WITH(test_create_ex, srq_setup, srq_teardown)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 5, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pair.a.pd,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(pair.a.context, &attr);

	assert_non_null(srq);
	assert_true(attr.attr.max_wr >= 5);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	attr.srq_type = IBV_SRQT_TM;
	errno = 0;
	assert_null(ibv_create_srq_ex(pair.a.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
}

/* The numbers of two contexts of a device differ too. */
TEST_WITH(numbers_are_unique, srq_setup, srq_teardown)
{
	struct ibv_context *context = ibv_open_device(pair.a.context->device);
	struct ibv_pd *pds[2] = {pair.a.pd, ibv_alloc_pd(context)};
	struct ibv_srq *srqs[6];
	uint32_t numbers[6];

	assert_non_null(pds[1]);
	for (unsigned i = 0; i < 6; i++) {
		struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};

		srqs[i] = ibv_create_srq(pds[i % 2], &attr);
		assert_non_null(srqs[i]);
		assert_int_equal(ibv_get_srq_num(srqs[i], &numbers[i]), 0);
		assert_in_range(numbers[i], 1, 0xFFFFFE);
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(numbers[i], numbers[k]);
	}
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(ibv_destroy_srq(srqs[i]), 0);
	assert_int_equal(ibv_dealloc_pd(pds[1]), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

static uint32_t
outstanding(struct ibv_srq *srq)
{
	struct rocade_srq_info info;

	assert_int_equal(rocade_srq_info(srq, &info), 0);
	return info.outstanding;
}

TEST_WITH(test_post_list, srq_setup, srq_teardown)
{
	struct ibv_sge sge = pair_sge(&pair.b, 0, 64);
	struct ibv_sge many[4] = {sge, sge, sge, sge};
	struct ibv_recv_wr wr[4], *bad;
	struct ibv_wc wc[4];

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
		/* The receives before the failing one stay posted; it and the later ones
		 * are not. */
		assert_int_equal(outstanding(pair.b.srq), 2);
		assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr[2], NULL), EINVAL);
		/* The list and its SGEs may be reused after the call. */
		memset(wr, 0xFF, sizeof(wr));
		memset(many, 0xFF, sizeof(many));
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(
				pair_send(&pair.a, 0, i, 0, 64, IBV_SEND_SIGNALED), 0);
		pair_poll_cq(&pair, pair.b.recv_cq, wc, 2);
		assert_int_equal(wc[0].wr_id, 10);
		assert_int_equal(wc[1].wr_id, 11);
		assert_int_equal(wc[1].status, IBV_WC_SUCCESS);
		pair_poll_cq(&pair, pair.a.send_cq, wc, 2);
		for (unsigned i = 0; i < 4; i++)
			many[i] = sge;
	}
}

/* A list that is posted whole leaves bad_wr as it was. */
TEST_WITH(test_bad_wr_kept_on_success, srq_setup, srq_teardown)
{
	struct ibv_recv_wr wr[3] = {{.next = &wr[1]}, {.next = &wr[2]}, {.wr_id = 3}};
	struct ibv_recv_wr sentinel, *bad = &sentinel;

	assert_int_equal(ibv_post_srq_recv(pair.b.srq, wr, &bad), 0);
	assert_ptr_equal(bad, &sentinel);
	assert_int_equal(outstanding(pair.b.srq), 3);
}

/* An empty list succeeds, posts nothing, and leaves bad_wr as it was. */
TEST_WITH(test_empty_list_posts_nothing, srq_setup, srq_teardown)
{
	struct ibv_recv_wr sentinel, *bad = &sentinel;

	for (unsigned n = 0; n < 3; n++) {
		assert_int_equal(ibv_post_srq_recv(pair.b.srq, NULL, &bad), 0);
		assert_int_equal(ibv_post_srq_recv(pair.b.srq, NULL, NULL), 0);
		assert_ptr_equal(bad, &sentinel);
		assert_int_equal(outstanding(pair.b.srq), n);
		assert_int_equal(pair_post_srq(&pair.b, n, 0, 64), 0);
	}
}

TEST_WITH(test_post_full, srq_setup, srq_teardown)
{
	struct ibv_recv_wr wr = {.wr_id = 5}, second = {.wr_id = 6}, *bad = NULL;
	struct ibv_srq_attr attr;

	assert_int_equal(ibv_query_srq(pair.b.srq, &attr), 0);
	/* Duplicate wr_ids are legal. */
	for (uint32_t i = 0; i + 1 < attr.max_wr; i++)
		assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), 0);
	wr.next = &second;
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &second);
	assert_int_equal(outstanding(pair.b.srq), attr.max_wr);
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &second, NULL), ENOMEM);
	/* A consumed receive makes room for one. */
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 0, IBV_SEND_SIGNALED), 0);
	pair_drain(&pair);
	assert_int_equal(outstanding(pair.b.srq), attr.max_wr - 1);
	assert_int_equal(ibv_post_srq_recv(pair.b.srq, &second, &bad), 0);
}

/* Posting works with QPs in any state. Only QPs in RTR, RTS and SQD consume receives. */
TEST_WITH(only_connected_qps_consume_receives, srq_setup, srq_teardown)
{
	static const enum ibv_qp_state taking[] = {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD};
	struct verbs_side *b = &pair.b;
	struct ibv_srq *srq = create(4, 1, NULL);
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
	struct ibv_wc wc;

	/* Without any QP. */
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	for (unsigned i = 0; i < 3; i++) {
		pair_modify_state(b->qp[0], IBV_QPS_RESET);
		pair_modify_state(pair.a.qp[0], IBV_QPS_RESET);
		assert_int_equal(pair_post_srq(b, i, 0, 64), 0);
		pair_to_init(b->qp[0]);
		pair_to_init(pair.a.qp[0]);
		pair_to_rtr(&pair.conf, pair.a.qp[0], &b->gid, b->qp[0]->qp_num);
		pair_to_rts(&pair.conf, pair.a.qp[0]);
		assert_int_equal(pair_send(&pair.a, 0, 1, 0, 64, IBV_SEND_SIGNALED), 0);
		pair_no_completion(&pair, b->recv_cq); /* a QP in INIT consumes none */
		assert_int_equal(outstanding(b->srq), 1);
		pair_to_rtr(&pair.conf, b->qp[0], &pair.a.gid, pair.a.qp[0]->qp_num);
		if (taking[i] != IBV_QPS_RTR)
			pair_to_rts(&pair.conf, b->qp[0]);
		if (taking[i] == IBV_QPS_SQD)
			pair_modify_state(b->qp[0], IBV_QPS_SQD);
		pair_poll_cq(&pair, b->recv_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
		pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	}
	/* A QP in ERR consumes none; posting still works. */
	pair_modify_state(b->qp[0], IBV_QPS_ERR);
	assert_int_equal(pair_post_srq(b, 9, 0, 64), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	pair_no_completion(&pair, b->recv_cq);
	assert_int_equal(outstanding(b->srq), 1);
	pair_modify_state(pair.a.qp[0], IBV_QPS_RESET);
	pair_modify_state(b->qp[0], IBV_QPS_RESET);
	while (ibv_poll_cq(pair.a.send_cq, 1, &wc) == 1)
		;
	pair_drain(&pair);
}

TEST_WITH(test_post_recv_on_srq_qp, srq_setup, srq_teardown)
{
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_post_recv(pair.b.qp[0], &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_post_recv(pair.b.qp[0], &wr, NULL), EINVAL);
	assert_int_equal(outstanding(pair.b.srq), 0);
	/* ibv_query_qp() reports the SRQ and no receive queue. */
	assert_int_equal(ibv_query_qp(pair.b.qp[0], &attr, IBV_QP_CAP, &init), 0);
	assert_ptr_equal(init.srq, pair.b.srq);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	assert_int_equal(attr.cap.max_recv_sge, 0);
	assert_memory_equal(&init.cap, &attr.cap, sizeof(attr.cap));
}

TEST_WITH(srq_in_use_is_ebusy, srq_setup, srq_teardown)
{
	struct ibv_async_event event;
	struct ibv_srq *srq = pair.b.srq;

	SKIP_IF_EMULATED();
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	/* The SRQ is still usable. */
	assert_int_equal(pair_post_srq(&pair.b, 1, 0, 64), 0);
	srq_messages_receive(1);
	/* Destroying an SRQ removes its unread events. */
	srq = ibv_create_srq(pair.b.pd,
		&(struct ibv_srq_init_attr){.attr = {.max_wr = 4, .max_sge = 1}});
	assert_int_equal(srq_modify(srq, 0, 0, 2, IBV_SRQ_LIMIT), 0);
	/* Armed twice: raised twice. */
	assert_int_equal(srq_modify(srq, 0, 0, 2, IBV_SRQ_LIMIT), 0);
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

/* ibv_destroy_srq() waits for events that were read and not acknowledged. */
TEST_WITH(destroy_waits_for_acknowledgements, srq_setup, srq_teardown)
{
	struct destroyer d = {.srq = create(4, 1, NULL)};
	struct ibv_async_event event;
	pthread_t thread;

	assert_int_equal(srq_modify(d.srq, 0, 0, 2, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_get_async_event(pair.a.context, &event), 0);
	assert_int_equal(pthread_create(&thread, NULL, destroy, &d), 0);
	for (int i = 0; i < 50; i++) {
		pair_drain(&pair);
		assert_false(__atomic_load_n(&d.done, __ATOMIC_ACQUIRE));
	}
	ibv_ack_async_event(&event);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(d.done);
}

/* Posts receives 0 to 2 and delivers the start of a long message to QP 0, which takes
 * receive 0. */
static void
take_without_end(void)
{
	const uint32_t len = 256 * 1024;

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, i * len, len), 0);
	memset(pair.a.mem, 0x5C, len);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, len, IBV_SEND_SIGNALED), 0);
	while (outstanding(pair.b.srq) == 3)
		pair_poll(&pair);
	assert_int_equal(outstanding(pair.b.srq), 2);
	assert_int_equal(pair.b.mem[0], 0x5C);
	assert_int_equal(pair.b.mem[len - 1], 0);
}

/* Receive 0 makes no completion and is not in the SRQ any more: QP 1 takes receives 1
 * and 2. */
static void
taken_receive_is_gone(void)
{
	struct ibv_wc wc;

	pair_modify_state(pair.a.qp[0], IBV_QPS_RESET);
	pair_no_completion(&pair, pair.b.recv_cq);
	assert_int_equal(outstanding(pair.b.srq), 2);
	for (unsigned i = 1; i < 3; i++) {
		assert_int_equal(pair_send(&pair.a, 1, 1, 0, 64, IBV_SEND_SIGNALED), 0);
		pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
		pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	}
	assert_int_equal(outstanding(pair.b.srq), 0);
}

/* RESET in the middle of a message: the receive that the QP had taken is lost. */
TEST_WITH(test_reset_loses_the_taken_receive, srq_setup, srq_teardown)
{
	struct ibv_wc wc;

	take_without_end();
	pair_modify_state(pair.b.qp[0], IBV_QPS_RESET);
	taken_receive_is_gone();
	/* The QP does not have it either. */
	assert_int_equal(pair_post_srq(&pair.b, 7, 0, 64), 0);
	pair_connect(&pair, 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 7);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
}

/* The same for a QP that is destroyed without going through ERR. */
TEST_WITH(test_destroy_loses_the_taken_receive, srq_setup, srq_teardown)
{
	take_without_end();
	assert_int_equal(ibv_destroy_qp(pair.b.qp[0]), 0);
	pair.b.qp[0] = NULL;
	taken_receive_is_gone();
}

/* A QP with an SRQ that enters ERR raises one event, after its last receive
 * completion. */
TEST_WITH(last_wqe_event_is_raised_once, srq_setup, srq_teardown)
{
	struct ibv_async_event event;
	struct ibv_wc wc;

	assert_int_equal(pair_post_srq(&pair.b, 1, 0, 64), 0);
	srq_messages_receive(1);
	pair_modify_state(pair.b.qp[0], IBV_QPS_ERR);
	event = pair_event(&pair, &pair.b);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, pair.b.qp[0]);
	pair_modify_state(pair.b.qp[0], IBV_QPS_ERR); /* the QP is in ERR already */
	pair_no_event(&pair, &pair.b);
	/* Receives of an SRQ belong to no QP and are not flushed. */
	assert_int_equal(pair_post_srq(&pair.b, 2, 0, 64), 0);
	pair_no_completion(&pair, pair.b.recv_cq);
	assert_int_equal(outstanding(pair.b.srq), 1);
	(void)wc;
}

/* When the event is readable, the completion is in the CQ. */
TEST_WITH(last_wqe_event_follows_completion, srq_setup, srq_teardown)
{
	struct ibv_sge sge = pair_sge(&pair.b, 0, 64);
	struct ibv_recv_wr wr = {.wr_id = 6, .sg_list = &sge, .num_sge = 1}, *bad;
	struct pollfd event_waits = {.fd = pair.b.context->async_fd, .events = POLLIN};
	struct ibv_wc wc;

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
