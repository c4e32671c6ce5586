/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains, ibv_open_xrcd(3), and target QPs, which may have several handles,
 * ibv_open_qp(3). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/no_cancel.h"
#include "verbs/context_ops.h"
#include "verbs/verbs_qp.h"
#include "verbs/refusal.h"

/* Shared by all contexts of this process that opened it with the same file. */
struct xrc_domain {
	LIST_ENTRY(xrc_domain) link; /* list of the domains with a file */
	uint32_t number;
	uint32_t refs; /* protected by the port's lock */
	/* descriptor that keeps the inode, so that its number is not reused; -1: none */
	int inode_fd;
	dev_t dev;
	ino_t ino;
};

static struct xrc_domain *
xrcd_find(struct rocade_port *port, const struct stat *st)
{
	struct xrc_domain *d;

	LIST_FOREACH(d, &port->xrc_domains, link)
	{
		if (d->dev == st->st_dev && d->ino == st->st_ino)
			return d;
	}
	return NULL;
}

static int
inode_open(int fd)
{
	char path[sizeof("/proc/self/fd/-2147483648")];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_PATH | O_CLOEXEC);
}

/* st: NULL for a domain without a file. */
static struct xrc_domain *
xrcd_create(struct rocade_port *port, int fd, const struct stat *st)
{
	struct xrc_domain *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->number = dev_xrcd_number(port->dev);
	d->inode_fd = -1;
	if (st != NULL) {
		d->dev = st->st_dev;
		d->ino = st->st_ino;
		d->inode_fd = inode_open(fd);
		LIST_INSERT_HEAD(&port->xrc_domains, d, link);
	}
	return d;
}

/* Returns the errno values that Linux does. Called with the port's lock held. */
static int
xrcd_get(struct rocade_port *port, int fd, int oflags, const struct stat *st,
	struct xrc_domain **out)
{
	struct xrc_domain *d = st != NULL ? xrcd_find(port, st) : NULL;

	if (d != NULL && (oflags & O_CREAT) != 0 && (oflags & O_EXCL) != 0)
		return EINVAL;
	if (d == NULL && (oflags & O_CREAT) == 0)
		return st != NULL ? EAGAIN : EINVAL;
	if (d == NULL)
		d = xrcd_create(port, fd, st);
	if (d == NULL)
		return ENOMEM;
	d->refs++;
	*out = d;
	return 0;
}

static void
xrcd_put(struct rocade_port *port, struct xrc_domain *d)
{
	int state = no_cancel_begin();

	pthread_mutex_lock(&port->lock);
	if (--d->refs == 0) {
		if (d->link.le_prev != NULL)
			LIST_REMOVE(d, link);
		if (d->inode_fd >= 0)
			close(d->inode_fd);
		free(d);
	}
	pthread_mutex_unlock(&port->lock);
	no_cancel_end(state);
}

static int
xrcd_open(struct rocade_port *port, const struct ibv_xrcd_init_attr *attr,
	struct xrc_domain **out)
{
	const uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct stat st;
	int state, err;

	if (attr->comp_mask >= IBV_XRCD_INIT_ATTR_RESERVED)
		return refusal_note(EOPNOTSUPP, "ibv_open_xrcd", NULL);
	if ((attr->comp_mask & both) != both || (attr->oflags & ~(O_CREAT | O_EXCL)) != 0)
		return EINVAL;
	if (attr->fd != -1 && fstat(attr->fd, &st) != 0)
		return errno;
	state = no_cancel_begin();
	pthread_mutex_lock(&port->lock);
	err = xrcd_get(port, attr->fd, attr->oflags, attr->fd != -1 ? &st : NULL, out);
	pthread_mutex_unlock(&port->lock);
	no_cancel_end(state);
	return err;
}

struct ibv_xrcd *
verbs_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct verbs_ctx *ctx = to_ctx(context);
	struct verbs_xrcd *xrcd = calloc(1, sizeof(*xrcd));
	int err = ENOMEM;

	if (ctx->port == NULL)
		err = ENODEV;
	else if (xrcd != NULL)
		err = xrcd_open(ctx->port, attr, &xrcd->domain);
	if (err != 0) {
		free(xrcd);
		return null_errno(err);
	}
	xrcd->ibv.context = context;
	count_up(&ctx->objects);
	return &xrcd->ibv;
}

int
verbs_close_xrcd(struct ibv_xrcd *ibv)
{
	struct verbs_xrcd *xrcd = to_xrcd(ibv);
	struct verbs_ctx *ctx = to_ctx(ibv->context);

	/* Pairs with the release in count_down(). */
	if (__atomic_load_n(&xrcd->objects, __ATOMIC_ACQUIRE) != 0)
		return errno_set(EBUSY);
	xrcd_put(ctx->port, xrcd->domain);
	free(xrcd);
	count_down(&ctx->objects);
	return 0;
}

uint32_t
xrcd_number(const struct verbs_xrcd *xrcd)
{
	return xrcd->domain->number;
}

/* ---- Target QPs ---- */

