/* SPDX-License-Identifier: BSD-3-Clause */
/* Connect requests deferred until their port has a listener. */
#include "ucm_fixture.h"

TEST_WITH(request_waits_for_listen, ucm_setup, ucm_teardown)
{
	uint32_t server = make_id(&ctx.server, RDMA_PS_TCP),
		 client = make_routed_id(RDMA_PS_TCP);

	assert_int_equal(bind_id(&ctx.server, server, "192.0.2.1", LISTEN_PORT), 0);
	assert_int_equal(connect_id(&ctx.client, client, CLIENT_QPN, "hello"), 0);
	expect_no_event(&ctx.client);
	assert_int_equal(connect_id(&ctx.client, client, CLIENT_QPN, ""), -EINVAL);
	assert_int_equal(ucm_listeners(ctx.ucm), 0);
	assert_int_equal(listen_id(&ctx.server, server, 1), 0);
	assert_int_equal(ucm_listeners(ctx.ucm), 1);
	assert_memory_equal(expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST)
				    .param.conn.private_data,
		"hello", 6);
}

TEST_WITH(deferral_is_bounded, ucm_setup, ucm_teardown)
{
	uint32_t server = make_id(&ctx.server, RDMA_PS_TCP),
		 client = make_routed_id(RDMA_PS_TCP);

	assert_int_equal(bind_id(&ctx.server, server, NULL, LISTEN_PORT), 0);
	assert_int_equal(connect_id(&ctx.client, client, CLIENT_QPN, ""), 0);
	assert_true(ucm_deadline(ctx.ucm) == ctx.now + UCM_DEFER_NS);
	ucm_run(ctx.ucm, ctx.now + UCM_DEFER_NS - 1);
	expect_no_event(&ctx.client);
	ucm_run(ctx.ucm, ctx.now + UCM_DEFER_NS);
	assert_int_equal(
		expect_event(&ctx.client, UCM_EVENT_REJECTED).status, CM_REJ_NO_SERVICE);
}

TEST_WITH(only_a_bound_port_defers_longer, ucm_setup, ucm_teardown)
{
	uint32_t a = make_id(&ctx.server, RDMA_PS_TCP),
		 b = make_id(&ctx.server, RDMA_PS_UDP);
	uint32_t c = make_id(&ctx.server, RDMA_PS_TCP),
		 client = make_routed_id(RDMA_PS_TCP);

	assert_int_equal(bind_id(&ctx.server, a, "198.51.100.1", LISTEN_PORT), 0);
	assert_int_equal(bind_id(&ctx.server, b, "192.0.2.1", LISTEN_PORT), 0);
	assert_int_equal(
		bind_id(&ctx.server, c, "192.0.2.1", LISTEN_PORT + UCM_PORT_BUCKETS), 0);
	assert_int_equal(connect_id(&ctx.client, client, CLIENT_QPN, ""), 0);
	assert_true(ucm_deadline(ctx.ucm) == ctx.now + UCM_DEFER_SHORT_NS);
	deferral_end();
	expect_event(&ctx.client, UCM_EVENT_REJECTED);
}

/* A port that is not bound yet: the request is deferred for a shorter time, and ends
 * before longer ones. */
TEST_WITH(unbound_port_defers_shorter, ucm_setup, ucm_teardown)
{
	uint32_t server = make_id(&ctx.server, RDMA_PS_TCP),
		 other = make_id(&ctx.server, RDMA_PS_UDP),
		 late = make_routed_id(RDMA_PS_UDP), client = make_routed_id(RDMA_PS_TCP),
		 third = make_routed_id(RDMA_PS_TCP);

	assert_int_equal(bind_id(&ctx.server, other, NULL, LISTEN_PORT), 0);
	assert_int_equal(connect_id(&ctx.client, late, CLIENT_QPN, ""), 0);
	assert_int_equal(connect_id(&ctx.client, client, CLIENT_QPN + 1, ""), 0);
	assert_int_equal(connect_id(&ctx.client, third, CLIENT_QPN + 2, ""), 0);
	assert_true(ucm_deadline(ctx.ucm) == ctx.now + UCM_DEFER_SHORT_NS);
	assert_int_equal(destroy_id(&ctx.client, third, NULL), 0);
	assert_int_equal(bind_id(&ctx.server, server, NULL, LISTEN_PORT), 0);
	assert_int_equal(listen_id(&ctx.server, server, 1), 0);
	expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	assert_true(ucm_deadline(ctx.ucm) == ctx.now + UCM_DEFER_NS);
	assert_int_equal(listen_id(&ctx.server, other, 1), 0);
	expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
}

