/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections and listeners count towards the account of the user whose ID has them. */
#include "ucm_fixture.h"

static struct accounts all;
static struct account *server_user, *client_user;

static int
accounts_setup(void **state)
{
	fixture_open(true);
	accounts_init(&all);
	server_user = account_open(&all, 1, 0);
	client_user = account_open(&all, 2, 0);
	ucm_session_charge(ctx.server.session, server_user);
	ucm_session_charge(ctx.client.session, client_user);
	return 0;
}

/* All that was taken is given back: account_close() asserts it. */
static int
accounts_teardown(void **state)
{
	fixture_close();
	account_close(server_user);
	account_close(client_user);
	assert_int_equal(all.limits[ACCOUNT_cm_connections].used, 0);
	assert_int_equal(all.limits[ACCOUNT_cm_listeners].used, 0);
	accounts_fini(&all);
	return 0;
}

static void
assert_connections(uint32_t server, uint32_t client)
{
	assert_int_equal(server_user->held[ACCOUNT_cm_connections], server);
	assert_int_equal(client_user->held[ACCOUNT_cm_connections], client);
}

TEST_WITH(each_end_is_charged_to_its_user, accounts_setup, accounts_teardown)
{
	struct id_pair pair = pair_connected();

	assert_connections(1, 1);
	assert_int_equal(disconnect_id(&ctx.client, pair.active), 0);
	assert_int_equal(destroy_id(&ctx.client, pair.active, NULL), 0);
	assert_connections(1, 0);
	assert_int_equal(destroy_id(&ctx.server, pair.listener, NULL), 0);
	assert_int_equal(server_user->held[ACCOUNT_cm_listeners], 0);
	assert_connections(1, 0);
}

/* An ID may live on for long after its connection. */
TEST_WITH(an_ended_connection_is_given_back, accounts_setup, accounts_teardown)
{
	uint32_t client = make_routed_id(RDMA_PS_TCP);

	assert_int_equal(connect_id(&ctx.client, client, CLIENT_QPN, ""), 0);
	assert_connections(0, 0); /* it is deferred */
	ctx.now += UCM_DEFER_SHORT_NS;
	ucm_run(ctx.ucm, ctx.now);
	expect_event(&ctx.client, UCM_EVENT_REJECTED);
	assert_connections(0, 0);
	assert_int_equal(all.limits[ACCOUNT_cm_connections].used, 0);
}

/* A server keeps the IDs of clients that it has answered. Only the repetition of the answer
 * needs the connection: it ends by its timer. */
TEST_WITH(an_answered_request_is_given_back, accounts_setup, accounts_teardown)
{
	static const struct {
		uint16_t ps;
		bool accept;
	} rows[] = {{RDMA_PS_UDP, true}, {RDMA_PS_UDP, false}, {RDMA_PS_TCP, false}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct id_pair pair = pair_requested(rows[i].ps);
		struct rdma_ucm_reject reject = {.id = pair.passive};

		assert_connections(1, 1);
		if (rows[i].accept)
			assert_int_equal(
				accept_id(&ctx.server, pair.passive, 1, SERVER_QPN), 0);
		else
			assert_int_equal(COMMAND(&ctx.server, REJECT, &reject, NULL), 0);
		assert_connections(0, 0);
		assert_int_equal(cm_in_use(ctx.ucm->cm), 1);
		ctx.now += 20 * NS_PER_SEC;
		ucm_run(ctx.ucm, ctx.now);
		assert_int_equal(cm_in_use(ctx.ucm->cm), 0);
		/* The ID is there, but it cannot be decided again. */
		assert_int_equal(COMMAND(&ctx.server, REJECT, &reject, NULL),
			rows[i].accept ? -EINVAL : -ENOTCONN);
		assert_int_equal(destroy_id(&ctx.server, pair.passive, NULL), 0);
		assert_int_equal(destroy_id(&ctx.server, pair.listener, NULL), 0);
		assert_int_equal(destroy_id(&ctx.client, pair.active, NULL), 0);
		expect_no_event(&ctx.server);
	}
}

