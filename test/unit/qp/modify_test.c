/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_modify() and qp_query(): ranges of values, SQD; a refused call changes nothing
 * (ibv_modify_qp(3), IBA 10.3.1). */
#include <errno.h>
#include <string.h>

#include "qp_link.h"

static struct qp_link p;

static void
init(bool connected)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.unconnected = !connected;
	qp_link_init(&p, &conf);
}

static void
expect_refused(const struct qp_attr *attr, int mask, enum ibv_mtu mtu_max)
{
	static struct qp before;

	memcpy(&before, &p.a.qp, sizeof(before));
	assert_int_equal(qp_modify(&p.a.qp, attr, mask, mtu_max), -EINVAL);
	assert_memory_equal(&before, &p.a.qp, sizeof(before));
}

/* Each value just outside its range, in the transition that requires it. */
TEST(values_out_of_range)
{
	struct qp_attr good, bad;

	init(false);
	good = host_attr(&p.a);
#define REFUSE(field, value, mask)                                                       \
	do {                                                                             \
		bad = good;                                                              \
		bad.field = value;                                                       \
		expect_refused(&bad, mask, IBV_MTU_2048);                                \
	} while (0)
	good.state = IBV_QPS_INIT;
	REFUSE(port_num, 0, MASK_INIT);
	REFUSE(port_num, 2, MASK_INIT);
	REFUSE(pkey_index, 1, MASK_INIT);
	assert_int_equal(qp_modify(&p.a.qp, &good, MASK_INIT, IBV_MTU_2048), 0);
	good.state = IBV_QPS_RTR;
	REFUSE(path.port_num, 0, MASK_RTR);
	REFUSE(path.port_num, 2, MASK_RTR);
	REFUSE(path_mtu, (enum ibv_mtu)0, MASK_RTR);
	REFUSE(path_mtu, IBV_MTU_4096, MASK_RTR);
	REFUSE(path_mtu, (enum ibv_mtu)6, MASK_RTR);
	REFUSE(dest_qpn, 0x1000000, MASK_RTR);
	REFUSE(rq_psn, 0x1000000, MASK_RTR);
	REFUSE(min_rnr_timer, 32, MASK_RTR);
	REFUSE(max_dest_rd_atomic, 17, MASK_RTR);
	assert_int_equal(qp_modify(&p.a.qp, &good, MASK_RTR, IBV_MTU_2048), 0);
	good.state = IBV_QPS_RTS;
	REFUSE(timeout, 32, MASK_RTS);
	REFUSE(retry_cnt, 8, MASK_RTS);
	REFUSE(rnr_retry, 8, MASK_RTS);
	REFUSE(max_rd_atomic, 17, MASK_RTS);
	REFUSE(cur_state, IBV_QPS_RTS, MASK_RTS | IBV_QP_CUR_STATE);
	REFUSE(sq_psn, 0x1000000, MASK_RTS);
	REFUSE(sq_psn, 5, MASK_RTS & ~IBV_QP_TIMEOUT);
	good.cur_state = IBV_QPS_RTR;
	assert_int_equal(
		qp_modify(&p.a.qp, &good, MASK_RTS | IBV_QP_CUR_STATE, IBV_MTU_2048), 0);
#undef REFUSE
	qp_link_fini(&p);
}

