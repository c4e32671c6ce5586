/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_alloc_dm(3): memory of the device is memory of the process that only the device's calls
 * reach. */
#include <stdlib.h>
#include <string.h>

#include "verbs/context_ops.h"
#include "verbs/objects.h"
#include "verbs/refusal.h"

#define LOG_ALIGN_MIN 6
#define LOG_ALIGN_MAX 12
#define COPY_ALIGN 4 /* as on adapters, so that programs that are tried here run there */

static bool
dm_holds(const struct verbs_dm *dm, uint64_t offset, uint64_t length)
{
	return offset <= dm->length && length <= dm->length - offset;
}

static int
dm_copy_check(const struct verbs_dm *dm, uint64_t offset, size_t length)
{
	return dm_holds(dm, offset, length) && offset % COPY_ALIGN == 0 &&
			       length % COPY_ALIGN == 0
		       ? 0
		       : EINVAL;
}

static int
dm_copy_to(struct ibv_dm *ibv, uint64_t offset, const void *from, size_t length)
{
	struct verbs_dm *dm = to_dm(ibv);
	int err = dm_copy_check(dm, offset, length);

	if (err == 0)
		memcpy(dm->bytes + offset, from, length);
	return refusal_note(err, "ibv_memcpy_to_dm",
		"offset and length are multiples of 4, within the memory");
}

static int
dm_copy_from(void *to, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
	const struct verbs_dm *dm = to_dm(ibv);
	int err = dm_copy_check(dm, offset, length);

	if (err == 0)
		memcpy(to, dm->bytes + offset, length);
	return refusal_note(err, "ibv_memcpy_from_dm",
		"offset and length are multiples of 4, within the memory");
}

struct ibv_dm *
verbs_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct verbs_dm *dm;
	size_t align;

	if (attr->comp_mask != 0 || attr->length == 0 ||
		attr->log_align_req > LOG_ALIGN_MAX)
		return null_errno(refusal_note(EINVAL, "ibv_alloc_dm",
			"length is not 0, comp_mask is 0, log_align_req at most 12"));
	if (attr->length > DM_SIZE_MAX)
		return null_errno(ENOMEM);
	align = (size_t)1 << RTE_MAX(attr->log_align_req, LOG_ALIGN_MIN + 0u);
	dm = calloc(1, sizeof(*dm));
	if (dm == NULL)
		return null_errno(ENOMEM);
	dm->bytes = aligned_alloc(align, RTE_ALIGN_CEIL(attr->length, align));
	if (dm->bytes == NULL) {
		free(dm);
		return null_errno(ENOMEM);
	}
	memset(dm->bytes, 0, attr->length);
	dm->length = attr->length;
	dm->ibv = (struct ibv_dm){.context = context,
		.memcpy_to_dm = dm_copy_to,
		.memcpy_from_dm = dm_copy_from};
	count_up(&to_ctx(context)->objects);
	return &dm->ibv;
}

int
verbs_free_dm(struct ibv_dm *ibv)
{
	struct verbs_dm *dm = to_dm(ibv);

	/* Pairs with the release in count_down(). */
	if (__atomic_load_n(&dm->regions, __ATOMIC_ACQUIRE) != 0)
		return EBUSY;
	count_down(&to_ctx(ibv->context)->objects);
	free(dm->bytes);
	free(dm);
	return 0;
}

struct ibv_mr *
verbs_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset, size_t length,
	unsigned access)
{
	struct verbs_dm *dm = to_dm(ibv);
	struct ibv_mr *mr;

	if (pd->context != ibv->context || !dm_holds(dm, offset, length) ||
		!(access & IBV_ACCESS_ZERO_BASED))
		return null_errno(refusal_note(EINVAL, "ibv_reg_dm_mr",
			"PD and memory have one context, the range is within the memory, and "
			"the access flags have IBV_ACCESS_ZERO_BASED"));
	mr = mr_create(pd, dm->bytes + offset, length, 0, access);
	if (mr == NULL)
		return NULL;
	mr->addr = NULL;
	to_mr(mr)->dm = dm;
	count_up(&dm->regions);
	return mr;
}
