/* SPDX-License-Identifier: BSD-3-Clause */
/* What the handles of device memory and of its regions share. */
#include <stdlib.h>
#include <string.h>

#include "verbs/objects.h"

/* With the port's lock held. */
static struct dm_core *
dm_core_find(const struct rocade_port *port, uint32_t number)
{
	struct dm_core *core;

	LIST_FOREACH(core, &port->dms, link)
	{
		if (core->number == number)
			break;
	}
	return core;
}

struct dm_core *
dm_core_create(struct verbs_ctx *ctx, size_t length, size_t align)
{
	struct dm_core *core = calloc(1, sizeof(*core));

	if (core == NULL)
		return NULL;
	core->bytes = aligned_alloc(align, RTE_ALIGN_CEIL(length, align));
	if (core->bytes == NULL) {
		free(core);
		return NULL;
	}
	memset(core->bytes, 0, length);
	core->length = length;
	core->file = ctx->file;
	core->users = 1;
	pthread_mutex_lock(&ctx->port->lock);
	/* The numbers repeat after 2^32 allocations. */
	do
		core->number = ctx->port->next_dm++;
	while (dm_core_find(ctx->port, core->number) != NULL);
	LIST_INSERT_HEAD(&ctx->port->dms, core, link);
	pthread_mutex_unlock(&ctx->port->lock);
	return core;
}

/* The memory stays until the last handle has gone: the others may copy at the same time. */
void
dm_core_put(struct rocade_port *port, struct dm_core *core, bool region_ends)
{
	bool last;

	pthread_mutex_lock(&port->lock);
	core->regions -= region_ends;
	last = --core->users == 0;
	if (last)
		LIST_REMOVE(core, link);
	pthread_mutex_unlock(&port->lock);
	if (!last)
		return;
	free(core->bytes);
	free(core);
}

struct dm_core *
dm_core_at(struct rocade_port *port, const uint8_t *host)
{
	struct dm_core *core;

	pthread_mutex_lock(&port->lock);
	LIST_FOREACH(core, &port->dms, link)
	{
		/* An empty region may begin at the end. */
		if (host >= core->bytes && host <= core->bytes + core->length)
			break;
	}
	if (core != NULL)
		core->users++;
	pthread_mutex_unlock(&port->lock);
	return core;
}

struct dm_core *
dm_core_get(struct verbs_ctx *ctx, uint32_t number)
{
	struct dm_core *core;

	pthread_mutex_lock(&ctx->port->lock);
	core = dm_core_find(ctx->port, number);
	if (core != NULL && (core->file != ctx->file || core->destroyed))
		core = NULL;
	if (core != NULL)
		core->users++;
	pthread_mutex_unlock(&ctx->port->lock);
	return core;
}

int
dm_core_destroy(struct rocade_port *port, struct dm_core *core)
{
	int err = 0;

	pthread_mutex_lock(&port->lock);
	if (core->destroyed)
		err = EINVAL;
	else if (core->regions != 0)
		err = EBUSY;
	else
		__atomic_store_n(&core->destroyed, true, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&port->lock);
	return err;
}

bool
dm_core_region_add(struct rocade_port *port, struct dm_core *core)
{
	bool there;

	pthread_mutex_lock(&port->lock);
	there = !core->destroyed;
	core->regions += there;
	core->users += there;
	pthread_mutex_unlock(&port->lock);
	return there;
}
