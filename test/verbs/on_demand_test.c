/* SPDX-License-Identifier: BSD-3-Clause */
/* Accesses to on-demand regions (ibv_reg_mr(3)): pages that are missing, and pages that appear
 * later. A request that meets a missing page fails; the process and the region live on. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "case.h"
#include "on_demand_fixture.h"

TEST(registration_faults_nothing_in)
{
	begin(ALL);
	assert_ptr_equal(mr->addr, buffer);
	assert_int_equal(mr->length, BYTES);
	for (unsigned i = 0; i < PAGES; i++)
		assert_false(is_present(buffer + i * PAGE));
	memset(pair.a.mem, 0x5A, 64);
	remote(IBV_WR_RDMA_WRITE, at(3, 100), mr->rkey, 64, IBV_WC_SUCCESS);
	assert_memory_equal(buffer + 3 * PAGE + 100, pair.a.mem, 64);
	assert_true(is_present(buffer + 3 * PAGE));
	assert_false(is_present(buffer + 4 * PAGE));
	end();
}

/* A page that is missing fails the request that needs it. Later it may be there. */
static void
remote_run(enum ibv_wr_opcode opcode, uint32_t len)
{
	begin(ALL);
	unmap(2);
	memset(buffer + PAGE, 0x11, PAGE);
	memset(pair.a.mem, 0x5A, len);
	remote(opcode, at(2, 0), mr->rkey, len, IBV_WC_REM_ACCESS_ERR);
	assert_false(is_mapped(buffer + 2 * PAGE));
	remote(opcode, at(1, 0), mr->rkey, len, IBV_WC_SUCCESS);
	map_again(2);
	remote(opcode, at(2, 0), mr->rkey, len, IBV_WC_SUCCESS);
	end();
}

