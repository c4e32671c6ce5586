/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_alloc_pd(3), ibv_import_pd(3). */
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

/* Returns a handle of the PD, and takes over its count of handles. */
static struct ibv_pd *
pd_handle_create(struct ibv_context *context, struct pd_core *core)
{
	struct verbs_pd *pd = calloc(1, sizeof(*pd));

	if (pd == NULL)
		return NULL;
	pd->number = core->number;
	pd->core = core;
	pd->users = 1;
	pd->ibv.context = context;
	pd->ibv.handle = core->number;
	count_up(&to_ctx(context)->objects);
	return &pd->ibv;
}

static struct pd_core *
pd_core_create(struct verbs_ctx *ctx)
{
	struct pd_core *core = calloc(1, sizeof(*core));

	if (core == NULL)
		return NULL;
	core->file = ctx->file;
	core->handles = 1;
	core->number = pd_number_alloc(ctx->port);
	if (core->number == VERBS_MAX_PD) {
		free(core);
		return NULL;
	}
	pthread_mutex_lock(&ctx->port->lock);
	LIST_INSERT_HEAD(&ctx->port->pds, core, link);
	pthread_mutex_unlock(&ctx->port->lock);
	return core;
}

/* The number is free again when the last handle has gone: the others must not meet the next PD
 * that gets it. */
static void
pd_core_put(struct rocade_port *port, struct pd_core *core)
{
	bool last;

	pthread_mutex_lock(&port->lock);
	last = --core->handles == 0;
	if (last) {
		port->pd_used[core->number / 64] &= ~(UINT64_C(1) << core->number % 64);
		LIST_REMOVE(core, link);
	}
	pthread_mutex_unlock(&port->lock);
	if (last)
		free(core);
}

static struct pd_core *
pd_core_get(struct verbs_ctx *ctx, uint32_t number)
{
	struct pd_core *core;

	pthread_mutex_lock(&ctx->port->lock);
	LIST_FOREACH(core, &ctx->port->pds, link)
	{
		if (core->number == number && core->file == ctx->file && !core->destroyed)
			break;
	}
	if (core != NULL)
		core->handles++;
	pthread_mutex_unlock(&ctx->port->lock);
	return core;
}

void
pd_hold(struct verbs_pd *pd)
{
	count_up(&pd->users);
}

void
pd_use(struct verbs_pd *pd)
{
	pd_hold(pd);
	count_up(&pd->core->objects);
}

static void
pd_plain_free(struct verbs_pd *pd)
{
	struct verbs_ctx *ctx = to_ctx(pd->ibv.context);

	pd_core_put(ctx->port, pd->core);
	count_down(&ctx->objects);
	free(pd);
}

void
pd_release(struct verbs_pd *pd)
{
	struct verbs_pd *base = pd->base;

	/* The last one frees what the others have written. Pairs with the same in
	 * pd_release(), and with the acquire in ibv_dealloc_pd(). */
	if (__atomic_sub_fetch(&pd->users, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	if (base == NULL) {
		pd_plain_free(pd);
		return;
	}
	if (pd->td != NULL)
		count_down(&pd->td->domains);
	free(pd);
	pd_unuse(base);
}

void
pd_unuse(struct verbs_pd *pd)
{
	count_down(&pd->core->objects);
	pd_release(pd);
}

EXPORT struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct pd_core *core;
	struct verbs_ctx *ctx;
	struct ibv_pd *pd;

	if (!context_is_ours(context))
		return forward(NULL, ibv_alloc_pd, context);
	ctx = to_ctx(context);
	if (ctx->port == NULL)
		return null_errno(ENODEV);
	core = pd_core_create(ctx);
	if (core == NULL)
		return null_errno(ENOMEM);
	pd = pd_handle_create(context, core);
	if (pd == NULL)
		pd_core_put(ctx->port, core);
	return pd != NULL ? pd : null_errno(ENOMEM);
}

/* Ends the PD for all its handles. */
static int
pd_destroy(struct rocade_port *port, struct pd_core *core)
{
	int err = 0;

	pthread_mutex_lock(&port->lock);
	/* Pairs with the release in count_down(). */
	if (core->destroyed)
		err = EINVAL;
	else if (__atomic_load_n(&core->objects, __ATOMIC_ACQUIRE) != 0)
		err = EBUSY;
	else
		core->destroyed = true;
	pthread_mutex_unlock(&port->lock);
	return err;
}

EXPORT int
ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct verbs_pd *pd;
	int err = 0;

	if (!context_is_ours(ibv->context))
		return forward(ENOSYS, ibv_dealloc_pd, ibv);
	pd = to_pd(ibv);
	if (pd->base == NULL)
		err = pd_destroy(to_ctx(ibv->context)->port, pd->core);
	/* Pairs with the release in pd_release(). */
	else if (__atomic_load_n(&pd->users, __ATOMIC_ACQUIRE) != 1)
		err = EBUSY;
	if (err == 0)
		pd_release(pd);
	return errno_set(err);
}

EXPORT struct ibv_pd *
ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct pd_core *core;
	struct verbs_ctx *ctx;
	struct ibv_pd *pd;

	if (!context_is_ours(context))
		return forward(NULL, ibv_import_pd, context, pd_handle);
	ctx = to_ctx(context);
	if (ctx->port == NULL)
		return null_errno(ENODEV);
	core = pd_core_get(ctx, pd_handle);
	if (core == NULL)
		return null_errno(ENOENT);
	pd = pd_handle_create(context, core);
	if (pd == NULL)
		pd_core_put(ctx->port, core);
	return pd != NULL ? pd : null_errno(ENOMEM);
}

/* Objects that were created on this handle keep its structure until they are destroyed. */
EXPORT void
ibv_unimport_pd(struct ibv_pd *pd)
{
	if (!context_is_ours(pd->context))
		forward_void(ibv_unimport_pd, pd);
	else
		pd_release(to_pd(pd));
}
