/* SPDX-License-Identifier: BSD-3-Clause */
/* Fixture of the tests of WRITE: a pair of QPs, the target area and a packet built by the
 * test. */
#ifndef ROCADE_TEST_QP_WRITE_FIXTURE_H
#define ROCADE_TEST_QP_WRITE_FIXTURE_H

#include "qp_link.h"

extern struct qp_link p;

#define REMOTE 0x8000 /* of the target area in b's memory */
#define GUARD 64
#define UNTOUCHED 0xC3

struct write_packet {
	uint8_t opcode;
	uint32_t payload, dma_len;
};

void write_target_clear(uint32_t len);
void expect_untouched(uint32_t offset, uint32_t len);
/* Checks that mem[REMOTE, REMOTE + len) has the pattern and that nothing around it has
 * changed. */
void expect_written(uint32_t len, uint32_t key);
void write_expect_ack(uint8_t syndrome, uint32_t psn, uint32_t msn);
void inject_write(const struct write_packet *h, uint32_t psn, uint32_t rkey, uint64_t va);

#endif
