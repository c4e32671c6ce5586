/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>

#include "key_fixture.h"

#include <cmocka.h>

struct key_table table;

int
table_setup(void **state)
{
	key_table_init(&table, 0x7E);
	return 0;
}

int
table_teardown(void **state)
{
	/* Asserts that no key is left. */
	key_table_fini(&table);
	return 0;
}
