/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: order, count, limit. */
#include "ucm_fixture.h"

TEST_WITH(read_events_are_counted, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP), events = 9;

	assert_int_equal(resolve_addr(&ctx.client, id, "192.0.2.1", 1), 0);
	assert_true(ctx.client.result.pending);
	assert_int_equal(ctx.client.woken, 1);
	assert_int_equal(resolve_route(&ctx.client, id), 0);
	assert_int_equal(ctx.client.woken, 2);
	expect_event(&ctx.client, UCM_EVENT_ADDR_RESOLVED);
	assert_true(ctx.client.result.pending);
	/* The other event is destroyed with the id and not counted. */
	assert_int_equal(destroy_id(&ctx.client, id, &events), 0);
	assert_int_equal(events, 1);
	assert_false(ctx.client.result.pending);
	assert_int_equal(ctx.client.result.wakes, 2);
	expect_no_event(&ctx.client);
}

/* A reply tells up to which event all are gone, also that of a command that fails. */
TEST_WITH(replies_tell_the_oldest_event, ucm_setup, ucm_teardown)
{
	uint32_t ids[2] = {
		make_id(&ctx.client, RDMA_PS_TCP), make_id(&ctx.client, RDMA_PS_TCP)};
	uint32_t events;

	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(
			resolve_addr(&ctx.client, ids[i % 2], "203.0.113.9", 1), 0);
		assert_true(ctx.client.result.pending);
		assert_int_equal(ctx.client.result.wakes, 0);
	}
	assert_int_equal(ctx.client.woken, 4); /* each of them */
	expect_event(&ctx.client, UCM_EVENT_ADDR_ERROR);
	assert_int_equal(ctx.client.result.wakes, 1);
	assert_int_equal(destroy_id(&ctx.client, 77, &events), -ENOENT);
	assert_int_equal(ctx.client.result.wakes, 1);
	assert_true(ctx.client.result.pending);
	assert_int_equal(command_run(&ctx.client, 999, "", 0, NULL), -ENOSYS);
	assert_int_equal(ctx.client.result.wakes, 1);
	assert_true(ctx.client.result.pending);
	/* The events of the second ID go. That in between stays. */
	assert_int_equal(destroy_id(&ctx.client, ids[1], &events), 0);
	assert_int_equal(ctx.client.result.wakes, 2);
	assert_true(ctx.client.result.pending);
	assert_int_equal(destroy_id(&ctx.client, ids[0], &events), 0);
	assert_int_equal(ctx.client.result.wakes, 4);
	assert_false(ctx.client.result.pending);
}

TEST_WITH(requests_count_for_the_listener, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_requested(RDMA_PS_TCP);
	uint32_t events;

	assert_int_equal(destroy_id(&ctx.server, pair.passive, &events), 0);
	assert_int_equal(events, 0);
	assert_int_equal(destroy_id(&ctx.server, pair.listener, &events), 0);
	assert_int_equal(events, 1);
}

TEST_WITH(full_event_queue_refuses_commands, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	unsigned n = 0;
	int rc;

	while ((rc = resolve_addr(&ctx.client, id, "203.0.113.9", 1)) == 0)
		assert_true(++n <= MAX_IDS * UCM_EVENTS_PER_ID);
	assert_int_equal(rc, -ENOMEM);
	assert_int_equal(n, MAX_IDS * UCM_EVENTS_PER_ID);
	expect_event(&ctx.client, UCM_EVENT_ADDR_ERROR);
	assert_int_equal(resolve_addr(&ctx.client, id, "203.0.113.9", 1), 0);
}

/* The channel to which an ID moves is woken once, and knows the last event. */
TEST_WITH(moved_events_wake_once, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	struct test_process to = {.session = ctx.client.session};
	struct rdma_ucm_migrate_id cmd = {.id = id, .fd = ctx.client.number};
	struct rdma_ucm_migrate_resp resp;

	assert_int_equal(ucm_channel_open(to.session, &to, &to.channel, &to.number), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(resolve_addr(&ctx.client, id, "203.0.113.9", 1), 0);
	assert_int_equal(ctx.client.wakes, 4);
	assert_int_equal(COMMAND(&to, MIGRATE_ID, &cmd, &resp), 0);
	assert_int_equal(to.woken, 4);
	assert_int_equal(to.wakes, 1);
	assert_int_equal(to.result.wakes, 0);
	for (unsigned i = 1; i <= 4; i++) {
		expect_event(&to, UCM_EVENT_ADDR_ERROR);
		assert_int_equal(to.result.wakes, i);
	}
	assert_int_equal(COMMAND(&to, MIGRATE_ID, &cmd, &resp), -ENOENT);
	ucm_channel_close(to.channel, ctx.now);
}
