/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>

#include "api_fixture.h"
#include "case.h"

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
