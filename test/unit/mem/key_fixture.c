/* SPDX-License-Identifier: BSD-3-Clause */

#include "case.h"
#include "key_fixture.h"

struct key_table table;
const struct random_key table_random = {{0x7E, 1}};

int
table_setup(void **state)
{
	key_table_init(&table, &table_random);
	return 0;
}

int
table_teardown(void **state)
{
	/* Asserts that no key is left. */
	key_table_fini(&table);
	return 0;
}
