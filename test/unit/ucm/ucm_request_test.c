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

/* Many requests wait for other ports, of which some have the hash of the listener's. */
TEST_WITH(listener_looks_at_few_requests, ucm_setup, ucm_teardown)
{
	enum { OTHERS = 3 * UCM_DEFERRED_LOOKS };
	struct test_process many = {.base = CLIENT_QPN};
	uint32_t server = make_id(&ctx.server, RDMA_PS_UDP), id;
	unsigned calls = 0;

	ctx.ucm->conf.limits.ids = 2 * OTHERS + 1;
	assert_int_equal(ucm_session_create(ctx.ucm, &many, &many.session), 0);
	assert_int_equal(
		ucm_channel_open(many.session, &many, &many.channel, &many.number), 0);
	for (unsigned i = 0; i <= 2 * OTHERS; i++) {
		uint16_t port =
			i < OTHERS ? LISTEN_PORT + UCM_DEFER_BUCKETS : LISTEN_PORT + 1;

		id = make_id(&many, RDMA_PS_UDP);
		if (i == 2 * OTHERS)
			port = LISTEN_PORT;
		assert_int_equal(resolve_addr(&many, id, "192.0.2.1", port), 0);
		expect_event(&many, UCM_EVENT_ADDR_RESOLVED);
		assert_int_equal(resolve_route(&many, id), 0);
		expect_event(&many, UCM_EVENT_ROUTE_RESOLVED);
		assert_int_equal(connect_id(&many, id, CLIENT_QPN, ""), 0);
	}
	assert_int_equal(bind_id(&ctx.server, server, NULL, LISTEN_PORT), 0);
	assert_int_equal(listen_id(&ctx.server, server, 16), 0);
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
