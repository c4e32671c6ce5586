/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs, as ibv_create_qp(3), ibv_modify_qp(3) and ibv_destroy_qp(3) specify.
 * qp_post_test.c covers work requests. */
#include <errno.h>
#include <stdint.h>

#include "case.h"
#include "qp_fixture.h"

static struct ibv_qp_init_attr
init_attr(void)
{
	return (struct ibv_qp_init_attr){
		.send_cq = pair.a.send_cq,
		.recv_cq = pair.a.recv_cq,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
}

TEST_WITH(test_create_caps, qp_setup, qp_teardown)
{
	struct ibv_qp_init_attr attr = init_attr(), got;
	struct ibv_qp_attr values;
	struct ibv_qp *qp;

	attr.cap = (struct ibv_qp_cap){.max_send_wr = 100,
		.max_recv_wr = 33,
		.max_send_sge = 5,
		.max_recv_sge = 7,
		.max_inline_data = 200};
	attr.qp_context = &pair;
	attr.sq_sig_all = 1;
	qp = ibv_create_qp(pair.a.pd, &attr);
	assert_non_null(qp);
	assert_true(attr.cap.max_send_wr >= 100 && attr.cap.max_recv_wr >= 33);
	assert_true(attr.cap.max_send_sge >= 5 && attr.cap.max_recv_sge >= 7);
	assert_true(attr.cap.max_inline_data >= 200);
	assert_int_equal(qp->state, IBV_QPS_RESET);
	assert_int_equal(ibv_query_qp(qp, &values, IBV_QP_CAP | IBV_QP_STATE, &got), 0);
	assert_memory_equal(&values.cap, &attr.cap, sizeof(attr.cap));
	assert_memory_equal(&got.cap, &attr.cap, sizeof(attr.cap));
	assert_int_equal(values.qp_state, IBV_QPS_RESET);
	assert_ptr_equal(got.qp_context, &pair);
	assert_ptr_equal(got.send_cq, pair.a.send_cq);
	assert_ptr_equal(got.recv_cq, pair.a.recv_cq);
	assert_int_equal(got.qp_type, IBV_QPT_RC);
	assert_int_equal(got.sq_sig_all, 1);
	assert_int_equal(ibv_dealloc_pd(pair.a.pd), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);

	/* An unused queue. */
	attr = init_attr();
	attr.cap = (struct ibv_qp_cap){0};
	qp = ibv_create_qp(pair.a.pd, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void
create_refused(struct ibv_qp_init_attr attr, int err)
{
	errno = 0;
	assert_null(ibv_create_qp(pair.a.pd, &attr));
	assert_int_equal(errno, err);
}

TEST_WITH(test_create_refused, qp_setup, qp_teardown)
{
	struct ibv_device_attr dev;
	struct ibv_qp_init_attr attr;

	assert_int_equal(ibv_query_device(pair.a.context, &dev), 0);
	attr = init_attr();
	attr.qp_type = IBV_QPT_RAW_PACKET;
	create_refused(attr, EOPNOTSUPP);
	attr.qp_type = IBV_QPT_XRC_RECV;
	create_refused(attr, EINVAL);
	attr = init_attr();
	attr.send_cq = NULL;
	create_refused(attr, EINVAL);
	attr = init_attr();
	attr.recv_cq = NULL;
	create_refused(attr, EINVAL);
	attr = init_attr();
	attr.recv_cq = pair.b.recv_cq; /* a CQ of another device */
	create_refused(attr, EINVAL);
	attr = init_attr();
	attr.cap.max_send_wr = (uint32_t)dev.max_qp_wr + 1;
	create_refused(attr, EINVAL);
	attr = init_attr();
	attr.cap.max_recv_wr = (uint32_t)dev.max_qp_wr + 1;
	create_refused(attr, EINVAL);
	attr = init_attr();
	attr.cap.max_send_sge = (uint32_t)dev.max_sge + 1;
	create_refused(attr, EINVAL);
	attr = init_attr();
	attr.cap.max_recv_sge = (uint32_t)dev.max_sge + 1;
	create_refused(attr, EINVAL);
	attr = init_attr();
	attr.cap.max_inline_data = 1 << 20;
	create_refused(attr, EINVAL);
}

/* The maximum that the device reports can be created. */
TEST_WITH(reported_maximum_can_be_created, qp_setup, qp_teardown)
{
	struct ibv_device_attr dev;
	struct ibv_qp_init_attr attr = init_attr();
	struct ibv_qp *qp;

	assert_int_equal(ibv_query_device(pair.a.context, &dev), 0);
	attr.cap.max_send_wr = attr.cap.max_recv_wr = (uint32_t)dev.max_qp_wr;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = (uint32_t)dev.max_sge;
	qp = ibv_create_qp(pair.a.pd, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

TEST_WITH(test_create_ex, qp_setup, qp_teardown)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = pair.a.send_cq,
		.recv_cq = pair.a.recv_cq,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pair.a.pd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(pair.a.context, &attr);

	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	qp = ibv_create_qp_ex(pair.a.context, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	attr.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	assert_null(ibv_create_qp_ex(pair.a.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
}

TEST_WITH(qp_limit, qp_setup, qp_teardown)
{
	struct ibv_qp *qps[1024];
	struct ibv_qp_init_attr attr;
	int n = 0;

	while (n < 1024) {
		attr = init_attr();
		qps[n] = ibv_create_qp(pair.a.pd, &attr);
		if (qps[n] == NULL)
			break;
		n++;
	}
	assert_int_equal(n, 1023); /* max_qp is 1024; the pair has one */
	assert_int_equal(errno, ENOMEM);
	for (int i = 0; i < n; i++)
		assert_int_equal(ibv_destroy_qp(qps[i]), 0);
}

TEST_WITH(test_modify_query, qp_setup, qp_teardown)
{
	struct ibv_qp_attr attr, got;
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp = pair_qp_create(&pair.conf, &pair.a, 0);
	int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	pair_to_init(qp);
	assert_int_equal(qp->state, IBV_QPS_INIT);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_2048,
		.dest_qp_num = 0x123456,
		.rq_psn = 0xABCDEF,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.sl = 3,
			.grh = {.dgid = pair.b.gid,
				.flow_label = 0x12345,
				.hop_limit = 17,
				.traffic_class = 0x68}},
	};
	/* Each invalid attribute leaves the QP unchanged. */
	assert_int_equal(ibv_modify_qp(qp, &attr, rtr & ~IBV_QP_RQ_PSN), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, &attr, rtr | IBV_QP_QKEY), EINVAL);
	attr.ah_attr.is_global = 0;
	assert_int_equal(ibv_modify_qp(qp, &attr, rtr), EINVAL);
	attr.ah_attr.is_global = 1;
	attr.ah_attr.grh.sgid_index = 15; /* an empty GID entry */
	assert_int_equal(ibv_modify_qp(qp, &attr, rtr), EINVAL);
	attr.ah_attr.grh.sgid_index = 16;
	assert_int_equal(ibv_modify_qp(qp, &attr, rtr), EINVAL);
	attr.ah_attr.grh.sgid_index = 1; /* IPv6, and the peer's GID is of IPv4 */
	assert_int_equal(ibv_modify_qp(qp, &attr, rtr), EINVAL);
	attr.ah_attr.grh.sgid_index = 0;
	attr.ah_attr.port_num = 2;
	assert_int_equal(ibv_modify_qp(qp, &attr, rtr), EINVAL);
	attr.ah_attr.port_num = 1;
	attr.dest_qp_num = 0x1000000;
	assert_int_equal(ibv_modify_qp(qp, &attr, rtr), EINVAL);
	attr.dest_qp_num = 0x123456;
	attr.path_mtu = 6;
	assert_int_equal(ibv_modify_qp(qp, &attr, rtr), EINVAL);
	attr.path_mtu = IBV_MTU_2048;
	attr.min_rnr_timer = 32;
	assert_int_equal(ibv_modify_qp(qp, &attr, rtr), EINVAL);
	attr.min_rnr_timer = 12;
	attr.rq_psn = 0x1ABCDEF;
	assert_int_equal(ibv_modify_qp(qp, &attr, rtr), EINVAL);
	attr.rq_psn = 0xABCDEF;
	assert_int_equal(ibv_modify_qp(qp, &attr, 0), 0);
	assert_int_equal(ibv_query_qp(qp, &got, IBV_QP_STATE, &init), 0);
	assert_int_equal(got.qp_state, IBV_QPS_INIT);

	assert_int_equal(ibv_modify_qp(qp, &attr, rtr), 0);
	assert_int_equal(ibv_query_qp(qp, &got, rtr, NULL), 0);
	assert_int_equal(got.qp_state, IBV_QPS_RTR);
	assert_int_equal(got.path_mtu, IBV_MTU_2048);
	assert_int_equal(got.dest_qp_num, 0x123456);
	assert_int_equal(got.rq_psn, 0xABCDEF);
	assert_int_equal(got.min_rnr_timer, 12);
	assert_memory_equal(&got.ah_attr.grh.dgid, &pair.b.gid, 16);
	assert_int_equal(got.ah_attr.grh.flow_label, 0x12345);
	assert_int_equal(got.ah_attr.grh.hop_limit, 17);
	assert_int_equal(got.ah_attr.grh.traffic_class, 0x68);
	assert_int_equal(got.ah_attr.sl, 3);
	assert_int_equal(got.ah_attr.is_global, 1);

	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.cur_qp_state = IBV_QPS_INIT,
		.timeout = 11,
		.retry_cnt = 5,
		.rnr_retry = 6,
		.sq_psn = 0x010203};
	assert_int_equal(ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_TIMEOUT |
					 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
		EINVAL); /* the QP is in RTR */
	attr.cur_qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_TIMEOUT |
					 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
		0);
	assert_int_equal(ibv_query_qp(qp, &got, 0, NULL), 0);
	assert_int_equal(got.qp_state, IBV_QPS_RTS);
	assert_int_equal(got.timeout, 11);
	assert_int_equal(got.retry_cnt, 5);
	assert_int_equal(got.rnr_retry, 6);
	assert_int_equal(got.sq_psn, 0x010203);
	pair_modify_state(qp, IBV_QPS_ERR);
	assert_int_equal(ibv_query_qp(qp, &got, 0, NULL), 0);
	assert_int_equal(got.qp_state, IBV_QPS_ERR);
	pair_modify_state(qp, IBV_QPS_RESET);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* ibv_query_qp() and ibv_modify_qp() write the QP's state if the mask names it. */
TEST_WITH(state_is_written_if_asked_for, qp_setup, qp_teardown)
{
	struct ibv_qp *qp = pair_qp_create(&pair.conf, &pair.a, 0);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(qp->state, IBV_QPS_RESET);
	pair_to_init(qp);
	assert_int_equal(qp->state, IBV_QPS_INIT);
	qp->state = IBV_QPS_UNKNOWN;
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_CAP | IBV_QP_PORT, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_INIT);
	assert_int_equal(qp->state, IBV_QPS_UNKNOWN);
	assert_int_equal(ibv_modify_qp(qp, &attr, 0), 0);
	assert_int_equal(qp->state, IBV_QPS_UNKNOWN);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(qp->state, IBV_QPS_INIT);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

TEST_WITH(test_communication_established, qp_setup, qp_teardown)
{
	struct ibv_async_event event;
	struct ibv_qp *a = pair_qp_create(&pair.conf, &pair.a, 0);
	struct ibv_qp *b = pair_qp_create(&pair.conf, &pair.b, 0);
	struct ibv_qp *kept[2] = {pair.a.qp[0], pair.b.qp[0]};
	struct ibv_wc wc;

	pair_to_init(a);
	pair_to_init(b);
	pair_to_rtr(&pair.conf, a, &pair.b.gid, b->qp_num);
	pair_to_rtr(&pair.conf, b, &pair.a.gid, a->qp_num);
	pair_to_rts(&pair.conf, a);
	pair.a.qp[0] = a;
	pair.b.qp[0] = b;
	assert_int_equal(pair_post_recv(&pair.b, 0, 1, 0, 16), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 16, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	event = pair_event(&pair, &pair.b);
	assert_int_equal(event.event_type, IBV_EVENT_COMM_EST);
	assert_ptr_equal(event.element.qp, b);
	pair_no_event(&pair, &pair.b);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	pair.a.qp[0] = kept[0];
	pair.b.qp[0] = kept[1];
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

/* RESET discards requests and completions; the QP can be connected again. */
TEST_WITH(reset_discards_and_reconnects, qp_setup, qp_teardown)
{
	struct ibv_wc wc;

	assert_int_equal(pair_post_recv(&pair.b, 0, 1, 0, 16), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 16, IBV_SEND_SIGNALED), 0);
	pair_drain(&pair);
	/* Both completions are there, but not polled. */
	assert_int_equal(pair_post_recv(&pair.b, 0, 2, 0, 16), 0);
	pair_modify_state(pair.a.qp[0], IBV_QPS_RESET);
	pair_modify_state(pair.b.qp[0], IBV_QPS_RESET);
	pair_no_completion(&pair, pair.a.send_cq);
	pair_no_completion(&pair, pair.b.recv_cq);
	pair_connect(&pair, 0);
	assert_int_equal(pair_post_recv(&pair.b, 0, 3, 0, 16), 0);
	assert_int_equal(pair_send(&pair.a, 0, 4, 0, 16, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.wr_id, 3);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.wr_id, 4);
}
