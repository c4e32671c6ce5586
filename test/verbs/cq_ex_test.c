/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_create_cq_ex(3): completions read in place, and their timestamps. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "case.h"
#include "verbs_pair.h"

#define STAMPS                                                                           \
	((uint64_t)IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                                 \
		(uint64_t)IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define FLAGS ((uint64_t)IBV_WC_STANDARD_FLAGS)

static struct verbs_pair pair;
static struct ibv_poll_cq_attr none;

static void
open_ex(struct verbs_pair_conf conf)
{
	conf.wc_flags |= FLAGS;
	pair_open(&pair, &conf);
	pair_drain(&pair);
}

static struct ibv_cq_ex *
to_ex(struct ibv_cq *cq)
{
	return (struct ibv_cq_ex *)cq;
}

static void
post(uint64_t wr_id, uint32_t len, uint32_t imm, unsigned flags)
{
	struct ibv_sge sge = {(uintptr_t)pair.a.mem, len, pair.a.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = imm != 0 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		.imm_data = htonl(imm),
		.send_flags = flags};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
}

static void
message(uint64_t number)
{
	assert_int_equal(pair_post_recv(&pair.b, 0, number, 0, 4096), 0);
	post(number, (uint32_t)number * 10, (uint32_t)number, IBV_SEND_SIGNALED);
	pair_drain(&pair);
}

TEST(completion_fields_and_batch_ends)
{
	struct ibv_cq_ex *ex;

	open_ex((struct verbs_pair_conf){.qps = 1});
	ex = to_ex(pair.b.recv_cq);
	assert_ptr_equal(ibv_cq_ex_to_cq(ex), pair.b.recv_cq);
	assert_int_equal(ibv_start_poll(ex, &none), ENOENT);
	for (uint64_t i = 1; i <= 5; i++)
		message(i);
	assert_int_equal(ibv_start_poll(ex, &none), 0);
	for (uint64_t i = 1; i <= 3; i++) {
		assert_int_equal(ex->wr_id, i);
		assert_int_equal(ex->status, IBV_WC_SUCCESS);
		assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RECV);
		assert_int_equal(ibv_wc_read_vendor_err(ex), 0);
		assert_int_equal(ibv_wc_read_byte_len(ex), i * 10);
		assert_int_equal(ibv_wc_read_imm_data(ex), htonl((uint32_t)i));
		assert_int_equal(ibv_wc_read_qp_num(ex), pair.b.qp[0]->qp_num);
		assert_int_equal(ibv_wc_read_src_qp(ex), pair.a.qp[0]->qp_num);
		assert_int_equal(ibv_wc_read_wc_flags(ex), IBV_WC_WITH_IMM);
		assert_int_equal(ibv_wc_read_slid(ex), 0);
		assert_int_equal(ibv_wc_read_sl(ex), 0);
		assert_int_equal(ibv_wc_read_dlid_path_bits(ex), 0);
		if (i < 3)
			assert_int_equal(ibv_next_poll(ex), 0);
	}
	ibv_end_poll(ex);
	/* ibv_end_poll() ended the batch; the next batch continues there. */
	assert_int_equal(ibv_start_poll(ex, &none), 0);
	assert_int_equal(ex->wr_id, 4);
	assert_int_equal(ibv_next_poll(ex), 0);
	assert_int_equal(ex->wr_id, 5);
	assert_int_equal(ibv_next_poll(ex), ENOENT);
	assert_int_equal(ibv_next_poll(ex), ENOENT);
	ibv_end_poll(ex);
	assert_int_equal(ibv_start_poll(ex, &none), ENOENT);
	none.comp_mask = 1;
	assert_int_equal(ibv_start_poll(ex, &none), EINVAL);
	none.comp_mask = 0;
	assert_int_equal(ibv_start_poll(ex, &none), ENOENT);
	pair_close(&pair);
}

