/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3), ibv_import_dm(3) within a process. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "case.h"
#include "verbs_pair.h"

#define BYTES 4096

static struct verbs_pair pair;
static const struct verbs_pair_conf conf = {.unconnected = true, .sig_all = true};
static struct ibv_context *imported;

static int
setup(void **state)
{
	pair_open(&pair, &conf);
	imported = ibv_import_device(dup(pair.a.context->cmd_fd));
	return imported == NULL;
}

static int
teardown(void **state)
{
	assert_int_equal(ibv_close_device(imported), 0);
	pair_close(&pair);
	return 0;
}

TEST_WITH(import_takes_over_the_descriptor, setup, teardown)
{
	int fd = dup(imported->cmd_fd);
	struct ibv_context *again = ibv_import_device(fd);
	struct ibv_device_attr attr;

	assert_non_null(again);
	assert_ptr_not_equal(again, imported);
	assert_ptr_equal(again->device, pair.a.context->device);
	assert_int_equal(again->cmd_fd, fd);
	assert_int_not_equal(again->async_fd, imported->async_fd);
	assert_int_equal(ibv_query_device(again, &attr), 0);
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(ibv_close_device(again), 0);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	/* libibverbs refuses any other descriptor, which stays the caller's. */
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_null(ibv_import_device(fd));
	assert_int_equal(close(fd), 0);
	assert_null(ibv_import_device(-1));
}

/* A request of a QP on the imported PD names the imported region. The handles are given up before
 * the QP is destroyed, as programs do. */
TEST_WITH(imported_pd_and_region_carry_traffic, setup, teardown)
{
	struct ibv_pd *pd = ibv_import_pd(imported, pair.a.pd->handle);
	struct ibv_mr *mr = ibv_import_mr(pd, pair.a.mr->handle);
	struct verbs_side s = pair.a;
	struct ibv_qp *qp;
	struct ibv_wc wc;

	assert_non_null(mr);
	assert_ptr_equal(pd->context, imported);
	assert_int_equal(pd->handle, pair.a.pd->handle);
	assert_null(mr->addr);
	assert_int_equal(mr->length, pair.a.mr->length);
	assert_int_equal(mr->lkey, pair.a.mr->lkey);
	assert_int_equal(mr->rkey, pair.a.mr->rkey);
	s.context = imported;
	s.pd = pd;
	s.mr = mr;
	s.send_cq = s.recv_cq = ibv_create_cq(imported, 16, NULL, NULL, 0);
	assert_non_null(s.send_cq);
	qp = s.qp[0] = pair_qp_create(&pair.conf, &s, 0);
	pair_to_init(qp);
	pair_to_rtr(&pair.conf, qp, &pair.b.gid, pair.b.qp[0]->qp_num);
	pair_to_rts(&pair.conf, qp);
	pair_to_init(pair.b.qp[0]);
	pair_to_rtr(&pair.conf, pair.b.qp[0], &pair.a.gid, qp->qp_num);
	memset(pair.a.mem, 0x3C, 100);
	assert_int_equal(pair_post_recv(&pair.b, 0, 1, 8192, 100), 0);
	assert_int_equal(pair_send(&s, 0, 2, 0, 100, 0), 0);
	pair_poll_cq(&pair, s.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_memory_equal(pair.b.mem + 8192, pair.a.mem, 100);
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	assert_int_equal(
		ibv_close_device(imported), -1); /* the QP keeps the PD's structure */
	assert_int_equal(errno, EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(s.send_cq), 0);
	pair_modify_state(pair.b.qp[0], IBV_QPS_RESET);
}

/* A PD is destroyed through any of its handles, unless one of them has an object. */
TEST_WITH(pd_ends_for_all_handles, setup, teardown)
{
	struct ibv_pd *pd = ibv_alloc_pd(pair.a.context);
	struct ibv_pd *other = ibv_import_pd(imported, pd->handle);
	uint32_t handle = pd->handle;
	struct ibv_mr *mr = ibv_reg_mr(pd, pair.a.mem, BYTES, 0);

	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_pd(other), EBUSY);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr(other, pair.a.mem, BYTES, 0);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	assert_int_equal(ibv_dealloc_pd(pd), EINVAL);
	assert_null(ibv_import_pd(imported, handle));
	assert_int_equal(errno, ENOENT);
	ibv_unimport_pd(pd);
	/* The same in the other order: an import outlives the PD. */
	pd = ibv_alloc_pd(pair.a.context);
	other = ibv_import_pd(imported, pd->handle);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	ibv_unimport_pd(other);
}

