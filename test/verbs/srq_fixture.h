/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair of three QPs on each side whose second side has an SRQ. */
#ifndef ROCADE_TEST_SRQ_FIXTURE_H
#define ROCADE_TEST_SRQ_FIXTURE_H

#include "verbs_pair.h"

extern struct verbs_pair pair;

int srq_setup_conf(const struct verbs_pair_conf *conf);
int srq_setup(void **state);
int srq_teardown(void **state);
/* Sends n messages of one byte and waits until each is received and completed. */
void srq_messages_receive(unsigned n);
/* Returns the result of ibv_modify_srq(). */
int srq_modify(
	struct ibv_srq *srq, uint32_t max_wr, uint32_t max_sge, uint32_t limit, int mask);

#endif
