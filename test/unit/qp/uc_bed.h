/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair of UC QPs. No answer ever leaves: uc_close() of every case proves it. */
#ifndef ROCADE_TEST_QP_UC_BED_H
#define ROCADE_TEST_QP_UC_BED_H

#include "qp_pair.h"

#define UC_MTU 1024

#define UC_NONE_LOST UINT32_MAX

extern struct pair p;

void
uc_open(struct pair_conf conf);
void
uc_open_default(void);
void
uc_close(void);
uint64_t
uc_dropped(enum drop_reason why);
/* Everything that a has to send, but frame number lost (from 0). */
void
uc_send_but(unsigned lost);

#endif
