/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids: their owners, their limits, and what is destroyed with them. */
#include "bed.h"

static void
nobody_names_anothers(void **state)
{
	uint32_t id = bed_id(&bed.server, RDMA_PS_TCP), number;
	struct ucm_channel *second;
	struct bed_process other = bed.server;

	(void)state;
	/* The client has no ids: this number is the server's. */
	assert_int_equal(bed_bind(&bed.client, id, NULL, 0), -ENOENT);
	assert_int_equal(bed_destroy(&bed.client, id, NULL), -ENOENT);
	/* Another channel of the same process cannot use it either. */
	assert_int_equal(
		ucm_channel_open(bed.server.session, &other, &second, &number), 0);
	other.number = number;
	assert_int_equal(bed_destroy(&other, id, NULL), -ENOENT);
	assert_int_equal(bed_destroy(&bed.server, id, NULL), 0);
	assert_int_equal(bed_destroy(&bed.server, id, NULL), -ENOENT);
}

static void
limits(void **state)
{
	struct rdma_ucm_create_id cmd = {.ps = RDMA_PS_TCP};
	struct ucm_channel *channel;
	uint32_t id = 0, number;

	(void)state;
	for (unsigned i = 0; i < BED_IDS; i++)
		id = bed_id(&bed.client, RDMA_PS_TCP);
	assert_int_equal(ucm_session_ids(bed.client.session), BED_IDS);
	assert_int_equal(BED(&bed.client, CREATE_ID, &cmd, NULL), -ENOSPC);
	/* The limit is per process. */
	bed_id(&bed.server, RDMA_PS_TCP);
	assert_int_equal(bed_destroy(&bed.client, id, NULL), 0);
	bed_id(&bed.client, RDMA_PS_TCP);
	for (unsigned i = 1; i < BED_CHANNELS; i++)
		assert_int_equal(ucm_channel_open(bed.client.session, &bed.client,
					 &channel, &number),
			0);
	assert_int_equal(
		ucm_channel_open(bed.client.session, &bed.client, &channel, &number),
		-ENOSPC);
}

static void
port_spaces_that_are_not_there(void **state)
{
	struct rdma_ucm_create_id cmd = {.ps = RDMA_PS_IPOIB};

	(void)state;
	assert_int_equal(BED(&bed.client, CREATE_ID, &cmd, NULL), -EPROTONOSUPPORT);
	cmd.ps = 0;
	assert_int_equal(BED(&bed.client, CREATE_ID, &cmd, NULL), -EPROTONOSUPPORT);
}

static void
migrates_with_its_events(void **state)
{
	uint32_t id = bed_id(&bed.client, RDMA_PS_TCP), number;
	struct bed_process other = bed.client;
	struct rdma_ucm_migrate_id cmd = {.id = id, .fd = bed.client.number};
	struct rdma_ucm_migrate_resp resp = {9};
	struct ucm_channel *second;

	(void)state;
	other.woken = 0;
	assert_int_equal(
		ucm_channel_open(bed.client.session, &other, &second, &number), 0);
	other.number = number;
	assert_int_equal(bed_resolve(&bed.client, id, "192.0.2.1", 1), 0);
	bed_event(&bed.client, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(bed_route(&bed.client, id), 0);
	assert_int_equal(BED(&other, MIGRATE_ID, &cmd, &resp), 0);
	assert_int_equal(resp.events_reported, 1);
	assert_int_equal(other.woken, 1);
	bed_no_event(&bed.client);
	bed_event(&other, UCM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(bed_destroy(&bed.client, id, NULL), -ENOENT);
	assert_int_equal(BED(&other, MIGRATE_ID, &cmd, &resp), -ENOENT);
	cmd.fd = 1000;
	assert_int_equal(BED(&other, MIGRATE_ID, &cmd, &resp), -EBADF);
	assert_int_equal(bed_destroy(&other, id, NULL), 0);
}

static void
a_listener_takes_unseen_requests_with_it(void **state)
{
	struct bed_pair pair = {.listener = bed_listener(RDMA_PS_TCP)};
	uint32_t events = 9;

	(void)state;
	pair.active = bed_routed(RDMA_PS_TCP);
	assert_int_equal(bed_connect(&bed.client, pair.active, BED_CLIENT_QPN, ""), 0);
	/* The request has an id that the process does not know. */
	assert_int_equal(ucm_session_ids(bed.server.session), 2);
	for (uint32_t id = 1; id <= BED_IDS; id++) {
		if (id != pair.listener)
			assert_int_equal(bed_destroy(&bed.server, id, NULL), -ENOENT);
	}
	assert_int_equal(bed_destroy(&bed.server, pair.listener, &events), 0);
	assert_int_equal(events, 0);
	assert_int_equal(ucm_session_ids(bed.server.session), 0);
	bed_event(&bed.client, UCM_EVENT_REJECTED);
}

static void
a_channel_takes_all_with_it(void **state)
{
	struct bed_pair pair = {.listener = bed_listener(RDMA_PS_TCP)};

	(void)state;
	pair.active = bed_routed(RDMA_PS_TCP);
	assert_int_equal(bed_connect(&bed.client, pair.active, BED_CLIENT_QPN, ""), 0);
	ucm_channel_close(bed.server.channel, bed.now);
	assert_int_equal(ucm_session_ids(bed.server.session), 0);
	bed_event(&bed.client, UCM_EVENT_REJECTED);
}

static void
a_process_that_dies_disconnects(void **state)
{
	struct bed_pair pair = bed_connected();
	struct bed_process *s = &bed.server;

	(void)state;
	ucm_session_destroy(s->session, bed.now);
	assert_int_equal(bed_event(&bed.client, UCM_EVENT_DISCONNECTED).id, pair.active);
	assert_int_equal(ucm_session_create(bed.ucm, s, &s->session), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			nobody_names_anothers, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(limits, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			port_spaces_that_are_not_there, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			migrates_with_its_events, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(a_listener_takes_unseen_requests_with_it,
			bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			a_channel_takes_all_with_it, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			a_process_that_dies_disconnects, bed_setup, bed_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