/* The largest values can be set and queried. */
TEST(query_returns_attributes)
{
	struct qp_attr attr, got;

	init(false);
	attr = host_attr(&p.a);
	attr.state = IBV_QPS_INIT;
	attr.access = IBV_ACCESS_REMOTE_WRITE;
	assert_int_equal(qp_modify(&p.a.qp, &attr, MASK_INIT, IBV_MTU_4096), 0);
	attr.state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_4096;
	attr.dest_qpn = 0xFFFFFF;
	attr.rq_psn = 0xFFFFFF;
	attr.min_rnr_timer = 31;
	attr.max_dest_rd_atomic = 16;
	attr.path.tclass = 0x6A;
	attr.path.flow_label = 0x54321;
	assert_int_equal(qp_modify(&p.a.qp, &attr, MASK_RTR, IBV_MTU_4096), 0);
	attr.state = IBV_QPS_RTS;
	attr.sq_psn = 0x123456;
	attr.timeout = 31;
	attr.retry_cnt = attr.rnr_retry = 7;
	attr.max_rd_atomic = 16;
	assert_int_equal(qp_modify(&p.a.qp, &attr, MASK_RTS, IBV_MTU_4096), 0);
	qp_query(&p.a.qp, &got);
	assert_int_equal(got.state, IBV_QPS_RTS);
	assert_int_equal(got.cur_state, IBV_QPS_RTS);
	assert_int_equal(got.path_mtu, IBV_MTU_4096);
	assert_int_equal(got.dest_qpn, 0xFFFFFF);
	assert_int_equal(got.rq_psn, 0xFFFFFF);
	assert_int_equal(got.sq_psn, 0x123456);
	assert_int_equal(got.access, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(got.min_rnr_timer, 31);
	assert_int_equal(got.timeout, 31);
	assert_int_equal(got.retry_cnt, 7);
	assert_int_equal(got.rnr_retry, 7);
	assert_int_equal(got.max_rd_atomic, 16);
	assert_int_equal(got.max_dest_rd_atomic, 16);
	assert_int_equal(got.port_num, 1);
	assert_false(got.sq_draining);
	assert_memory_equal(&got.path, &attr.path, sizeof(attr.path));
	/* RTS -> RTS, without naming the state. */
	attr.min_rnr_timer = 3;
	attr.access = 0;
	assert_int_equal(
		qp_modify(&p.a.qp, &attr, IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS,
			IBV_MTU_4096),
		0);
	qp_query(&p.a.qp, &got);
	assert_int_equal(got.min_rnr_timer, 3);
	assert_int_equal(got.access, 0);
	qp_link_fini(&p);
}

static int
to_sqd(bool notify)
{
	struct qp_attr attr = {.state = IBV_QPS_SQD, .en_sqd_async_notify = notify};

	return qp_modify(
		&p.a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_MTU_4096);
}

static bool
draining(void)
{
	struct qp_attr attr;

	qp_query(&p.a.qp, &attr);
	return attr.sq_draining;
}

/* SQD finishes started messages, then raises SQ_DRAINED once. Until then sq_draining is 1
 * and SQD->RTS is EINVAL (docs/protocol.md 13.3). */
TEST(sqd_drains_started_messages)
{
	for (unsigned notify = 0; notify < 2; notify++) {
		init(true);
		for (unsigned i = 0; i < 4; i++) {
			host_recv(&p.b, i, 0, 3000);
			host_send(&p.a, i, 0, 3000, IBV_SEND_SIGNALED);
		}
		host_pull(&p.a, 4);
		assert_int_equal(to_sqd(notify), 0);
		assert_true(draining());
		expect_refused(&(struct qp_attr){.state = IBV_QPS_RTS}, IBV_QP_STATE,
			IBV_MTU_4096);
		host_pull(&p.a, PULL_ALL);
		assert_int_equal(p.a.wire_count, 6);
		wire_drop_all(&p.a);
		inject_ack(&p.a, AETH_ACK, PSN_A + 4);
		assert_true(draining());
		inject_ack(&p.a, AETH_ACK, PSN_A + 5);
		assert_false(draining());
		if (notify)
			expect_event(&p.a, IBV_EVENT_SQ_DRAINED);
		expect_sent(&p.a, 0, IBV_WC_SUCCESS);
		expect_sent(&p.a, 1, IBV_WC_SUCCESS);
		expect_idle(&p.a);
		assert_int_equal(host_modify(&p.a, IBV_QPS_SQD), 0); /* no second drain */
		expect_idle(&p.a);
		assert_int_equal(host_modify(&p.a, IBV_QPS_RTS), 0);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 6);
		wire_drop_all(&p.a);
		assert_int_equal(host_modify(&p.a, IBV_QPS_RESET), 0);
		qp_link_fini(&p);
	}
}

