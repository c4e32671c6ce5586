/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids: their owners, their limits, and what is destroyed with them. */
#include "ucm_fixture.h"

#include "ucm/id.h"

TEST_WITH(id_of_another_channel_is_refused, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.server, RDMA_PS_TCP), number;
	struct ucm_channel *second;
	struct test_process other = ctx.server;

	/* The client has no ids: this number is the server's. */
	assert_int_equal(bind_id(&ctx.client, id, NULL, 0), -ENOENT);
	assert_int_equal(destroy_id(&ctx.client, id, NULL), -ENOENT);
	/* Another channel of the same process cannot use it either. */
	assert_int_equal(
		ucm_channel_open(ctx.server.session, &other, &second, &number), 0);
	other.number = number;
	assert_int_equal(destroy_id(&other, id, NULL), -ENOENT);
	assert_int_equal(destroy_id(&ctx.server, id, NULL), 0);
	assert_int_equal(destroy_id(&ctx.server, id, NULL), -ENOENT);
}

TEST_WITH(ids_and_channels_are_limited, ucm_setup, ucm_teardown)
{
	struct rdma_ucm_create_id cmd = {.ps = RDMA_PS_TCP};
	struct ucm_channel *channel;
	uint32_t id = 0, number;

	for (unsigned i = 0; i < MAX_IDS; i++)
		id = make_id(&ctx.client, RDMA_PS_TCP);
	assert_int_equal(ucm_session_ids(ctx.client.session), MAX_IDS);
	assert_int_equal(COMMAND(&ctx.client, CREATE_ID, &cmd, NULL), -ENOSPC);
	/* The limit is per process. */
	make_id(&ctx.server, RDMA_PS_TCP);
	assert_int_equal(destroy_id(&ctx.client, id, NULL), 0);
	make_id(&ctx.client, RDMA_PS_TCP);
	for (unsigned i = 1; i < MAX_CHANNELS; i++)
		assert_int_equal(ucm_channel_open(ctx.client.session, &ctx.client,
					 &channel, &number),
			0);
	assert_int_equal(
		ucm_channel_open(ctx.client.session, &ctx.client, &channel, &number),
		-ENOSPC);
}

/* The PSN with which a peer's QP begins tells nothing about that of the next
 * connection. */
TEST_WITH(starting_psns_are_not_in_order, ucm_setup, ucm_teardown)
{
	uint32_t psn[MAX_IDS];

	for (unsigned i = 0; i < MAX_IDS; i++) {
		uint32_t number = make_id(&ctx.client, RDMA_PS_TCP);
		struct ucm_id *id = ucm_table_find(&ctx.client.session->ids, number);

		psn[i] = id->psn;
		assert_in_range(psn[i], 0, 0xFFFFFF);
		for (unsigned k = 0; k < i; k++)
			assert_true(psn[i] - psn[k] + 256 > 512);
	}
}

TEST_WITH(unsupported_port_space_is_refused, ucm_setup, ucm_teardown)
{
	struct rdma_ucm_create_id cmd = {.ps = RDMA_PS_IPOIB};

	assert_int_equal(COMMAND(&ctx.client, CREATE_ID, &cmd, NULL), -EPROTONOSUPPORT);
	cmd.ps = 0;
	assert_int_equal(COMMAND(&ctx.client, CREATE_ID, &cmd, NULL), -EPROTONOSUPPORT);
}

