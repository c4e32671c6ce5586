/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_alloc_buf(3): buffers, which are plain memory of the process, and ibv_reg_mr_ex(3). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs/forward.h"
#include "verbs/newer.h"
#include "verbs/objects.h"
#include "verbs/refusal.h"

/* struct ibv_buf is opaque. It does not say to whom it belongs, so this one begins with a
 * pointer that no other library has. */
struct verbs_buf {
	const void *mark;
	const struct ibv_pd *pd;
	uint8_t *addr;
	size_t size;
};

static const char buf_mark;

static struct verbs_buf *
to_buf(struct ibv_buf *ibv)
{
	return (struct verbs_buf *)ibv;
}

static bool
buf_is_ours(struct ibv_buf *ibv)
{
	return to_buf(ibv)->mark == &buf_mark;
}

EXPORT void *
ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **out)
{
	struct verbs_buf *buf;
	void *addr;
	int err;

	if (!context_is_ours(pd->context))
		return forward(NULL, ibv_alloc_buf, pd, size, out);
	buf = malloc(sizeof(*buf));
	if (buf == NULL)
		return null_errno(ENOMEM);
	err = posix_memalign(&addr, (size_t)sysconf(_SC_PAGESIZE), size);
	if (err != 0) {
		free(buf);
		return null_errno(err);
	}
	*buf = (struct verbs_buf){
		.mark = &buf_mark, .pd = pd, .addr = addr, .size = size};
	*out = (struct ibv_buf *)buf;
	return addr;
}

EXPORT void
ibv_free_buf(struct ibv_buf *ibv)
{
	if (!buf_is_ours(ibv)) {
		forward_void(ibv_free_buf, ibv);
		return;
	}
	free(to_buf(ibv)->addr);
	free(to_buf(ibv));
}

EXPORT int
ibv_export_buf_dmabuf_fd(struct ibv_buf *ibv)
{
	if (!buf_is_ours(ibv))
		return forward(-1, ibv_export_buf_dmabuf_fd, ibv);
	return minus_errno(ENODATA);
}

/* Copies what the mask names: a member behind these may lie behind the end of an older
 * structure. */
static struct mr_init_attr
init_attr_read(const struct ibv_mr_init_attr *ibv)
{
	const struct mr_init_attr *from = (const void *)ibv;
	struct mr_init_attr attr = {.length = from->length,
		.access = from->access,
		.comp_mask = from->comp_mask};

	if (attr.comp_mask & MR_INIT_ADDR)
		attr.addr = from->addr;
	attr.iova = attr.comp_mask & MR_INIT_IOVA ? from->iova : (uintptr_t)attr.addr;
	if (attr.comp_mask & MR_INIT_FD)
		attr.fd = from->fd;
	if (attr.comp_mask & MR_INIT_FD_OFFSET)
		attr.fd_offset = from->fd_offset;
	if (attr.comp_mask & MR_INIT_BUF)
		attr.buf = from->buf;
	return attr;
}

/* EINVAL: the range is not within the buffer, or the buffer is of another PD. */
static int
buf_range_check(const struct ibv_pd *pd, const struct mr_init_attr *attr)
{
	const struct verbs_buf *buf = to_buf(attr->buf);
	size_t offset;

	if (buf == NULL || !buf_is_ours(attr->buf) || buf->pd != pd ||
		(uintptr_t)attr->addr < (uintptr_t)buf->addr)
		return EINVAL;
	offset = (uintptr_t)attr->addr - (uintptr_t)buf->addr;
	return offset <= buf->size && attr->length <= buf->size - offset ? 0 : EINVAL;
}

/* A region is of memory at an address or of a DMA-buf, not of both. */
static int
init_attr_check(const struct ibv_pd *pd, const struct mr_init_attr *attr)
{
	const uint64_t of_addr = MR_INIT_ADDR | MR_INIT_BUF;
	const uint64_t of_fd = MR_INIT_FD | MR_INIT_FD_OFFSET;
	uint64_t mask = attr->comp_mask;

	if ((mask & ~(of_addr | of_fd | MR_INIT_IOVA)) != 0)
		return EOPNOTSUPP;
	if (mask & MR_INIT_FD)
		return (mask & of_addr) != 0 || (mask & MR_INIT_FD_OFFSET) == 0 ||
				       (mask & MR_INIT_IOVA) == 0
			       ? EINVAL
			       : 0;
	if ((mask & MR_INIT_ADDR) == 0 || (mask & MR_INIT_FD_OFFSET) != 0)
		return EINVAL;
	return mask & MR_INIT_BUF ? buf_range_check(pd, attr) : 0;
}

static struct ibv_mr *
mr_create_ex(struct ibv_pd *pd, const struct mr_init_attr *attr)
{
	int err = init_attr_check(pd, attr);

	if (err != 0)
		return null_errno(refusal_note(err, "ibv_reg_mr_ex",
			"the mask is not valid, or the range is not in the buffer"));
	refusal_note(0, "ibv_reg_mr_ex", NULL);
	if (attr->comp_mask & MR_INIT_FD)
		return mr_create_dmabuf(pd, attr->fd_offset, attr->length, attr->iova,
			attr->fd, (unsigned)attr->access);
	return mr_create(
		pd, attr->addr, attr->length, attr->iova, (unsigned)attr->access);
}

EXPORT struct ibv_mr *
ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *ibv)
{
	struct mr_init_attr attr = init_attr_read(ibv);

	if (context_is_ours(pd->context))
		return mr_create_ex(pd, &attr);
	/* The real library would take the buffer for its own. */
	if (attr.buf != NULL && buf_is_ours(attr.buf))
		return null_errno(EINVAL);
	return forward(NULL, ibv_reg_mr_ex, pd, ibv);
}

EXPORT struct ibv_mr *
ibv_reg_buf_mr(
	struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access)
{
	const struct mr_init_attr attr = {.length = length,
		.access = access,
		.comp_mask = MR_INIT_BUF | MR_INIT_ADDR,
		.iova = (uintptr_t)addr,
		.addr = addr,
		.buf = buf};

	if (context_is_ours(pd->context))
		return mr_create_ex(pd, &attr);
	if (buf != NULL && buf_is_ours(buf))
		return null_errno(EINVAL);
	return forward(NULL, ibv_reg_buf_mr, pd, buf, addr, length, access);
}