TEST_WITH(destroyed_id_cancels_deferral, ucm_setup, ucm_teardown)
{
	uint32_t server = make_id(&ctx.server, RDMA_PS_TCP),
		 client = make_routed_id(RDMA_PS_TCP);

	assert_int_equal(bind_id(&ctx.server, server, NULL, LISTEN_PORT), 0);
	assert_int_equal(connect_id(&ctx.client, client, CLIENT_QPN, ""), 0);
	assert_int_equal(destroy_id(&ctx.client, client, NULL), 0);
	assert_true(ucm_deadline(ctx.ucm) == TIME_NEVER);
	assert_int_equal(listen_id(&ctx.server, server, 1), 0);
	expect_no_event(&ctx.server);
}

/* Sending all of them at once would keep packets waiting. */
TEST_WITH(deferred_requests_are_sent_in_batches, ucm_setup, ucm_teardown)
{
	uint32_t server = make_id(&ctx.server, RDMA_PS_UDP);

	for (unsigned i = 0; i < UCM_DEFERRED_BATCH + 2; i++)
		assert_int_equal(connect_id(&ctx.client, make_routed_id(RDMA_PS_UDP),
					 CLIENT_QPN, ""),
			0);
	assert_int_equal(bind_id(&ctx.server, server, NULL, LISTEN_PORT), 0);
	assert_int_equal(listen_id(&ctx.server, server, 16), 0);
	for (unsigned i = 0; i < UCM_DEFERRED_BATCH; i++)
		expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	expect_no_event(&ctx.server);
	/* The others are due. */
	assert_true(ucm_deadline(ctx.ucm) == ctx.now);
	ucm_run(ctx.ucm, ctx.now);
	for (unsigned i = 0; i < 2; i++)
		expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	expect_no_event(&ctx.server);
}

/* Opens a session with room for this number of IDs. */
static void
many_open(struct test_process *many, uint32_t ids)
{
	*many = (struct test_process){.base = CLIENT_QPN};
	ctx.ucm->conf.limits.ids = ids;
	assert_int_equal(ucm_session_create(ctx.ucm, many, &many->session), 0);
	assert_int_equal(
		ucm_channel_open(many->session, many, &many->channel, &many->number), 0);
}

/* This number of requests to a port without a listener. */
static void
many_defer(struct test_process *many, unsigned count, uint16_t port)
{
	while (count-- != 0) {
		uint32_t id = make_id(many, RDMA_PS_UDP);

		assert_int_equal(resolve_addr(many, id, "192.0.2.1", port), 0);
		expect_event(many, UCM_EVENT_ADDR_RESOLVED);
		assert_int_equal(resolve_route(many, id), 0);
		expect_event(many, UCM_EVENT_ROUTE_RESOLVED);
		assert_int_equal(connect_id(many, id, CLIENT_QPN, ""), 0);
	}
}

static uint32_t
listen_at(struct test_process *p, uint16_t port)
{
	uint32_t id = make_id(p, RDMA_PS_UDP);

	assert_int_equal(bind_id(p, id, NULL, port), 0);
	assert_int_equal(listen_id(p, id, 16), 0);
	return id;
}

static void
look_at_all(void)
{
	while (ucm_deadline(ctx.ucm) <= ctx.now)
		ucm_run(ctx.ucm, ctx.now);
}

/* Many requests wait for other ports, of which some have the hash of the listener's. */
TEST_WITH(listener_looks_at_few_requests, ucm_setup, ucm_teardown)
{
	enum { OTHERS = 3 * UCM_DEFERRED_LOOKS };
	struct test_process many;
	unsigned calls = 0;

	many_open(&many, 2 * OTHERS + 1);
	many_defer(&many, OTHERS, LISTEN_PORT + UCM_DEFER_BUCKETS);
	many_defer(&many, OTHERS, LISTEN_PORT + 1);
	many_defer(&many, 1, LISTEN_PORT);
	listen_at(&ctx.server, LISTEN_PORT);
	expect_no_event(&ctx.server);
	/* One that is to be looked at next ends. */
	assert_int_equal(destroy_id(&many, UCM_DEFERRED_LOOKS + 1, NULL), 0);
	for (; ucm_deadline(ctx.ucm) <= ctx.now; calls++)
		ucm_run(ctx.ucm, ctx.now);
	assert_int_equal(calls, OTHERS / UCM_DEFERRED_LOOKS - 1);
	expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	expect_no_event(&ctx.server);
	assert_true(ucm_deadline(ctx.ucm) == ctx.now + UCM_DEFER_SHORT_NS);
	ucm_session_destroy(many.session, ctx.now);
}