/* Creates a handle, without its QP. */
static struct verbs_qp *
target_handle_create(struct ibv_context *context, struct ibv_xrcd *xrcd, void *qp_context)
{
	struct verbs_qp *vqp = verbs_qp_alloc(context, false, false);

	if (vqp == NULL)
		return NULL;
	vqp->qp_listener = calloc(1, sizeof(*vqp->qp_listener));
	if (vqp->qp_listener == NULL) {
		verbs_qp_free(vqp);
		return NULL;
	}
	async_event_init(&vqp->qp_listener->events, &to_ctx(context)->events, &vqp->ibv);
	vqp->xrcd = to_xrcd(xrcd);
	vqp->ibv.qp_context = qp_context;
	vqp->ibv.qp_type = IBV_QPT_XRC_RECV;
	return vqp;
}

static void
target_handle_free(struct verbs_qp *vqp)
{
	free(vqp->qp_listener);
	verbs_qp_free(vqp);
}

static struct ibv_qp *
target_handle_publish(struct verbs_qp *vqp)
{
	verbs_qp_publish(vqp);
	count_up(&vqp->xrcd->objects);
	return &vqp->ibv;
}

#define TARGET_KNOWN                                                                     \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS |   \
		IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

static int
target_check(const struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	if ((attr->comp_mask & ~(uint32_t)TARGET_KNOWN) != 0)
		return refusal_note(EOPNOTSUPP, "ibv_create_qp_ex", NULL);
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0 || attr->xrcd == NULL ||
		attr->xrcd->context != context)
		return EINVAL;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags != 0)
		return refusal_note(EOPNOTSUPP, "ibv_create_qp_ex", NULL);
	/* A target has no send queue. */
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
		attr->send_ops_flags != 0)
		return refusal_note(EOPNOTSUPP, "ibv_create_qp_ex", NULL);
	return 0;
}

/* Creates the QP that the handles of a target share; target_qp_free() frees it with the
 * last of them. Returns an errno value. */
static int
target_qp_create(struct verbs_ctx *ctx, struct verbs_qp *vqp)
{
	struct qp_conf conf = {.type = IBV_QPT_XRC_RECV,
		.xrcd = xrcd_number(vqp->xrcd),
		.listener = vqp->qp_listener};
	struct qp *qp = alloc_get(&ctx->dev->mem, "qp", sizeof(*qp));
	int err;

	if (qp == NULL)
		return ENOMEM;
	err = -dev_qp_init(ctx->dev, qp, &conf,
		__atomic_load_n(&ctx->engine, __ATOMIC_RELAXED), NULL, NULL);
	if (err != 0) {
		alloc_put(&ctx->dev->mem, qp, sizeof(*qp));
		return err;
	}
	vqp->qp = qp;
	return 0;
}

static void
target_qp_free(struct dev *dev, struct qp *qp)
{
	dev_qp_fini(dev, qp);
	alloc_put(&dev->mem, qp, sizeof(*qp));
}

struct ibv_qp *
verbs_create_xrc_target(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct verbs_qp *vqp;
	int err = target_check(context, attr);

	if (err != 0)
		return null_errno(err);
	vqp = target_handle_create(context, attr->xrcd, attr->qp_context);
	if (vqp == NULL)
		return null_errno(ENOMEM);
	err = target_qp_create(to_ctx(context), vqp);
	if (err != 0) {
		target_handle_free(vqp);
		return null_errno(err);
	}
	attr->cap = (struct ibv_qp_cap){0};
	/* A target needs no PD, but librdmacm looks here for that of the connection's
	 * SRQ. */
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) != 0)
		vqp->ibv.pd = attr->pd;
	return target_handle_publish(vqp);
}

struct ibv_qp *
verbs_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed =
		IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct verbs_qp *vqp;
	int err;

	if (attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED)
		return null_errno(refusal_note(EOPNOTSUPP, "ibv_open_qp", NULL));
	if ((attr->comp_mask & needed) != needed || attr->xrcd == NULL ||
		attr->xrcd->context != context || attr->qp_type != IBV_QPT_XRC_RECV)
		return null_errno(EINVAL);
	vqp = target_handle_create(context, attr->xrcd,
		attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL);
	if (vqp == NULL)
		return null_errno(ENOMEM);
	err = -dev_qp_share(to_ctx(context)->dev, attr->qp_num, xrcd_number(vqp->xrcd),
		vqp->qp_listener, &vqp->qp);
	if (err != 0) {
		target_handle_free(vqp);
		return null_errno(err);
	}
	target_handle_publish(vqp);
	/* Other handles have changed the state, and will: as in libibverbs this one does not
	 * know it. */
	vqp->ibv.state = IBV_QPS_UNKNOWN;
	return &vqp->ibv;
}

void
verbs_close_xrc_target(struct verbs_qp *vqp)
{
	struct dev *dev = to_ctx(vqp->ibv.context)->dev;
	struct verbs_xrcd *xrcd = vqp->xrcd;
	bool last = dev_qp_unshare(dev, vqp->qp, vqp->qp_listener, engine_clock());

	events_wait_acked_stopped(&vqp->ibv.mutex, &vqp->ibv.cond,
		&vqp->ibv.events_completed, event_purge(&vqp->qp_listener->events));
	if (last)
		target_qp_free(dev, vqp->qp);
	pthread_mutex_destroy(&vqp->ibv.mutex);
	pthread_cond_destroy(&vqp->ibv.cond);
	target_handle_free(vqp);
	count_down(&xrcd->objects);
}
