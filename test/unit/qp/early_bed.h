/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of early.c share: a message of five packets on its way, and who looks at
 * each before it is taken. */
#ifndef ROCADE_TEST_QP_EARLY_BED_H
#define ROCADE_TEST_QP_EARLY_BED_H

#include "qp_pair.h"
#include "wire/icrc.h"

extern struct pair p;
extern struct host *from, *to; /* the payload's */
extern uint32_t mtu, len;

#define FROM 0x1000 /* in from's memory */
#define AT 0x8000   /* in to's */
#define GUARD 64    /* between two SGEs */
#define KEY 3
#define PACKETS 5

enum way {
	WAY_SEND,
	WAY_SRQ, /* whose PD is another one */
	WAY_WRITE,
	WAY_READ,
	WAYS
};

/* All tests once more as on a CPU that cannot copy and sum in one pass. */
#define early_test(test)                                                                 \
	{#test, test, NULL, NULL, NULL},                                                 \
	{                                                                                \
		#test "_two_passes", test, early_off, early_on, NULL                     \
	}
int
early_off(void **state);
int
early_on(void **state);

/* cut: so many bytes in a first SGE of the place, the others in a second one; 0: one. */
void
early_open(enum way way, const struct pair_conf *conf, uint32_t bytes, uint32_t cut);
/* MTU 1024, and the message is of PACKETS packets. */
void
early_open_default(enum way way);
/* Whatever is missing arrives: the message is whole, nothing around it has changed. */
void
early_done(enum way way);

/* Of the memory of to nothing has changed since but these bytes of the message. */
void
early_changed(uint32_t offset, uint32_t n);

struct look {
	bool right, placed;
};

/* What the QP says of a frame. Proves that neither changes by it. */
struct look
early_look(const struct frame *frame);

#endif
