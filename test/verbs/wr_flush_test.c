/* SPDX-License-Identifier: BSD-3-Clause */
/* FLUSH by rocade_wr_flush(), and by the member that ibv_wr_flush() of a later header calls. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rocade/flush.h>

#include "case.h"
#include "verbs_pair.h"

#define OPS (IBV_QP_EX_WITH_RDMA_WRITE | ROCADE_QP_EX_WITH_FLUSH)
#define FAR 65536
#define LEN 10000
#define PERSISTENT 2

static struct verbs_pair pair;
static struct ibv_mr *region; /* of b, with the right for FLUSH */
static struct ibv_qp_ex *a;

static int
setup(void **state)
{
	pair_open(&pair,
		&(struct verbs_pair_conf){.ops = OPS,
			.access = IBV_ACCESS_REMOTE_WRITE | ROCADE_ACCESS_FLUSH_GLOBAL,
			.depth = 4});
	region = ibv_reg_mr(pair.b.pd, pair.b.mem, 131072,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			ROCADE_ACCESS_FLUSH_GLOBAL);
	assert_non_null(region);
	a = ibv_qp_to_qp_ex(pair.a.qp[0]);
	return 0;
}

static int
teardown(void **state)
{
	assert_int_equal(ibv_dereg_mr(region), 0);
	pair_close(&pair);
	return 0;
}

static struct ibv_wc
done(enum ibv_wc_status status)
{
	struct ibv_wc wc;

	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.wr_id, 7);
	return wc;
}

/* Begins a section with an unsignaled WRITE. Later requests of it are signaled. */
static void
write_begin(uint8_t byte)
{
	memset(pair.a.mem, byte, LEN);
	ibv_wr_start(a);
	a->wr_id = 6;
	a->wr_flags = 0;
	ibv_wr_rdma_write(a, region->rkey, (uintptr_t)pair.b.mem + FAR);
	ibv_wr_set_sge(a, pair.a.mr->lkey, (uintptr_t)pair.a.mem, LEN);
	a->wr_id = 7;
	a->wr_flags = IBV_SEND_SIGNALED;
}

static int
flush(uint32_t rkey, size_t len, unsigned type, unsigned level)
{
	return rocade_wr_flush(
		a, rkey, (uintptr_t)pair.b.mem + FAR, len, (uint8_t)type, (uint8_t)level);
}

/* The WRITE in front of it has arrived when it completes. */
TEST_WITH(flush_completes_behind_a_write, setup, teardown)
{
	write_begin(1);
	assert_int_equal(
		flush(region->rkey, LEN, ROCADE_FLUSH_GLOBAL, ROCADE_FLUSH_RANGE), 0);
	assert_int_equal(ibv_wr_complete(a), 0);
	assert_int_equal(done(IBV_WC_SUCCESS).opcode, ROCADE_WC_FLUSH);
	assert_memory_equal(pair.b.mem + FAR, pair.a.mem, LEN);
	write_begin(2);
	assert_int_equal(flush(region->rkey, 0, ROCADE_FLUSH_GLOBAL, ROCADE_FLUSH_MR), 0);
	assert_int_equal(ibv_wr_complete(a), 0);
	done(IBV_WC_SUCCESS);
	assert_memory_equal(pair.b.mem + FAR, pair.a.mem, LEN);
}

/* As a program that is built with the header of rdma-core 47: ibv_wr_flush() calls the member behind
 * wr_atomic_write. */
TEST_WITH(programs_with_a_later_header_flush, setup, teardown)
{
	void (*member)(struct ibv_qp_ex * qp, uint32_t rkey, uint64_t addr, size_t len,
		uint8_t type, uint8_t level);

	memcpy(&member, (uint8_t *)&a->wr_atomic_write + sizeof(member), sizeof(member));
	write_begin(3);
	member(a, region->rkey, (uintptr_t)pair.b.mem + FAR, LEN, ROCADE_FLUSH_GLOBAL,
		ROCADE_FLUSH_RANGE);
	assert_int_equal(ibv_wr_complete(a), 0);
	assert_int_equal(done(IBV_WC_SUCCESS).opcode, ROCADE_WC_FLUSH);
	assert_memory_equal(pair.b.mem + FAR, pair.a.mem, LEN);
}

