/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of WRITE share: a pair, the target area and a packet made by hand. */
#ifndef ROCADE_TEST_QP_WRITE_BED_H
#define ROCADE_TEST_QP_WRITE_BED_H

#include <string.h>

#include "qp_pair.h"

static struct pair p;

#define REMOTE 0x8000 /* of the target area in b's memory */
#define GUARD 64
#define UNTOUCHED 0xC3

static void
target_clear(uint32_t len)
{
	memset(p.b.mem + REMOTE - GUARD, UNTOUCHED, len + 2 * GUARD);
}

static void
expect_untouched(uint32_t offset, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(p.b.mem[offset + i], UNTOUCHED);
}

/* mem[REMOTE, REMOTE + len) holds the pattern, and nothing around it has changed. */
static void
expect_written(uint32_t len, uint32_t key)
{
	assert_true(bytes_match(p.b.mem + REMOTE, len, key));
	expect_untouched(REMOTE - GUARD, GUARD);
	expect_untouched(REMOTE + len, GUARD);
}

static void
expect_answer(uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, syndrome, psn, msn);
	wire_drop(&p.b, 0);
}

struct hand {
	uint8_t opcode;
	uint32_t payload, dma_len;
};

static void
hand_send(const struct hand *h, uint32_t psn, uint32_t rkey, uint64_t va)
{
	inject(&p.b, &(struct crafted){.opcode = h->opcode,
			     .psn = psn,
			     .ack_req = true,
			     .payload_len = h->payload,
			     .va = va,
			     .rkey = rkey,
			     .dma_len = h->dma_len});
}

#endif
