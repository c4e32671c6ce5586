/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>

#include "case.h"
#include "srq_fixture.h"

struct verbs_pair pair;

int
srq_setup_conf(const struct verbs_pair_conf *conf)
{
	pair_open(&pair, conf);
	return 0;
}

int
srq_setup(void **state)
{
	return srq_setup_conf(&(struct verbs_pair_conf){.qps = 3,
		.srq_wr = 16,
		.srq_sge = 3,
		.cap = {.max_send_sge = 3, .max_send_wr = 64}});
}

int
srq_teardown(void **state)
{
	pair_close(&pair);
	return 0;
}

void
srq_messages_receive(unsigned n)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(pair_send(&pair.a, 0, 1, 0, 1, IBV_SEND_SIGNALED), 0);
		pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	}
}

int
srq_modify(
	struct ibv_srq *srq, uint32_t max_wr, uint32_t max_sge, uint32_t limit, int mask)
{
	struct ibv_srq_attr attr = {
		.max_wr = max_wr, .max_sge = max_sge, .srq_limit = limit};

	return ibv_modify_srq(srq, &attr, mask);
}
