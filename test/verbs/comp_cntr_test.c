/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion counters, as ibv_create_comp_cntr(3) and ibv_qp_attach_comp_cntr(3) of rdma-core 65
 * specify: of each kind of operation, signaled or not, in operations and bytes, and in error. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "verbs_pair.h"

#include "qp/counting.h"
#include "verbs/newer.h"

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define RIGHTS (REMOTE | IBV_ACCESS_LOCAL_WRITE)
#define LEN 3000 /* three packets */
/* One packet: a longer READ may be requested in parts, each of which the responder counts. */
#define READ_LEN 1000
#define QKEY 0x11223344
#define GRH 40

static struct verbs_pair pair;
static struct ibv_mr *region; /* of b */
static struct ibv_comp_cntr *cntr[COUNTED_OPS];

static struct ibv_comp_cntr *
create(struct ibv_context *context, uint32_t type)
{
	struct comp_cntr_init_attr attr = {.type = type};
	struct ibv_comp_cntr *made =
		ibv_create_comp_cntr(context, (struct ibv_comp_cntr_init_attr *)&attr);

	assert_non_null(made);
	return made;
}

static int
attach(struct ibv_qp *qp, struct ibv_comp_cntr *to, uint32_t ops)
{
	struct comp_cntr_attach_attr attr = {.op_mask = ops};

	return ibv_qp_attach_comp_cntr(
		qp, to, (struct ibv_qp_attach_comp_cntr_attr *)&attr);
}

static uint64_t
done(enum counted_op op)
{
	uint64_t value;

	assert_int_equal(ibv_read_comp_cntr(cntr[op], &value), 0);
	return value;
}

static uint64_t
failed(enum counted_op op)
{
	uint64_t value;

	assert_int_equal(ibv_read_err_comp_cntr(cntr[op], &value), 0);
	return value;
}

/* The local kinds are counted at a, the others at b. */
static struct verbs_side *
side_of(enum counted_op op)
{
	return op == COUNTED_RECV || op == COUNTED_REMOTE_READ ||
			       op == COUNTED_REMOTE_WRITE
		       ? &pair.b
		       : &pair.a;
}

static void
open_with(struct verbs_pair_conf conf, uint32_t type)
{
	conf.unconnected = true;
	conf.access = REMOTE;
	conf.depth = 4;
	pair_open(&pair, &conf);
	region = ibv_reg_mr(pair.b.pd, pair.b.mem, 131072, RIGHTS);
	assert_non_null(region);
	for (enum counted_op op = 0; op < COUNTED_OPS; op++) {
		struct verbs_side *side = side_of(op);

		cntr[op] = create(side->context, type);
		assert_int_equal(attach(side->qp[0], cntr[op], 1u << op), 0);
	}
}

static void
close_counters(void)
{
	for (unsigned op = 0; op < COUNTED_OPS; op++)
		assert_int_equal(ibv_destroy_comp_cntr(cntr[op]), EBUSY);
	assert_int_equal(ibv_destroy_qp(pair.a.qp[0]), 0);
	assert_int_equal(ibv_destroy_qp(pair.b.qp[0]), 0);
	pair.a.qp[0] = pair.b.qp[0] = NULL;
	for (unsigned op = 0; op < COUNTED_OPS; op++)
		assert_int_equal(ibv_destroy_comp_cntr(cntr[op]), 0);
	assert_int_equal(ibv_dereg_mr(region), 0);
	pair_close(&pair);
}

static void
post(enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_sge sge = pair_sge(&pair.a, 0, len);
	struct ibv_send_wr *bad, wr = {.opcode = opcode, .sg_list = &sge, .num_sge = 1};

	wr.wr.rdma.remote_addr = (uintptr_t)pair.b.mem + 65536;
	wr.wr.rdma.rkey = region->rkey;
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
}