/* An idle queue is drained at once. */
TEST(sqd_of_idle_queue)
{
	init(true);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(to_sqd(true), 0);
		assert_false(draining());
		expect_event(&p.a, IBV_EVENT_SQ_DRAINED);
		host_send(&p.a, i, 0, 8, IBV_SEND_SIGNALED); /* queued */
		assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
		assert_int_equal(host_modify(&p.a, IBV_QPS_RTS), 0);
		host_recv(&p.b, i, 0, 8);
		qp_link_drain(&p);
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
		expect_received(&p.b, i, 8);
	}
	/* ERR while draining: SQ_DRAINED is raised neither now nor later. */
	host_send(&p.a, 9, 0, 8, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	assert_int_equal(to_sqd(true), 0);
	assert_int_equal(host_modify(&p.a, IBV_QPS_ERR), 0);
	expect_sent(&p.a, 9, IBV_WC_WR_FLUSH_ERR);
	assert_false(draining());
	qp_link_fini(&p);
}

/* SQD -> SQD changes limits. A new retry_cnt counts from then on. */
TEST(sqd_changes_limits)
{
	struct qp_attr attr;

	init(true);
	attr = host_attr(&p.a);
	attr.retry_cnt = 0;
	attr.timeout = 5;
	attr.rnr_retry = 1;
	assert_int_equal(to_sqd(false), 0);
	assert_int_equal(
		qp_modify(&p.a.qp, &attr,
			IBV_QP_RETRY_CNT | IBV_QP_TIMEOUT | IBV_QP_RNR_RETRY | IBV_QP_AV,
			IBV_MTU_4096),
		0);
	assert_int_equal(host_modify(&p.a, IBV_QPS_RTS), 0);
	host_send(&p.a, 1, 0, 8, 0);
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	assert_int_equal(qp_deadline(&p.a.qp), p.now + (UINT64_C(4096) << 5));
	qp_link_advance(&p, NS_PER_MS);
	expect_sent(&p.a, 1, IBV_WC_RETRY_EXC_ERR);
	qp_link_fini(&p);
}

/* A timeout that is set, changed or cleared in SQD counts for the requests under way. */
TEST(sqd_changes_the_timeout_of_requests)
{
	static const struct {
		uint8_t from, to;
	} rows[] = {{0, 5}, {31, 5}, {1, 5}, {5, 0}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct qp_attr attr = {.timeout = rows[i].to};

		init(true);
		p.a.qp.params.timeout = rows[i].from;
		p.a.qp.params.retry_cnt = p.a.qp.req.retry_left = 0;
		p.a.shared.tlp_off = true;
		host_send(&p.a, 1, 0, 8, 0);
		host_pull(&p.a, PULL_ALL);
		wire_drop_all(&p.a);
		assert_int_equal(to_sqd(false), 0);
		qp_link_advance(&p, 1000);
		p.a.shared.now = p.now; /* as dev_qp_modify() */
		assert_int_equal(
			qp_modify(&p.a.qp, &attr, IBV_QP_TIMEOUT, IBV_MTU_4096), 0);
		if (attr.timeout != 0) {
			assert_int_equal(
				qp_deadline(&p.a.qp), p.now + (UINT64_C(4096) << 5));
			qp_link_advance(&p, NS_PER_MS);
			expect_sent(&p.a, 1, IBV_WC_RETRY_EXC_ERR);
		} else {
			assert_true(qp_deadline(&p.a.qp) == TIME_NEVER);
			qp_link_advance(&p, NS_PER_SEC);
			assert_true(draining());
			expect_idle(&p.a);
			assert_int_equal(host_modify(&p.a, IBV_QPS_RESET), 0);
		}
		qp_link_fini(&p);
	}
}

