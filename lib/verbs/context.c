/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_open_device(3): a context is an async event queue and the table of functions. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/context_ops.h"
#include "verbs/forward.h"
#include "verbs/objects.h"

/* For functions left NULL, the inline functions of <infiniband/verbs.h> return
 * EOPNOTSUPP. */
static void
context_ops_fill(struct verbs_context *base)
{
	base->query_port = verbs_query_port;
	base->query_device_ex = verbs_query_device_ex;
	base->query_rt_values = verbs_query_rt_values;
	base->alloc_td = verbs_alloc_td;
	base->dealloc_td = verbs_dealloc_td;
	base->alloc_parent_domain = verbs_alloc_parent_domain;
	base->create_cq_ex = verbs_create_cq_ex;
	base->create_qp_ex = verbs_create_qp_ex;
	base->create_srq_ex = verbs_create_srq_ex;
	base->get_srq_num = verbs_get_srq_num;
	base->open_xrcd = verbs_open_xrcd;
	base->close_xrcd = verbs_close_xrcd;
	base->open_qp = verbs_open_qp;
	absent_ops_fill(base);
	base->sz = sizeof(*base);
	base->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	base->context.ops.poll_cq = verbs_poll_cq;
	base->context.ops.req_notify_cq = verbs_req_notify_cq;
	base->context.ops.post_send = verbs_post_send;
	base->context.ops.post_recv = verbs_post_recv;
	base->context.ops.post_srq_recv = verbs_post_srq_recv;
	base->context.ops.alloc_mw = verbs_alloc_mw;
	base->context.ops.dealloc_mw = verbs_dealloc_mw;
	base->context.ops.bind_mw = verbs_bind_mw;
}

static int
context_init(struct verbs_ctx *ctx, struct rocade_port *port, struct ibv_device *device)
{
	struct ibv_context *context = &ctx->base.context;
	int err;

	ctx->port = port;
	ctx->dev = port->dev;
	ctx->engine = -1;
	/* A descriptor of its own, because applications poll it, and some close it. */
	context->cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (context->cmd_fd < 0)
		return errno;
	err = -event_queue_init(&ctx->events);
	if (err != 0) {
		close(context->cmd_fd);
		return err;
	}
	context->async_fd = ctx->events.fd;
	context->device = device;
	context->num_comp_vectors = (int)port->engine_count;
	pthread_mutex_init(&context->mutex, NULL);
	context_ops_fill(&ctx->base);
	/* From here on another thread can close the port. */
	dev_listen(ctx->dev, &ctx->listener, &ctx->events);
	return 0;
}

EXPORT struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	struct rocade_port *port;
	struct verbs_ctx *ctx;
	int err;

	if (!device_is_ours(device))
		return forward(NULL, ibv_open_device, device);
	port = device_context_add(device);
	if (port == NULL)
		return null_errno(ENODEV);
	ctx = calloc(1, sizeof(*ctx));
	err = ctx == NULL ? ENOMEM : context_init(ctx, port, device);
	if (err != 0) {
		free(ctx);
		device_context_remove(port);
		return null_errno(err);
	}
	return &ctx->base.context;
}

/* Takes the context from its port. */
static void
context_end(struct verbs_ctx *ctx)
{
	if (to_device(ctx->base.context.device)->source == NULL) {
		port_context_end(ctx);
		return;
	}
	dev_unlisten(ctx->dev, &ctx->listener);
	device_context_remove(ctx->port);
}

EXPORT int
ibv_close_device(struct ibv_context *context)
{
	struct verbs_ctx *ctx;

	if (!context_is_ours(context))
		return forward(-1, ibv_close_device, context);
	ctx = to_ctx(context);
	/* Objects point to their context, and engines to the objects. */
	if (__atomic_load_n(&ctx->objects, __ATOMIC_ACQUIRE) != 0) {
		/* Some applications forget to destroy a CQ, and take a failure of this
		 * call for one of their own. With the daemon's device it therefore
		 * succeeds, and the context stays until the process ends, as
		 * ibv_close_device(3) describes. */
		return ctx->port->source != NULL ? 0 : minus_errno(EBUSY);
	}
	context_end(ctx);
	event_queue_fini(&ctx->events);
	close(context->cmd_fd);
	pthread_mutex_destroy(&context->mutex);
	free(ctx);
	return 0;
}

EXPORT int
rocade_context_set_engine(struct ibv_context *context, int engine)
{
	struct verbs_ctx *ctx;

	if (!context_is_ours(context))
		return rocade_fail(EINVAL, "the context is not of a Rocade device");
	ctx = to_ctx(context);
	if (ctx->dev == NULL)
		return rocade_fail(ENODEV, "the port of the context is closed");
	if (engine < -1 || engine >= (int)ctx->dev->engine_count)
		return rocade_fail(EINVAL, "engine: %d is not in -1..%u", engine,
			ctx->dev->engine_count - 1);
	__atomic_store_n(&ctx->engine, engine, __ATOMIC_RELAXED);
	return 0;
}
