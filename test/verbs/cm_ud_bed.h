/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a test of cm.h's services of datagrams needs: a pair with a manager and a UD QP on
 * each side, of which B listens. Rocade's clock is measured against one of ours that runs
 * 16 times as fast: what takes 100 s until somebody gives up takes 6 s here.
 */
#ifndef ROCADE_TEST_CM_UD_BED_H
#define ROCADE_TEST_CM_UD_BED_H

#include "cm_bed.h"

#define BED_QKEY_A 0x0a0a0a0a
#define BED_QKEY_B 0x11223344

extern struct ibv_qp *qp_a, *qp_b;

int
bed_setup(void **state);
int
bed_setup_ipv6(void **state);
int
bed_teardown(void **state);

/* A UD QP, in RTS; qkey 0: in RESET. */
struct ibv_qp *
bed_qp(struct pair_side *s, uint32_t qkey);
/* Of the side's address. */
uint8_t
bed_index_of(const struct pair_side *s);

struct rocade_cm_ud_param
bed_says(const char *text);
/* A asks B. */
struct rocade_cm_id *
bed_ask(uint16_t port, const char *text);
/* B answers with qp_b, and forgets. */
void
bed_answer(struct rocade_cm_id *id);
/* How it ends for A, and is released. */
void
bed_ends_rejected(struct rocade_cm_id *id, int status);
void
bed_ends_resolved(struct rocade_cm_id *id);

#endif
