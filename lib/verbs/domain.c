/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_alloc_td(3), ibv_alloc_parent_domain(3). A parent domain acts as its PD, and in
 * addition determines whether objects created on it take locks. */
#include <stdlib.h>

#include "verbs/context_ops.h"
#include "verbs/objects.h"
#include "verbs/refusal.h"

struct ibv_td *
verbs_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct verbs_td *td;

	if (to_ctx(context)->dev == NULL)
		return null_errno(ENODEV);
	if (attr->comp_mask != 0)
		return null_errno(EINVAL);
	td = alloc_get(&alloc_plain, "verbs_td", sizeof(*td));
	if (td == NULL)
		return null_errno(ENOMEM);
	td->ibv.context = context;
	count_up(&to_ctx(context)->objects);
	return &td->ibv;
}

int
verbs_dealloc_td(struct ibv_td *ibv)
{
	struct verbs_td *td = to_td(ibv);

	/* Pairs with the release in count_down(). */
	if (__atomic_load_n(&td->domains, __ATOMIC_ACQUIRE) != 0)
		return errno_set(EBUSY);
	count_down(&to_ctx(ibv->context)->objects);
	alloc_put(&alloc_plain, td, sizeof(*td));
	return 0;
}

#define DOMAIN_MASKS                                                                     \
	(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

static int
parent_domain_check(
	struct ibv_context *context, const struct ibv_parent_domain_init_attr *attr)
{
	if ((attr->comp_mask & ~(uint32_t)DOMAIN_MASKS) != 0)
		return refusal_note(EOPNOTSUPP, "ibv_alloc_parent_domain", NULL);
	if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0 &&
		(attr->alloc == NULL || attr->free == NULL))
		return EINVAL;
	if (attr->pd == NULL || attr->pd->context != context ||
		to_pd(attr->pd)->base != NULL)
		return EINVAL;
	return attr->td != NULL && attr->td->context != context ? EINVAL : 0;
}

struct ibv_pd *
verbs_alloc_parent_domain(
	struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	struct verbs_pd *pd;
	int err = parent_domain_check(context, attr);

	if (err != 0)
		return null_errno(err);
	pd = calloc(1, sizeof(*pd));
	if (pd == NULL)
		return null_errno(ENOMEM);
	pd->base = to_pd(attr->pd);
	pd->number = pd->base->number;
	pd->ibv.context = context;
	pd->ibv.handle = pd->base->ibv.handle;
	pd->core = pd->base->core;
	pd->users = 1;
	pd_use(pd->base);
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		pd->allocators.alloc = attr->alloc;
		pd->allocators.free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->allocators.pd_context = attr->pd_context;
	if (attr->td != NULL) {
		pd->td = to_td(attr->td);
		count_up(&pd->td->domains);
	}
	return &pd->ibv;
}
