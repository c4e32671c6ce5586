/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_reg_dmabuf_mr(3): a DMA-buf of memory of the host is mapped, and registered. ibv_dm_export_dmabuf_fd(3):
 * device memory in a memfd (dm_core.c) becomes one by /dev/udmabuf. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "verbs/forward.h"
#include "verbs/newer.h"
#include "verbs/objects.h"
#include "verbs/refusal.h"

/* The kernel's list. */
#define DMABUF_ACCESS                                                                    \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |     \
		IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING)

static size_t
page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Returns 0, or EBADF or EINVAL as the kernel does: no descriptor, no DMA-buf, or it ends before the range. */
static int
dmabuf_check(int fd, uint64_t offset, size_t length)
{
	struct statfs st;
	off_t size;

	if (fstatfs(fd, &st) != 0)
		return errno;
	if (st.f_type != DMA_BUF_MAGIC)
		return EINVAL;
	size = lseek(fd, 0, SEEK_END);
	return size >= 0 && offset <= (uint64_t)size && length <= (uint64_t)size - offset
		       ? 0
		       : EINVAL;
}

/* Maps the pages of the range. Returns 0 or an errno value. */
static int
dmabuf_map(int fd, uint64_t offset, size_t length, unsigned access, uint8_t **out,
	size_t *out_len)
{
	size_t inside = offset & (page_size() - 1);
	int rights = PROT_READ | (access & IBV_ACCESS_LOCAL_WRITE ? PROT_WRITE : 0);
	void *at;

	*out_len = RTE_ALIGN_CEIL(inside + length, page_size());
	at = mmap(NULL, *out_len, rights, MAP_SHARED, fd, (off_t)(offset - inside));
	/* The range is right: its owner lets no process map it. */
	if (at == MAP_FAILED)
		return errno == EINVAL || errno == ENODEV ? EOPNOTSUPP : errno;
	*out = at;
	return 0;
}

static int
dmabuf_arguments_check(uint64_t offset, size_t length, uint64_t iova, unsigned access)
{
	if (((offset ^ iova) & (page_size() - 1)) != 0 || length == 0 ||
		offset + length < offset || (access & ~(unsigned)DMABUF_ACCESS) != 0 ||
		!key_access_valid(access))
		return EINVAL;
	return 0;
}

struct ibv_mr *
mr_create_dmabuf(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
	unsigned access)
{
	struct verbs_ctx *ctx = to_ctx(pd->context);
	struct dm_core *core;
	struct ibv_mr *mr;
	uint8_t *at = NULL;
	size_t len = 0;
	int err = dmabuf_arguments_check(offset, length, iova, access);

	if (err == 0)
		err = dmabuf_check(fd, offset, length);
	if (err == 0)
		err = ctx->port != NULL ? 0 : ENODEV;
	if (err == 0)
		err = dmabuf_map(fd, offset, length, access, &at, &len);
	if (err != 0)
		return null_errno(refusal_note(err, "ibv_reg_dmabuf_mr",
			"the range is in a DMA-buf, offset and iova have the same offset in a "
			"page, and the access is local write, remote or relaxed ordering"));
	core = dm_core_of_mapping(ctx, at, len);
	if (core == NULL) {
		munmap(at, len);
		return null_errno(ENOMEM);
	}
	mr = mr_create(pd, at + (offset & (page_size() - 1)), length, iova, access);
	if (mr == NULL) {
		err = errno;
		dm_core_put(ctx->port, core, true);
		return null_errno(err);
	}
	refusal_note(0, "ibv_reg_dmabuf_mr", NULL);
	mr->addr = (void *)(uintptr_t)offset; /* as libibverbs has it */
	to_mr(mr)->dm = core;
	return mr;
}

EXPORT struct ibv_mr *
ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
	int fd, int access)
{
	if (!context_is_ours(pd->context))
		return forward(
			NULL, ibv_reg_dmabuf_mr, pd, offset, length, iova, fd, access);
	return mr_create_dmabuf(pd, offset, length, iova, fd, (unsigned)access);
}

/* Returns the descriptor, or -1 with errno. */
static int
dm_export(struct dm_core *core)
{
	struct udmabuf_create create = {.flags = UDMABUF_FLAGS_CLOEXEC,
		.size = RTE_ALIGN_CEIL(core->length, page_size())};
	int device, fd, err;

	if (__atomic_load_n(&core->destroyed, __ATOMIC_RELAXED))
		return minus_errno(refusal_note(
			EINVAL, "ibv_dm_export_dmabuf_fd", "the memory is not freed"));
	if (core->memfd < 0)
		return minus_errno(
			refusal_note(EOPNOTSUPP, "ibv_dm_export_dmabuf_fd", NULL));
	device = open(UDMABUF_DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0)
		return -1;
	create.memfd = (uint32_t)core->memfd;
	fd = ioctl(device, UDMABUF_CREATE, &create);
	err = errno;
	close(device);
	return fd >= 0 ? fd : minus_errno(err);
}

EXPORT int
ibv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	if (!context_is_ours(dm->context))
		return forward(-1, ibv_dm_export_dmabuf_fd, dm);
	return dm_export(to_dm(dm)->core);
}
