/* SPDX-License-Identifier: BSD-3-Clause */
/* A key table; key_table_fini() asserts that no key is left. */
#ifndef ROCADE_TEST_MEM_KEY_FIXTURE_H
#define ROCADE_TEST_MEM_KEY_FIXTURE_H

#include "mem/key.h"

extern struct key_table table;
extern const struct random_key table_random;

int table_setup(void **state);
int table_teardown(void **state);

#endif
