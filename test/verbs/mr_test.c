/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and memory regions, as ibv_alloc_pd(3) and ibv_reg_mr(3) specify. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api_fixture.h"
#include "../lib/emulated.h"
#include "case.h"

TEST_WITH(pd_in_use_is_ebusy, api_setup, api_teardown)
{
	struct ibv_pd *pd = ibv_alloc_pd(pair.a.context);
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *srq;

	assert_non_null(pd);
	srq = ibv_create_srq(pd, &attr);
	assert_non_null(srq);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* ENOMEM past the device's limit; afterwards all PDs can be allocated again. */
TEST_WITH(pd_limit, api_setup, api_teardown)
{
	struct ibv_device_attr attr;
	struct ibv_pd **pds;
	int n = 0;

	assert_int_equal(ibv_query_device(pair.a.context, &attr), 0);
	pds = calloc((size_t)attr.max_pd, sizeof(pds[0]));
	assert_non_null(pds);
	for (;;) {
		struct ibv_pd *pd = ibv_alloc_pd(pair.a.context);

		if (pd == NULL)
			break;
		assert_true(n < attr.max_pd);
		pds[n++] = pd;
	}
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(n, attr.max_pd - 1); /* the pair has one */
	for (int i = 0; i < n; i++)
		assert_int_equal(ibv_dealloc_pd(pds[i]), 0);
	free(pds);
}

static struct ibv_mr *
mr_register(void *addr, size_t len, int access)
{
	errno = 0;
	return ibv_reg_mr(pair.a.pd, addr, len, access);
}

TEST_WITH(regions_have_attributes_and_own_keys, api_setup, api_teardown)
{
	static uint8_t mem[8192];
	struct ibv_mr *mr, *other;

	mr = mr_register(
		mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(mr);
	assert_ptr_equal(mr->addr, mem);
	assert_int_equal(mr->length, sizeof(mem));
	assert_ptr_equal(mr->pd, pair.a.pd);
	assert_ptr_equal(mr->context, pair.a.context);
	assert_true(mr->lkey != 0);
	/* A region may overlap another and has its own key. */
	other = mr_register(mem + 1, 1, 0);
	assert_non_null(other);
	assert_int_not_equal(mr->lkey, other->lkey);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = mr_register(mem, sizeof(mem), 0);
	assert_int_not_equal(mr->lkey, other->lkey);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dereg_mr(other), 0);
	mr = mr_register(mem, 0, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	/* Hints have no effect. */
	mr = mr_register(mem, 16, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr_iova(pair.a.pd, mem, 16, 0x1000, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

TEST_WITH(test_mr_refused, api_setup, api_teardown)
{
	static uint8_t mem[16];

	assert_null(mr_register(mem, sizeof(mem), IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(errno, EINVAL);
	assert_null(mr_register(mem, sizeof(mem), IBV_ACCESS_REMOTE_ATOMIC));
	assert_int_equal(errno, EINVAL);
	assert_null(mr_register(mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE | 1 << 10));
	assert_int_equal(errno, EINVAL);
	assert_null(mr_register(mem, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EINVAL);
	assert_null(mr_register(mem, sizeof(mem), IBV_ACCESS_ON_DEMAND));
	assert_int_equal(errno, EOPNOTSUPP);
}

/* Registering unmapped or write-protected memory fails with EFAULT, without a signal. */
TEST_WITH(inaccessible_memory_is_efault, api_setup, api_teardown)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *mem = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char present[4];
	struct ibv_mr *mr;

	SKIP_IF_EMULATED();
	assert_true(mem != MAP_FAILED);
	/* Registration faults the pages in. */
	mr = mr_register(mem + page - 1, page + 2, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(mincore(mem, 4 * page, present), 0);
	assert_true(present[0] & present[1] & present[2] & 1);
	assert_int_equal(ibv_dereg_mr(mr), 0);

	assert_int_equal(mprotect(mem + 2 * page, page, PROT_READ), 0);
	assert_null(mr_register(mem, 4 * page, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	mr = mr_register(mem, 4 * page, 0); /* read access is allowed */
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(mprotect(mem + 2 * page, page, PROT_NONE), 0);
	assert_null(mr_register(mem, 4 * page, 0));
	assert_int_equal(errno, EFAULT);
	assert_int_equal(munmap(mem + 2 * page, page), 0);
	assert_null(mr_register(mem, 4 * page, 0));
	assert_int_equal(errno, EFAULT);
	assert_null(mr_register(mem, 4 * page, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	munmap(mem, 2 * page);
	munmap(mem + 3 * page, page);
}
