/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "fault_next.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void
next_device_fill(struct next_device *d,
	int (*poll_cq)(struct ibv_cq *, int, struct ibv_wc *),
	struct ibv_context *(*mark)(struct ibv_device *device, int cmd_fd))
{
	d->device._ops._dummy1 = mark;
	d->context.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	d->context.context.ops.poll_cq = poll_cq;
	d->pd.context = &d->context.context;
}

static int
own_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	(void)cq;
	(void)count;
	(void)wc;
	return 0;
}

/* Never called. */
static struct ibv_context *
own_mark(struct ibv_device *device, int cmd_fd)
{
	(void)device;
	(void)cmd_fd;
	return NULL;
}

EXPORT struct next_device *
next_device_own(void)
{
	static struct next_device own;

	next_device_fill(&own, own_poll_cq, own_mark);
	return &own;
}

EXPORT struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	return &((struct next_device *)device)->context.context;
}

EXPORT struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct verbs_context *extended = verbs_get_ctx(context);

	return &((struct next_device *)((uint8_t *)extended -
					offsetof(struct next_device, context)))
			->pd;
}

/* It calls another verb, which librocade-faults.so has, too. */
EXPORT int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)attr;
	return ibv_alloc_pd(context) != NULL ? 0 : errno;
}