/* None is signaled. RECV and REMOTE_WRITE count a WRITE with immediate data. */
static void
traffic(void)
{
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pair_post_recv(&pair.b, 0, i, 0, LEN), 0);
	post(IBV_WR_SEND, LEN);
	post(IBV_WR_SEND, 1);
	post(IBV_WR_RDMA_WRITE, LEN);
	post(IBV_WR_RDMA_WRITE, 0);
	post(IBV_WR_RDMA_READ, READ_LEN);
	post(IBV_WR_RDMA_WRITE_WITH_IMM, 5);
	pair_drain(&pair);
}

static void
expect_done(const uint64_t want[COUNTED_OPS], uint64_t times)
{
	for (enum counted_op op = 0; op < COUNTED_OPS; op++) {
		if (done(op) != times * want[op])
			fail_msg("operations of kind %d: %lu", op,
				(unsigned long)done(op));
		assert_int_equal(failed(op), 0);
	}
}

static const uint64_t want_wrs[COUNTED_OPS] = {[COUNTED_SEND] = 2,
	[COUNTED_RECV] = 3,
	[COUNTED_READ] = 1,
	[COUNTED_REMOTE_READ] = 1,
	[COUNTED_WRITE] = 3,
	[COUNTED_REMOTE_WRITE] = 3};
static const uint64_t want_bytes[COUNTED_OPS] = {[COUNTED_SEND] = LEN + 1,
	[COUNTED_RECV] = LEN + 1 + 5,
	[COUNTED_READ] = READ_LEN,
	[COUNTED_REMOTE_READ] = READ_LEN,
	[COUNTED_WRITE] = LEN + 5,
	[COUNTED_REMOTE_WRITE] = LEN + 5};

TEST(unsignaled_requests_are_counted)
{
	for (uint32_t type = COMP_CNTR_WRS; type <= COMP_CNTR_BYTES; type++) {
		for (unsigned sig_all = 0; sig_all < 2; sig_all++) {
			open_with(
				(struct verbs_pair_conf){.sig_all = sig_all != 0}, type);
			pair_connect(&pair, 0);
			traffic();
			expect_done(type == COMP_CNTR_WRS ? want_wrs : want_bytes, 1);
			close_counters();
		}
	}
}

TEST(a_qp_that_was_reset_goes_on_to_count)
{
	struct ibv_wc wc;

	open_with((struct verbs_pair_conf){0}, COMP_CNTR_WRS);
	for (uint64_t times = 1; times <= 2; times++) {
		pair_connect(&pair, 0);
		traffic();
		expect_done(want_wrs, times);
		while (ibv_poll_cq(pair.b.recv_cq, 1, &wc) == 1)
			continue;
		pair_modify_state(pair.a.qp[0], IBV_QPS_RESET);
		pair_modify_state(pair.b.qp[0], IBV_QPS_RESET);
	}
	close_counters();
}

/* A responder without a receive: the requests stay, and are flushed, as are receives. */
TEST(flushed_requests_are_errors)
{
	open_with((struct verbs_pair_conf){0}, COMP_CNTR_BYTES);
	pair_connect(&pair, 0);
	post(IBV_WR_SEND, LEN);
	post(IBV_WR_RDMA_WRITE, LEN);
	post(IBV_WR_RDMA_READ, LEN);
	pair_modify_state(pair.a.qp[0], IBV_QPS_ERR);
	assert_int_equal(pair_post_recv(&pair.b, 0, 0, 0, LEN), 0);
	pair_modify_state(pair.b.qp[0], IBV_QPS_ERR);
	for (enum counted_op op = 0; op < COUNTED_OPS; op++) {
		bool local = op != COUNTED_REMOTE_READ && op != COUNTED_REMOTE_WRITE;

		assert_int_equal(failed(op), local);
		assert_int_equal(done(op), 0);
	}
	close_counters();
}

/* The peer refuses the READ, and the WRITE behind it is flushed. */
TEST(a_refused_request_is_an_error)
{
	open_with((struct verbs_pair_conf){0}, COMP_CNTR_WRS);
	pair_connect(&pair, 0);
	region->rkey ^= 1;
	post(IBV_WR_RDMA_READ, LEN);
	region->rkey ^= 1;
	post(IBV_WR_RDMA_WRITE, LEN);
	pair_drain(&pair);
	assert_int_equal(failed(COUNTED_READ), 1);
	assert_int_equal(failed(COUNTED_WRITE), 1);
	assert_int_equal(done(COUNTED_READ) + done(COUNTED_REMOTE_READ), 0);
	close_counters();
}