/* The active side that rejects the reply is in time wait, whose end is an event. */
TEST_WITH(a_rejected_reply_is_not_given_back, accounts_setup, accounts_teardown)
{
	struct id_pair pair = pair_requested(RDMA_PS_TCP);
	struct rdma_ucm_reject reject = {.id = pair.active};

	assert_int_equal(accept_id(&ctx.server, pair.passive, 1, SERVER_QPN), 0);
	expect_event(&ctx.client, UCM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(COMMAND(&ctx.client, REJECT, &reject, NULL), 0);
	expect_event(&ctx.server, UCM_EVENT_REJECTED);
	assert_connections(1, 1);
	ctx.now += 10 * NS_PER_SEC;
	ucm_run(ctx.ucm, ctx.now);
	expect_event(&ctx.client, UCM_EVENT_TIMEWAIT_EXIT);
	expect_event(&ctx.server, UCM_EVENT_TIMEWAIT_EXIT);
	assert_connections(0, 0);
}

TEST_WITH(connections_are_limited, accounts_setup, accounts_teardown)
{
	uint32_t listener = make_listener(RDMA_PS_TCP);
	uint32_t first = make_routed_id(RDMA_PS_TCP),
		 second = make_routed_id(RDMA_PS_TCP);

	accounts_limit(&all, ACCOUNT_cm_connections, 1, false);
	/* The client's end takes the last place, so the server has none for its own. */
	assert_int_equal(connect_id(&ctx.client, first, CLIENT_QPN, ""), 0);
	assert_int_equal(expect_event(&ctx.client, UCM_EVENT_REJECTED).status,
		CM_REJ_NO_RESOURCES);
	expect_no_event(&ctx.server);
	assert_int_equal(server_user->refused[ACCOUNT_cm_connections], 1);
	assert_connections(0, 0);
	assert_int_equal(server_user->held[ACCOUNT_cm_ids], 1);
	/* Now it has none for the client's. */
	accounts_limit(&all, ACCOUNT_cm_connections, 0, false);
	assert_int_equal(connect_id(&ctx.client, second, CLIENT_QPN, ""), -ENOMEM);
	accounts_limit(&all, ACCOUNT_cm_connections, 2, false);
	assert_int_equal(connect_id(&ctx.client, second, CLIENT_QPN, ""), 0);
	expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	assert_connections(1, 1);
	assert_int_equal(destroy_id(&ctx.server, listener, NULL), 0);
}

/* The events of the listener's user are used up. */
TEST_WITH(
	a_request_without_an_event_costs_no_connection, accounts_setup, accounts_teardown)
{
	uint32_t client;

	make_listener(RDMA_PS_TCP);
	client = make_routed_id(RDMA_PS_TCP);
	accounts_limit(&all, ACCOUNT_cm_events, 0, false);
	assert_int_equal(connect_id(&ctx.client, client, CLIENT_QPN, ""), 0);
	assert_int_equal(server_user->refused[ACCOUNT_cm_events], 1);
	assert_connections(0, 0);
}

TEST_WITH(listeners_are_limited, accounts_setup, accounts_teardown)
{
	uint32_t a = make_id(&ctx.server, RDMA_PS_TCP),
		 b = make_id(&ctx.server, RDMA_PS_TCP);

	accounts_limit(&all, ACCOUNT_cm_listeners, 1, false);
	assert_int_equal(listen_id(&ctx.server, a, 1), 0);
	assert_int_equal(listen_id(&ctx.server, b, 1), -ENOMEM);
	assert_int_equal(server_user->refused[ACCOUNT_cm_listeners], 1);
	assert_int_equal(destroy_id(&ctx.server, a, NULL), 0);
	assert_int_equal(listen_id(&ctx.server, b, 1), 0);
	assert_int_equal(server_user->held[ACCOUNT_cm_listeners], 1);
}

TEST_WITH(a_failed_listen_is_given_back, accounts_setup, accounts_teardown)
{
	uint32_t a = make_id(&ctx.server, RDMA_PS_TCP);
	struct cm_listener *taken;

	assert_int_equal(bind_id(&ctx.server, a, "192.0.2.1", LISTEN_PORT), 0);
	assert_int_equal(cm_listen(ctx.ucm->cm, ucm_service_id(RDMA_PS_TCP, LISTEN_PORT),
				 ctx.device->conf.net.addr[0].gid, 1, NULL, &taken),
		0);
	assert_int_equal(listen_id(&ctx.server, a, 1), -EADDRINUSE);
	assert_int_equal(server_user->held[ACCOUNT_cm_listeners], 0);
	cm_unlisten(taken, ctx.now);
}
