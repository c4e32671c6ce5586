/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair with a connection manager and a UD QP on each side; B listens. Rocade's clock
 * runs 16 times as fast as the monotonic clock, so that a timeout of 100 s takes 6 s. */
#ifndef ROCADE_TEST_CM_UD_FIXTURE_H
#define ROCADE_TEST_CM_UD_FIXTURE_H

#include "cm_fixture.h"

#define QKEY_A 0x0a0a0a0a
#define QKEY_B 0x11223344

extern struct ibv_qp *qp_a, *qp_b;

int ud_setup(void **state);
int ud_setup_ipv6(void **state);
int ud_teardown(void **state);

/* Creates a UD QP in RTS, or in RESET if qkey is 0. */
struct ibv_qp *ud_qp_create(struct verbs_side *s, uint32_t qkey);
/* The GID index of the side's address. */
uint8_t gid_index_of(const struct verbs_side *s);

struct rocade_cm_ud_param ud_param(const char *text);
/* A sends a service ID resolution request to B. */
struct rocade_cm_id *ud_resolve(uint16_t port, const char *text);
/* B answers with qp_b and releases the ID. */
void ud_reply(struct rocade_cm_id *id);
/* Expect A's final event and release the ID. */
void ud_expect_rejected(struct rocade_cm_id *id, int status);
void ud_expect_resolved(struct rocade_cm_id *id);

#endif