/* The completion queues have room for one entry: the second completion is lost, and its operation has
 * been done. The requests that are flushed then are errors. Each is counted once. */
TEST(a_completion_without_room_is_counted_once)
{
	struct verbs_pair_conf conf = {.cqe = 1, .sig_all = true};

	open_with(conf, COMP_CNTR_WRS);
	pair_connect(&pair, 0);
	for (unsigned i = 0; i < 4; i++)
		post(IBV_WR_RDMA_WRITE, 1);
	pair_drain(&pair);
	assert_in_range(done(COUNTED_WRITE), 2, 4);
	assert_int_equal(done(COUNTED_WRITE) + failed(COUNTED_WRITE), 4);
	close_counters();

	conf.sig_all = false;
	open_with(conf, COMP_CNTR_WRS);
	pair_connect(&pair, 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(pair_post_recv(&pair.b, 0, i, 0, LEN), 0);
		post(IBV_WR_SEND, 1);
	}
	pair_drain(&pair);
	assert_in_range(done(COUNTED_RECV), 2, 4);
	assert_int_equal(done(COUNTED_RECV) + failed(COUNTED_RECV), 4);
	close_counters();
}

/* The responder counts what it is asked for: parts of a READ, and all of its bytes. */
TEST(a_long_read_is_asked_for_in_parts)
{
	for (uint32_t type = COMP_CNTR_WRS; type <= COMP_CNTR_BYTES; type++) {
		open_with((struct verbs_pair_conf){0}, type);
		pair_connect(&pair, 0);
		post(IBV_WR_RDMA_READ, LEN);
		pair_drain(&pair);
		if (type == COMP_CNTR_BYTES) {
			assert_int_equal(done(COUNTED_REMOTE_READ), LEN);
			assert_int_equal(done(COUNTED_READ), LEN);
		} else {
			assert_in_range(done(COUNTED_REMOTE_READ), 1, 3);
			assert_int_equal(done(COUNTED_READ), 1);
		}
		close_counters();
	}
}

TEST(requests_of_ibv_wr_are_counted)
{
	const struct verbs_pair_conf conf = {.ops = IBV_QP_EX_WITH_SEND};
	struct ibv_qp_ex *ex;

	open_with(conf, COMP_CNTR_WRS);
	pair_connect(&pair, 0);
	assert_int_equal(pair_post_recv(&pair.b, 0, 0, 0, LEN), 0);
	ex = ibv_qp_to_qp_ex(pair.a.qp[0]);
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = 0;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, pair.a.mr->lkey, (uintptr_t)pair.a.mem, 10);
	assert_int_equal(ibv_wr_complete(ex), 0);
	pair_drain(&pair);
	assert_int_equal(done(COUNTED_SEND), 1);
	assert_int_equal(done(COUNTED_RECV), 1);
	close_counters();
}

TEST(datagrams_are_counted)
{
	struct verbs_pair_conf conf = {.type = IBV_QPT_UD};
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 64};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .num_sge = 1};
	struct ibv_sge sge;

	open_with(conf, COMP_CNTR_BYTES);
	pair_ud_to_rts(pair.a.qp[0], QKEY, 0);
	pair_ud_to_rts(pair.b.qp[0], QKEY, 0);
	attr.grh.dgid = pair.b.gid;
	wr.wr.ud.ah = ibv_create_ah(pair.a.pd, &attr);
	assert_non_null(wr.wr.ud.ah);
	wr.wr.ud.remote_qpn = pair.b.qp[0]->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	sge = pair_sge(&pair.a, 0, 100);
	wr.sg_list = &sge;
	assert_int_equal(pair_post_recv(&pair.b, 0, 0, 0, LEN), 0);
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	pair_drain(&pair);
	assert_int_equal(done(COUNTED_SEND), 100);
	assert_int_equal(done(COUNTED_RECV), GRH + 100);
	assert_int_equal(ibv_destroy_ah(wr.wr.ud.ah), 0);
	close_counters();
}