static void
attr_equal(const struct qp_attr *a, const struct qp_attr *b)
{
	assert_memory_equal(&a->path, &b->path, sizeof(a->path));
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->path_mtu, b->path_mtu);
	assert_int_equal(a->rq_psn, b->rq_psn);
	assert_int_equal(a->sq_psn, b->sq_psn);
	assert_int_equal(a->dest_qpn, b->dest_qpn);
	assert_int_equal(a->qkey, b->qkey);
	assert_int_equal(a->access, b->access);
	assert_int_equal(a->pkey_index, b->pkey_index);
	assert_int_equal(a->timeout, b->timeout);
	assert_int_equal(a->retry_cnt, b->retry_cnt);
	assert_int_equal(a->rnr_retry, b->rnr_retry);
	assert_int_equal(a->min_rnr_timer, b->min_rnr_timer);
	assert_int_equal(a->max_rd_atomic, b->max_rd_atomic);
	assert_int_equal(a->max_dest_rd_atomic, b->max_dest_rd_atomic);
	assert_int_equal(a->en_sqd_async_notify, b->en_sqd_async_notify);
	assert_int_equal(a->sq_draining, b->sq_draining);
}

/* RESET gives a QP the attributes of a new one. ERR changes only the state. */
TEST(reset_restores_attributes)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND};
	struct qp_attr fresh[2], before, got;

	for (unsigned i = 0; i < RTE_DIM(types); i++) {
		struct qp_link_conf conf = qp_link_defaults_rdma();

		conf.type = types[i];
		conf.unconnected = true;
		qp_link_init(&p, &conf);
		qp_query(&p.a.qp, &fresh[0]);
		qp_query(&p.b.qp, &fresh[1]);
		qp_link_connect(&p);
		assert_int_equal(to_sqd(true), 0);
		expect_event(&p.a, IBV_EVENT_SQ_DRAINED);
		for (unsigned side = 0; side < 2; side++) {
			struct host *h = side == 0 ? &p.a : &p.b;

			qp_query(&h->qp, &before);
			assert_int_equal(host_modify(h, IBV_QPS_ERR), 0);
			qp_query(&h->qp, &got);
			before.state = IBV_QPS_ERR;
			attr_equal(&got, &before);
			if (h->qp.type == IBV_QPT_XRC_RECV)
				expect_event(h, IBV_EVENT_QP_LAST_WQE_REACHED);
			assert_int_equal(host_modify(h, IBV_QPS_RESET), 0);
			qp_query(&h->qp, &got);
			attr_equal(&got, &fresh[side]);
		}
		qp_link_fini(&p);
	}
}

/* A mask of 0 changes nothing, in any state (docs/protocol.md 13.2). */
TEST(empty_mask_changes_nothing)
{
	static struct qp before;
	struct qp_attr attr = {.state = IBV_QPS_ERR, .timeout = 99};

	init(true);
	for (unsigned s = IBV_QPS_RESET; s <= IBV_QPS_ERR; s++) {
		p.a.qp.state = (uint8_t)s;
		memcpy(&before, &p.a.qp, sizeof(before));
		assert_int_equal(qp_modify(&p.a.qp, &attr, 0, IBV_MTU_4096), 0);
		assert_memory_equal(&before, &p.a.qp, sizeof(before));
	}
	p.a.qp.state = IBV_QPS_RTS;
	qp_link_fini(&p);
}

static void
init_type(enum ibv_qp_type type)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.type = type;
	conf.srq = true;
	qp_link_init(&p, &conf);
}

