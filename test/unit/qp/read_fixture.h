/* SPDX-License-Identifier: BSD-3-Clause */
/* Fixture of the tests of READ: a pair of QPs, the target area and requests built by the
 * test. */
#ifndef ROCADE_TEST_QP_READ_FIXTURE_H
#define ROCADE_TEST_QP_READ_FIXTURE_H

#include "qp_link.h"

extern struct qp_link p;

#define REMOTE 0x8000
#define UNTOUCHED 0xC3
#define FIRST OPCODE_RC_READ_RESPONSE_FIRST
#define MIDDLE OPCODE_RC_READ_RESPONSE_MIDDLE
#define LAST OPCODE_RC_READ_RESPONSE_LAST
#define ONLY OPCODE_RC_READ_RESPONSE_ONLY

void read_init(uint8_t max_rd, uint8_t max_dest);
/* As read_init(), with the same depth both ways and eight receives. */
void read_init_receives(uint8_t depth);
void inject_read(uint32_t psn, uint64_t va, uint32_t rkey, uint32_t len);
uint64_t read_va(uint32_t offset);

#endif