TEST(unreliable_connections_are_counted)
{
	open_with((struct verbs_pair_conf){.type = IBV_QPT_UC}, COMP_CNTR_WRS);
	pair_connect(&pair, 0);
	assert_int_equal(pair_post_recv(&pair.b, 0, 0, 0, LEN), 0);
	post(IBV_WR_SEND, LEN);
	post(IBV_WR_RDMA_WRITE, LEN);
	pair_drain(&pair);
	assert_int_equal(done(COUNTED_SEND), 1);
	assert_int_equal(done(COUNTED_RECV), 1);
	assert_int_equal(done(COUNTED_WRITE), 1);
	assert_int_equal(done(COUNTED_REMOTE_WRITE), 1);
	close_counters();
}

/* One counter of all kinds, of two QPs. */
TEST(qps_share_a_counter)
{
	struct verbs_pair_conf conf = {.qps = 2, .unconnected = true, .access = REMOTE};
	struct ibv_comp_cntr *all;
	uint64_t value;

	pair_open(&pair, &conf);
	all = create(pair.a.context, COMP_CNTR_WRS);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(attach(pair.a.qp[i], all, COUNTED_ALL), 0);
		pair_connect(&pair, i);
		assert_int_equal(pair_post_recv(&pair.b, i, 0, 0, LEN), 0);
		assert_int_equal(pair_send(&pair.a, i, 0, 0, 10, 0), 0);
	}
	pair_drain(&pair);
	assert_int_equal(ibv_read_comp_cntr(all, &value), 0);
	assert_int_equal(value, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ibv_destroy_comp_cntr(all), EBUSY);
		assert_int_equal(ibv_destroy_qp(pair.a.qp[i]), 0);
		pair.a.qp[i] = NULL;
	}
	assert_int_equal(ibv_destroy_comp_cntr(all), 0);
	pair_close(&pair);
}

TEST(values_are_set_and_raised)
{
	struct verbs_pair_conf conf = {.unconnected = true};
	struct ibv_comp_cntr *one;
	uint64_t value;

	pair_open(&pair, &conf);
	one = create(pair.a.context, COMP_CNTR_WRS);
	assert_int_equal(ibv_set_comp_cntr(one, 7), 0);
	assert_int_equal(ibv_inc_comp_cntr(one, 3), 0);
	assert_int_equal(ibv_set_err_comp_cntr(one, UINT64_MAX), 0);
	assert_int_equal(ibv_inc_err_comp_cntr(one, 2), 0);
	assert_int_equal(ibv_read_comp_cntr(one, &value), 0);
	assert_int_equal(value, 10);
	assert_int_equal(ibv_read_err_comp_cntr(one, &value), 0);
	assert_int_equal(value, 1); /* past max_value it wraps to 0 */
	errno = 0;
	assert_int_equal(ibv_close_device(pair.a.context), -1);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(ibv_destroy_comp_cntr(one), 0);
	pair_close(&pair);
}

static void
expect_refused(struct comp_cntr_init_attr attr, int err)
{
	errno = 0;
	assert_null(ibv_create_comp_cntr(
		pair.a.context, (struct ibv_comp_cntr_init_attr *)&attr));
	assert_int_equal(errno, err);
}