/* A program listens on a port with whose hash many requests wait. A request to a port with another hash
 * does not wait until all those have been looked at. */
TEST_WITH(ports_with_another_hash_take_turns, ucm_setup, ucm_teardown)
{
	enum { OTHERS = 8 * UCM_DEFERRED_LOOKS };
	struct test_process many;

	many_open(&many, OTHERS + 1);
	many_defer(&many, OTHERS, LISTEN_PORT + UCM_DEFER_BUCKETS);
	many_defer(&many, 1, LISTEN_PORT + 1);
	listen_at(&ctx.client, LISTEN_PORT);
	listen_at(&ctx.server, LISTEN_PORT + 1);
	ucm_run(ctx.ucm, ctx.now);
	expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	expect_no_event(&ctx.client);
	/* The first ones have not been looked at all yet. */
	assert_true(ucm_deadline(ctx.ucm) == ctx.now);
	ucm_session_destroy(many.session, ctx.now);
}

/* It listens again and again, on a port with the hash of another program's port. */
TEST_WITH(ports_with_the_same_hash_take_turns, ucm_setup, ucm_teardown)
{
	enum { OTHERS = 3 * UCM_DEFERRED_LOOKS };
	const uint16_t first = LISTEN_PORT + 2 * UCM_DEFER_BUCKETS,
		       last = LISTEN_PORT + 3 * UCM_DEFER_BUCKETS;
	struct test_process many;

	many_open(&many, OTHERS + 2);
	many_defer(&many, 1, first);
	many_defer(&many, OTHERS, LISTEN_PORT + UCM_DEFER_BUCKETS);
	many_defer(&many, 1, last);
	listen_at(&ctx.server, last);
	expect_no_event(&ctx.server);
	for (unsigned i = 0; i < OTHERS / UCM_DEFERRED_LOOKS; i++)
		assert_int_equal(destroy_id(&ctx.client,
					 listen_at(&ctx.client, LISTEN_PORT), NULL),
			0);
	expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	look_at_all();
	/* A listener that comes while they are looked at: those before are looked at once more. */
	listen_at(&ctx.client, LISTEN_PORT);
	listen_at(&ctx.server, first);
	look_at_all();
	expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	expect_no_event(&ctx.server);
	expect_no_event(&ctx.client);
	ucm_session_destroy(many.session, ctx.now);
}

static void
bind_shared(struct test_process *p, uint16_t port)
{
	struct ucm_set_option option = {.head = {.id = make_id(p, RDMA_PS_UDP),
						.optname = RDMA_OPTION_ID_REUSEADDR,
						.optlen = 4},
		.value = {1}};

	assert_int_equal(COMMAND(p, SET_OPTION, &option, NULL), 0);
	assert_int_equal(bind_id(p, option.head.id, NULL, port), 0);
}

/* Many IDs share the port for which requests wait: each look visits all of them, and is the only one
 * of a call. */
TEST_WITH(looks_end_after_many_visits, ucm_setup, ucm_teardown)
{
	const uint16_t port = LISTEN_PORT + UCM_DEFER_BUCKETS;
	struct test_process many;
	unsigned calls = 1;

	many_open(&many, UCM_DEFERRED_VISITS + UCM_DEFERRED_LOOKS);
	for (unsigned i = 0; i < UCM_DEFERRED_VISITS; i++)
		bind_shared(&many, port);
	many_defer(&many, UCM_DEFERRED_LOOKS, port);
	listen_at(&ctx.client, LISTEN_PORT);
	for (; ucm_deadline(ctx.ucm) <= ctx.now; calls++)
		ucm_run(ctx.ucm, ctx.now);
	assert_int_equal(calls, UCM_DEFERRED_LOOKS);
	ucm_session_destroy(many.session, ctx.now);
}
