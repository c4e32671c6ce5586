/* SPDX-License-Identifier: BSD-3-Clause */
/* Control calls on on-demand regions: registration, ibv_rereg_mr(3), memory windows,
 * ibv_advise_mr(3), capabilities. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/emulated.h"
#include "case.h"
#include "on_demand_fixture.h"

static void
expect_refused(struct ibv_mr *region, int err)
{
	assert_null(region);
	assert_int_equal(errno, err);
	errno = 0;
}

TEST(wrong_registrations_are_refused)
{
	const unsigned on = IBV_ACCESS_ON_DEMAND;
	struct ibv_alloc_dm_attr attr = {.length = PAGE};
	struct ibv_dm *dm;

	begin_with(true);
	dm = ibv_alloc_dm(pair.b.context, &attr);
	expect_refused(ibv_reg_mr(pair.b.pd, NULL, SIZE_MAX, ALL), EINVAL);
	expect_refused(ibv_reg_mr(pair.b.pd, NULL, SIZE_MAX - 1, on), EINVAL);
	expect_refused(ibv_reg_mr(pair.b.pd, NULL, PAGE, on), EINVAL);
	expect_refused(ibv_reg_mr(pair.b.pd, buffer, SIZE_MAX, on), EINVAL);
	expect_refused(ibv_reg_mr(pair.b.pd, buffer, BYTES, on | REMOTE), EINVAL);
	expect_refused(
		ibv_reg_mr(pair.b.pd, NULL, SIZE_MAX, on | IBV_ACCESS_HUGETLB), EINVAL);
	expect_refused(ibv_reg_mr_iova(pair.b.pd, NULL, SIZE_MAX, PAGE, on), EINVAL);
	expect_refused(ibv_reg_dm_mr(pair.b.pd, dm, 0, PAGE, on | IBV_ACCESS_ZERO_BASED),
		EOPNOTSUPP);
	assert_int_equal(ibv_free_dm(dm), 0);
	mr = ibv_reg_mr(pair.b.pd, NULL, 0, on);
	assert_non_null(mr);
	end();
}

/* ---- ibv_rereg_mr(3), memory windows ---- */

static void
rereg(int flags, void *addr, size_t len, int access, int err)
{
	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr, flags, NULL, addr, len, access),
		err == 0 ? 0 : IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, err);
}