TEST(wrong_arguments_are_refused)
{
	struct verbs_pair_conf conf = {.qps = 2, .unconnected = true};
	struct comp_cntr_attach_attr masked = {.comp_mask = 1, .op_mask = 1};
	struct ibv_comp_cntr *one, *other, *far;
	struct ibv_qp_init_attr xrc = {.qp_type = IBV_QPT_XRC_SEND,
		.cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct ibv_qp *qp;

	pair_open(&pair, &conf);
	expect_refused((struct comp_cntr_init_attr){.type = 2}, EINVAL);
	expect_refused((struct comp_cntr_init_attr){.flags = 1}, EOPNOTSUPP);
	expect_refused((struct comp_cntr_init_attr){.comp_mask = 1}, EOPNOTSUPP);
	one = create(pair.a.context, COMP_CNTR_WRS);
	other = create(pair.a.context, COMP_CNTR_WRS);
	far = create(pair.b.context, COMP_CNTR_WRS);
	assert_int_equal(attach(pair.a.qp[0], far, 1), EINVAL);
	assert_int_equal(attach(pair.a.qp[0], one, 0), EINVAL);
	assert_int_equal(attach(pair.a.qp[0], one, COUNTED_ALL + 1), EOPNOTSUPP);
	assert_int_equal(ibv_qp_attach_comp_cntr(pair.a.qp[0], one,
				 (struct ibv_qp_attach_comp_cntr_attr *)&masked),
		EINVAL);
	assert_int_equal(attach(pair.a.qp[0], one, 3), 0);
	assert_int_equal(attach(pair.a.qp[0], one, 2), EBUSY);
	assert_int_equal(attach(pair.a.qp[0], other, 2), EBUSY);
	assert_int_equal(attach(pair.a.qp[0], one, 4), 0);
	pair_to_init(pair.a.qp[0]);
	assert_int_equal(attach(pair.a.qp[0], one, 8), 0); /* INIT */
	pair_connect(&pair, 1);
	assert_int_equal(attach(pair.a.qp[1], one, 1), EINVAL); /* RTS */
	xrc.send_cq = xrc.recv_cq = pair.a.send_cq;
	qp = ibv_create_qp(pair.a.pd, &xrc);
	assert_non_null(qp);
	assert_int_equal(attach(qp, one, 1), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(pair.a.qp[0]), 0);
	pair.a.qp[0] = NULL;
	assert_int_equal(ibv_destroy_comp_cntr(one), 0);
	assert_int_equal(ibv_destroy_comp_cntr(other), 0);
	assert_int_equal(ibv_destroy_comp_cntr(far), 0);
	pair_close(&pair);
}

/* A structure that ends earlier, as of an older application. */
TEST(limits_are_reported)
{
	struct verbs_pair_conf conf = {.unconnected = true};
	struct comp_cntr_caps caps;

	pair_open(&pair, &conf);
	assert_int_equal(_ibv_query_comp_cntr_caps(pair.a.context,
				 (struct ibv_comp_cntr_caps *)&caps, sizeof(caps)),
		0);
	assert_true(caps.max_value == UINT64_MAX);
	assert_true(caps.qp_attach_ops == COUNTED_ALL);
	memset(&caps, 0xEE, sizeof(caps));
	assert_int_equal(_ibv_query_comp_cntr_caps(
				 pair.a.context, (struct ibv_comp_cntr_caps *)&caps, 8),
		0);
	assert_true(caps.max_value == UINT64_MAX);
	assert_int_equal(caps.max_counters, 0xEEEEEEEE);
	pair_close(&pair);
}

TEST(as_many_as_reported_can_be_made)
{
	static struct ibv_comp_cntr *made[65536];
	struct verbs_pair_conf conf = {.unconnected = true};
	struct comp_cntr_caps caps;

	pair_open(&pair, &conf);
	assert_int_equal(_ibv_query_comp_cntr_caps(pair.a.context,
				 (struct ibv_comp_cntr_caps *)&caps, sizeof(caps)),
		0);
	assert_in_range(caps.max_counters, 1, 65536);
	for (uint32_t i = 0; i < caps.max_counters; i++)
		made[i] = create(pair.a.context, COMP_CNTR_WRS);
	expect_refused((struct comp_cntr_init_attr){.type = COMP_CNTR_WRS}, ENOMEM);
	for (uint32_t i = 0; i < caps.max_counters; i++)
		assert_int_equal(ibv_destroy_comp_cntr(made[i]), 0);
	assert_int_equal(ibv_destroy_comp_cntr(create(pair.a.context, COMP_CNTR_WRS)), 0);
	pair_close(&pair);
}
