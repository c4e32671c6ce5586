/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api_fixture.h"

struct verbs_pair pair;

int
api_setup(void **state)
{
	pair_open(&pair, &(struct verbs_pair_conf){.srq_wr = 16});
	return 0;
}

int
api_teardown(void **state)
{
	pair_close(&pair);
	return 0;
}
