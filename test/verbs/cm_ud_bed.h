/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair with a connection manager and a UD QP on each side; B listens. Rocade's clock
 * runs 16 times as fast as the monotonic clock, so that a timeout of 100 s takes 6 s. */
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

/* Creates a UD QP in RTS, or in RESET if qkey is 0. */
struct ibv_qp *
bed_qp(struct pair_side *s, uint32_t qkey);
/* The GID index of the side's address. */
uint8_t
bed_index_of(const struct pair_side *s);

struct rocade_cm_ud_param
bed_says(const char *text);
/* A sends a service ID resolution request to B. */
struct rocade_cm_id *
bed_ask(uint16_t port, const char *text);
/* B answers with qp_b and releases the ID. */
void
bed_answer(struct rocade_cm_id *id);
/* Expect A's final event and release the ID. */
void
bed_ends_rejected(struct rocade_cm_id *id, int status);
void
bed_ends_resolved(struct rocade_cm_id *id);

#endif