TEST_WITH(id_migrates_with_its_events, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP), number;
	struct test_process other = ctx.client;
	struct rdma_ucm_migrate_id cmd = {.id = id, .fd = ctx.client.number};
	struct rdma_ucm_migrate_resp resp = {9};
	struct ucm_channel *second;

	other.woken = 0;
	assert_int_equal(
		ucm_channel_open(ctx.client.session, &other, &second, &number), 0);
	other.number = number;
	assert_int_equal(resolve_addr(&ctx.client, id, "192.0.2.1", 1), 0);
	expect_event(&ctx.client, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(resolve_route(&ctx.client, id), 0);
	assert_int_equal(COMMAND(&other, MIGRATE_ID, &cmd, &resp), 0);
	assert_int_equal(resp.events_reported, 1);
	assert_int_equal(other.woken, 1);
	expect_no_event(&ctx.client);
	expect_event(&other, UCM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(destroy_id(&ctx.client, id, NULL), -ENOENT);
	assert_int_equal(COMMAND(&other, MIGRATE_ID, &cmd, &resp), -ENOENT);
	cmd.fd = 1000;
	assert_int_equal(COMMAND(&other, MIGRATE_ID, &cmd, &resp), -EBADF);
	assert_int_equal(destroy_id(&other, id, NULL), 0);
}

TEST_WITH(destroyed_listener_rejects_unread_requests, ucm_setup, ucm_teardown)
{
	struct id_pair pair = {.listener = make_listener(RDMA_PS_TCP)};
	uint32_t events = 9;

	pair.active = make_routed_id(RDMA_PS_TCP);
	assert_int_equal(connect_id(&ctx.client, pair.active, CLIENT_QPN, ""), 0);
	/* The request has an id that the process does not know. */
	assert_int_equal(ucm_session_ids(ctx.server.session), 2);
	for (uint32_t id = 1; id <= MAX_IDS; id++) {
		if (id != pair.listener)
			assert_int_equal(destroy_id(&ctx.server, id, NULL), -ENOENT);
	}
	assert_int_equal(destroy_id(&ctx.server, pair.listener, &events), 0);
	assert_int_equal(events, 0);
	assert_int_equal(ucm_session_ids(ctx.server.session), 0);
	expect_event(&ctx.client, UCM_EVENT_REJECTED);
}

TEST_WITH(closed_channel_destroys_its_ids, ucm_setup, ucm_teardown)
{
	struct id_pair pair = {.listener = make_listener(RDMA_PS_TCP)};

	pair.active = make_routed_id(RDMA_PS_TCP);
	assert_int_equal(connect_id(&ctx.client, pair.active, CLIENT_QPN, ""), 0);
	ucm_channel_close(ctx.server.channel, ctx.now);
	assert_int_equal(ucm_session_ids(ctx.server.session), 0);
	expect_event(&ctx.client, UCM_EVENT_REJECTED);
}

TEST_WITH(ended_process_disconnects, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_connected();
	struct test_process *s = &ctx.server;

	ucm_session_destroy(s->session, ctx.now);
	assert_int_equal(
		expect_event(&ctx.client, UCM_EVENT_DISCONNECTED).id, pair.active);
	assert_int_equal(ucm_session_create(ctx.ucm, s, &s->session), 0);
}

/* A number is given again as late as possible. A table of the largest size that is nearly full gives
 * the one that is free, without a look at the others. */
TEST(numbers_are_given_again_in_order)
{
	static int things[65536];
	struct ucm_table t = {.slots = NULL};
	const uint32_t freed[] = {3, 1, 60000, 2};
	uint32_t number;

	assert_int_equal(ucm_table_init(&t, RTE_DIM(things)), 0);
	for (uint32_t i = 0; i < RTE_DIM(things); i++) {
		assert_int_equal(ucm_table_add(&t, &things[i], &number), 0);
		assert_int_equal(number, i + 1);
	}
	assert_int_equal(ucm_table_add(&t, things, &number), -ENOSPC);
	for (unsigned turn = 0; turn < 2; turn++) {
		for (unsigned i = 0; i < RTE_DIM(freed); i++) {
			ucm_table_remove(&t, freed[i]);
			assert_null(ucm_table_find(&t, freed[i]));
		}
		for (unsigned i = 0; i < RTE_DIM(freed); i++) {
			assert_int_equal(ucm_table_add(&t, things, &number), 0);
			assert_int_equal(number, freed[i]);
		}
		assert_int_equal(ucm_table_add(&t, things, &number), -ENOSPC);
	}
	for (uint32_t i = 0; i < RTE_DIM(things); i++)
		ucm_table_remove(&t, i + 1);
	ucm_table_fini(&t);
}
