/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_alloc_pd(3). */
#include <stdlib.h>

#include "verbs/forward.h"
#include "verbs/objects.h"

/* Allocates a number that no live PD of the device has: the next one after the last
 * number allocated, so that a stale key meets another PD as late as possible. Returns
 * VERBS_MAX_PD if all are in use. */
static uint32_t
pd_number_alloc(struct rocade_port *port)
{
	uint32_t found = VERBS_MAX_PD;

	pthread_mutex_lock(&port->lock);
	for (uint32_t i = 0; i < VERBS_MAX_PD && found == VERBS_MAX_PD; i++) {
		uint32_t n = (port->dev->next_pd + i) % VERBS_MAX_PD;

		if ((port->pd_used[n / 64] & UINT64_C(1) << n % 64) == 0)
			found = n;
	}
	if (found != VERBS_MAX_PD) {
		port->pd_used[found / 64] |= UINT64_C(1) << found % 64;
		port->dev->next_pd = found + 1;
	}
	pthread_mutex_unlock(&port->lock);
	return found;
}

static void
pd_number_free(struct rocade_port *port, uint32_t n)
{
	pthread_mutex_lock(&port->lock);
	port->pd_used[n / 64] &= ~(UINT64_C(1) << n % 64);
	pthread_mutex_unlock(&port->lock);
}

EXPORT struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct verbs_ctx *ctx;
	struct verbs_pd *pd;

	if (!context_is_ours(context))
		return forward(NULL, ibv_alloc_pd, context);
	ctx = to_ctx(context);
	if (ctx->port == NULL)
		return null_errno(ENODEV);
	pd = calloc(1, sizeof(*pd));
	if (pd == NULL)
		return null_errno(ENOMEM);
	pd->number = pd_number_alloc(ctx->port);
	if (pd->number == VERBS_MAX_PD) {
		free(pd);
		return null_errno(ENOMEM);
	}
	pd->ibv.context = context;
	pd->ibv.handle = pd->number;
	count_up(&ctx->objects);
	return &pd->ibv;
}

EXPORT int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct verbs_ctx *ctx;

	if (!context_is_ours(pd->context))
		return forward(ENOSYS, ibv_dealloc_pd, pd);
	ctx = to_ctx(pd->context);
	/* Pairs with the release in count_down(). */
	if (__atomic_load_n(&to_pd(pd)->objects, __ATOMIC_ACQUIRE) != 0)
		return EBUSY;
	if (to_pd(pd)->base != NULL) {
		parent_domain_free(to_pd(pd));
		return 0;
	}
	pd_number_free(ctx->port, to_pd(pd)->number);
	free(to_pd(pd));
	count_down(&ctx->objects);
	return 0;
}
