/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_wr_post(3): memory windows, invalidation and ATOMIC_WRITE. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "verbs_pair.h"

#define OPS                                                                              \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND_WITH_INV |                      \
		IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |                      \
		IBV_QP_EX_WITH_ATOMIC_WRITE)
#define FAR 65536

static struct verbs_pair pair;
static struct ibv_mr *region; /* of b */
static struct ibv_mw *mw;     /* of b */
static struct ibv_qp_ex *a, *b;

static int
setup(void **state)
{
	pair_open(&pair,
		&(struct verbs_pair_conf){
			.ops = OPS, .access = IBV_ACCESS_REMOTE_WRITE, .depth = 4});
	region = ibv_reg_mr(pair.b.pd, pair.b.mem, 131072,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND);
	assert_non_null(region);
	mw = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_2);
	assert_non_null(mw);
	a = ibv_qp_to_qp_ex(pair.a.qp[0]);
	b = ibv_qp_to_qp_ex(pair.b.qp[0]);
	a->wr_flags = b->wr_flags = IBV_SEND_SIGNALED;
	return 0;
}

static int
teardown(void **state)
{
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(region), 0);
	pair_close(&pair);
	return 0;
}

static struct ibv_mw_bind_info
bind_info_full(void)
{
	return (struct ibv_mw_bind_info){.mr = region,
		.addr = (uintptr_t)pair.b.mem + FAR,
		.length = 4096,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
}

static struct ibv_wc
done(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	pair_poll_cq(&pair, cq, &wc, 1);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.wr_id, wr_id);
	return wc;
}

