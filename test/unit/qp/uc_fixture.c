/* SPDX-License-Identifier: BSD-3-Clause */
#include "uc_fixture.h"

struct qp_link p;

void
uc_open(struct qp_link_conf conf)
{
	conf.type = IBV_QPT_UC;
	conf.access = IBV_ACCESS_REMOTE_WRITE;
	qp_link_init(&p, &conf);
}

void
uc_open_default(void)
{
	uc_open(qp_link_defaults());
}

void
uc_close(void)
{
	assert_int_equal(p.b.wire_count, 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	qp_link_fini(&p);
}

uint64_t
uc_dropped(enum drop_reason why)
{
	uint64_t n = p.b.stats.drop[why];

	p.b.stats.drop[why] = 0;
	return n;
}

void
uc_send_all_but(unsigned lost)
{
	host_pull(&p.a, PULL_ALL);
	if (lost < p.a.wire_count)
		wire_drop(&p.a, lost);
	wire_deliver_all(&p.a);
}
