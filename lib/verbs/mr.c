/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_reg_mr(3), ibv_import_mr(3). One key serves as lkey and rkey. */
#include <stdlib.h>

#include "verbs/forward.h"
#include "verbs/objects.h"
#include "verbs/refusal.h"

/* ibv_reg_mr(3): all memory of the process, on demand. */
static bool
is_implicit(const void *addr, size_t length)
{
	return addr == NULL && length == SIZE_MAX;
}

/* Checks the rights, as the key table does, before pages are faulted in. */
static int
access_check(const struct dev *dev, unsigned access, const void *addr, size_t length)
{
	if (access & IBV_ACCESS_ON_DEMAND && !on_demand_supported(dev))
		return EOPNOTSUPP;
	/* ibv_reg_mr(3): IBV_ACCESS_HUGETLB is for explicit regions only. */
	if (is_implicit(addr, length) &&
		(access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB)) !=
			IBV_ACCESS_ON_DEMAND)
		return EINVAL;
	return key_access_valid(access) ? 0 : EINVAL;
}

/* On-demand memory is faulted in when it is accessed. */
static int
memory_present(void *addr, size_t length, unsigned access)
{
	if (access & IBV_ACCESS_ON_DEMAND)
		return 0;
	return pages_fault_in(addr, length, (access & IBV_ACCESS_LOCAL_WRITE) != 0);
}

struct ibv_mr *
mr_create(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
	struct dev *dev = to_ctx(pd->context)->dev;
	struct verbs_mr *mr;
	uint32_t key;
	int err = access_check(dev, access, addr, length);

	if (err == 0 && ((uintptr_t)addr + length < (uintptr_t)addr ||
				(is_implicit(addr, length) && iova != 0)))
		err = EINVAL;
	if (err == 0)
		err = memory_present(addr, length, access);
	if (err != 0)
		return null_errno(refusal_note(err, "ibv_reg_mr",
			"the access flags are not valid, or the range wraps around"));
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return null_errno(ENOMEM);
	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	err = -key_alloc(&dev->keys, to_pd(pd)->number, iova, addr, length, access, &key);
	if (err != 0) {
		free(mr);
		return null_errno(err);
	}
	refusal_note(0, "ibv_reg_mr", NULL);
	mr->access = access;
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	mr->ibv.handle = key;
	mr->ibv.lkey = key;
	mr->ibv.rkey = key;
	pd_use(to_pd(pd));
	return &mr->ibv;
}

