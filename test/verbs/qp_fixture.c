/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>

#include "case.h"
#include "qp_fixture.h"

struct verbs_pair pair;

int
qp_setup(void **state)
{
	pair_open(&pair, &(struct verbs_pair_conf){.cap = {.max_send_wr = 8,
							   .max_recv_wr = 8,
							   .max_send_sge = 3,
							   .max_recv_sge = 3,
							   .max_inline_data = 60},
				 .retry = 1,
				 .timeout = 10});
	return 0;
}

int
qp_teardown(void **state)
{
	pair_close(&pair);
	return 0;
}
