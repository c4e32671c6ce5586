/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair with one small QP on each side, whose queues a test can fill. */
#ifndef ROCADE_TEST_QP_FIXTURE_H
#define ROCADE_TEST_QP_FIXTURE_H

#include "verbs_pair.h"

extern struct verbs_pair pair;

int qp_setup(void **state);
int qp_teardown(void **state);

#endif
