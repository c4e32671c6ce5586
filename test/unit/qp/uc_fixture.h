/* SPDX-License-Identifier: BSD-3-Clause */
/* Fixture: a pair of UC QPs. uc_close() checks that no response was sent. */
#ifndef ROCADE_TEST_QP_UC_FIXTURE_H
#define ROCADE_TEST_QP_UC_FIXTURE_H

#include "qp_link.h"

#define UC_MTU 1024

#define UC_NONE_LOST UINT32_MAX

extern struct qp_link p;

void uc_open(struct qp_link_conf conf);
void uc_open_default(void);
void uc_close(void);
uint64_t uc_dropped(enum drop_reason why);
/* Sends everything that a has to send, and loses frame number `lost` (from 0). */
void uc_send_all_but(unsigned lost);

#endif
