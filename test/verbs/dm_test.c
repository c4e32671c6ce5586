/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory (ibv_alloc_dm(3)): copies, limits, and WRITE and READ of a peer. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "verbs_pair.h"

#define LEN 8192
#define ACCESS                                                                           \
	(IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |      \
		IBV_ACCESS_REMOTE_READ)

static struct verbs_pair pair;
static struct ibv_dm *dm;   /* of b */
static struct ibv_mr *mine; /* a's memory */

static int
setup(void **state)
{
	struct verbs_pair_conf conf = {.srq_wr = 16,
		.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		.depth = 4};
	struct ibv_alloc_dm_attr attr = {.length = LEN};

	pair_open(&pair, &conf);
	dm = ibv_alloc_dm(pair.b.context, &attr);
	mine = ibv_reg_mr(pair.a.pd, pair.a.mem, 4 * LEN, IBV_ACCESS_LOCAL_WRITE);
	return dm == NULL || mine == NULL;
}

static int
teardown(void **state)
{
	assert_int_equal(ibv_dereg_mr(mine), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	pair_close(&pair);
	return 0;
}

TEST_WITH(copies_are_bounded_and_aligned, setup, teardown)
{
	static const struct {
		uint64_t offset;
		size_t length;
	} bad[] = {{LEN, 4}, {LEN - 4, 8}, {0, LEN + 4}, {UINT64_MAX - 3, 8}, {2, 4},
		{4, 2}};
	uint8_t there[LEN], back[LEN];

	for (unsigned i = 0; i < LEN; i++)
		there[i] = (uint8_t)(i * 7);
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 0, LEN), 0);
	for (unsigned i = 0; i < LEN; i++)
		assert_int_equal(back[i], 0); /* nothing of others is in it */
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, there, LEN), 0);
	assert_int_equal(ibv_memcpy_to_dm(dm, LEN - 4, there, 4), 0);
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 0, LEN), 0);
	assert_memory_equal(back, there, LEN - 4);
	assert_memory_equal(back + LEN - 4, there, 4);
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 400, 8), 0);
	assert_memory_equal(back, there + 400, 8);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(
			ibv_memcpy_to_dm(dm, bad[i].offset, there, bad[i].length),
			EINVAL);
		assert_int_equal(
			ibv_memcpy_from_dm(back, dm, bad[i].offset, bad[i].length),
			EINVAL);
	}
}

TEST_WITH(wrong_allocations_are_refused, setup, teardown)
{
	struct ibv_device_attr_ex device;
	struct ibv_alloc_dm_attr attr = {.length = 0};
	struct ibv_dm *other;

	assert_int_equal(ibv_query_device_ex(pair.b.context, NULL, &device), 0);
	assert_true(device.max_dm_size >= LEN);
	assert_null(ibv_alloc_dm(pair.b.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.length = device.max_dm_size + 1;
	assert_null(ibv_alloc_dm(pair.b.context, &attr));
	assert_int_equal(errno, ENOMEM);
	attr.length = device.max_dm_size;
	attr.comp_mask = 1;
	assert_null(ibv_alloc_dm(pair.b.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = 0;
	attr.log_align_req = 13;
	assert_null(ibv_alloc_dm(pair.b.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.log_align_req = UINT32_MAX;
	assert_null(ibv_alloc_dm(pair.b.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.log_align_req = 12;
	other = ibv_alloc_dm(pair.b.context, &attr);
	assert_non_null(other);
	assert_int_equal(ibv_free_dm(other), 0);
}

TEST_WITH(wrong_regions_are_refused, setup, teardown)
{
	struct ibv_mr *mr;

	assert_null(ibv_reg_dm_mr(pair.b.pd, dm, 0, LEN + 4, ACCESS));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_dm_mr(pair.b.pd, dm, UINT64_MAX, 8, ACCESS));
	assert_null(ibv_reg_dm_mr(pair.a.pd, dm, 0, LEN, ACCESS)); /* another context */
	assert_null(ibv_reg_dm_mr(pair.b.pd, dm, 0, LEN, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EINVAL);
	mr = ibv_reg_dm_mr(pair.b.pd, dm, 4096, LEN - 4096, ACCESS);
	assert_non_null(mr);
	assert_null(mr->addr);
	assert_int_equal(mr->length, LEN - 4096);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	errno = 0;
	assert_int_not_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				     IBV_ACCESS_LOCAL_WRITE),
		0);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void
request(enum ibv_wr_opcode opcode, const struct ibv_mr *to, uint32_t offset,
	enum ibv_wc_status status)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)pair.a.mem, .length = 4096, .lkey = mine->lkey};
	struct ibv_send_wr wr = {.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = offset, .rkey = to->rkey}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, status);
	if (status != IBV_WC_REM_ACCESS_ERR)
		return;
	assert_int_equal(pair_event(&pair, &pair.b).event_type, IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(
		pair_event(&pair, &pair.b).event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
}

TEST_WITH(a_peer_writes_and_reads, setup, teardown)
{
	struct ibv_mr *mr = ibv_reg_dm_mr(pair.b.pd, dm, 1024, LEN - 1024, ACCESS);
	uint8_t seen[4096];

	assert_non_null(mr);
	for (unsigned i = 0; i < 4096; i++)
		pair.a.mem[i] = (uint8_t)(i * 5 + 1);
	request(IBV_WR_RDMA_WRITE, mr, 512, IBV_WC_SUCCESS);
	/* Offset 0 of the region is 1024 of the memory. */
	assert_int_equal(ibv_memcpy_from_dm(seen, dm, 1024 + 512, 4096), 0);
	assert_memory_equal(seen, pair.a.mem, 4096);
	memset(pair.a.mem, 0, 4096);
	request(IBV_WR_RDMA_READ, mr, 512, IBV_WC_SUCCESS);
	assert_memory_equal(seen, pair.a.mem, 4096);
	request(IBV_WR_RDMA_WRITE, mr, LEN - 1024 - 4095, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}
