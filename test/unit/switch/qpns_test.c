/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_fixture.h"

#define COUNT 8

static struct sw_client owner;

static void
qpns_are_reused_oldest_first(void **state)
{
	struct qpns t;
	uint32_t qpn;

	(void)state;
	assert_int_equal(qpns_init(&t, 100, COUNT), 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(qpns_take(&t, &owner, &qpn), 0);
		assert_int_equal(qpn, 100 + i);
		assert_ptr_equal(qpns_find(&t, qpn)->owner, &owner);
	}
	assert_int_equal(qpns_take(&t, &owner, &qpn), -ENOSPC);
	qpns_give(&t, 103);
	qpns_give(&t, 101);
	assert_null(qpns_find(&t, 103));
	assert_int_equal(qpns_take(&t, &owner, &qpn), 0);
	assert_int_equal(qpn, 103);
	assert_false(qpns_find(&t, 103)->peer);
	assert_int_equal(qpns_take(&t, &owner, &qpn), 0);
	assert_int_equal(qpn, 101);
	assert_null(qpns_find(&t, 99));
	assert_null(qpns_find(&t, 100 + COUNT));
	qpns_fini(&t);
}

static void
invalid_ranges_are_refused(void **state)
{
	struct qpns t;

	(void)state;
	assert_int_equal(qpns_init(&t, 1, COUNT), -EINVAL);
	assert_int_equal(qpns_init(&t, 2, 0), -EINVAL);
	assert_int_equal(qpns_init(&t, 2, 7), -EINVAL);
	assert_int_equal(qpns_init(&t, 0xFFFFFE - COUNT + 2, COUNT), -EINVAL);
	assert_int_equal(qpns_init(&t, 0xFFFFFE - COUNT + 1, COUNT), 0);
	qpns_fini(&t);
}

static void
bases_differ_and_fit(void **state)
{
	uint32_t last = 0, same = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		uint32_t base = qpns_base(seed, 65536);

		assert_in_range(base, 2, 0xFFFFFE - 65536 + 1);
		same += base == last;
		last = base;
	}
	assert_true(same < 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qpns_are_reused_oldest_first),
		cmocka_unit_test(invalid_ranges_are_refused),
		cmocka_unit_test(bases_differ_and_fit),
	};

	return cmocka_run_group_tests_name("qpns", tests, NULL, NULL);
}
