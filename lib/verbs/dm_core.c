/* SPDX-License-Identifier: BSD-3-Clause */
/* What the handles of device memory and of its regions share. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd_fill.h"
#include "base/file_limit.h"
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

static struct dm_core *
dm_core_new(struct verbs_ctx *ctx, size_t length)
{
	struct dm_core *core = calloc(1, sizeof(*core));

	if (core == NULL)
		return NULL;
	core->length = length;
	core->memfd = -1;
	core->file = ctx->file;
	core->users = 1;
	return core;
}

static void
dm_core_insert(struct rocade_port *port, struct dm_core *core)
{
	pthread_mutex_lock(&port->lock);
	/* The numbers repeat after 2^32 allocations. */
	do
		core->number = port->next_dm++;
	while (dm_core_find(port, core->number) != NULL);
	LIST_INSERT_HEAD(&port->dms, core, link);
	pthread_mutex_unlock(&port->lock);
}

/* Returns a memfd of this length that has its pages and that /dev/udmabuf accepts, or -1. */
static int
memfd_sealed(size_t length)
{
	int fd = file_length_allowed(length)
			 ? memfd_create("rocade dm", MFD_CLOEXEC | MFD_ALLOW_SEALING)
			 : -1;

	if (fd >= 0 && (ftruncate(fd, (off_t)length) != 0 || fd_fill(fd, length) != 0 ||
			       fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Memory that can be exported costs a descriptor, so it is taken only where the kernel can
 * export it. Returns false if it cannot, or without memory or descriptors, or if
 * RLIMIT_FSIZE is less. */
static bool
dm_memfd_map(struct dm_core *core)
{
	size_t len = RTE_ALIGN_CEIL(core->length, (size_t)sysconf(_SC_PAGESIZE));
	void *at;

	if (access(UDMABUF_DEVICE, R_OK | W_OK) != 0)
		return false;
	core->memfd = memfd_sealed(len);
	if (core->memfd < 0)
		return false;
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		core->memfd, 0);
	if (at == MAP_FAILED) {
		close(core->memfd);
		core->memfd = -1;
		return false;
	}
	core->bytes = at;
	core->mapped = len;
	return true;
}

struct dm_core *
dm_core_create(struct verbs_ctx *ctx, size_t length, size_t align)
{
	struct dm_core *core = dm_core_new(ctx, length);

	if (core == NULL)
		return NULL;
	if (!dm_memfd_map(core)) {
		core->bytes = aligned_alloc(align, RTE_ALIGN_CEIL(length, align));
		if (core->bytes == NULL) {
			free(core);
			return NULL;
		}
		memset(core->bytes, 0, length);
	}
	dm_core_insert(ctx->port, core);
	return core;
}

struct dm_core *
dm_core_of_mapping(struct verbs_ctx *ctx, uint8_t *bytes, size_t length)
{
	struct dm_core *core = dm_core_new(ctx, length);

	if (core == NULL)
		return NULL;
	core->bytes = bytes;
	core->mapped = length;
	core->regions = 1;
	core->destroyed = true; /* no call finds it by its number */
	dm_core_insert(ctx->port, core);
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
	if (core->mapped != 0)
		munmap(core->bytes, core->mapped);
	else
		free(core->bytes);
	if (core->memfd >= 0)
		close(core->memfd);
	free(core);
}

struct dm_core *
dm_core_at(struct rocade_port *port, const uint8_t *host, size_t length)
{
	struct dm_core *core;

	pthread_mutex_lock(&port->lock);
	LIST_FOREACH(core, &port->dms, link)
	{
		/* An empty region may begin at the end, where another mapping may begin, too. */
		if (host >= core->bytes &&
			host + (length != 0) <= core->bytes + core->length)
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
