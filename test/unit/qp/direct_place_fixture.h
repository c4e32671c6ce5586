/* SPDX-License-Identifier: BSD-3-Clause */
/* Fixture of the tests of direct placement: a message of five packets on its way, each of
 * which can be checked before the QP receives it. */
#ifndef ROCADE_TEST_QP_DIRECT_PLACE_FIXTURE_H
#define ROCADE_TEST_QP_DIRECT_PLACE_FIXTURE_H

#include "qp_link.h"
#include "wire/icrc.h"

extern struct qp_link p;
extern struct host *from, *to; /* of the payload */
extern uint32_t mtu, len;

#define FROM 0x1000 /* offset in the memory of `from` */
#define AT 0x8000   /* offset in the memory of `to` */
#define GUARD 64    /* bytes between two SGEs */
#define KEY 3
#define PACKETS 5

enum way {
	WAY_SEND,
	WAY_SRQ, /* its PD differs from that of the QP */
	WAY_WRITE,
	WAY_READ,
	WAYS
};

/* direct_on(), the setup of the group, turns direct placement on, also where the CPU cannot
 * copy and sum in one pass. The case runs a second time with direct placement off. */
#define TEST_BOTH_WAYS(name)                                                             \
	static void name(void **state);                                                  \
	TEST_ADD(name##_two_passes, name, direct_off, direct_on)                         \
	TEST(name)
int direct_off(void **state);
int direct_on(void **state);

/* cut: bytes of the first of two SGEs of the destination; 0: it has one SGE. */
void direct_open(
	enum way way, const struct qp_link_conf *conf, uint32_t bytes, uint32_t cut);
/* As direct_open(), with MTU 1024 and a message of PACKETS packets. */
void direct_open_default(enum way way);
/* Lets all missing packets arrive. The message must be complete and no byte around it
 * changed. */
void direct_finish(enum way way);

/* Checks that nothing has changed in the memory of `to` since the last call but these
 * bytes of the message. */
void expect_changed(uint32_t offset, uint32_t n);

struct check_result {
	bool icrc_ok, payload_placed;
};

/* Checks the frame's ICRC as the QP does. Neither the frame nor the QP may change. */
struct check_result frame_check(const struct frame *frame);

#endif
