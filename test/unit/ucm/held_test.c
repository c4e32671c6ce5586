/* SPDX-License-Identifier: BSD-3-Clause */
/* DISCONNECTED, and the events behind it in its channel, wait until the program has taken the packets that
 * came before it, for a second at most. */
#include "ucm_fixture.h"
#include "ucm/id.h"

#define IN_A_CALL 32

static int
held_setup(void **state)
{
	fixture_open(true);
	ucm_taker_init(&ctx.taker);
	ctx.takes = true;
	return 0;
}

static void
time_pass(uint64_t ns)
{
	ctx.now += ns;
	ucm_run(ctx.ucm, ctx.now);
}

static struct id_pair
pair_disconnected(void)
{
	struct id_pair pair = pair_connected();

	assert_int_equal(disconnect_id(&ctx.client, pair.active), 0);
	assert_int_equal(ctx.taker.asked, 1);
	expect_no_event(&ctx.server);
	return pair;
}

TEST_WITH(disconnected_waits_for_the_packets, held_setup, ucm_teardown)
{
	struct id_pair pair = pair_disconnected();
	uint32_t woken = ctx.server.woken;

	assert_int_equal(ucm_deadline(ctx.ucm), ctx.now + UCM_HELD_NS);
	ucm_taken(ctx.ucm, &ctx.taker, 0, ctx.now); /* of an earlier question */
	time_pass(UCM_HELD_NS - 1);
	expect_no_event(&ctx.server);
	assert_int_equal(ctx.server.woken, woken);
	ucm_taken(ctx.ucm, &ctx.taker, 1, ctx.now);
	assert_int_equal(ctx.server.woken, woken + 1);
	assert_int_equal(
		expect_event(&ctx.server, UCM_EVENT_DISCONNECTED).id, pair.passive);
	expect_no_event(&ctx.server);
}

/* The program is stopped. */
TEST_WITH(disconnected_waits_for_a_second, held_setup, ucm_teardown)
{
	struct id_pair pair = pair_disconnected();

	time_pass(UCM_HELD_NS);
	assert_int_equal(
		expect_event(&ctx.server, UCM_EVENT_DISCONNECTED).id, pair.passive);
	ucm_taken(ctx.ucm, &ctx.taker, 1, ctx.now); /* late */
	expect_no_event(&ctx.server);
}

/* Programs rely on the order: the peer may connect again. Another channel does not wait. */
TEST_WITH(events_of_a_channel_keep_their_order, held_setup, ucm_teardown)
{
	struct id_pair pair = pair_disconnected();
	uint32_t other = make_id(&ctx.server, RDMA_PS_TCP),
		 again = make_routed_id(RDMA_PS_TCP);

	assert_int_equal(connect_id(&ctx.client, again, CLIENT_QPN + 1, ""), 0);
	assert_int_equal(resolve_addr(&ctx.server, other, "192.0.2.1", 1), 0);
	expect_no_event(&ctx.server);
	ucm_taken(ctx.ucm, &ctx.taker, 1, ctx.now);
	assert_int_equal(
		expect_event(&ctx.server, UCM_EVENT_DISCONNECTED).id, pair.passive);
	expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	expect_event(&ctx.server, UCM_EVENT_ADDR_RESOLVED);
	expect_no_event(&ctx.server);
}

/* Its QP is in ERR, and gets no packets any more. */
TEST_WITH(end_that_disconnects_first_waits_for_nothing, held_setup, ucm_teardown)
{
	struct id_pair pair = pair_disconnected();

	assert_int_equal(disconnect_id(&ctx.server, pair.passive), 0);
	assert_int_equal(ctx.taker.asked, 1);
	assert_int_equal(
		expect_event(&ctx.client, UCM_EVENT_DISCONNECTED).id, pair.active);
}

/* The events that wait behind its own go on. */
TEST_WITH(id_that_waits_is_destroyed, held_setup, ucm_teardown)
{
	struct id_pair pair = pair_disconnected();
	uint32_t other = make_id(&ctx.server, RDMA_PS_TCP), events;

	assert_int_equal(resolve_addr(&ctx.server, other, "192.0.2.1", 1), 0);
	expect_no_event(&ctx.server);
	assert_int_equal(destroy_id(&ctx.server, pair.passive, &events), 0);
	assert_int_equal(events, 1); /* ESTABLISHED */
	assert_int_equal(ctx.server.session->events, 1);
	assert_true(TAILQ_EMPTY(&ctx.taker.events));
	assert_int_equal(ucm_deadline(ctx.ucm), 0);
	ucm_run(ctx.ucm, ctx.now);
	expect_event(&ctx.server, UCM_EVENT_ADDR_RESOLVED);
	ucm_taken(ctx.ucm, &ctx.taker, 1, ctx.now);
	time_pass(UCM_HELD_NS);
	expect_no_event(&ctx.server);
}

