/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "case.h"
#include "on_demand_fixture.h"

struct verbs_pair pair;
uint8_t *buffer;
struct ibv_mr *mr;
unsigned qp;

void
begin_with(bool handler)
{
	struct verbs_pair_conf conf = {.access = REMOTE,
		.depth = 4,
		.qps = QPS,
		.cap = {.max_send_wr = 8,
			.max_recv_wr = 8,
			.max_send_sge = 2,
			.max_recv_sge = 2},
		.mr_fault_handler = handler};

	pair_open(&pair, &conf);
	qp = 0;
	buffer = mmap(
		NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(buffer != MAP_FAILED);
}

void
begin(int access)
{
	begin_with(true);
	mr = ibv_reg_mr(pair.b.pd, buffer, BYTES, access | IBV_ACCESS_ON_DEMAND);
	assert_non_null(mr);
}

void
end(void)
{
	if (mr != NULL)
		assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = NULL;
	munmap(buffer, BYTES);
	pair_close(&pair);
}

bool
is_mapped(const uint8_t *page)
{
	unsigned char present;

	return mincore((void *)(uintptr_t)page, PAGE, &present) == 0;
}

bool
is_present(const uint8_t *page)
{
	unsigned char present = 0;

	assert_int_equal(mincore((void *)(uintptr_t)page, PAGE, &present), 0);
	return (present & 1) != 0;
}

void
unmap(unsigned page)
{
	assert_int_equal(munmap(buffer + page * PAGE, PAGE), 0);
}

void
map_again(unsigned page)
{
	assert_ptr_equal(
		mmap(buffer + page * PAGE, PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
		buffer + page * PAGE);
}

void
completes(struct verbs_side *s, struct ibv_cq *cq, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	pair_poll_cq(&pair, cq, &wc, 1);
	assert_int_equal(wc.status, status);
	if (status == IBV_WC_REM_ACCESS_ERR)
		assert_int_equal(
			pair_event(&pair, s == &pair.a ? &pair.b : &pair.a).event_type,
			IBV_EVENT_QP_ACCESS_ERR);
	if (status != IBV_WC_SUCCESS)
		qp++;
}

void
remote(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey, uint32_t len,
	enum ibv_wc_status status)
{
	struct ibv_sge sge = {(uintptr_t)pair.a.mem, len, pair.a.mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = opcode,
					 .send_flags = IBV_SEND_SIGNALED};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	assert_int_equal(ibv_post_send(pair.a.qp[qp], &wr, &bad), 0);
	completes(&pair.a, pair.a.send_cq, status);
}

uint64_t
at(unsigned page, int offset)
{
	return (uintptr_t)(buffer + page * PAGE + offset);
}

void
local_send(uint64_t addr, uint32_t len, enum ibv_wc_status status)
{
	struct ibv_sge sge = {addr, len, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED};
	bool good = status == IBV_WC_SUCCESS;

	if (good)
		assert_int_equal(pair_post_recv(&pair.a, qp, 1, 0, len), 0);
	assert_int_equal(ibv_post_send(pair.b.qp[qp], &wr, &bad), 0);
	if (good)
		completes(&pair.a, pair.a.recv_cq, status);
	completes(&pair.b, pair.b.send_cq, status);
}