/* ibv_poll_cq() between batches. */
TEST(poll_cq_between_batches)
{
	struct ibv_cq_ex *ex;
	struct ibv_wc wc;

	open_ex((struct verbs_pair_conf){.qps = 1});
	ex = to_ex(pair.b.recv_cq);
	for (uint64_t i = 1; i <= 3; i++)
		message(i);
	assert_int_equal(ibv_poll_cq(pair.b.recv_cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(ibv_start_poll(ex, &none), 0);
	assert_int_equal(ex->wr_id, 2);
	ibv_end_poll(ex);
	assert_int_equal(ibv_poll_cq(pair.b.recv_cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(ibv_poll_cq(pair.b.recv_cq, 1, &wc), 0);
	assert_int_equal(ibv_start_poll(ex, &none), ENOENT);
	pair_close(&pair);
}

/* A batch frees SQ slots as it advances. */
TEST(batch_frees_sq_slots)
{
	struct verbs_pair_conf conf = {.cap = {.max_send_wr = 2, .max_recv_wr = 8}};
	struct ibv_cq_ex *ex;

	open_ex(conf);
	ex = to_ex(pair.a.send_cq);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(pair_post_recv(&pair.b, 0, i, 0, 4096), 0);
	post(1, 10, 0, IBV_SEND_SIGNALED);
	post(2, 10, 0, IBV_SEND_SIGNALED);
	pair_drain(&pair);
	assert_int_equal(pair_send(&pair.a, 0, 3, 0, 10, IBV_SEND_SIGNALED), ENOMEM);
	assert_int_equal(ibv_start_poll(ex, &none), 0);
	assert_int_equal(pair_send(&pair.a, 0, 3, 0, 10, IBV_SEND_SIGNALED), 0);
	assert_int_equal(pair_send(&pair.a, 0, 4, 0, 10, IBV_SEND_SIGNALED), ENOMEM);
	assert_int_equal(ibv_next_poll(ex), 0);
	assert_int_equal(pair_send(&pair.a, 0, 4, 0, 10, IBV_SEND_SIGNALED), 0);
	pair_drain(&pair);
	/* Completions that arrive meanwhile belong to the same batch. */
	assert_int_equal(ibv_next_poll(ex), 0);
	assert_int_equal(ex->wr_id, 3);
	assert_int_equal(ibv_next_poll(ex), 0);
	assert_int_equal(ex->wr_id, 4);
	ibv_end_poll(ex);
	pair_close(&pair);
}

TEST(reset_removes_completions_of_one_qp)
{
	struct ibv_cq_ex *ex;

	open_ex((struct verbs_pair_conf){.qps = 2});
	ex = to_ex(pair.b.recv_cq);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pair_post_recv(&pair.b, i % 2, i, 0, 16), 0);
	pair_modify_state(pair.b.qp[0], IBV_QPS_ERR);
	pair_modify_state(pair.b.qp[1], IBV_QPS_ERR);
	/* RESET removes the QP's completions, also between those of another QP. */
	pair_modify_state(pair.b.qp[0], IBV_QPS_RESET);
	assert_int_equal(ibv_start_poll(ex, &none), 0);
	assert_int_equal(ex->wr_id, 1);
	assert_int_equal(ex->status, IBV_WC_WR_FLUSH_ERR);
	assert_int_not_equal(ibv_wc_read_vendor_err(ex), 0);
	assert_int_equal(ibv_wc_read_qp_num(ex), pair.b.qp[1]->qp_num);
	assert_int_equal(ibv_next_poll(ex), 0);
	assert_int_equal(ex->wr_id, 3);
	assert_int_equal(ibv_next_poll(ex), ENOENT);
	ibv_end_poll(ex);
	pair_close(&pair);
}

static uint64_t
raw_clock(void)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

	assert_int_equal(ibv_query_rt_values_ex(pair.b.context, &values), 0);
	assert_int_equal(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	assert_int_equal(values.raw_clock.tv_sec, 0);
	return (uint64_t)values.raw_clock.tv_nsec;
}

static uint64_t
wall_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* the two clocks drift apart, and the wall clock may be set */
#define WALL_SLACK UINT64_C(50000000)

/* Checks the time of the completion, which came after the time `wall`. The call reads the two clocks one
 * after the other, and may lose its core in between. */
static void
wall_time_check(struct ibv_cq_ex *ex, uint64_t wall)
{
	uint64_t begin = raw_clock(), stamp, slack;

	stamp = ibv_wc_read_completion_wallclock_ns(ex);
	slack = WALL_SLACK + raw_clock() - begin;
	assert_true(stamp + slack >= wall);
	assert_true(stamp <= wall_clock() + slack);
}

TEST(timestamps_survive_resize)
{
	struct ibv_device_attr_ex device;
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RESERVED};
	struct ibv_cq_ex *ex;

	open_ex((struct verbs_pair_conf){.wc_flags = STAMPS});
	assert_int_equal(ibv_query_device_ex(pair.b.context, NULL, &device), 0);
	assert_int_equal(device.hca_core_clock, 1000000);
	assert_int_equal(device.completion_timestamp_mask, UINT64_MAX);
	assert_int_equal(ibv_query_rt_values_ex(pair.b.context, &values), EOPNOTSUPP);
	ex = to_ex(pair.b.recv_cq);
	for (uint64_t i = 1; i <= 5; i++) {
		uint64_t before = raw_clock(), wall = wall_clock(), stamp;

		message(i);
		assert_int_equal(ibv_start_poll(ex, &none), 0);
		stamp = ibv_wc_read_completion_ts(ex);
		assert_true(stamp >= before);
		assert_true(stamp <= raw_clock());
		wall_time_check(ex, wall);
		ibv_end_poll(ex);
	}
	/* Resizing the CQ keeps the timestamps. */
	message(6);
	message(7);
	{
		uint64_t between = raw_clock();

		message(8);
		assert_int_equal(ibv_resize_cq(pair.b.recv_cq, 64), 0);
		assert_int_equal(pair.b.recv_cq->cqe, 64);
		assert_int_equal(ibv_start_poll(ex, &none), 0);
		assert_true(ibv_wc_read_completion_ts(ex) < between);
		assert_int_equal(ibv_next_poll(ex), 0);
		assert_true(ibv_wc_read_completion_ts(ex) < between);
		assert_int_equal(ibv_next_poll(ex), 0);
		assert_true(ibv_wc_read_completion_ts(ex) >= between);
		ibv_end_poll(ex);
	}
	pair_close(&pair);
}

/* A completion has one wall clock time, and those of a queue do not fall. */
TEST(wall_clock_keeps_the_order)
{
	struct ibv_cq_ex *ex;
	uint64_t last = 0;

	open_ex((struct verbs_pair_conf){.wc_flags = STAMPS});
	ex = to_ex(pair.b.recv_cq);
	for (unsigned round = 0; round < 6; round++) {
		for (uint64_t i = 0; i < 10; i++)
			message(i);
		assert_int_equal(ibv_start_poll(ex, &none), 0);
		do {
			uint64_t wall = ibv_wc_read_completion_wallclock_ns(ex);

			assert_true(wall >= last);
			for (unsigned again = 0; again < 10; again++)
				assert_int_equal(
					ibv_wc_read_completion_wallclock_ns(ex), wall);
			last = wall;
		} while (ibv_next_poll(ex) == 0);
		ibv_end_poll(ex);
	}
	pair_close(&pair);
}

TEST(create_checks_attributes)
{
	static const uint64_t absent[] = {IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_FLOW_TAG,
		IBV_WC_EX_WITH_TM_INFO, UINT64_C(1) << 40};
	struct ibv_cq_init_attr_ex attr = {.cqe = 100, .cq_context = &pair};
	struct ibv_cq_ex *ex;

	open_ex((struct verbs_pair_conf){.qps = 1});
	for (unsigned i = 0; i < sizeof(absent) / sizeof(*absent); i++) {
		attr.wc_flags = absent[i];
		errno = 0;
		assert_null(ibv_create_cq_ex(pair.a.context, &attr));
		assert_int_equal(errno, EOPNOTSUPP);
	}
	attr.wc_flags = 0;
	attr.comp_mask = 1 << 20;
	assert_null(ibv_create_cq_ex(pair.a.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	assert_null(ibv_create_cq_ex(pair.a.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.flags = 0;
	attr.comp_vector = 1;
	assert_null(ibv_create_cq_ex(pair.a.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_vector = 0;
	attr.cqe = 0;
	assert_null(ibv_create_cq_ex(pair.a.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.cqe = 100;
	attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	ex = ibv_create_cq_ex(pair.a.context, &attr);
	assert_non_null(ex);
	assert_int_equal(ex->cqe, 128);
	assert_ptr_equal(ex->cq_context, &pair);
	assert_int_equal(ibv_start_poll(ex, &none), ENOENT);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
	pair_close(&pair);
}
