/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: order, count, limit. */
#include "bed.h"

static void
counted_as_they_are_read(void **state)
{
	uint32_t id = bed_id(&bed.client, RDMA_PS_TCP), events = 9;

	(void)state;
	assert_int_equal(bed_resolve(&bed.client, id, "192.0.2.1", 1), 0);
	assert_true(bed.client.result.pending);
	assert_int_equal(bed.client.woken, 1);
	assert_int_equal(bed_route(&bed.client, id), 0);
	assert_int_equal(bed.client.woken, 1);
	bed_event(&bed.client, UCM_EVENT_ADDR_RESOLVED);
	assert_true(bed.client.result.pending);
	/* The other event is destroyed with the id and not counted. */
	assert_int_equal(bed_destroy(&bed.client, id, &events), 0);
	assert_int_equal(events, 1);
	assert_false(bed.client.result.pending);
	assert_int_equal(bed.client.result.wakes, 1);
	bed_no_event(&bed.client);
}

static void
requests_count_for_the_listener(void **state)
{
	struct bed_pair pair = bed_requested(RDMA_PS_TCP);
	uint32_t events;

	(void)state;
	assert_int_equal(bed_destroy(&bed.server, pair.passive, &events), 0);
	assert_int_equal(events, 0);
	assert_int_equal(bed_destroy(&bed.server, pair.listener, &events), 0);
	assert_int_equal(events, 1);
}

static void
who_does_not_read_is_told_to(void **state)
{
	uint32_t id = bed_id(&bed.client, RDMA_PS_TCP);
	unsigned n = 0;
	int rc;

	(void)state;
	while ((rc = bed_resolve(&bed.client, id, "203.0.113.9", 1)) == 0)
		assert_true(++n <= BED_IDS * UCM_EVENTS_PER_ID);
	assert_int_equal(rc, -ENOMEM);
	assert_int_equal(n, BED_IDS * UCM_EVENTS_PER_ID);
	bed_event(&bed.client, UCM_EVENT_ADDR_ERROR);
	assert_int_equal(bed_resolve(&bed.client, id, "203.0.113.9", 1), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			counted_as_they_are_read, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			requests_count_for_the_listener, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			who_does_not_read_is_told_to, bed_setup, bed_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
