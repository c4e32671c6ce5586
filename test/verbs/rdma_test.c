/* SPDX-License-Identifier: BSD-3-Clause */
/* WRITE, READ and atomics as ibv_post_send(3) specifies them, and the access rights they
 * need. */
#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "verbs_pair.h"

#define ALL_REMOTE                                                                       \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define WINDOW 65536 /* offset of the remote region in b's memory */
#define FAR 262144

static struct verbs_pair pair;
static struct ibv_mr *remote; /* of b, with all access rights */

/* Takes both QPs from RESET to RTS with these access rights and READ depth. */
static void
connect_with(unsigned access, uint8_t depth)
{
	struct ibv_qp *qp[2] = {pair.a.qp[0], pair.b.qp[0]};

	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
			.port_num = 1,
			.qp_access_flags = access};

		pair_modify_state(qp[i], IBV_QPS_RESET);
		assert_int_equal(ibv_modify_qp(qp[i], &attr,
					 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						 IBV_QP_ACCESS_FLAGS),
			0);
	}
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr attr = {
			.qp_state = IBV_QPS_RTR,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = qp[!i]->qp_num,
			.max_dest_rd_atomic = depth,
			.min_rnr_timer = 1,
			.ah_attr = {.is_global = 1,
				.port_num = 1,
				.grh = {.dgid = i == 0 ? pair.b.gid : pair.a.gid,
					.hop_limit = 64}},
		};

		assert_int_equal(
			ibv_modify_qp(qp[i], &attr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			0);
		attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
			.timeout = 14,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.max_rd_atomic = depth};
		assert_int_equal(ibv_modify_qp(qp[i], &attr,
					 IBV_QP_STATE | IBV_QP_TIMEOUT |
						 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
			0);
	}
}

static int
setup(void **state)
{
	pair_open(&pair, &(struct verbs_pair_conf){.srq_wr = 16,
				 .unconnected = true,
				 .cap = {.max_send_sge = 3, .max_inline_data = 64}});
	remote = ibv_reg_mr(
		pair.b.pd, pair.b.mem + WINDOW, FAR, IBV_ACCESS_LOCAL_WRITE | ALL_REMOTE);
	assert_non_null(remote);
	connect_with(ALL_REMOTE, 16);
	for (size_t i = 0; i < pair.conf.bytes; i++)
		pair.a.mem[i] = (uint8_t)(i * 13 + i / 251);
	/* Resolve the MACs of both ends. */
	rocade_port_resolve(pair.b.port, &pair.a.gid);
	rocade_port_resolve(pair.a.port, &pair.b.gid);
	pair_drain(&pair);
	return 0;
}

static int
teardown(void **state)
{
	assert_int_equal(ibv_dereg_mr(remote), 0);
	pair_close(&pair);
	return 0;
}

static struct ibv_sge
local_sge(size_t offset, uint32_t len)
{
	return (struct ibv_sge){.addr = (uintptr_t)pair.a.mem + offset,
		.length = len,
		.lkey = pair.a.mr->lkey};
}

static struct ibv_send_wr
request(enum ibv_wr_opcode opcode, struct ibv_sge *sge, int n, size_t offset)
{
	struct ibv_send_wr wr = {.wr_id = 42,
		.sg_list = sge,
		.num_sge = n,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED};

	wr.wr.rdma.remote_addr = (uintptr_t)pair.b.mem + WINDOW + offset;
	wr.wr.rdma.rkey = remote->rkey;
	return wr;
}

static struct ibv_wc
expect_status(struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(pair.a.qp[0], wr, &bad), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.wr_id, 42);
	return wc;
}

TEST_WITH(test_write, setup, teardown)
{
	struct ibv_sge sge[3] = {
		local_sge(5, 3000), local_sge(100000, 0), local_sge(7000, 2500)};
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, sge, 3, 9);
	struct ibv_wc wc;

	wc = expect_status(&wr, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_WRITE);
	assert_memory_equal(pair.b.mem + WINDOW + 9, pair.a.mem + 5, 3000);
	assert_memory_equal(pair.b.mem + WINDOW + 9 + 3000, pair.a.mem + 7000, 2500);
	assert_int_equal(pair.b.mem[WINDOW + 8], 0);
	assert_int_equal(pair.b.mem[WINDOW + 9 + 5500], 0);
	pair_no_completion(&pair, pair.b.recv_cq); /* no completion at the peer */
	/* Without payload the key is not checked. */
	wr = request(IBV_WR_RDMA_WRITE, NULL, 0, 0);
	wr.wr.rdma.rkey = 0;
	wr.wr.rdma.remote_addr = 0;
	expect_status(&wr, IBV_WC_SUCCESS);
}

TEST_WITH(test_write_inline, setup, teardown)
{
	uint8_t data[64];
	struct ibv_sge sge = {.addr = (uintptr_t)data, .length = sizeof(data)};
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, &sge, 1, 0);
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	memset(data, 0x66, sizeof(data));
	wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	memset(data, 0, sizeof(data));
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < sizeof(data); i++)
		assert_int_equal(pair.b.mem[WINDOW + i], 0x66);
}

