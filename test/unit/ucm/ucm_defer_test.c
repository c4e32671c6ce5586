/* SPDX-License-Identifier: BSD-3-Clause */
/* Connect requests deferred until their port has a listener. */
#include "bed.h"

static void
until_somebody_listens(void **state)
{
	uint32_t server = bed_id(&bed.server, RDMA_PS_TCP),
		 client = bed_routed(RDMA_PS_TCP);

	(void)state;
	assert_int_equal(bed_bind(&bed.server, server, "192.0.2.1", BED_PORT), 0);
	assert_int_equal(bed_connect(&bed.client, client, BED_CLIENT_QPN, "hello"), 0);
	bed_no_event(&bed.client);
	assert_int_equal(bed_connect(&bed.client, client, BED_CLIENT_QPN, ""), -EINVAL);
	assert_int_equal(ucm_listeners(bed.ucm), 0);
	assert_int_equal(bed_listen(&bed.server, server, 1), 0);
	assert_int_equal(ucm_listeners(bed.ucm), 1);
	assert_memory_equal(
		bed_event(&bed.server, UCM_EVENT_CONNECT_REQUEST).param.conn.private_data,
		"hello", 6);
}

static void
not_for_ever(void **state)
{
	uint32_t server = bed_id(&bed.server, RDMA_PS_TCP),
		 client = bed_routed(RDMA_PS_TCP);

	(void)state;
	assert_int_equal(bed_bind(&bed.server, server, NULL, BED_PORT), 0);
	assert_int_equal(bed_connect(&bed.client, client, BED_CLIENT_QPN, ""), 0);
	assert_true(ucm_deadline(bed.ucm) == bed.now + UCM_DEFER_NS);
	ucm_run(bed.ucm, bed.now + UCM_DEFER_NS - 1);
	bed_no_event(&bed.client);
	ucm_run(bed.ucm, bed.now + UCM_DEFER_NS);
	assert_int_equal(
		bed_event(&bed.client, UCM_EVENT_REJECTED).status, CM_REJ_NO_SERVICE);
}

static void
only_for_that_very_port(void **state)
{
	uint32_t a = bed_id(&bed.server, RDMA_PS_TCP),
		 b = bed_id(&bed.server, RDMA_PS_UDP);
	uint32_t c = bed_id(&bed.server, RDMA_PS_TCP), client = bed_routed(RDMA_PS_TCP);

	(void)state;
	assert_int_equal(bed_bind(&bed.server, a, "198.51.100.1", BED_PORT), 0);
	assert_int_equal(bed_bind(&bed.server, b, "192.0.2.1", BED_PORT), 0);
	assert_int_equal(
		bed_bind(&bed.server, c, "192.0.2.1", BED_PORT + UCM_PORT_BUCKETS), 0);
	assert_int_equal(bed_connect(&bed.client, client, BED_CLIENT_QPN, ""), 0);
	assert_true(ucm_deadline(bed.ucm) == bed.now + UCM_DEFER_SHORT_NS);
	bed_hold_end();
	bed_event(&bed.client, UCM_EVENT_REJECTED);
}

/* A port that is not bound yet: the request is deferred for a shorter time, and ends
 * before longer ones. */
static void
for_who_has_not_bound_it(void **state)
{
	uint32_t server = bed_id(&bed.server, RDMA_PS_TCP),
		 other = bed_id(&bed.server, RDMA_PS_UDP), late = bed_routed(RDMA_PS_UDP),
		 client = bed_routed(RDMA_PS_TCP), third = bed_routed(RDMA_PS_TCP);

	(void)state;
	assert_int_equal(bed_bind(&bed.server, other, NULL, BED_PORT), 0);
	assert_int_equal(bed_connect(&bed.client, late, BED_CLIENT_QPN, ""), 0);
	assert_int_equal(bed_connect(&bed.client, client, BED_CLIENT_QPN + 1, ""), 0);
	assert_int_equal(bed_connect(&bed.client, third, BED_CLIENT_QPN + 2, ""), 0);
	assert_true(ucm_deadline(bed.ucm) == bed.now + UCM_DEFER_SHORT_NS);
	assert_int_equal(bed_destroy(&bed.client, third, NULL), 0);
	assert_int_equal(bed_bind(&bed.server, server, NULL, BED_PORT), 0);
	assert_int_equal(bed_listen(&bed.server, server, 1), 0);
	bed_event(&bed.server, UCM_EVENT_CONNECT_REQUEST);
	assert_true(ucm_deadline(bed.ucm) == bed.now + UCM_DEFER_NS);
	assert_int_equal(bed_listen(&bed.server, other, 1), 0);
	bed_event(&bed.server, UCM_EVENT_CONNECT_REQUEST);
}

static void
given_up(void **state)
{
	uint32_t server = bed_id(&bed.server, RDMA_PS_TCP),
		 client = bed_routed(RDMA_PS_TCP);

	(void)state;
	assert_int_equal(bed_bind(&bed.server, server, NULL, BED_PORT), 0);
	assert_int_equal(bed_connect(&bed.client, client, BED_CLIENT_QPN, ""), 0);
	assert_int_equal(bed_destroy(&bed.client, client, NULL), 0);
	assert_true(ucm_deadline(bed.ucm) == TIME_NEVER);
	assert_int_equal(bed_listen(&bed.server, server, 1), 0);
	bed_no_event(&bed.server);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			until_somebody_listens, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(not_for_ever, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			only_for_that_very_port, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			for_who_has_not_bound_it, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(given_up, bed_setup, bed_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
