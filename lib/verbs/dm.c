/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_alloc_dm(3), ibv_import_dm(3): memory of the device is memory of the process that only the
 * device's calls reach. */
#include <stdlib.h>
#include <string.h>

#include "verbs/context_ops.h"
#include "verbs/forward.h"
#include "verbs/objects.h"
#include "verbs/refusal.h"

#define LOG_ALIGN_MIN 6
#define LOG_ALIGN_MAX 12
#define COPY_ALIGN 4 /* as on adapters, so that programs that are tried here run there */

static bool
dm_holds(const struct dm_core *dm, uint64_t offset, uint64_t length)
{
	return offset <= dm->length && length <= dm->length - offset;
}

static int
dm_copy_check(const struct dm_core *dm, uint64_t offset, size_t length)
{
	return dm_holds(dm, offset, length) && offset % COPY_ALIGN == 0 &&
			       length % COPY_ALIGN == 0 &&
			       !__atomic_load_n(&dm->destroyed, __ATOMIC_RELAXED)
		       ? 0
		       : EINVAL;
}

static int
dm_copy_to(struct ibv_dm *ibv, uint64_t offset, const void *from, size_t length)
{
	const struct dm_core *dm = to_dm(ibv)->core;
	int err = dm_copy_check(dm, offset, length);

	if (err == 0)
		memcpy(dm->bytes + offset, from, length);
	return refusal_note(err, "ibv_memcpy_to_dm",
		"offset and length are multiples of 4, within the memory, which is not "
		"freed");
}

static int
dm_copy_from(void *to, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
	const struct dm_core *dm = to_dm(ibv)->core;
	int err = dm_copy_check(dm, offset, length);

	if (err == 0)
		memcpy(to, dm->bytes + offset, length);
	return refusal_note(err, "ibv_memcpy_from_dm",
		"offset and length are multiples of 4, within the memory, which is not "
		"freed");
}

/* Returns a handle, and takes over its count of users, which goes if there is no memory. */
static struct ibv_dm *
dm_handle_create(struct ibv_context *context, struct dm_core *core)
{
	struct verbs_dm *dm = calloc(1, sizeof(*dm));

	if (dm == NULL) {
		dm_core_put(to_ctx(context)->port, core, false);
		return null_errno(ENOMEM);
	}
	dm->core = core;
	dm->ibv = (struct ibv_dm){.context = context,
		.memcpy_to_dm = dm_copy_to,
		.memcpy_from_dm = dm_copy_from,
		.handle = core->number};
	count_up(&to_ctx(context)->objects);
	return &dm->ibv;
}

static void
dm_handle_free(struct verbs_dm *dm)
{
	struct verbs_ctx *ctx = to_ctx(dm->ibv.context);

	dm_core_put(ctx->port, dm->core, false);
	count_down(&ctx->objects);
	free(dm);
}

struct ibv_dm *
verbs_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct dm_core *core;
	size_t align;

	if (attr->comp_mask != 0 || attr->length == 0 ||
		attr->log_align_req > LOG_ALIGN_MAX)
		return null_errno(refusal_note(EINVAL, "ibv_alloc_dm",
			"length is not 0, comp_mask is 0, log_align_req at most 12"));
	if (attr->length > DM_SIZE_MAX)
		return null_errno(ENOMEM);
	if (to_ctx(context)->port == NULL)
		return null_errno(ENODEV);
	align = (size_t)1 << RTE_MAX(attr->log_align_req, LOG_ALIGN_MIN + 0u);
	core = dm_core_create(to_ctx(context), attr->length, align);
	return core != NULL ? dm_handle_create(context, core) : null_errno(ENOMEM);
}

int
verbs_free_dm(struct ibv_dm *ibv)
{
	struct verbs_dm *dm = to_dm(ibv);
	int err = dm_core_destroy(to_ctx(ibv->context)->port, dm->core);

	if (err == 0)
		dm_handle_free(dm);
	return errno_set(err);
}

EXPORT struct ibv_dm *
ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	struct dm_core *core;
	struct verbs_ctx *ctx;

	if (!context_is_ours(context))
		return forward(NULL, ibv_import_dm, context, dm_handle);
	ctx = to_ctx(context);
	if (ctx->port == NULL)
		return null_errno(ENODEV);
	core = dm_core_get(ctx, dm_handle);
	return core != NULL ? dm_handle_create(context, core) : null_errno(ENOENT);
}

/* Regions that were registered through this handle stay. */
EXPORT void
ibv_unimport_dm(struct ibv_dm *dm)
{
	if (!context_is_ours(dm->context)) {
		forward_void(ibv_unimport_dm, dm);
		return;
	}
	dm_handle_free(to_dm(dm));
}

struct ibv_mr *
verbs_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset, size_t length,
	unsigned access)
{
	struct rocade_port *port = to_ctx(ibv->context)->port;
	struct dm_core *core = to_dm(ibv)->core;
	struct ibv_mr *mr;

	if (access & IBV_ACCESS_ON_DEMAND)
		return null_errno(refusal_note(EOPNOTSUPP, "ibv_reg_dm_mr", NULL));
	if (pd->context != ibv->context || !dm_holds(core, offset, length) ||
		!(access & IBV_ACCESS_ZERO_BASED) || !dm_core_region_add(port, core))
		return null_errno(refusal_note(EINVAL, "ibv_reg_dm_mr",
			"PD and memory have one context, the range is within the memory, "
			"which is not freed, and the access flags have "
			"IBV_ACCESS_ZERO_BASED"));
	mr = mr_create(pd, core->bytes + offset, length, 0, access);
	if (mr == NULL) {
		dm_core_put(port, core, true);
		return NULL;
	}
	mr->addr = NULL;
	to_mr(mr)->dm = core;
	return mr;
}
