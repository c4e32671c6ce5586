/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DMA-bufs: regions of them (ibv_reg_dmabuf_mr(3)), and those of device memory (ibv_dm_export_dmabuf_fd(3)).
 *
 * Few kernels have /dev/udmabuf, so a memfd is the DMA-buf here. mmap(2), lseek(2) to the end and close(2) do the
 * same to both. Where the two differ, the functions below act as the kernel does for a DMA-buf: fstatfs(2) has
 * its magic number, and a descriptor of /dev/udmabuf returns one for a memfd.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/udmabuf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "dmabuf_fixture.h"
#include "mappings.h"
#include "verbs/newer.h"

static struct verbs_pair pair;
static struct ibv_mr *mine; /* a's memory */
static int buf;             /* the DMA-buf */
static uint8_t *bytes;      /* of it */

/* ---- The kernel's side ---- */

/* librocade calls these. */
#define SEEN __attribute__((visibility("default")))

static bool has_udmabuf;
static bool is_full; /* there is no memory for files */
static bool
	is_a_device; /* memory that madvise(2) does not fault in, as that of newer kernels */
static int device_fd = -1, exported_from;
static unsigned long wrong_ioctl;

SEEN int
fstatfs(int fd, struct statfs *st)
{
	memset(st, 0, sizeof(*st));
	if (fcntl(fd, F_GETFD) < 0)
		return -1;
	st->f_type = fd == buf ? DMA_BUF_MAGIC : TMPFS_MAGIC;
	return 0;
}

SEEN int
access(const char *path, int mode)
{
	if (strcmp(path, "/dev/udmabuf") != 0)
		return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
	if (has_udmabuf)
		return 0;
	errno = ENOENT;
	return -1;
}

SEEN int
open(const char *path, int flags, ...)
{
	va_list list;
	mode_t mode;

	va_start(list, flags);
	mode = va_arg(list, mode_t);
	va_end(list);
	if (strcmp(path, "/dev/udmabuf") != 0)
		return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	assert_int_equal(flags & O_ACCMODE, O_RDWR);
	device_fd = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", flags, 0);
	return device_fd;
}

SEEN int
fallocate(int fd, int mode, off_t offset, off_t len)
{
	if (!is_full)
		return (int)syscall(SYS_fallocate, fd, mode, offset, len);
	errno = ENOSPC;
	return -1;
}

SEEN int
madvise(void *addr, size_t len, int advice)
{
	if (!is_a_device)
		return (int)syscall(SYS_madvise, addr, len, advice);
	errno = EINVAL;
	return -1;
}

/* As udmabuf_create() of Linux: the memfd must not shrink and may be written, and pages are whole. */
static int
udmabuf_create(const struct udmabuf_create *create)
{
	int seals = fcntl((int)create->memfd, F_GET_SEALS);

	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_WRITE) != 0 ||
		create->offset % PAGE != 0 || create->size % PAGE != 0 ||
		create->size == 0 ||
		(off_t)(create->offset + create->size) >
			lseek((int)create->memfd, 0, SEEK_END)) {
		errno = EINVAL;
		return -1;
	}
	exported_from = (int)create->memfd;
	return fcntl(exported_from,
		create->flags & UDMABUF_FLAGS_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
}

SEEN int
ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *arg;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (fd != device_fd)
		return (int)syscall(SYS_ioctl, fd, request, arg);
	if (request == UDMABUF_CREATE)
		return udmabuf_create(arg);
	wrong_ioctl = request;
	errno = ENOTTY;
	return -1;
}

/* ---- Regions ---- */

static int
setup(void **state)
{
	has_udmabuf = is_full = is_a_device = false;
	pair_open(&pair, &dmabuf_pair);
	mine = ibv_reg_mr(pair.a.pd, pair.a.mem, LEN, IBV_ACCESS_LOCAL_WRITE);
	buf = memfd_create("dma-buf", MFD_CLOEXEC);
	assert_true(buf >= 0 && ftruncate(buf, LEN) == 0);
	bytes = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
	assert_ptr_not_equal(bytes, MAP_FAILED);
	return mine == NULL;
}

