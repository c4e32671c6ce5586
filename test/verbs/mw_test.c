/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows (ibv_alloc_mw(3), ibv_bind_mw(3)), SEND with invalidate, local
 * invalidate, ATOMIC_WRITE and ibv_rereg_mr(3), used by an application. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "verbs_pair.h"
#include "../lib/emulated.h"

#define ALL_REMOTE                                                                       \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define RIGHTS (ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)
#define FAR 65536
#define LEN 4096

static struct verbs_pair pair;
static struct ibv_mr *region; /* of b */

static int
setup(void **state)
{
	struct verbs_pair_conf conf = {.srq_wr = 16, .access = ALL_REMOTE, .depth = 4};

	pair_open(&pair, &conf);
	region = ibv_reg_mr(pair.b.pd, pair.b.mem, 131072, RIGHTS);
	return region == NULL;
}

static int
teardown(void **state)
{
	assert_int_equal(ibv_dereg_mr(region), 0);
	pair_close(&pair);
	return 0;
}

static struct ibv_mw_bind_info
info(void)
{
	return (struct ibv_mw_bind_info){.mr = region,
		.addr = (uintptr_t)pair.b.mem + FAR,
		.length = LEN,
		.mw_access_flags = ALL_REMOTE};
}

static int
post(struct verbs_side *s, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err;

	wr->send_flags |= IBV_SEND_SIGNALED;
	err = ibv_post_send(s->qp[0], wr, &bad);
	if (err != 0)
		assert_ptr_equal(bad, wr);
	return err;
}

static struct ibv_wc
done(struct verbs_side *s, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	pair_poll_cq(&pair, s->send_cq, &wc, 1);
	assert_int_equal(wc.status, status);
	return wc;
}