TEST(region_becomes_on_demand_and_back)
{
	const int on = ALL | IBV_ACCESS_ON_DEMAND, access = IBV_REREG_MR_CHANGE_ACCESS,
		  place = IBV_REREG_MR_CHANGE_TRANSLATION;

	SKIP_IF_EMULATED();
	begin(ALL);
	unmap(2);
	rereg(access, NULL, 0, ALL, EFAULT);
	rereg(place, buffer, 3 * PAGE, 0, 0); /* still on demand */
	remote(IBV_WR_RDMA_WRITE, at(2, 0), mr->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	rereg(place | access, buffer, 2 * PAGE, ALL, 0);
	assert_true(is_present(buffer + PAGE));
	rereg(place, buffer, 3 * PAGE, 0, EFAULT);
	rereg(access, NULL, 0, on, 0);
	unmap(1);
	remote(IBV_WR_RDMA_WRITE, at(1, 0), mr->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr(pair.b.pd, NULL, SIZE_MAX, on);
	rereg(access, NULL, 0, ALL, EINVAL);
	rereg(access, NULL, 0, on | IBV_ACCESS_HUGETLB, EINVAL);
	rereg(place, NULL, SIZE_MAX, 0, EINVAL);
	rereg(access, NULL, 0, IBV_ACCESS_ON_DEMAND, 0);
	remote(IBV_WR_RDMA_WRITE, at(0, 0), mr->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	rereg(place | access, buffer, PAGE, ALL, 0);
	remote(IBV_WR_RDMA_WRITE, at(0, 0), mr->rkey, 64, IBV_WC_SUCCESS);
	end();
}

static void
window_of_on_demand_memory(struct ibv_mr *region)
{
	struct ibv_mw *mw = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = region,
			.addr = at(1, 0),
			.length = 2 * PAGE,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};

	assert_int_equal(ibv_bind_mw(pair.b.qp[qp], mw, &bind), 0);
	completes(&pair.b, pair.b.send_cq, IBV_WC_SUCCESS);
	memset(pair.a.mem, 0x5A, 64);
	remote(IBV_WR_RDMA_WRITE, at(1, 0), mw->rkey, 64, IBV_WC_SUCCESS);
	assert_int_equal(buffer[PAGE + 63], 0x5A);
	remote(IBV_WR_RDMA_WRITE, at(3, -32), mw->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	unmap(2);
	remote(IBV_WR_RDMA_WRITE, at(2, 0), mw->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	assert_false(is_mapped(buffer + 2 * PAGE));
	map_again(2);
	remote(IBV_WR_RDMA_WRITE, at(2, 0), mw->rkey, 64, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

TEST(windows_are_checked_too)
{
	struct ibv_mr *all;

	begin(ALL | IBV_ACCESS_MW_BIND);
	window_of_on_demand_memory(mr);
	all = ibv_reg_mr(pair.b.pd, NULL, SIZE_MAX,
		ALL | IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND);
	window_of_on_demand_memory(all);
	assert_int_equal(ibv_dereg_mr(all), 0);
	end();
}

/* ---- ibv_advise_mr(3), capabilities ---- */

static int
advise_at(enum ibv_advise_mr_advice advice, uint32_t flags, uint64_t addr, uint32_t len)
{
	struct ibv_sge list[2] = {
		{(uintptr_t)buffer, 0, mr->lkey}, {addr, len, mr->lkey}};

	return ibv_advise_mr(pair.b.pd, advice, flags, list, 2);
}

TEST(prefetch_faults_pages_in)
{
	SKIP_IF_EMULATED();
	begin(ALL);
	assert_int_equal(advise_at(IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
				 IBV_ADVISE_MR_FLAG_FLUSH, at(0, 0), BYTES),
		0);
	assert_false(is_present(buffer));
	assert_int_equal(
		advise_at(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, at(1, -1), PAGE + 1), 0);
	assert_true(is_present(buffer) && is_present(buffer + PAGE));
	assert_false(is_present(buffer + 2 * PAGE));
	assert_int_equal(advise_at(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				 IBV_ADVISE_MR_FLAG_FLUSH, at(4, 0), 2 * PAGE),
		0);
	assert_true(is_present(buffer + 4 * PAGE) && is_present(buffer + 5 * PAGE));
	assert_false(is_present(buffer + 6 * PAGE));
	end();
}

TEST(wrong_advice_is_refused)
{
	const enum ibv_advise_mr_advice read = IBV_ADVISE_MR_ADVICE_PREFETCH,
					write = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
					look = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	struct ibv_pd *pd;
	struct ibv_mw *mw;
	struct ibv_sge list[2];

	SKIP_IF_EMULATED();
	begin(IBV_ACCESS_MW_BIND | IBV_ACCESS_REMOTE_READ);
	pd = ibv_alloc_pd(pair.b.context);
	mw = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_1);
	list[0] = list[1] = (struct ibv_sge){(uintptr_t)buffer, PAGE, mr->lkey};
	assert_int_equal(ibv_advise_mr(pair.b.pd, read, 0, list, 0), EINVAL);
	assert_int_equal(ibv_advise_mr(pair.b.pd, read, 2, list, 1), EINVAL);
	assert_int_equal(ibv_advise_mr(pair.b.pd, 3, 0, list, 1), EOPNOTSUPP);
	assert_int_equal(ibv_advise_mr(pair.b.pd, write, 0, list, 1), EPERM);
	assert_int_equal(ibv_advise_mr(pd, read, 0, list, 1), EPERM);
	assert_int_equal(advise_at(look, 0, at(PAGES, -1), 2), EFAULT);
	assert_int_equal(advise_at(look, 0, at(0, -1), 1), EFAULT);
	list[1].lkey = pair.b.mr->lkey; /* not on demand */
	assert_int_equal(ibv_advise_mr(pair.b.pd, read, 0, list, 2), ENOENT);
	list[1].lkey = mr->lkey + 1;
	assert_int_equal(ibv_advise_mr(pair.b.pd, read, 0, list, 2), ENOENT);
	assert_int_equal(ibv_bind_mw(pair.b.qp[qp], mw,
				 &(struct ibv_mw_bind){.send_flags = IBV_SEND_SIGNALED,
					 .bind_info = {mr, at(0, 0), PAGE,
						 IBV_ACCESS_REMOTE_READ}}),
		0);
	completes(&pair.b, pair.b.send_cq, IBV_WC_SUCCESS);
	list[1].lkey = mw->rkey;
	assert_int_equal(ibv_advise_mr(pair.b.pd, read, 0, list, 2), EINVAL);
	assert_false(is_present(buffer)); /* the first of the list neither */
	unmap(2);
	assert_int_equal(advise_at(read, 0, at(1, 0), 2 * PAGE), EFAULT);
	assert_int_equal(advise_at(look, 0, at(1, 0), 2 * PAGE), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	end();
}

TEST(capabilities_need_the_handler)
{
	const uint32_t datagrams = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
				   IBV_ODP_SUPPORT_SRQ_RECV,
		       rdma = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
			      IBV_ODP_SUPPORT_ATOMIC;
	struct ibv_device_attr_ex attr;

	begin_with(true);
	assert_int_equal(ibv_query_device_ex(pair.b.context, NULL, &attr), 0);
	assert_int_equal(
		attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	assert_int_equal(attr.odp_caps.per_transport_caps.rc_odp_caps,
		datagrams | rdma | 0xc0 /* FLUSH, ATOMIC_WRITE: not in each header */);
	assert_int_equal(attr.odp_caps.per_transport_caps.uc_odp_caps,
		datagrams | IBV_ODP_SUPPORT_WRITE);
	assert_int_equal(attr.odp_caps.per_transport_caps.ud_odp_caps, datagrams);
	assert_int_equal(attr.xrc_odp_caps,
		rdma | IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_SRQ_RECV);
	end();
	begin_with(false);
	assert_int_equal(ibv_query_device_ex(pair.b.context, NULL, &attr), 0);
	assert_int_equal(attr.odp_caps.general_caps, 0);
	assert_int_equal(attr.xrc_odp_caps, 0);
	expect_refused(
		ibv_reg_mr(pair.b.pd, buffer, BYTES, IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
	end();
}
