/* SPDX-License-Identifier: BSD-3-Clause */
/* Free QPNs. */
#include <errno.h>

#include "base/qpn_pool.h"
#include "case.h"

#define COUNT 8

/* A destroyed QP's number is not soon the number of another. */
TEST(qpns_are_reused_oldest_first)
{
	static const uint32_t freed[] = {105, 100, 103};
	struct qpn_pool p;
	uint32_t qpn;

	assert_int_equal(qpn_pool_init(&p, 100, COUNT), 0);
	assert_int_equal(qpn_pool_free_count(&p), COUNT);
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(qpn_pool_take(&p, &qpn), 0);
		assert_int_equal(qpn, 100 + i);
		if (i == 2)
			qpn_pool_give(&p, 101);
	}
	assert_int_equal(qpn_pool_take(&p, &qpn), 0);
	assert_int_equal(qpn, 101);
	assert_int_equal(qpn_pool_take(&p, &qpn), -ENOSPC);
	for (unsigned i = 0; i < RTE_DIM(freed); i++)
		qpn_pool_give(&p, freed[i]);
	assert_int_equal(qpn_pool_free_count(&p), RTE_DIM(freed));
	for (unsigned i = 0; i < RTE_DIM(freed); i++) {
		assert_int_equal(qpn_pool_take(&p, &qpn), 0);
		assert_int_equal(qpn, freed[i]);
	}
	assert_int_equal(qpn_pool_take(&p, &qpn), -ENOSPC);
	qpn_pool_fini(&p);
}

/* QPNs 0 and 1 are for management, 0xFFFFFF for multicast (IBA 3.9, 10.5.1). */
TEST(invalid_ranges_are_refused)
{
	struct qpn_pool p;
	uint32_t qpn;

	assert_int_equal(qpn_pool_init(&p, 0, COUNT), -EINVAL);
	assert_int_equal(qpn_pool_init(&p, 1, COUNT), -EINVAL);
	assert_int_equal(qpn_pool_init(&p, 2, 0), -EINVAL);
	assert_int_equal(qpn_pool_init(&p, 2, 7), -EINVAL);
	assert_int_equal(qpn_pool_init(&p, 0xFFFFFF, 1), -EINVAL);
	assert_int_equal(qpn_pool_init(&p, 0xFFFFFE - COUNT + 2, COUNT), -EINVAL);
	assert_int_equal(qpn_pool_init(&p, 2, 1u << 24), -EINVAL);
	assert_int_equal(qpn_pool_init(&p, 0xFFFFFE - COUNT + 1, COUNT), 0);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(qpn_pool_take(&p, &qpn), 0);
	assert_int_equal(qpn, 0xFFFFFE);
	qpn_pool_fini(&p);
}

TEST(bases_differ_and_fit)
{
	uint32_t last = 0, same = 0;

	for (uint64_t random = 0; random < 1000; random++) {
		uint32_t base = qpn_pool_base(random << 54 | random, 65536);

		assert_in_range(base, 2, 0xFFFFFE - 65536 + 1);
		same += base == last;
		last = base;
	}
	assert_true(same < 3);
}
