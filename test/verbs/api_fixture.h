/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair of devices with an SRQ on each side. */
#ifndef ROCADE_TEST_API_FIXTURE_H
#define ROCADE_TEST_API_FIXTURE_H

#include "verbs_pair.h"

extern struct verbs_pair pair;

int api_setup(void **state);
int api_teardown(void **state);

#endif
