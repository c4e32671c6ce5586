/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_alloc_buf(3), and ibv_reg_mr_ex() of ibv_reg_mr(3), with the structures of rdma-core 65. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "case.h"
#include "verbs/newer.h"
#include "verbs_pair.h"

#define BYTES 10000
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct verbs_pair pair;

static int
setup(void **state)
{
	pair_open(&pair, &(struct verbs_pair_conf){.access = IBV_ACCESS_REMOTE_WRITE});
	return 0;
}

static int
teardown(void **state)
{
	pair_close(&pair);
	return 0;
}

static struct ibv_mr *
reg(struct mr_init_attr attr)
{
	errno = 0;
	return ibv_reg_mr_ex(pair.a.pd, (struct ibv_mr_init_attr *)&attr);
}

#define reg_fails(err, ...)                                                              \
	do {                                                                             \
		assert_null(reg((struct mr_init_attr){__VA_ARGS__}));                    \
		assert_int_equal(errno, err);                                            \
	} while (0)

static void
mr_expect(struct ibv_mr *mr, void *addr, size_t length)
{
	assert_non_null(mr);
	assert_ptr_equal(mr->context, pair.a.context);
	assert_ptr_equal(mr->pd, pair.a.pd);
	assert_ptr_equal(mr->addr, addr);
	assert_int_equal(mr->length, length);
}

/* Writes bytes of a region to the other side's memory. va: of the first byte. */
static void
mr_write(const struct ibv_mr *mr, uint64_t va, uint32_t length)
{
	struct ibv_mr *to = ibv_reg_mr(pair.b.pd, pair.b.mem, length, ACCESS);
	struct ibv_sge sge = {.addr = va, .length = length, .lkey = mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)pair.b.mem}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	assert_non_null(to);
	wr.wr.rdma.rkey = to->rkey;
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(to), 0);
}

TEST_WITH(buffer_is_registered, setup, teardown)
{
	struct ibv_buf *buf = NULL;
	uint8_t *mem = ibv_alloc_buf(pair.a.pd, BYTES, &buf);
	struct ibv_mr *mr;

	assert_non_null(mem);
	assert_non_null(buf);
	assert_int_equal((uintptr_t)mem % (size_t)sysconf(_SC_PAGESIZE), 0);
	for (unsigned i = 0; i < BYTES; i++)
		mem[i] = (uint8_t)(i * 7);
	mr = ibv_reg_buf_mr(pair.a.pd, buf, mem, BYTES, ACCESS);
	mr_expect(mr, mem, BYTES);
	mr_write(mr, (uintptr_t)mem, BYTES);
	assert_memory_equal(pair.b.mem, mem, BYTES);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	/* a part of it, as the structure names it */
	mr = reg((struct mr_init_attr){.length = BYTES - 100,
		.comp_mask = MR_INIT_ADDR | MR_INIT_BUF,
		.addr = mem + 100,
		.buf = buf});
	mr_expect(mr, mem + 100, BYTES - 100);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	/* Plain memory is no DMA-buf. */
	errno = 0;
	assert_int_equal(ibv_export_buf_dmabuf_fd(buf), -1);
	assert_int_equal(errno, ENODATA);
	ibv_free_buf(buf);
}