/* The device advertises FLUSH for global visibility. That for persistence it does not, and no region can have it. */
TEST_WITH(placement_types_are_advertised, setup, teardown)
{
	const int persistent = 1 << 9; /* IBV_ACCESS_FLUSH_PERSISTENT */
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(pair.a.context, NULL, &attr), 0);
	assert_true(attr.device_cap_flags_ex & ROCADE_DEVICE_FLUSH_GLOBAL);
	assert_false(attr.device_cap_flags_ex & ROCADE_DEVICE_FLUSH_GLOBAL << 1);
	errno = 0;
	assert_null(ibv_reg_mr(pair.b.pd, pair.b.mem, 4096,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | persistent));
	assert_int_equal(errno, EINVAL);
}

/* The responder has no memory that is persistent, and checks key and range. */
TEST_WITH(flush_without_the_right_is_refused, setup, teardown)
{
	const struct {
		uint32_t rkey;
		size_t len;
		unsigned type;
	} refused[] = {
		{region->rkey, LEN, ROCADE_FLUSH_GLOBAL | PERSISTENT},
		{region->rkey, FAR + 1, ROCADE_FLUSH_GLOBAL},
		{pair.b.mr->rkey, LEN, ROCADE_FLUSH_GLOBAL},
	};

	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		write_begin((uint8_t)(4 + i));
		assert_int_equal(flush(refused[i].rkey, refused[i].len, refused[i].type,
					 ROCADE_FLUSH_RANGE),
			0);
		assert_int_equal(ibv_wr_complete(a), 0);
		done(IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(
			pair_event(&pair, &pair.b).event_type, IBV_EVENT_QP_ACCESS_ERR);
		pair_modify_state(pair.a.qp[0], IBV_QPS_RESET);
		pair_modify_state(pair.b.qp[0], IBV_QPS_RESET);
		pair_connect(&pair, 0);
	}
}

/* A section with an invalid FLUSH fails, and nothing of it is sent. */
TEST_WITH(invalid_flush_fails_section, setup, teardown)
{
	memset(pair.b.mem + FAR, 0, LEN);
	write_begin(9);
	assert_int_equal(flush(region->rkey, (size_t)1 << 32, ROCADE_FLUSH_GLOBAL, 0), 0);
	assert_int_equal(ibv_wr_complete(a), EINVAL);
	write_begin(9);
	assert_int_equal(flush(region->rkey, LEN, ROCADE_FLUSH_GLOBAL, 4), 0);
	assert_int_equal(ibv_wr_complete(a), EINVAL);
	write_begin(9);
	assert_int_equal(flush(region->rkey, LEN, 16, ROCADE_FLUSH_RANGE), 0);
	assert_int_equal(ibv_wr_complete(a), EINVAL);
	write_begin(9); /* it takes no SGE */
	assert_int_equal(flush(region->rkey, LEN, ROCADE_FLUSH_GLOBAL, 0), 0);
	ibv_wr_set_sge(a, pair.a.mr->lkey, (uintptr_t)pair.a.mem, 8);
	assert_int_equal(ibv_wr_complete(a), EINVAL);
	pair_no_completion(&pair, pair.a.send_cq);
	assert_int_equal(pair.b.mem[FAR], 0);
}

TEST_WITH(flush_needs_a_qp_that_has_it, setup, teardown)
{
	struct verbs_pair_conf conf = pair.conf;
	struct ibv_qp *qp;

	conf.ops = 0;
	qp = pair_qp_create(&conf, &pair.a, 0);
	assert_null(ibv_qp_to_qp_ex(qp));
	assert_int_equal(rocade_wr_flush((struct ibv_qp_ex *)qp, 1, 0, 0, 1, 0), EINVAL);
	assert_non_null(strstr(rocade_error(), "without send_ops_flags"));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	conf.ops = IBV_QP_EX_WITH_RDMA_WRITE;
	qp = pair_qp_create(&conf, &pair.b, 0);
	pair_to_init(qp);
	pair_to_rtr(&pair.conf, qp, &pair.a.gid, 77);
	pair_to_rts(&pair.conf, qp);
	ibv_wr_start(ibv_qp_to_qp_ex(qp));
	assert_int_equal(rocade_wr_flush(ibv_qp_to_qp_ex(qp), 1, 0, 0, 1, 0), 0);
	assert_int_equal(ibv_wr_complete(ibv_qp_to_qp_ex(qp)), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}