/* b binds the window with its next R_Key, and returns that. */
static uint32_t
window_bind(void)
{
	struct ibv_mw_bind_info bind_info = bind_info_full();
	uint32_t rkey = ibv_inc_rkey(mw->rkey);

	ibv_wr_start(b);
	b->wr_id = 1;
	ibv_wr_bind_mw(b, mw, rkey, &bind_info);
	assert_int_equal(ibv_wr_complete(b), 0);
	assert_int_equal(done(pair.b.send_cq, 1, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);
	mw->rkey = rkey;
	return rkey;
}

static int
write_through(uint32_t rkey)
{
	ibv_wr_start(a);
	a->wr_id = 2;
	ibv_wr_rdma_write(a, rkey, (uintptr_t)pair.b.mem + FAR);
	ibv_wr_set_sge(a, pair.a.mr->lkey, (uintptr_t)pair.a.mem, 100);
	return ibv_wr_complete(a);
}

TEST_WITH(send_with_invalidate, setup, teardown)
{
	uint32_t rkey = window_bind();
	struct ibv_wc wc;

	memset(pair.a.mem, 0x5A, 100);
	assert_int_equal(write_through(rkey), 0);
	done(pair.a.send_cq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(pair.b.mem + FAR, pair.a.mem, 100);
	assert_int_equal(pair_post_recv(&pair.b, 0, 7, 0, 4096), 0);
	ibv_wr_start(a);
	a->wr_id = 3;
	ibv_wr_send_inv(a, rkey);
	ibv_wr_set_inline_data(a, pair.a.mem, 10);
	assert_int_equal(ibv_wr_complete(a), 0);
	done(pair.a.send_cq, 3, IBV_WC_SUCCESS);
	wc = done(pair.b.recv_cq, 7, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, rkey);
	assert_int_equal(wc.byte_len, 10);
	assert_int_equal(write_through(rkey), 0);
	done(pair.a.send_cq, 2, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(pair_event(&pair, &pair.b).event_type, IBV_EVENT_QP_ACCESS_ERR);
}

TEST_WITH(local_invalidate, setup, teardown)
{
	uint32_t rkey = window_bind();

	ibv_wr_start(b);
	b->wr_id = 4;
	ibv_wr_local_inv(b, rkey);
	assert_int_equal(ibv_wr_complete(b), 0);
	assert_int_equal(
		done(pair.b.send_cq, 4, IBV_WC_SUCCESS).opcode, IBV_WC_LOCAL_INV);
	assert_int_equal(write_through(rkey), 0);
	done(pair.a.send_cq, 2, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(pair_event(&pair, &pair.b).event_type, IBV_EVENT_QP_ACCESS_ERR);
}

TEST_WITH(atomic_write_copies_value, setup, teardown)
{
	uint64_t value = UINT64_C(0x1122334455667788);

	ibv_wr_start(a);
	a->wr_id = 5;
	ibv_wr_atomic_write(a, region->rkey, (uintptr_t)pair.b.mem + FAR, &value);
	value = 0; /* the call copied the value */
	assert_int_equal(ibv_wr_complete(a), 0);
	assert_int_equal(
		done(pair.a.send_cq, 5, IBV_WC_SUCCESS).opcode, IBV_WC_ATOMIC_WRITE);
	memcpy(&value, pair.b.mem + FAR, 8);
	assert_int_equal(value, UINT64_C(0x1122334455667788));
	ibv_wr_start(a);
	ibv_wr_atomic_write(a, region->rkey, (uintptr_t)pair.b.mem + FAR + 4, &value);
	assert_int_equal(ibv_wr_complete(a), EINVAL);
}

/* A request without data takes no SGE; one invalid request fails the whole section. */
TEST_WITH(invalid_request_fails_section, setup, teardown)
{
	struct ibv_mw *type1 = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind_info bind_info = bind_info_full();

	assert_non_null(type1);
	ibv_wr_start(b);
	ibv_wr_local_inv(b, mw->rkey);
	ibv_wr_set_sge(b, pair.b.mr->lkey, (uintptr_t)pair.b.mem, 8);
	assert_int_equal(ibv_wr_complete(b), EINVAL);
	ibv_wr_start(b);
	ibv_wr_bind_mw(b, mw, ibv_inc_rkey(mw->rkey), &bind_info);
	ibv_wr_bind_mw(b, type1, ibv_inc_rkey(type1->rkey), &bind_info);
	assert_int_equal(ibv_wr_complete(b), EINVAL);
	ibv_wr_start(b);
	ibv_wr_bind_mw(b, NULL, 0, &bind_info);
	assert_int_equal(ibv_wr_complete(b), EINVAL);
	pair_no_completion(&pair, pair.b.send_cq);
	assert_int_equal(ibv_dealloc_mw(type1), 0);
}

/* IBA 10.6.7.2.2: a bind takes the low 8 bits of the key, the index is the window's. The window
 * shows the key when the post returns. */
TEST_WITH(bind_takes_low_bits_of_key, setup, teardown)
{
	uint32_t first = mw->rkey, key = (first & ~0xFFU) | 0x77;
	struct ibv_send_wr wr = {.wr_id = 8,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {mw, ((first ^ 0x5A5A00) & ~0xFFU) | 0x77, bind_info_full()}};
	struct ibv_mw_bind_info bind_info = bind_info_full();
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(pair.b.qp[0], &wr, &bad), 0);
	assert_int_equal(mw->rkey, key);
	done(pair.b.send_cq, 8, IBV_WC_SUCCESS);
	assert_int_equal(write_through(key), 0);
	done(pair.a.send_cq, 2, IBV_WC_SUCCESS);
	/* By ibv_wr_post(3): an aborted section, and one that fails, show nothing. */
	ibv_wr_start(b);
	ibv_wr_bind_mw(b, mw, 0x11, &bind_info);
	ibv_wr_abort(b);
	ibv_wr_start(b);
	ibv_wr_bind_mw(b, mw, 0x12, &bind_info);
	ibv_wr_bind_mw(b, NULL, 0x12, &bind_info);
	assert_int_equal(ibv_wr_complete(b), EINVAL);
	assert_int_equal(mw->rkey, key);
	ibv_wr_start(b);
	b->wr_id = 9;
	ibv_wr_local_inv(b, key);
	ibv_wr_bind_mw(b, mw, 0x99, &bind_info);
	assert_int_equal(ibv_wr_complete(b), 0);
	assert_int_equal(mw->rkey, (first & ~0xFFU) | 0x99);
	done(pair.b.send_cq, 9, IBV_WC_SUCCESS);
	done(pair.b.send_cq, 9, IBV_WC_SUCCESS);
	assert_int_equal(write_through(mw->rkey), 0);
	done(pair.a.send_cq, 2, IBV_WC_SUCCESS);
}