/* a's operation through b's memory window completes with this status. */
static void
access_window(uint32_t rkey, enum ibv_wr_opcode opcode, enum ibv_wc_status status)
{
	struct ibv_sge sge = {(uintptr_t)pair.a.mem, 8, pair.a.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 5,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.wr.rdma = {(uintptr_t)pair.b.mem + FAR, rkey}};

	assert_int_equal(post(&pair.a, &wr), 0);
	done(&pair.a, status);
	if (status != IBV_WC_REM_ACCESS_ERR)
		return;
	assert_int_equal(pair_event(&pair, &pair.b).event_type, IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(
		pair_event(&pair, &pair.b).event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
}

static void
reconnect(void)
{
	pair_modify_state(pair.a.qp[0], IBV_QPS_RESET);
	pair_modify_state(pair.b.qp[0], IBV_QPS_RESET);
	pair_connect(&pair, 0);
}

static int
post_bind(struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *bind)
{
	struct ibv_send_wr wr = {.wr_id = 9, .opcode = IBV_WR_BIND_MW};

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = *bind;
	return post(&pair.b, &wr);
}

/* ---- Memory windows ---- */

TEST_WITH(window_capabilities, setup, teardown)
{
	const unsigned flags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
			       IBV_DEVICE_MEM_MGT_EXTENSIONS;
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(pair.a.context, &attr), 0);
	assert_int_equal(attr.device_cap_flags & flags, flags);
	assert_int_equal(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A, 0);
	assert_true(attr.max_mw > 0);
	errno = 0;
	assert_null(ibv_alloc_mw(pair.a.pd, (enum ibv_mw_type)3));
	assert_int_equal(errno, EINVAL);
}

TEST_WITH(type1_window_lifecycle, setup, teardown)
{
	struct ibv_mw *mw = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.wr_id = 7, .send_flags = IBV_SEND_SIGNALED, .bind_info = info()};

	/* Programs pass the rights of the region. */
	bind.bind_info.mw_access_flags |= IBV_ACCESS_LOCAL_WRITE;
	uint32_t first;
	struct ibv_wc wc;

	assert_non_null(mw);
	assert_int_equal(mw->type, IBV_MW_TYPE_1);
	assert_ptr_equal(mw->pd, pair.b.pd);
	assert_int_equal(ibv_dealloc_pd(pair.b.pd), EBUSY);
	first = mw->rkey;
	assert_int_equal(ibv_bind_mw(pair.b.qp[0], mw, &bind), 0);
	assert_int_equal(mw->rkey, ibv_inc_rkey(first));
	wc = done(&pair.b, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
	assert_int_equal(wc.wr_id, 7);
	memset(pair.a.mem, 0x3C, 8);
	access_window(mw->rkey, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
	assert_int_equal(pair.b.mem[FAR + 7], 0x3C);
	assert_int_equal(ibv_dereg_mr(region), EBUSY);
	access_window(first, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR);
	reconnect();
	access_window(mw->rkey, IBV_WR_RDMA_READ,
		IBV_WC_SUCCESS); /* it survives the QP's RESET */
	/* A bind of length 0 unbinds. */
	bind.bind_info = (struct ibv_mw_bind_info){.mr = NULL};
	assert_int_equal(ibv_bind_mw(pair.b.qp[0], mw, &bind), 0);
	done(&pair.b, IBV_WC_SUCCESS);
	access_window(mw->rkey, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR);
	reconnect();
	/* Deallocated while bound. */
	bind.bind_info = info();
	assert_int_equal(ibv_bind_mw(pair.b.qp[0], mw, &bind), 0);
	done(&pair.b, IBV_WC_SUCCESS);
	first = mw->rkey;
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	access_window(first, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR);
}

TEST_WITH(invalid_binds_are_refused, setup, teardown)
{
	struct ibv_mw *mw = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_1);
	struct ibv_mw *mw2 = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_2);
	struct ibv_pd *pd = ibv_alloc_pd(pair.b.context);
	struct ibv_mr *mr = ibv_reg_mr(pd, pair.b.mem, 4096, RIGHTS);
	struct ibv_mw_bind bind = {.bind_info = info()};
	uint32_t rkey = mw->rkey;

	assert_int_equal(ibv_bind_mw(pair.b.qp[0], mw2, &bind), EINVAL);
	bind.bind_info.mr = mr;
	assert_int_equal(ibv_bind_mw(pair.b.qp[0], mw, &bind), EPERM);
	bind.bind_info = info();
	bind.bind_info.mw_access_flags |= IBV_ACCESS_MW_BIND;
	assert_int_equal(ibv_bind_mw(pair.b.qp[0], mw, &bind), EINVAL);
	bind.bind_info = info();
	bind.send_flags = IBV_SEND_INLINE;
	assert_int_equal(ibv_bind_mw(pair.b.qp[0], mw, &bind), EINVAL);
	assert_int_equal(mw->rkey, rkey);
	/* Refused binds: a type 1 window, no window, a right that no window has. */
	assert_int_equal(post_bind(mw, rkey, &bind.bind_info), EINVAL);
	assert_int_equal(post_bind(NULL, rkey, &bind.bind_info), EINVAL);
	rkey = mw2->rkey;
	bind.bind_info.mw_access_flags |= IBV_ACCESS_MW_BIND;
	assert_int_equal(post_bind(mw2, rkey + 1, &bind.bind_info), EINVAL);
	assert_int_equal(mw2->rkey, rkey);
	/* Errors that only the execution of the request finds: a region of another PD
	 * (C10-72), a range, a right. */
	bind.bind_info = info();
	bind.bind_info.mr = mr;
	bind.bind_info.addr = (uintptr_t)pair.b.mem;
	assert_int_equal(post_bind(mw2, mw2->rkey, &bind.bind_info), 0);
	done(&pair.b, IBV_WC_MW_BIND_ERR);
	reconnect();
	bind.bind_info = info();
	bind.bind_info.length = 1 << 20;
	bind.send_flags = 0;
	assert_int_equal(ibv_bind_mw(pair.b.qp[0], mw, &bind), 0);
	assert_int_equal(done(&pair.b, IBV_WC_MW_BIND_ERR).vendor_err != 0, 1);
	reconnect();
	bind.bind_info = info();
	bind.bind_info.mr = pair.b.mr; /* not IBV_ACCESS_MW_BIND */
	assert_int_equal(ibv_bind_mw(pair.b.qp[0], mw, &bind), 0);
	done(&pair.b, IBV_WC_MW_BIND_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dealloc_mw(mw2), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST_WITH(type2_window_lifecycle, setup, teardown)
{
	struct ibv_mw *mw = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info bind = info();
	struct ibv_send_wr inv = {.opcode = IBV_WR_LOCAL_INV};

	inv.invalidate_rkey = ibv_inc_rkey(mw->rkey);
	assert_int_equal(post_bind(mw, inv.invalidate_rkey, &bind), 0);
	assert_int_equal(done(&pair.b, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);
	access_window(inv.invalidate_rkey, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
	access_window(inv.invalidate_rkey, IBV_WR_ATOMIC_WRITE, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(region), EBUSY);
	assert_int_equal(post(&pair.b, &inv), 0);
	assert_int_equal(done(&pair.b, IBV_WC_SUCCESS).opcode, IBV_WC_LOCAL_INV);
	access_window(inv.invalidate_rkey, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR);
	reconnect();
	/* The end of the connection removes the binding. */
	assert_int_equal(post_bind(mw, inv.invalidate_rkey, &bind), 0);
	done(&pair.b, IBV_WC_SUCCESS);
	access_window(inv.invalidate_rkey, IBV_WR_RDMA_READ, IBV_WC_SUCCESS);
	reconnect();
	access_window(inv.invalidate_rkey, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR);
	reconnect();
	assert_int_equal(post(&pair.b, &inv), 0);
	done(&pair.b, IBV_WC_MW_BIND_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

TEST_WITH(send_with_invalidate, setup, teardown)
{
	struct ibv_mw *mw = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info bind = info();
	struct ibv_sge sge = {(uintptr_t)pair.a.mem, 8, pair.a.mr->lkey};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND_WITH_INV, .sg_list = &sge, .num_sge = 1};
	struct ibv_wc wc;

	wr.invalidate_rkey = mw->rkey;
	assert_int_equal(post_bind(mw, mw->rkey, &bind), 0);
	done(&pair.b, IBV_WC_SUCCESS);
	assert_int_equal(pair_post_srq(&pair.b, 3, 0, 64), 0);
	assert_int_equal(post(&pair.a, &wr), 0);
	assert_int_equal(done(&pair.a, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, mw->rkey);
	access_window(mw->rkey, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

TEST_WITH(test_atomic_write_refused, setup, teardown)
{
	struct ibv_sge sge = {(uintptr_t)pair.a.mem, 8, pair.a.mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {(uintptr_t)pair.b.mem + FAR, region->rkey}};

	sge.length = 4;
	assert_int_equal(post(&pair.a, &wr), EINVAL);
	sge.length = 8;
	wr.wr.rdma.remote_addr += 4;
	assert_int_equal(post(&pair.a, &wr), EINVAL);
	wr.wr.rdma.remote_addr += 4;
	wr.send_flags = IBV_SEND_INLINE;
	memset(pair.a.mem, 0x61, 8);
	assert_int_equal(post(&pair.a, &wr), 0);
	assert_int_equal(done(&pair.a, IBV_WC_SUCCESS).opcode, IBV_WC_ATOMIC_WRITE);
	assert_int_equal(pair.b.mem[FAR + 15], 0x61);
}

/* ---- ibv_wr_post(3) ---- */

static int
setup_builders(void **state)
{
	struct verbs_pair_conf conf = {.srq_wr = 16,
		.access = ALL_REMOTE,
		.depth = 4,
		.ops = IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_LOCAL_INV |
		       IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_ATOMIC_WRITE};

	pair_open(&pair, &conf);
	region = ibv_reg_mr(pair.b.pd, pair.b.mem, 131072, RIGHTS);
	return region == NULL;
}

static struct ibv_qp_ex *
builder(struct verbs_side *s)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(s->qp[0]);

	assert_non_null(ex);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	return ex;
}

TEST_WITH(sections_bind_and_invalidate, setup_builders, teardown)
{
	struct ibv_mw *mw = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info bind = info();
	const uint8_t data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct ibv_qp_ex *ex;
	struct ibv_wc wc[3];

	/* Bind, invalidate and bind again in one section. An invalid bind makes the whole
	 * section fail. */
	ex = builder(&pair.b);
	ibv_wr_bind_mw(ex, mw, mw->rkey, &bind);
	ibv_wr_local_inv(ex, mw->rkey);
	ibv_wr_bind_mw(ex, mw, mw->rkey, &bind);
	assert_int_equal(ibv_wr_complete(ex), 0);
	pair_poll_cq(&pair, pair.b.send_cq, wc, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		assert_int_equal(
			wc[i].opcode, i == 1 ? IBV_WC_LOCAL_INV : IBV_WC_BIND_MW);
	}
	ex = builder(&pair.b);
	ibv_wr_local_inv(ex, mw->rkey);
	ibv_wr_bind_mw(ex, NULL, mw->rkey, &bind);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	/* The peer writes through the window and invalidates it. */
	assert_int_equal(pair_post_srq(&pair.b, 3, 0, 64), 0);
	ex = builder(&pair.a);
	ibv_wr_atomic_write(ex, mw->rkey, (uintptr_t)pair.b.mem + FAR, data);
	ibv_wr_send_inv(ex, mw->rkey);
	ibv_wr_set_sge(ex, pair.a.mr->lkey, (uintptr_t)pair.a.mem, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	pair_poll_cq(&pair, pair.a.send_cq, wc, 2);
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	assert_int_equal(wc[0].opcode, IBV_WC_ATOMIC_WRITE);
	assert_int_equal(wc[1].status, IBV_WC_SUCCESS);
	assert_memory_equal(pair.b.mem + FAR, data, 8);
	pair_poll_cq(&pair, pair.b.recv_cq, wc, 1);
	assert_int_equal(wc[0].wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc[0].invalidated_rkey, mw->rkey);
	access_window(mw->rkey, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* ---- ibv_rereg_mr() ---- */

static void
rereg_refused(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t len,
	int access, int err)
{
	struct ibv_mr before = *mr;

	errno = 0;
	assert_int_equal(
		ibv_rereg_mr(mr, flags, pd, addr, len, access), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, err);
	assert_memory_equal(mr, &before, sizeof(before));
}

TEST_WITH(rereg_access_memory_and_pd, setup, teardown)
{
	struct ibv_mr *mr = ibv_reg_mr(pair.b.pd, pair.b.mem + FAR, LEN, RIGHTS);
	struct ibv_pd *pd = ibv_alloc_pd(pair.b.context);
	uint32_t first = mr->rkey, second;

	/* A change of access keeps the key. */
	access_window(first, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				 IBV_ACCESS_REMOTE_READ),
		0);
	assert_int_equal(mr->rkey, first);
	access_window(first, IBV_WR_RDMA_READ, IBV_WC_SUCCESS);
	access_window(first, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR);
	reconnect();
	/* A change of memory gives a new key; the old one is invalid. */
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				 pair.b.mem + FAR - 4096, 4096 + 8, 0),
		0);
	second = mr->rkey;
	assert_int_equal(mr->lkey, second);
	assert_int_not_equal(second, first);
	assert_ptr_equal(mr->addr, pair.b.mem + FAR - 4096);
	assert_int_equal(mr->length, 4096 + 8);
	access_window(second, IBV_WR_RDMA_READ, IBV_WC_SUCCESS);
	access_window(first, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR);
	reconnect();
	/* A change of PD: b's QP loses access. A change of everything gives it back. */
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	assert_ptr_equal(mr->pd, pd);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	access_window(mr->rkey, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR);
	reconnect();
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_FLAGS_SUPPORTED, pair.b.pd,
				 pair.b.mem + FAR, LEN, RIGHTS),
		0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	access_window(mr->rkey, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

TEST_WITH(invalid_rereg_changes_nothing, setup, teardown)
{
	struct ibv_mr *mr = ibv_reg_mr(pair.b.pd, pair.b.mem + FAR, LEN, RIGHTS);
	struct ibv_mw *mw = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info bind = info();
	const int translation = IBV_REREG_MR_CHANGE_TRANSLATION;
	const int access = IBV_REREG_MR_CHANGE_ACCESS;

	rereg_refused(mr, 0, NULL, NULL, 0, 0, EINVAL);
	rereg_refused(mr, 8, NULL, NULL, 0, 0, EINVAL);
	rereg_refused(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0, EINVAL);
	rereg_refused(mr, IBV_REREG_MR_CHANGE_PD, pair.a.pd, NULL, 0, 0, EINVAL);
	rereg_refused(mr, translation, NULL, NULL, 8, 0, EINVAL);
	rereg_refused(mr, translation, NULL, pair.b.mem, 0, 0, EINVAL);
	rereg_refused(mr, translation, NULL, pair.b.mem, SIZE_MAX, 0, EINVAL);
	if (!emulated()) /* qemu-user ignores the madvise() that finds the memory missing */
		rereg_refused(mr, translation, NULL, (void *)4096, 8, 0, EFAULT);
	rereg_refused(mr, access, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	rereg_refused(mr, access, NULL, NULL, 0, 1 << 30, EINVAL);
	rereg_refused(mr, access, NULL, NULL, 0, IBV_ACCESS_ZERO_BASED, EINVAL);
	rereg_refused(mr, access, NULL, NULL, 0, IBV_ACCESS_ON_DEMAND, EOPNOTSUPP);
	bind.mr = mr;
	assert_int_equal(post_bind(mw, mw->rkey, &bind), 0);
	done(&pair.b, IBV_WC_SUCCESS);
	rereg_refused(mr, access, NULL, NULL, 0, RIGHTS, EBUSY);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	access_window(mr->rkey, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}
