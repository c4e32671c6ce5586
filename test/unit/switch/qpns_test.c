/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_fixture.h"

#define COUNT 8

static struct sw_client owner;

static void
qpns_are_reused_oldest_first(void **state)
{
	struct qpns t;
	uint32_t qpn;

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

/* A range that the pool refuses (base/qpn_pool_test.c). */
static void
invalid_range_is_refused(void **state)
{
	struct qpns t;

	assert_int_equal(qpns_init(&t, 1, COUNT), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qpns_are_reused_oldest_first),
		cmocka_unit_test(invalid_range_is_refused),
	};

	return cmocka_run_group_tests_name("qpns", tests, NULL, NULL);
}