/* A WRITE with immediate data consumes a receive and leaves its buffers unchanged. */
TEST_WITH(test_write_immediate, setup, teardown)
{
	struct ibv_sge sge = local_sge(0, 5000);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE_WITH_IMM, &sge, 1, 0);
	struct ibv_wc wc;

	wr.imm_data = 0x01020304;
	assert_int_equal(pair_post_srq(&pair.b, 8, 0, 64), 0);
	expect_status(&wr, IBV_WC_SUCCESS);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.wr_id, 8);
	assert_int_equal(wc.byte_len, 5000);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, 0x01020304);
	assert_memory_equal(pair.b.mem + WINDOW, pair.a.mem, 5000);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(pair.b.mem[i], 0);
}

TEST_WITH(test_read, setup, teardown)
{
	struct ibv_sge sge[3] = {
		local_sge(10, 1500), local_sge(9000, 1), local_sge(20000, 8000)};
	struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, sge, 3, 77);
	uint8_t got[9501];
	struct ibv_wc wc;

	for (size_t i = 0; i < 20000; i++)
		pair.b.mem[WINDOW + i] = (uint8_t)(i * 7 + 3);
	wc = expect_status(&wr, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
	assert_int_equal(wc.byte_len, 9501);
	memcpy(got, pair.a.mem + 10, 1500);
	memcpy(got + 1500, pair.a.mem + 9000, 1);
	memcpy(got + 1501, pair.a.mem + 20000, 8000);
	assert_memory_equal(got, pair.b.mem + WINDOW + 77, sizeof(got));
	assert_int_equal(pair.a.mem[28000], (uint8_t)(28000 * 13 + 28000 / 251));
	wr = request(IBV_WR_RDMA_READ, NULL, 0, 0);
	expect_status(&wr, IBV_WC_SUCCESS);
}

static uint64_t *
word(struct verbs_side *s, size_t offset)
{
	return (uint64_t *)(void *)(s->mem + offset);
}

TEST_WITH(test_atomics, setup, teardown)
{
	struct ibv_sge sge = local_sge(64, 8);
	struct ibv_send_wr wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1, 0);
	struct ibv_wc wc;

	*word(&pair.b, WINDOW + 16) = 1000;
	wr.wr.atomic.remote_addr = (uintptr_t)word(&pair.b, WINDOW + 16);
	wr.wr.atomic.rkey = remote->rkey;
	wr.wr.atomic.compare_add = 5;
	wc = expect_status(&wr, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_FETCH_ADD);
	assert_int_equal(*word(&pair.a, 64), 1000);
	assert_int_equal(*word(&pair.b, WINDOW + 16), 1005);
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 1005;
	wr.wr.atomic.swap = UINT64_C(0x1122334455667788);
	wc = expect_status(&wr, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_COMP_SWAP);
	assert_int_equal(*word(&pair.a, 64), 1005);
	assert_int_equal(*word(&pair.b, WINDOW + 16), UINT64_C(0x1122334455667788));
	expect_status(&wr, IBV_WC_SUCCESS); /* the compare fails now */
	assert_int_equal(*word(&pair.a, 64), UINT64_C(0x1122334455667788));
	assert_int_equal(*word(&pair.b, WINDOW + 16), UINT64_C(0x1122334455667788));
}

/* More atomics than may be outstanding: all complete in order, each executed once. */
TEST_WITH(more_atomics_than_outstanding_limit, setup, teardown)
{
	struct ibv_sge sge = local_sge(0, 8);
	struct ibv_send_wr wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1, 0);
	struct ibv_send_wr *bad;
	struct ibv_wc wc[60];

	wr.wr.atomic.remote_addr = (uintptr_t)word(&pair.b, WINDOW);
	wr.wr.atomic.rkey = remote->rkey;
	wr.wr.atomic.compare_add = 1;
	for (unsigned i = 0; i < 60; i++) {
		sge = local_sge(8 * i, 8);
		wr.wr_id = i;
		assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	}
	pair_poll_cq(&pair, pair.a.send_cq, wc, 60);
	for (unsigned i = 0; i < 60; i++) {
		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		assert_int_equal(wc[i].wr_id, i);
		assert_int_equal(*word(&pair.a, 8 * i), i);
	}
	assert_int_equal(*word(&pair.b, WINDOW), 60);
}

/* The responder refuses the request, and the requester gets an error. Then both
 * reconnect. */
static void
expect_access_error(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey)
{
	struct ibv_sge sge = local_sge(0, 8);
	struct ibv_send_wr wr = request(opcode, &sge, 1, 0);

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	expect_status(&wr, IBV_WC_REM_ACCESS_ERR);
	connect_with(ALL_REMOTE, 16);
}

