/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of READ share: a pair, its target area and a request made by hand. */
#ifndef ROCADE_TEST_QP_READ_BED_H
#define ROCADE_TEST_QP_READ_BED_H

#include <string.h>

#include "qp_pair.h"

static struct pair p;

#define REMOTE 0x8000
#define UNTOUCHED 0xC3
#define FIRST OPCODE_RC_READ_RESPONSE_FIRST
#define MIDDLE OPCODE_RC_READ_RESPONSE_MIDDLE
#define LAST OPCODE_RC_READ_RESPONSE_LAST
#define ONLY OPCODE_RC_READ_RESPONSE_ONLY

static void
init(uint8_t max_rd, uint8_t max_dest)
{
	struct pair_conf conf = pair_defaults_rdma();

	conf.max_rd = max_rd;
	conf.max_dest_rd = max_dest;
	pair_init(&p, &conf);
	bytes_fill(p.b.mem + REMOTE, 0x8000, 1);
}

static void
reset_all(void)
{
	wire_drop_all(&p.a);
	wire_drop_all(&p.b);
	assert_int_equal(host_modify(&p.a, IBV_QPS_RESET), 0);
	assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	pair_fini(&p);
}

static void
hand_read(uint32_t psn, uint64_t va, uint32_t rkey, uint32_t len)
{
	inject(&p.b, &(struct crafted){.opcode = OPCODE_RC_READ_REQUEST,
			     .psn = psn,
			     .ack_req = true,
			     .va = va,
			     .rkey = rkey,
			     .dma_len = len});
}

static uint64_t
remote_va(uint32_t offset)
{
	return (uintptr_t)p.b.mem + REMOTE + offset;
}

#endif