TEST_WITH(region_ends_for_all_handles, setup, teardown)
{
	struct ibv_parent_domain_init_attr domain = {0};
	struct ibv_pd *pd = ibv_alloc_pd(pair.a.context), *parent;
	struct ibv_mr *mr = ibv_reg_mr(pd, pair.a.mem, BYTES, IBV_ACCESS_LOCAL_WRITE),
		      *other;
	uint32_t handle;

	domain.pd = pd;
	parent = ibv_alloc_parent_domain(pair.a.context, &domain);
	assert_non_null(parent);
	/* Also of another address, with another key. */
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				 pair.a.mem + BYTES, 2 * BYTES, 0),
		0);
	handle = mr->handle;
	other = ibv_import_mr(parent, handle);
	assert_int_equal(other->length, 2 * BYTES);
	assert_int_equal(other->lkey, mr->lkey);
	assert_int_equal(
		ibv_rereg_mr(other, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_dereg_mr(other), 0);
	assert_int_equal(ibv_dereg_mr(mr), EINVAL);
	assert_null(ibv_import_mr(pd, handle));
	assert_int_equal(errno, ENOENT);
	ibv_unimport_mr(mr);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

#define DM_ACCESS (IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE)

static struct ibv_dm *
dm_new(void)
{
	struct ibv_alloc_dm_attr attr = {.length = BYTES};
	struct ibv_dm *dm = ibv_alloc_dm(pair.a.context, &attr);

	assert_non_null(dm);
	return dm;
}

TEST_WITH(imported_dm_is_the_same_memory, setup, teardown)
{
	struct ibv_dm *dm = dm_new(), *second = dm_new();
	struct ibv_dm *other = ibv_import_dm(imported, dm->handle);
	uint8_t there[BYTES], back[BYTES];

	assert_non_null(other);
	assert_ptr_equal(other->context, imported);
	assert_int_equal(other->handle, dm->handle);
	assert_int_not_equal(other->handle, second->handle);
	memset(there, 0xAB, BYTES);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, there, BYTES), 0);
	assert_int_equal(ibv_memcpy_from_dm(back, other, 0, BYTES), 0);
	assert_memory_equal(there, back, BYTES);
	assert_int_equal(ibv_memcpy_from_dm(back, other, 4, BYTES), EINVAL);
	assert_int_equal(ibv_memcpy_from_dm(back, second, 0, BYTES), 0);
	assert_int_equal(back[0], 0);
	ibv_unimport_dm(other);
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 0, BYTES), 0);
	assert_memory_equal(there, back, BYTES);
	assert_int_equal(ibv_free_dm(second), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* Device memory is freed through any of its handles, unless one of them has a region. */
TEST_WITH(dm_ends_for_all_handles, setup, teardown)
{
	struct ibv_pd *pd = ibv_import_pd(imported, pair.a.pd->handle);
	struct ibv_dm *dm = dm_new(), *other = ibv_import_dm(imported, dm->handle);
	struct ibv_mr *mr = ibv_reg_dm_mr(pd, other, 0, BYTES, DM_ACCESS);
	uint32_t handle = dm->handle, word = 0;

	assert_non_null(mr);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	ibv_unimport_dm(other); /* the region stays */
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	other = ibv_import_dm(imported, handle);
	assert_non_null(other);
	assert_int_equal(ibv_free_dm(other), 0);
	assert_int_equal(ibv_free_dm(dm), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, &word, 4), EINVAL);
	assert_int_equal(ibv_memcpy_from_dm(&word, dm, 0, 4), EINVAL);
	assert_null(ibv_reg_dm_mr(pair.a.pd, dm, 0, BYTES, DM_ACCESS));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_import_dm(imported, handle));
	assert_int_equal(errno, ENOENT);
	ibv_unimport_dm(dm);
	ibv_unimport_pd(pd);
}

/* Any handle of a region may deregister it. */
TEST_WITH(region_of_dm_ends_for_all_handles, setup, teardown)
{
	struct ibv_dm *dm = dm_new();
	struct ibv_mr *mr = ibv_reg_dm_mr(pair.a.pd, dm, 0, BYTES, DM_ACCESS);
	struct ibv_mr *other = ibv_import_mr(pair.a.pd, mr->handle);

	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dereg_mr(other), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	ibv_unimport_mr(mr);
	/* The same with an empty region, in the other order. */
	dm = dm_new();
	mr = ibv_reg_dm_mr(pair.a.pd, dm, BYTES, 0, DM_ACCESS);
	other = ibv_import_mr(pair.a.pd, mr->handle);
	ibv_unimport_mr(mr);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dereg_mr(other), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

TEST_WITH(dms_of_others_are_refused, setup, teardown)
{
	struct ibv_context *separate = ibv_open_device(pair.a.context->device);
	struct ibv_dm *dm = dm_new();

	assert_null(ibv_import_dm(separate, dm->handle));
	assert_int_equal(errno, ENOENT);
	errno = 0;
	assert_null(ibv_import_dm(imported, dm->handle + 1));
	assert_int_equal(errno, ENOENT);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_close_device(separate), 0);
}

/* A handle is valid in its own context only, and that of a region in its own PD. */
TEST_WITH(handles_of_others_are_refused, setup, teardown)
{
	struct ibv_context *separate = ibv_open_device(pair.a.context->device);
	struct ibv_pd *pd = ibv_alloc_pd(separate);
	struct ibv_mw *mw = ibv_alloc_mw(pair.a.pd, IBV_MW_TYPE_2);

	assert_non_null(mw);
	assert_null(ibv_import_pd(imported, pd->handle));
	assert_int_equal(errno, ENOENT);
	assert_null(ibv_import_pd(separate, pair.a.pd->handle));
	assert_int_equal(errno, ENOENT);
	assert_null(ibv_import_pd(imported, 70000));
	assert_int_equal(errno, ENOENT);
	assert_null(ibv_import_mr(pd, pair.a.mr->handle));
	assert_int_equal(errno, ENOENT);
	assert_null(ibv_import_mr(pair.a.pd, mw->rkey));
	assert_int_equal(errno, ENOENT);
	assert_null(ibv_import_mr(pair.a.pd, 0));
	assert_int_equal(errno, ENOENT);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(separate), 0);
}