TEST_WITH(range_is_within_the_buffer_of_the_pd, setup, teardown)
{
	const uint64_t mask = MR_INIT_ADDR | MR_INIT_BUF;
	struct ibv_pd *other = ibv_alloc_pd(pair.a.context);
	struct ibv_buf *buf;
	uint8_t *mem = ibv_alloc_buf(pair.a.pd, BYTES, &buf);

	assert_non_null(other);
	assert_non_null(mem);
	reg_fails(EINVAL, .comp_mask = mask, .addr = mem - 1, .length = 1, .buf = buf);
	reg_fails(
		EINVAL, .comp_mask = mask, .addr = mem, .length = BYTES + 1, .buf = buf);
	reg_fails(
		EINVAL, .comp_mask = mask, .addr = mem + 1, .length = BYTES, .buf = buf);
	reg_fails(EINVAL, .comp_mask = mask, .addr = mem + 1, .length = SIZE_MAX,
		.buf = buf);
	reg_fails(EINVAL, .comp_mask = mask, .addr = mem + BYTES + 1, .buf = buf);
	reg_fails(EINVAL, .comp_mask = mask, .addr = mem, .length = 1);
	reg_fails(EINVAL, .comp_mask = MR_INIT_BUF, .addr = mem, .length = 1, .buf = buf);
	errno = 0;
	assert_null(ibv_reg_buf_mr(other, buf, mem, BYTES, ACCESS));
	assert_int_equal(errno, EINVAL);
	ibv_free_buf(buf);
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

TEST_WITH(memory_is_registered_by_a_structure, setup, teardown)
{
	uint8_t *mem = pair.a.mem;
	struct ibv_mr *mr = reg((struct mr_init_attr){.length = BYTES,
		.access = ACCESS,
		.comp_mask = MR_INIT_ADDR,
		.addr = mem});

	mr_expect(mr, mem, BYTES);
	memset(mem, 0x5A, BYTES);
	mr_write(mr, (uintptr_t)mem, BYTES);
	assert_memory_equal(pair.b.mem, mem, BYTES);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = reg((struct mr_init_attr){.length = BYTES,
		.access = ACCESS,
		.comp_mask = MR_INIT_ADDR | MR_INIT_IOVA,
		.iova = 0x40000,
		.addr = mem});
	mr_expect(mr, mem, BYTES);
	memset(mem, 0xA5, BYTES);
	mr_write(mr, 0x40000, BYTES);
	assert_memory_equal(pair.b.mem, mem, BYTES);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	reg_fails(EINVAL, .comp_mask = MR_INIT_ADDR, .addr = mem, .length = BYTES,
		.access = IBV_ACCESS_REMOTE_WRITE);
}

/* Members without their bit are garbage. A program of rdma-core 59 passes a structure without
 * buf. */
TEST_WITH(members_are_read_if_the_mask_names_them, setup, teardown)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mr_init_attr attr, *shorter;
	struct ibv_mr *mr;

	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(mprotect(map + page, page, PROT_NONE), 0);
	memset(&attr, 0xEE, sizeof(attr));
	attr.length = BYTES;
	attr.access = ACCESS;
	attr.comp_mask = MR_INIT_ADDR;
	attr.addr = pair.a.mem;
	shorter =
		(struct mr_init_attr *)(map + page - offsetof(struct mr_init_attr, buf));
	memcpy(shorter, &attr, offsetof(struct mr_init_attr, buf));
	mr = ibv_reg_mr_ex(pair.a.pd, (struct ibv_mr_init_attr *)shorter);
	mr_expect(mr, pair.a.mem, BYTES);
	mr_write(mr, (uintptr_t)pair.a.mem, BYTES);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(map, 2 * page);
}

/* A DMA handle is absent; what no device could do is EINVAL. */
TEST_WITH(other_regions_are_refused, setup, teardown)
{
	const uint64_t fd = MR_INIT_FD | MR_INIT_FD_OFFSET | MR_INIT_IOVA;
	uint8_t *mem = pair.a.mem;

	reg_fails(EOPNOTSUPP, .comp_mask = MR_INIT_ADDR | MR_INIT_DMAH, .addr = mem,
		.length = 1);
	reg_fails(
		EOPNOTSUPP, .comp_mask = MR_INIT_ADDR | 1 << 6, .addr = mem, .length = 1);
	reg_fails(EBADF, .comp_mask = fd, .fd = -1, .length = 1);
	reg_fails(EINVAL, .comp_mask = fd | MR_INIT_ADDR, .addr = mem, .length = 1);
	reg_fails(EINVAL, .comp_mask = MR_INIT_FD | MR_INIT_IOVA, .length = 1);
	reg_fails(EINVAL, .comp_mask = MR_INIT_FD | MR_INIT_FD_OFFSET, .length = 1);
	reg_fails(EINVAL, .comp_mask = MR_INIT_ADDR | MR_INIT_FD_OFFSET, .addr = mem,
		.length = 1);
	reg_fails(EINVAL, .comp_mask = MR_INIT_IOVA, .length = 1);
	reg_fails(EINVAL, .comp_mask = 0, .length = 1);
}
