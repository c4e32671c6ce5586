/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_open_device(3), ibv_import_device(3): a context is an async event queue and the table of
 * functions. */
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
	base->modify_cq = verbs_modify_cq;
	base->alloc_dm = verbs_alloc_dm;
	base->free_dm = verbs_free_dm;
	base->reg_dm_mr = verbs_reg_dm_mr;
	base->advise_mr = verbs_advise_mr;
	absent_ops_fill(base);
	context_mark(&base->context);
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

/* Takes over the descriptor and the file if it succeeds. */
static int
context_init(struct verbs_ctx *ctx, struct rocade_port *port, int cmd_fd,
	struct context_file *file)
{
	struct ibv_context *context = &ctx->base.context;
	struct ibv_device *device = file->device;
	int err = -event_queue_init(&ctx->events);

	if (err != 0)
		return err;
	ctx->port = port;
	ctx->dev = port->dev;
	ctx->engine = -1;
	ctx->file = file;
	/* A descriptor of its own, because applications poll it, and some close it. */
	context->cmd_fd = cmd_fd;
	context->async_fd = ctx->events.fd;
	context->device = device;
	context->num_comp_vectors = (int)port->engine_count;
	pthread_mutex_init(&context->mutex, NULL);
	context_ops_fill(&ctx->base);
	/* From here on another thread can close the port. */
	dev_listen(ctx->dev, &ctx->listener, &ctx->events);
	return 0;
}

static struct ibv_context *
context_create(struct rocade_port *port, int cmd_fd, struct context_file *file)
{
	struct verbs_ctx *ctx = calloc(1, sizeof(*ctx));
	int err = ctx == NULL ? ENOMEM : context_init(ctx, port, cmd_fd, file);

	if (err == 0)
		return &ctx->base.context;
	free(ctx);
	return null_errno(err);
}

EXPORT struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context;
	struct context_file *file;
	struct rocade_port *port;
	int fd, err;

	if (!device_is_ours(device))
		return forward(NULL, ibv_open_device, device);
	err = device_context_add(device, &port);
	if (err != 0)
		return null_errno(err);
	fd = context_file_create(device, &file);
	if (fd < 0) {
		device_context_remove(port);
		return null_errno(-fd);
	}
	context = context_create(port, fd, file);
	if (context != NULL)
		return context;
	err = errno;
	context_file_put(file);
	close(fd);
	device_context_remove(port);
	return null_errno(err);
}

/* The caller's descriptor belongs to the context if the call succeeds. */
EXPORT struct ibv_context *
ibv_import_device(int cmd_fd)
{
	struct context_file *file = context_file_get(cmd_fd);
	struct ibv_context *context;
	struct rocade_port *port;
	int err;

	if (file == NULL)
		return forward(NULL, ibv_import_device, cmd_fd);
	err = device_context_add(file->device, &port);
	if (err == 0) {
		context = context_create(port, cmd_fd, file);
		if (context != NULL)
			return context;
		err = errno;
		device_context_remove(port);
	}
	context_file_put(file);
	return null_errno(err);
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
	context_file_put(ctx->file);
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

	if (arg_missing("context", context))
		return EINVAL;
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