static int
teardown(void **state)
{
	assert_int_equal(munmap(bytes, LEN), 0);
	assert_int_equal(close(buf), 0);
	buf = -1;
	assert_int_equal(ibv_dereg_mr(mine), 0);
	pair_close(&pair);
	return 0;
}

static void
request(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey,
	enum ibv_wc_status status)
{
	dmabuf_request(&pair, mine, opcode, addr, rkey, status);
}

/* A peer writes to the DMA-buf and reads it, at the iova, from an offset inside a page. The descriptor may be
 * closed before. */
TEST_WITH(a_peer_reaches_the_dmabuf, setup, teardown)
{
	const uint64_t offset = PAGE + 100;
	int fd = buf;
	struct ibv_mr *mr =
		ibv_reg_dmabuf_mr(pair.b.pd, offset, 2 * PAGE, IOVA + 100, fd, ACCESS);

	assert_non_null(mr);
	assert_int_equal(mr->length, 2 * PAGE);
	assert_int_equal((uintptr_t)mr->addr, offset);
	memset(pair.a.mem, 0x5A, PAGE);
	request(IBV_WR_RDMA_WRITE, IOVA + 100 + PAGE, mr->rkey, IBV_WC_SUCCESS);
	assert_memory_equal(bytes + offset + PAGE, pair.a.mem, PAGE);
	assert_int_equal(bytes[offset + PAGE - 1], 0);
	assert_int_equal(bytes[offset + 2 * PAGE], 0);
	memset(bytes + offset, 0x77, PAGE);
	request(IBV_WR_RDMA_READ, IOVA + 100, mr->rkey, IBV_WC_SUCCESS);
	assert_memory_equal(bytes + offset, pair.a.mem, PAGE);
	request(IBV_WR_RDMA_WRITE, IOVA + 101 + PAGE, mr->rkey, IBV_WC_REM_ACCESS_ERR);
	errno = 0;
	assert_int_not_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), 0);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* The mapping stays until the last handle of the region has gone. */
TEST_WITH(an_imported_region_keeps_the_mapping, setup, teardown)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(pair.b.pd, 0, PAGE, IOVA, buf, ACCESS);
	struct ibv_mr *imported;

	assert_non_null(mr);
	imported = ibv_import_mr(pair.b.pd, mr->handle);
	assert_non_null(imported);
	ibv_unimport_mr(mr);
	memset(pair.a.mem, 0x33, PAGE);
	request(IBV_WR_RDMA_WRITE, IOVA, imported->rkey, IBV_WC_SUCCESS);
	assert_memory_equal(bytes, pair.a.mem, PAGE);
	assert_int_equal(ibv_dereg_mr(imported), 0);
}

/* Pages of a newer udmabuf belong to a device: madvise(2) refuses them, and each is accessed instead. */
TEST_WITH(memory_of_a_device_is_faulted_in_by_page, setup, teardown)
{
	unsigned char present[LEN / PAGE];
	struct ibv_mr *mr;

	is_a_device = true;
	assert_int_equal(mincore(bytes, LEN, present), 0);
	for (unsigned i = 0; i < LEN / PAGE; i++)
		assert_int_equal(present[i] & 1, 0);
	mr = ibv_reg_dmabuf_mr(pair.b.pd, 0, 3 * PAGE, IOVA, buf, ACCESS);
	assert_non_null(mr);
	assert_int_equal(mincore(bytes, LEN, present), 0);
	for (unsigned i = 0; i < LEN / PAGE; i++)
		assert_int_equal(present[i] & 1, i < 3);
	memset(pair.a.mem, 0x55, PAGE);
	request(IBV_WR_RDMA_WRITE, IOVA + 2 * PAGE, mr->rkey, IBV_WC_SUCCESS);
	assert_memory_equal(bytes + 2 * PAGE, pair.a.mem, PAGE);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static unsigned
mappings_of_buf(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned n = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps) != NULL)
		n += strstr(line, "memfd:dma-buf") != NULL;
	fclose(maps);
	return n;
}