EXPORT struct ibv_mr *(
	ibv_reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	if (!context_is_ours(pd->context))
		return forward(NULL, ibv_reg_mr, pd, addr, length, access);
	return mr_create(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

EXPORT struct ibv_mr *(ibv_reg_mr_iova)(struct ibv_pd *pd, void *addr, size_t length,
	uint64_t iova, int access)
{
	if (!context_is_ours(pd->context))
		return forward(NULL, ibv_reg_mr_iova, pd, addr, length, iova, access);
	return mr_create(pd, addr, length, iova, (unsigned)access);
}

EXPORT struct ibv_mr *
ibv_reg_mr_iova2(
	struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	if (!context_is_ours(pd->context))
		return forward(NULL, ibv_reg_mr_iova2, pd, addr, length, iova, access);
	return mr_create(pd, addr, length, iova, access);
}

EXPORT int
ibv_dereg_mr(struct ibv_mr *mr)
{
	int err;

	if (!context_is_ours(mr->context))
		return forward(ENOSYS, ibv_dereg_mr, mr);
	/* Returns when no engine copies through the region any more. */
	err = -dev_key_free(to_ctx(mr->context)->dev, mr->lkey);
	if (err != 0)
		return errno_set(err);
	if (to_mr(mr)->dm != NULL)
		dm_core_put(to_ctx(mr->context)->port, to_mr(mr)->dm, true);
	pd_unuse(to_pd(mr->pd));
	free(to_mr(mr));
	return 0;
}

static int
rereg_fail(int err)
{
	errno = err;
	return IBV_REREG_MR_ERR_INPUT; /* the region is unchanged */
}

/* Checks what the flags ask for. All that may fail does so here or in
 * key_change(). */
static int
rereg_check(const struct verbs_mr *mr, int flags, const struct ibv_pd *pd, void *addr,
	size_t length, unsigned access)
{
	bool translation = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
	unsigned was = mr->access;
	int err;

	/* The address of an imported region is not known, that of device memory stays. */
	if (flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 || mr->imported ||
		mr->dm != NULL)
		return EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_PD &&
		(pd == NULL || pd->context != mr->ibv.context))
		return EINVAL;
	if (!(flags & IBV_REREG_MR_CHANGE_ACCESS))
		access = was;
	/* ZERO_BASED alone would change the address at which the region begins. */
	if (!translation && ((access ^ was) & IBV_ACCESS_ZERO_BASED) != 0)
		return EINVAL;
	if (!translation) {
		addr = mr->ibv.addr;
		length = mr->ibv.length;
	} else if (addr == NULL || length == 0 ||
		   (uintptr_t)addr + length < (uintptr_t)addr) {
		return EINVAL;
	}
	err = access_check(to_ctx(mr->ibv.context)->dev, access, addr, length);
	return err != 0 ? err : memory_present(addr, length, access);
}

static void
rereg_apply(struct verbs_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
	unsigned access)
{
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->ibv.addr = addr;
		mr->ibv.length = length;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		pd_use(to_pd(pd));
		pd_unuse(to_pd(mr->ibv.pd));
		mr->ibv.pd = pd;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		mr->access = access;
}

EXPORT int
ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length,
	int access)
{
	struct verbs_mr *mr = to_mr(ibv);
	struct key_change to = {.host = addr, .len = length, .access = (unsigned)access};
	unsigned now;
	int err;

	if (!context_is_ours(ibv->context))
		return forward(IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr, ibv, flags, pd, addr,
			length, access);
	err = rereg_check(mr, flags, pd, addr, length, (unsigned)access);
	if (err != 0)
		return rereg_fail(err);
	now = flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned)access : mr->access;
	to.va = now & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		to.pd = to_pd(pd)->number;
	err = -dev_key_change(to_ctx(ibv->context)->dev, &ibv->lkey, flags, &to);
	if (err != 0)
		return rereg_fail(err);
	ibv->rkey = ibv->handle = ibv->lkey;
	rereg_apply(mr, flags, pd, addr, length, (unsigned)access);
	return 0;
}

/* As the man page says, the address of an imported region is NULL. */
EXPORT struct ibv_mr *
ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct verbs_ctx *ctx;
	struct verbs_mr *mr;
	const uint8_t *host;
	int err;

	if (!context_is_ours(pd->context))
		return forward(NULL, ibv_import_mr, pd, mr_handle);
	ctx = to_ctx(pd->context);
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return null_errno(ENOMEM);
	err = -key_memory(
		&ctx->dev->keys, mr_handle, to_pd(pd)->number, &host, &mr->ibv.length);
	if (err != 0) {
		free(mr);
		return null_errno(err);
	}
	mr->imported = true;
	mr->dm = dm_core_at(ctx->port, host, mr->ibv.length);
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.handle = mr->ibv.lkey = mr->ibv.rkey = mr_handle;
	pd_hold(to_pd(pd));
	return &mr->ibv;
}

EXPORT void
ibv_unimport_mr(struct ibv_mr *mr)
{
	if (!context_is_ours(mr->context)) {
		forward_void(ibv_unimport_mr, mr);
		return;
	}
	if (to_mr(mr)->dm != NULL)
		dm_core_put(to_ctx(mr->context)->port, to_mr(mr)->dm, false);
	pd_release(to_pd(mr->pd));
	free(to_mr(mr));
}
