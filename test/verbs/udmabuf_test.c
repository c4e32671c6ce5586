/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DMA-bufs of the kernel: regions of one that /dev/udmabuf has made of a memfd, and device memory that is exported
 * as one. `dmabuf` has the same calls and their errors on each kernel, with a memfd in place of the DMA-buf; this
 * test shows that the kernel's own act as that test assumes. Skipped where a process cannot open /dev/udmabuf.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dmabuf_fixture.h"
#include "verbs/newer.h"

#define UDMABUF_DEVICE "/dev/udmabuf"

static struct verbs_pair pair;
static struct ibv_mr *mine; /* a's memory */
static uint8_t *bytes;      /* of the memfd */
static int buf;             /* the DMA-buf of it */

__attribute__((constructor)) static void
device_look(void)
{
	int device = open(UDMABUF_DEVICE, O_RDWR | O_CLOEXEC);

	if (device < 0)
		case_skip_all("no /dev/udmabuf that this process may open");
	else
		close(device);
}

static int
setup(void **state)
{
	struct udmabuf_create create = {.flags = UDMABUF_FLAGS_CLOEXEC, .size = LEN};
	int device, memfd;

	pair_open(&pair, &dmabuf_pair);
	mine = ibv_reg_mr(pair.a.pd, pair.a.mem, LEN, IBV_ACCESS_LOCAL_WRITE);
	memfd = memfd_create("udmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(memfd >= 0 && ftruncate(memfd, LEN) == 0);
	assert_int_equal(fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	bytes = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	assert_ptr_not_equal(bytes, MAP_FAILED);
	device = open(UDMABUF_DEVICE, O_RDWR | O_CLOEXEC);
	assert_true(device >= 0);
	create.memfd = (uint32_t)memfd;
	buf = ioctl(device, UDMABUF_CREATE, &create);
	assert_true(buf >= 0);
	assert_int_equal(close(device), 0);
	assert_int_equal(close(memfd), 0);
	return mine == NULL;
}

static int
teardown(void **state)
{
	assert_int_equal(munmap(bytes, LEN), 0);
	assert_int_equal(close(buf), 0);
	assert_int_equal(ibv_dereg_mr(mine), 0);
	pair_close(&pair);
	return 0;
}

TEST_WITH(a_peer_reaches_the_pages_of_a_udmabuf, setup, teardown)
{
	const uint64_t offset = PAGE + 100;
	struct ibv_mr *mr;

	mr = ibv_reg_dmabuf_mr(pair.b.pd, offset, 2 * PAGE, IOVA + 100, buf, ACCESS);
	assert_non_null(mr);
	memset(pair.a.mem, 0x5A, PAGE);
	dmabuf_request(&pair, mine, IBV_WR_RDMA_WRITE, IOVA + 100 + PAGE, mr->rkey,
		IBV_WC_SUCCESS);
	assert_memory_equal(bytes + offset + PAGE, pair.a.mem, PAGE);
	assert_int_equal(bytes[offset + PAGE - 1], 0);
	assert_int_equal(bytes[offset + 2 * PAGE], 0);
	memset(bytes + offset, 0x77, PAGE);
	dmabuf_request(
		&pair, mine, IBV_WR_RDMA_READ, IOVA + 100, mr->rkey, IBV_WC_SUCCESS);
	assert_memory_equal(bytes + offset, pair.a.mem, PAGE);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void
refused(int err, uint64_t offset, size_t length, uint64_t iova)
{
	errno = 0;
	assert_null(ibv_reg_dmabuf_mr(pair.b.pd, offset, length, iova, buf, ACCESS));
	assert_int_equal(errno, err);
}

TEST_WITH(ranges_outside_a_udmabuf_are_refused, setup, teardown)
{
	refused(EINVAL, 0, 0, 0);
	refused(EINVAL, 0, PAGE, 1);
	refused(EINVAL, 0, LEN + 1, 0);
	refused(EINVAL, LEN, 1, 0);
}

/* The DMA-buf, its mapping, the device's copies and a region of the descriptor have the same bytes. */
TEST_WITH(device_memory_is_exported_as_a_dmabuf, setup, teardown)
{
	struct ibv_alloc_dm_attr attr = {.length = PAGE};
	uint8_t there[PAGE], back[PAGE];
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	uint8_t *seen;
	int fd;

	dm = ibv_alloc_dm(pair.b.context, &attr);
	assert_non_null(dm);
	memset(there, 0x11, sizeof(there));
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, there, sizeof(there)), 0);
	fd = ibv_dm_export_dmabuf_fd(dm);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	seen = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(seen, MAP_FAILED);
	assert_memory_equal(seen, there, PAGE);
	mr = ibv_reg_dmabuf_mr(pair.b.pd, 0, PAGE, IOVA, fd, ACCESS);
	assert_non_null(mr);
	assert_int_equal(close(fd), 0);
	memset(pair.a.mem, 0x66, PAGE);
	dmabuf_request(&pair, mine, IBV_WR_RDMA_WRITE, IOVA, mr->rkey, IBV_WC_SUCCESS);
	assert_memory_equal(seen, pair.a.mem, PAGE);
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 0, PAGE), 0);
	assert_memory_equal(back, pair.a.mem, PAGE);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(munmap(seen, PAGE), 0);
}