/* A request posted in SQE is flushed, also if RTS comes first. Then the queue works. */
TEST(posts_in_sqe_are_flushed)
{
	struct send_req bad = {.wr_id = 1, .num_sge = 1};
	struct sge sge;

	init_type(IBV_QPT_UC);
	sge = host_sge(&p.a, 0, 8);
	sge.lkey++;
	bad.sge = &sge;
	assert_int_equal(host_post_send(&p.a, &bad), 0);
	host_pull(&p.a, PULL_ALL);
	expect_sent(&p.a, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(p.a.qp.state, IBV_QPS_SQE);
	host_send(&p.a, 2, 0, 8, 0);
	assert_int_equal(host_modify(&p.a, IBV_QPS_RTS), 0);
	expect_sent(&p.a, 2, IBV_WC_WR_FLUSH_ERR);
	host_recv(&p.b, 3, 0, 8);
	host_send(&p.a, 3, 0, 8, IBV_SEND_SIGNALED);
	qp_link_drain(&p);
	expect_sent(&p.a, 3, IBV_WC_SUCCESS);
	expect_received(&p.b, 3, 8);
	qp_link_fini(&p);
}

/* A message fails while SQD finishes it: SQE, and the QP no longer drains. The receive
 * side, here with an SRQ, works in both states. */
TEST(message_fails_while_draining)
{
	init_type(IBV_QPT_UC);
	host_send(&p.b, 1, 0, 3000, IBV_SEND_SIGNALED);
	host_send(&p.b, 2, 0, 8, IBV_SEND_SIGNALED);
	assert_int_equal(host_pull(&p.b, 1), 1);
	assert_int_equal(qp_modify(&p.b.qp, &(struct qp_attr){.state = IBV_QPS_SQD},
				 IBV_QP_STATE, IBV_MTU_4096),
		0);
	host_recv(&p.b, 5, 0, 8);
	host_send(&p.a, 5, 0, 8, 0);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	expect_received(&p.b, 5, 8);
	assert_int_equal(key_free(&p.b.keys, p.b.lkey), 0);
	host_pull(&p.b, PULL_ALL);
	wire_drop_all(&p.b);
	expect_sent(&p.b, 1, IBV_WC_LOC_PROT_ERR);
	expect_sent(&p.b, 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(p.b.qp.state, IBV_QPS_SQE);
	assert_false(p.b.qp.req.draining);
	host_recv(&p.b, 6, 0, 8);
	host_send(&p.a, 6, 0, 8, 0);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	assert_int_equal(p.b.qp.state, IBV_QPS_SQE);
	expect_received(&p.b, 6, 8);
	assert_int_equal(host_modify(&p.b, IBV_QPS_RTS), 0);
	qp_link_fini(&p);
}

/* SQD with every service: started requests finish, requests posted meanwhile are sent in
 * RTS, requests of the peer are accepted. */
TEST(sqd_with_every_service)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND};

	for (unsigned i = 0; i < RTE_DIM(types); i++) {
		struct ud_dest dest;
		struct send_req req = {.flags = IBV_SEND_SIGNALED, .num_sge = 1};
		struct sge sge;
		bool ud = types[i] == IBV_QPT_UD;
		uint32_t len = ud ? 900 : 3000;

		init_type(types[i]);
		dest = host_dest(&p.a);
		sge = host_sge(&p.a, 0, len);
		req.sge = &sge;
		req.dest = ud ? &dest : NULL;
		for (req.wr_id = 0; req.wr_id < 2; req.wr_id++)
			assert_int_equal(host_post_send(&p.a, &req), 0);
		for (unsigned j = 0; j < 3; j++)
			host_recv(&p.b, j, 0x4000 * j, 0x4000);
		host_pull(&p.a, 1);
		assert_int_equal(to_sqd(true), 0);
		assert_int_equal(host_post_send(&p.a, &req), 0); /* 2 */
		qp_link_drain(&p);
		expect_event(&p.a, IBV_EVENT_SQ_DRAINED);
		expect_sent(&p.a, 0, IBV_WC_SUCCESS);
		expect_received(&p.b, 0, len + (ud ? 40 : 0));
		expect_idle(&p.a);
		expect_idle(&p.b);
		assert_int_equal(host_modify(&p.a, IBV_QPS_RTS), 0);
		qp_link_drain(&p);
		for (unsigned j = 1; j < 3; j++) {
			expect_sent(&p.a, j, IBV_WC_SUCCESS);
			expect_received(&p.b, j, len + (ud ? 40 : 0));
		}
		qp_link_fini(&p);
	}
}