TEST_WITH(access_violations_fail, setup, teardown)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		unsigned needs;
	} ops[] = {{IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE},
		{IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ},
		{IBV_WR_ATOMIC_CMP_AND_SWP, IBV_ACCESS_REMOTE_ATOMIC}};
	struct ibv_pd *pd = ibv_alloc_pd(pair.b.context);
	uint8_t *mem = pair.b.mem + WINDOW;
	uint64_t addr = (uintptr_t)mem;

	for (size_t i = 0; i < 3; i++) {
		struct ibv_mr *mr;

		/* An invalid key, one byte beyond the end, and the end of the address
		 * space. */
		expect_access_error(ops[i].opcode, addr, remote->rkey ^ 0x100);
		expect_access_error(ops[i].opcode,
			addr + FAR - (ops[i].opcode == IBV_WR_RDMA_READ ? 7 : 0),
			remote->rkey);
		expect_access_error(ops[i].opcode, UINT64_MAX - 7, remote->rkey);
		/* A region that grants everything but this. */
		mr = ibv_reg_mr(pair.b.pd, mem, 64,
			(int)(IBV_ACCESS_LOCAL_WRITE | (ALL_REMOTE & ~ops[i].needs)));
		expect_access_error(ops[i].opcode, addr, mr->rkey);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		/* A region of another PD. */
		mr = ibv_reg_mr(pd, mem, 64, IBV_ACCESS_LOCAL_WRITE | ALL_REMOTE);
		expect_access_error(ops[i].opcode, addr, mr->rkey);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		/* A QP that does not allow it: an invalid request (IBA 9.7.4.1.1). */
		connect_with(ALL_REMOTE & ~ops[i].needs, 16);
		struct ibv_sge sge = local_sge(0, 8);
		struct ibv_send_wr wr = request(ops[i].opcode, &sge, 1, 0), *bad;
		struct ibv_wc wc;
		if (ops[i].opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
			wr.wr.atomic.remote_addr = addr;
			wr.wr.atomic.rkey = remote->rkey;
		}
		assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
		pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_REM_INV_REQ_ERR);
		connect_with(ALL_REMOTE, 16);
	}
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

#define ROUNDS 150
#define BLOCK 5000u

/* One of the three requests of a round: WRITE, READ back, fetch and add. */
static void
mixed_post(unsigned i, unsigned kind)
{
	struct ibv_sge sge = local_sge(BLOCK * (i % 8), BLOCK);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, &sge, 1, BLOCK * (i % 8)),
			   *bad;

	wr.wr_id = 3 * i + kind;
	wr.send_flags = kind == 2 ? (unsigned)IBV_SEND_SIGNALED : 0;
	if (kind == 1) { /* after the WRITE: reads what it wrote */
		wr.opcode = IBV_WR_RDMA_READ;
		sge.addr += 8 * BLOCK;
	} else if (kind == 2) {
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		sge = local_sge(16 * BLOCK, 8);
		wr.wr.atomic.remote_addr = (uintptr_t)word(&pair.b, WINDOW + 8 * BLOCK);
		wr.wr.atomic.rkey = remote->rkey;
		wr.wr.atomic.compare_add = 1;
	}
	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
}

/* Both directions lose, duplicate, reorder and corrupt frames. Every byte arrives, and
 * every atomic runs once. The signaled atomic proves that the two requests before it are
 * done. */
TEST_WITH(transfers_survive_impaired_wire, setup, teardown)
{
	const struct rocade_impair some = {.loss_ppm = 20000,
		.duplicate_ppm = 20000,
		.reorder_ppm = 20000,
		.corrupt_ppm = 20000,
		.seed = 3};
	const struct rocade_impair none = {0};
	struct rocade_impair_stats stats;

	*word(&pair.b, WINDOW + 8 * BLOCK) = 0;
	assert_int_equal(rocade_port_impair(pair.a.port, &some), 0);
	assert_int_equal(rocade_port_impair(pair.b.port, &some), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint8_t *from = pair.a.mem + BLOCK * (i % 8);
		struct ibv_wc wc;

		memset(from, (int)(i + 1), BLOCK);
		for (unsigned kind = 0; kind < 3; kind++)
			mixed_post(i, kind);
		pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, 3 * i + 2);
		assert_memory_equal(pair.b.mem + WINDOW + BLOCK * (i % 8), from, BLOCK);
		assert_memory_equal(from + 8 * BLOCK, from, BLOCK);
		assert_int_equal(*word(&pair.a, 16 * BLOCK), i);
	}
	assert_int_equal(*word(&pair.b, WINDOW + 8 * BLOCK), ROUNDS);
	assert_int_equal(rocade_port_impair_stats(pair.b.port, &stats), 0);
	assert_true(stats.lost != 0 && stats.duplicated != 0 && stats.reordered != 0 &&
		    stats.corrupted != 0);
	assert_int_equal(rocade_port_impair(pair.a.port, &none), 0);
	assert_int_equal(rocade_port_impair(pair.b.port, &none), 0);
}