/* It comes to the channel that the ID then has. */
TEST_WITH(id_that_waits_migrates, held_setup, ucm_teardown)
{
	struct test_process to = ctx.server;
	struct id_pair pair = pair_disconnected();
	struct rdma_ucm_migrate_id cmd = {.id = pair.passive, .fd = ctx.server.number};
	struct rdma_ucm_migrate_resp resp;

	to.woken = 0;
	assert_int_equal(ucm_channel_open(to.session, &to, &to.channel, &to.number), 0);
	assert_int_equal(COMMAND(&to, MIGRATE_ID, &cmd, &resp), 0);
	expect_no_event(&to);
	ucm_taken(ctx.ucm, &ctx.taker, 1, ctx.now);
	expect_no_event(&ctx.server);
	assert_int_equal(expect_event(&to, UCM_EVENT_DISCONNECTED).id, pair.passive);
}

/* Nothing waits for a closed channel. */
TEST_WITH(channel_with_a_waiting_id_is_closed, held_setup, ucm_teardown)
{
	uint32_t number = ctx.server.number;

	(void)pair_disconnected();
	ucm_channel_close(ctx.server.channel, ctx.now);
	assert_true(TAILQ_EMPTY(&ctx.taker.events));
	assert_int_equal(ucm_channel_open(ctx.server.session, &ctx.server,
				 &ctx.server.channel, &ctx.server.number),
		0);
	assert_int_not_equal(ctx.server.number, number);
	ctx.server.woken = 0;
	expect_no_event(&ctx.server);
}

/* A call makes some events readable, in their order. */
TEST_WITH(many_events_become_readable_in_parts, held_setup, ucm_teardown)
{
	static const unsigned count = 3 * IN_A_CALL;
	struct test_process many = {.base = 0x300};
	unsigned seen = 0;

	ctx.ucm->conf.limits.ids = count;
	assert_int_equal(ucm_session_create(ctx.ucm, &many, &many.session), 0);
	assert_int_equal(
		ucm_channel_open(many.session, &many, &many.channel, &many.number), 0);
	for (unsigned i = 0; i < count; i++) {
		struct ucm_id *id =
			ucm_table_find(&many.session->ids, make_id(&many, RDMA_PS_TCP));
		struct ucm_event *event = ucm_event_new(id, UCM_EVENT_DISCONNECTED, 0);

		ctx.taker.asked++;
		ucm_event_hold(event, &ctx.taker, ctx.now);
		ucm_event_put(event);
	}
	ucm_taken(ctx.ucm, &ctx.taker, count - 1, ctx.now);
	for (; many.woken < count - 1; ucm_run(ctx.ucm, ctx.now)) {
		assert_true(many.woken > seen && many.woken <= seen + IN_A_CALL);
		seen = many.woken;
		assert_int_equal(ucm_deadline(ctx.ucm), 0);
	}
	assert_int_equal(ucm_deadline(ctx.ucm), ctx.now + UCM_HELD_NS);
	time_pass(UCM_HELD_NS);
	assert_int_equal(many.woken, count);
	for (unsigned i = 1; i <= count; i++)
		assert_int_equal(expect_event(&many, UCM_EVENT_DISCONNECTED).id, i);
	ucm_session_destroy(many.session, ctx.now);
	while (ucm_deadline(ctx.ucm) == 0)
		ucm_run(ctx.ucm, ctx.now);
}

/* A program with many events does not keep that of another one waiting. */
TEST_WITH(channels_take_turns, held_setup, ucm_teardown)
{
	struct test_process many = {.base = 0x300};
	struct ucm_id *id;
	struct ucm_event *event;

	ctx.ucm->conf.limits.ids = 3 * IN_A_CALL;
	assert_int_equal(ucm_session_create(ctx.ucm, &many, &many.session), 0);
	assert_int_equal(
		ucm_channel_open(many.session, &many, &many.channel, &many.number), 0);
	ctx.taker.asked++;
	id = ucm_table_find(&many.session->ids, make_id(&many, RDMA_PS_TCP));
	for (unsigned i = 0; i < 3 * IN_A_CALL; i++) {
		event = ucm_event_new(id, UCM_EVENT_DISCONNECTED, 0);
		ucm_event_hold(event, &ctx.taker, ctx.now);
		ucm_event_put(event);
	}
	id = ucm_table_find(&ctx.server.session->ids, make_id(&ctx.server, RDMA_PS_TCP));
	event = ucm_event_new(id, UCM_EVENT_DISCONNECTED, 0);
	ucm_event_hold(event, &ctx.taker, ctx.now);
	ucm_event_put(event);
	ucm_taken(ctx.ucm, &ctx.taker, 1, ctx.now);
	assert_int_equal(many.wakes, IN_A_CALL - 1);
	expect_event(&ctx.server, UCM_EVENT_DISCONNECTED);
	ucm_session_destroy(many.session, ctx.now);
	while (ucm_deadline(ctx.ucm) == 0)
		ucm_run(ctx.ucm, ctx.now);
}