TEST(missing_page_refuses_requests)
{
	remote_run(IBV_WR_RDMA_WRITE, 64);
	remote_run(IBV_WR_RDMA_WRITE, PAGE);
	remote_run(IBV_WR_RDMA_READ, 64);
	remote_run(IBV_WR_RDMA_READ, PAGE);
	remote_run(IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	remote_run(IBV_WR_ATOMIC_WRITE, 8);
}

/* Of a packet either all bytes are written or none. */
TEST(missing_second_page_writes_nothing)
{
	begin(ALL);
	memset(buffer, 0x11, 2 * PAGE);
	unmap(2);
	memset(pair.a.mem, 0x5A, 64);
	remote(IBV_WR_RDMA_WRITE, at(2, -32), mr->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	for (unsigned i = 0; i < 2 * PAGE; i++)
		assert_int_equal(buffer[i], 0x11);
	assert_false(is_mapped(buffer + 2 * PAGE));
	end();
}

/* A READ of several packets fails at the one that misses its page. */
TEST(long_read_fails_in_the_middle)
{
	begin(ALL);
	memset(buffer, 0x22, BYTES);
	unmap(3);
	memset(pair.a.mem, 0, BYTES);
	remote(IBV_WR_RDMA_READ, at(0, 0), mr->rkey, BYTES, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(pair.a.mem[3 * PAGE], 0);
	/* The requester's own memory. */
	remote(IBV_WR_RDMA_WRITE, at(4, 0), mr->rkey, 4 * PAGE, IBV_WC_SUCCESS);
	assert_int_equal(buffer[7 * PAGE], 0);
	end();
}

TEST(rights_of_the_mapping_count)
{
	begin(ALL);
	memset(buffer, 0x11, BYTES);
	assert_int_equal(mprotect(buffer, 2 * PAGE, PROT_READ), 0);
	remote(IBV_WR_RDMA_READ, at(0, 0), mr->rkey, 64, IBV_WC_SUCCESS);
	assert_int_equal(pair.a.mem[63], 0x11);
	memset(pair.a.mem, 0x5A, 64);
	remote(IBV_WR_RDMA_WRITE, at(0, 0), mr->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	remote(IBV_WR_RDMA_WRITE, at(2, -32), mr->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mprotect(buffer, PAGE, PROT_NONE), 0);
	remote(IBV_WR_RDMA_READ, at(0, 0), mr->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mprotect(buffer, 2 * PAGE, PROT_READ | PROT_WRITE), 0);
	for (unsigned i = 0; i < BYTES; i++)
		assert_int_equal(buffer[i], 0x11);
	remote(IBV_WR_RDMA_WRITE, at(0, 0), mr->rkey, 64, IBV_WC_SUCCESS);
	assert_int_equal(buffer[0], 0x5A);
	end();
}

TEST(truncated_file_refuses_requests)
{
	int file = memfd_create("on_demand", MFD_CLOEXEC);

	begin(ALL);
	assert_int_equal(ftruncate(file, BYTES), 0);
	assert_ptr_equal(mmap(buffer, BYTES, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED, file, 0),
		buffer);
	assert_int_equal(ftruncate(file, PAGE), 0);
	remote(IBV_WR_RDMA_WRITE, at(0, 0), mr->rkey, 64, IBV_WC_SUCCESS);
	remote(IBV_WR_RDMA_WRITE, at(1, 0), mr->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	remote(IBV_WR_RDMA_READ, at(1, 0), mr->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ftruncate(file, BYTES), 0);
	remote(IBV_WR_RDMA_READ, at(1, 0), mr->rkey, 64, IBV_WC_SUCCESS);
	end();
	close(file);
}

TEST(missing_page_fails_a_send)
{
	begin(IBV_ACCESS_LOCAL_WRITE);
	memset(buffer + PAGE, 0x11, PAGE);
	unmap(2);
	local_send(at(2, 0), 64, IBV_WC_LOC_PROT_ERR);
	local_send(at(2, -8), 64, IBV_WC_LOC_PROT_ERR);
	local_send(at(1, 0), PAGE, IBV_WC_SUCCESS);
	assert_int_equal(pair.a.mem[PAGE - 1], 0x11);
	map_again(2);
	local_send(at(2, -8), 64, IBV_WC_SUCCESS);
	assert_int_equal(pair.a.mem[7], 0x11);
	assert_int_equal(pair.a.mem[8], 0);
	end();
}

/* Of a receive with two SGEs, one of which misses its page, neither is written. */
static void
receive(uint64_t first, uint64_t second, bool good)
{
	struct ibv_sge sge[2] = {{first, 32, mr->lkey}, {second, 32, mr->lkey}};
	struct ibv_recv_wr *bad, wr = {.sg_list = sge, .num_sge = 2};

	memset(pair.a.mem, 0x5A, 64);
	assert_int_equal(ibv_post_recv(pair.b.qp[qp], &wr, &bad), 0);
	assert_int_equal(pair_send(&pair.a, qp, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	if (good)
		completes(&pair.b, pair.b.recv_cq, IBV_WC_SUCCESS);
	completes(&pair.a, pair.a.send_cq, good ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
	if (good)
		return;
	qp--;
	completes(&pair.b, pair.b.recv_cq, IBV_WC_LOC_PROT_ERR);
}

TEST(missing_page_fails_a_receive)
{
	begin(IBV_ACCESS_LOCAL_WRITE);
	memset(buffer, 0x11, BYTES);
	unmap(2);
	receive(at(1, 0), at(2, 0), false);
	receive(at(2, 0), at(1, 0), false);
	receive(at(2, -8), at(1, 0), false);
	for (unsigned i = 0; i < 2 * PAGE; i++)
		assert_int_equal(buffer[i], 0x11);
	receive(at(1, 0), at(3, 0), true);
	assert_int_equal(buffer[PAGE + 31], 0x5A);
	assert_int_equal(buffer[3 * PAGE + 31], 0x5A);
	assert_int_equal(buffer[3 * PAGE + 32], 0x11);
	end();
}

/* ---- All memory of the process ---- */

TEST(implicit_region_is_all_memory)
{
	static uint8_t global[64];

	begin_with(true);
	mr = ibv_reg_mr(pair.b.pd, NULL, SIZE_MAX, ALL | IBV_ACCESS_ON_DEMAND);
	assert_non_null(mr);
	assert_null(mr->addr);
	assert_int_equal(mr->length, SIZE_MAX);
	memset(pair.a.mem, 0x5A, 64);
	remote(IBV_WR_RDMA_WRITE, at(5, 0), mr->rkey, 64, IBV_WC_SUCCESS);
	assert_int_equal(buffer[5 * PAGE + 63], 0x5A);
	remote(IBV_WR_RDMA_WRITE, (uintptr_t)global, mr->rkey, 64, IBV_WC_SUCCESS);
	assert_int_equal(global[63], 0x5A);
	unmap(5);
	remote(IBV_WR_RDMA_WRITE, at(5, 0), mr->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	assert_false(is_mapped(buffer + 5 * PAGE));
	/* Nothing is mapped there, ever: the kernel's addresses, and those that no CPU has. */
	remote(IBV_WR_RDMA_READ, 0, mr->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	remote(IBV_WR_RDMA_READ, 64, mr->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	remote(IBV_WR_RDMA_READ, UINT64_MAX - 64, mr->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	remote(IBV_WR_RDMA_WRITE, UINT64_MAX - 63, mr->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	remote(IBV_WR_RDMA_WRITE, UINT64_C(1) << 62, mr->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	local_send((uintptr_t)global, 64, IBV_WC_SUCCESS);
	local_send(at(5, 0), 64, IBV_WC_LOC_PROT_ERR);
	end();
}

TEST(implicit_region_has_its_rights_only)
{
	begin_with(true);
	mr = ibv_reg_mr(
		pair.b.pd, NULL, SIZE_MAX, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	remote(IBV_WR_RDMA_READ, at(0, 0), mr->rkey, 64, IBV_WC_SUCCESS);
	remote(IBV_WR_RDMA_WRITE, at(0, 0), mr->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(buffer[0], 0);
	end();
}
