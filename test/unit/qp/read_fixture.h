/* SPDX-License-Identifier: BSD-3-Clause */
/* Fixture of the tests of READ: a pair of QPs, the target area and requests built by the
 * test. */
#ifndef ROCADE_TEST_QP_READ_FIXTURE_H
#define ROCADE_TEST_QP_READ_FIXTURE_H

#include "qp/hold.h"
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

/* ---- Selective repeat: both hosts hold and place ---- */

/* max_rd 1: a READ request asks for up to 128 packets; 4: for 32. */
void sr_open(uint8_t max_rd);
void sr_fini(void);
/* As sr_fini(). Nothing may be missing. */
void sr_close(void);
/* Posts a READ of this many packets of 1024 bytes, to the same offset as there. */
void read_post(uint64_t wr_id, unsigned first, unsigned packets);
/* The requester sends n packets, which arrive. */
void requests_pull(unsigned n);
/* The responder sends n responses, of which those with a bit in lost are lost. */
void responses_deliver(unsigned n, unsigned lost);
/* The nth frame of the requester is a READ request for these packets. */
void expect_request_at(unsigned n, unsigned first, unsigned packets);
/* The requester sends one packet, such a request, which arrives. */
void expect_request(unsigned first, unsigned packets);
void expect_silence(void);
void expect_data(unsigned packets);

#endif