/* Each region is a mapping of the process. At the limit the call fails, and leaves nothing. */
TEST_WITH(a_process_without_mappings_gets_no_region, setup, teardown)
{
	const unsigned before = mappings_of_buf();
	const size_t limit = mappings_limit(), len = (limit + 2) * PAGE;
	struct ibv_mr *mr;
	uint8_t *pages;

	if (limit > 1 << 21)
		skip(); /* it would take long, and much memory of the kernel */
	pages = mappings_exhaust(len);
	for (unsigned i = 0; i < 3; i++) {
		errno = 0;
		mr = ibv_reg_dmabuf_mr(pair.b.pd, 0, PAGE, IOVA, buf, ACCESS);
		assert_null(mr);
		assert_int_equal(errno, ENOMEM);
	}
	mappings_give(pages, len);
	assert_int_equal(mappings_of_buf(), before);
	mr = ibv_reg_dmabuf_mr(pair.b.pd, 0, PAGE, IOVA, buf, ACCESS);
	assert_non_null(mr);
	assert_int_equal(mappings_of_buf(), before + 1);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(mappings_of_buf(), before);
}

TEST_WITH(a_mask_names_a_dmabuf, setup, teardown)
{
	struct mr_init_attr attr = {.length = PAGE,
		.access = ACCESS,
		.comp_mask = MR_INIT_FD | MR_INIT_FD_OFFSET | MR_INIT_IOVA,
		.iova = IOVA,
		.fd = buf,
		.fd_offset = PAGE};
	struct ibv_mr *mr = ibv_reg_mr_ex(pair.b.pd, (struct ibv_mr_init_attr *)&attr);

	assert_non_null(mr);
	assert_int_equal((uintptr_t)mr->addr, PAGE);
	memset(pair.a.mem, 0x44, PAGE);
	request(IBV_WR_RDMA_WRITE, IOVA, mr->rkey, IBV_WC_SUCCESS);
	assert_memory_equal(bytes + PAGE, pair.a.mem, PAGE);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void
refused(int err, uint64_t offset, size_t length, uint64_t iova, int fd, int flags)
{
	errno = 0;
	assert_null(ibv_reg_dmabuf_mr(pair.b.pd, offset, length, iova, fd, flags));
	assert_int_equal(errno, err);
}

TEST_WITH(wrong_regions_are_refused_as_by_the_kernel, setup, teardown)
{
	int other = memfd_create("no dma-buf", MFD_CLOEXEC), was = buf, read_only;
	char path[64];

	assert_true(other >= 0 && ftruncate(other, LEN) == 0);
	refused(EBADF, 0, PAGE, 0, -1, ACCESS);
	refused(EINVAL, 0, PAGE, 0, other, ACCESS);
	refused(EINVAL, 0, PAGE, 1, buf, ACCESS);
	refused(EINVAL, 0, 0, 0, buf, ACCESS);
	refused(EINVAL, 0, LEN + 1, 0, buf, ACCESS);
	refused(EINVAL, PAGE, LEN, PAGE, buf, ACCESS);
	refused(EINVAL, LEN + PAGE, 1, 0, buf, ACCESS);
	refused(EINVAL, UINT64_MAX - PAGE + 1, 2 * PAGE, 0, buf, ACCESS);
	refused(EINVAL, 0, PAGE, 0, buf, IBV_ACCESS_REMOTE_WRITE);
	refused(EINVAL, 0, PAGE, 0, buf, ACCESS | IBV_ACCESS_ON_DEMAND);
	refused(EINVAL, 0, PAGE, 0, buf, ACCESS | IBV_ACCESS_MW_BIND);
	refused(EINVAL, 0, PAGE, 0, buf, ACCESS | IBV_ACCESS_ZERO_BASED);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", buf);
	read_only = open(path, O_RDONLY | O_CLOEXEC);
	buf = read_only;
	refused(EACCES, 0, PAGE, 0, read_only, ACCESS);
	buf = was;
	assert_int_equal(close(read_only), 0);
	assert_int_equal(close(other), 0);
}

/* ---- Export ---- */

static struct ibv_dm *
dm_new(size_t length)
{
	struct ibv_alloc_dm_attr attr = {.length = length};
	struct ibv_dm *dm = ibv_alloc_dm(pair.b.context, &attr);

	assert_non_null(dm);
	return dm;
}

/* The descriptor, its mapping and the device's copies show the same memory, and outlive the device memory. */
TEST_WITH(device_memory_is_exported, setup, teardown)
{
	uint8_t there[256], back[256];
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	uint8_t *seen;
	int fd;

	has_udmabuf = true;
	dm = dm_new(sizeof(there));
	memset(there, 0x11, sizeof(there));
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, there, sizeof(there)), 0);
	fd = ibv_dm_export_dmabuf_fd(dm);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(lseek(fd, 0, SEEK_END), PAGE);
	seen = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(seen, MAP_FAILED);
	assert_memory_equal(seen, there, sizeof(there));
	memset(seen, 0x22, sizeof(there));
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 0, sizeof(back)), 0);
	assert_memory_equal(back, seen, sizeof(back));
	mr = ibv_reg_dm_mr(
		pair.b.pd, dm, 0, sizeof(there), ACCESS | IBV_ACCESS_ZERO_BASED);
	assert_non_null(mr);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(seen[0], 0x22);
	assert_int_equal(munmap(seen, PAGE), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(wrong_ioctl, 0);
}

/* The descriptor of exported memory can be registered. */
TEST_WITH(exported_memory_is_a_region_again, setup, teardown)
{
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	uint8_t back[PAGE];
	int fd, was = buf;

	has_udmabuf = true;
	dm = dm_new(PAGE);
	fd = ibv_dm_export_dmabuf_fd(dm);
	assert_true(fd >= 0);
	buf = fd;
	mr = ibv_reg_dmabuf_mr(pair.b.pd, 0, PAGE, IOVA, fd, ACCESS);
	buf = was;
	assert_non_null(mr);
	assert_int_equal(close(fd), 0);
	memset(pair.a.mem, 0x66, PAGE);
	request(IBV_WR_RDMA_WRITE, IOVA, mr->rkey, IBV_WC_SUCCESS);
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 0, sizeof(back)), 0);
	assert_memory_equal(back, pair.a.mem, PAGE);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* Memory that works all the same. */
static void
expect_not_exported(struct ibv_dm *dm)
{
	uint8_t there[64], back[64];

	memset(there, 0x99, sizeof(there));
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, there, sizeof(there)), 0);
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 0, sizeof(back)), 0);
	assert_memory_equal(back, there, sizeof(back));
	errno = 0;
	assert_int_equal(ibv_dm_export_dmabuf_fd(dm), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_free_dm(dm), 0);
}

TEST_WITH(without_udmabuf_nothing_is_exported, setup, teardown)
{
	expect_not_exported(dm_new(64));
}

/* Not at the first access: that would be a signal. */
TEST_WITH(the_memory_is_of_the_heap_where_files_have_none, setup, teardown)
{
	has_udmabuf = is_full = true;
	expect_not_exported(dm_new(64));
}

/* Nor does ftruncate(2) send SIGXFSZ. */
TEST_WITH(the_memory_is_of_the_heap_where_files_must_be_short, setup, teardown)
{
	struct rlimit was, less;
	struct ibv_dm *dm;

	has_udmabuf = true;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	less = (struct rlimit){.rlim_cur = PAGE - 1, .rlim_max = was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
	dm = dm_new(64);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	expect_not_exported(dm);
}
