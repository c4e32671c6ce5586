/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection commands, and those that are refused. */
#include "ucm_fixture.h"

#include <infiniband/verbs.h>

TEST_WITH(connect_and_disconnect, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_connected();
	uint32_t woken = ctx.server.woken;

	assert_int_equal(disconnect_id(&ctx.client, pair.active), 0);
	assert_int_equal(ctx.ended_count, 1);
	assert_int_equal(ctx.ended[0], SERVER_QPN);
	assert_int_equal(ctx.ended_woken[0], woken); /* the event comes after that */
	assert_int_equal(ctx.server.woken, woken + 1);
	assert_int_equal(
		expect_event(&ctx.server, UCM_EVENT_DISCONNECTED).id, pair.passive);
	/* The other side answers when it disconnects, too. */
	expect_no_event(&ctx.client);
	assert_int_equal(disconnect_id(&ctx.server, pair.passive), 0);
	assert_int_equal(ctx.ended_count, 2);
	assert_int_equal(ctx.ended[1], CLIENT_QPN);
	assert_int_equal(
		expect_event(&ctx.client, UCM_EVENT_DISCONNECTED).id, pair.active);
}

/* To destroy the ID answers, too. */
TEST_WITH(destroyed_id_confirms_the_end, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_connected();

	assert_int_equal(disconnect_id(&ctx.client, pair.active), 0);
	expect_event(&ctx.server, UCM_EVENT_DISCONNECTED);
	expect_no_event(&ctx.client);
	assert_int_equal(destroy_id(&ctx.server, pair.passive, NULL), 0);
	expect_event(&ctx.client, UCM_EVENT_DISCONNECTED);
}

static struct test_process second; /* another channel of the client */

/* Returns a connection of the client with itself, whose passive end is in the second channel. */
static struct id_pair
own_pair_connected(void)
{
	struct test_process *client = &ctx.client;
	struct id_pair pair;

	second = (struct test_process){.session = client->session};
	assert_int_equal(ucm_channel_open(second.session, &second, &second.channel,
				 &second.number),
		0);
	pair.listener = make_id(&second, RDMA_PS_TCP);
	assert_int_equal(bind_id(&second, pair.listener, NULL, LISTEN_PORT), 0);
	assert_int_equal(listen_id(&second, pair.listener, 4), 0);
	pair.active = make_routed_id(RDMA_PS_TCP);
	assert_int_equal(connect_id(client, pair.active, CLIENT_QPN, "hello"), 0);
	pair.passive = expect_event(&second, UCM_EVENT_CONNECT_REQUEST).id;
	assert_int_equal(accept_id(&second, pair.passive, 0x2000, CLIENT_QPN + 1), 0);
	expect_event(client, UCM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(accept_id(client, pair.active, 0, 0), 0);
	expect_event(&second, UCM_EVENT_ESTABLISHED);
	return pair;
}

/* The only thread of the program waits for an event. */
static void
wait_alone(struct test_process *p)
{
	struct rdma_ucm_get_event cmd = {.response = UCM_GET_ALONE};

	assert_int_equal(COMMAND(p, GET_EVENT, &cmd, NULL), -EAGAIN);
}

/* As in rdma_disconnect() behind rdma_migrate_id(id, NULL). No other thread could answer. */
TEST_WITH(program_that_waits_for_itself_is_answered, ucm_setup, ucm_teardown)
{
	struct id_pair pair = own_pair_connected();

	wait_alone(&ctx.client);
	expect_no_event(&second); /* it has not disconnected */
	assert_int_equal(disconnect_id(&ctx.client, pair.active), 0);
	expect_no_event(&ctx.client); /* another thread may disconnect the other end */
	wait_alone(&ctx.client);
	assert_int_equal(
		expect_event(&ctx.client, UCM_EVENT_DISCONNECTED).id, pair.active);
	assert_int_equal(expect_event(&second, UCM_EVENT_DISCONNECTED).id, pair.passive);
	assert_int_equal(disconnect_id(&second, pair.passive), 0);
	expect_no_event(&second);
	assert_int_equal(ucm_stats(ctx.ucm)->resent, 0);
}

TEST_WITH(other_programs_are_waited_for, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_connected();

	assert_int_equal(disconnect_id(&ctx.client, pair.active), 0);
	wait_alone(&ctx.client);
	expect_no_event(&ctx.client);
	assert_int_equal(disconnect_id(&ctx.server, pair.passive), 0);
	expect_event(&ctx.client, UCM_EVENT_DISCONNECTED);
}

/* At its event the program goes on, and may disconnect the other end. */
TEST_WITH(program_with_other_ids_in_the_channel_waits, ucm_setup, ucm_teardown)
{
	struct id_pair pair = own_pair_connected();
	uint32_t another = make_id(&ctx.client, RDMA_PS_TCP);

	assert_int_equal(disconnect_id(&ctx.client, pair.active), 0);
	wait_alone(&ctx.client);
	expect_no_event(&ctx.client);
	assert_int_equal(destroy_id(&ctx.client, another, NULL), 0);
	wait_alone(&ctx.client);
	expect_event(&ctx.client, UCM_EVENT_DISCONNECTED);
}

TEST_WITH(commands_in_wrong_states_fail, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);

	assert_int_equal(connect_id(&ctx.client, id, CLIENT_QPN, ""), -EINVAL);
	assert_int_equal(accept_id(&ctx.client, id, 1, CLIENT_QPN), -EINVAL);
	assert_int_equal(disconnect_id(&ctx.client, id), -EINVAL);
	assert_int_equal(resolve_route(&ctx.client, id), -EINVAL);
	assert_int_equal(listen_id(&ctx.client, id, 0), 0);
	assert_int_equal(listen_id(&ctx.client, id, 0), -EINVAL);
	assert_int_equal(resolve_addr(&ctx.client, id, "192.0.2.1", 1), -EINVAL);
}

TEST_WITH(qpn_of_another_process_is_refused, ucm_setup, ucm_teardown)
{
	struct id_pair pair = {.listener = make_listener(RDMA_PS_TCP)};

	pair.active = make_routed_id(RDMA_PS_TCP);
	assert_int_equal(connect_id(&ctx.client, pair.active, SERVER_QPN, ""), -EINVAL);
	assert_int_equal(connect_id(&ctx.client, pair.active, 1, ""), -EINVAL);
	assert_int_equal(connect_id(&ctx.client, pair.active, CLIENT_QPN, ""), 0);
	pair.passive = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST).id;
	assert_int_equal(accept_id(&ctx.server, pair.passive, 1, CLIENT_QPN), -EINVAL);
	/* The client does not wait for a server that could not accept. */
	assert_int_equal(
		expect_event(&ctx.client, UCM_EVENT_REJECTED).status, CM_REJ_CONSUMER);
	assert_int_equal(accept_id(&ctx.server, pair.passive, 1, SERVER_QPN), -ENOTCONN);
	assert_int_equal(destroy_id(&ctx.server, pair.passive, NULL), 0);
	expect_no_event(&ctx.client);
}

/* Retry counts have 3 bits in a message. Larger ones count as 7, as with Linux: they do not
 * wrap. */
TEST_WITH(large_retry_counts_count_as_seven, ucm_setup, ucm_teardown)
{
	struct rdma_ucm_connect connect = {.conn_param = {.qp_num = CLIENT_QPN,
						   .retry_count = 10,
						   .rnr_retry_count = 8,
						   .valid = 1}};
	struct rdma_ucm_accept accept = {.conn_param = {.qp_num = SERVER_QPN,
						 .retry_count = 9,
						 .rnr_retry_count = 255,
						 .valid = 1}};
	struct rdma_ucm_event_resp event;

	make_listener(RDMA_PS_TCP);
	connect.id = make_routed_id(RDMA_PS_TCP);
	assert_int_equal(COMMAND(&ctx.client, CONNECT, &connect, NULL), 0);
	event = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	assert_int_equal(event.param.conn.retry_count, 7);
	assert_int_equal(event.param.conn.rnr_retry_count, 7);
	accept.id = event.id;
	assert_int_equal(COMMAND(&ctx.server, ACCEPT, &accept, NULL), 0);
	event = expect_event(&ctx.client, UCM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(event.param.conn.rnr_retry_count, 7);
	assert_int_equal(qp_attr_of(&ctx.server, accept.id, IBV_QPS_RTS).retry_cnt, 7);
}

TEST_WITH(no_listener_is_rejected, ucm_setup, ucm_teardown)
{
	uint32_t id = make_routed_id(RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;

	assert_int_equal(connect_id(&ctx.client, id, CLIENT_QPN, ""), 0);
	deferral_end();
	event = expect_event(&ctx.client, UCM_EVENT_REJECTED);
	assert_int_equal(event.status, CM_REJ_NO_SERVICE);
}

/* A listener has one transport: a QP of another one could not talk to its QP (IBA
 * 12.6.7.2). */
TEST_WITH(listener_rejects_another_transport, ucm_setup, ucm_teardown)
{
	static const struct {
		uint8_t listener, asks;
		bool heard;
	} rows[] = {{IBV_QPT_RC, IBV_QPT_RC, true}, {IBV_QPT_RC, IBV_QPT_UC, false},
		{IBV_QPT_UC, IBV_QPT_RC, false}, {IBV_QPT_UC, IBV_QPT_UC, true},
		{IBV_QPT_RC, IBV_QPT_XRC_SEND, false},
		{IBV_QPT_XRC_RECV, IBV_QPT_XRC_SEND, true},
		{IBV_QPT_XRC_RECV, IBV_QPT_RC, false}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct rdma_ucm_create_id cmd = {
			.ps = RDMA_PS_IB, .qp_type = rows[i].listener};
		struct rdma_ucm_create_id_resp server, client;
		struct rdma_ucm_get_event get = {0};

		assert_int_equal(COMMAND(&ctx.server, CREATE_ID, &cmd, &server), 0);
		assert_int_equal(bind_id(&ctx.server, server.id, NULL, LISTEN_PORT), 0);
		assert_int_equal(listen_id(&ctx.server, server.id, 1), 0);
		cmd.qp_type = rows[i].asks;
		assert_int_equal(COMMAND(&ctx.client, CREATE_ID, &cmd, &client), 0);
		assert_int_equal(
			resolve_addr(&ctx.client, client.id, "192.0.2.1", LISTEN_PORT),
			0);
		expect_event(&ctx.client, UCM_EVENT_ADDR_RESOLVED);
		assert_int_equal(resolve_route(&ctx.client, client.id), 0);
		expect_event(&ctx.client, UCM_EVENT_ROUTE_RESOLVED);
		assert_int_equal(connect_id(&ctx.client, client.id, CLIENT_QPN, ""), 0);
		assert_int_equal(COMMAND(&ctx.server, GET_EVENT, &get, NULL),
			rows[i].heard ? 0 : -EAGAIN);
		if (!rows[i].heard)
			assert_int_equal(
				expect_event(&ctx.client, UCM_EVENT_REJECTED).status,
				CM_REJ_TRANSPORT);
		assert_int_equal(destroy_id(&ctx.client, client.id, NULL), 0);
		assert_int_equal(destroy_id(&ctx.server, server.id, NULL), 0);
	}
}

TEST_WITH(reject_carries_private_data, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_requested(RDMA_PS_TCP);
	struct rdma_ucm_reject cmd = {
		.id = pair.passive, .private_data_len = 2, .private_data = "no"};
	struct rdma_ucm_event_resp event;

	assert_int_equal(COMMAND(&ctx.server, REJECT, &cmd, NULL), 0);
	event = expect_event(&ctx.client, UCM_EVENT_REJECTED);
	assert_int_equal(event.status, CM_REJ_CONSUMER);
	assert_memory_equal(event.param.conn.private_data, "no", 2);
}

/* The reasons that rdma_reject(3) and rdma_reject_ece(3) give, and no others. */
TEST_WITH(reject_reasons_are_checked, ucm_setup, ucm_teardown)
{
	static const struct {
		uint8_t reason;
		int status; /* 0: refused */
	} rows[] = {{0, CM_REJ_CONSUMER}, {CM_REJ_CONSUMER, CM_REJ_CONSUMER},
		{CM_REJ_VENDOR_OPTION, CM_REJ_VENDOR_OPTION}, {CM_REJ_TIMEOUT, 0},
		{CM_REJ_STALE, 0}, {CM_REJ_MTU, 0}, {255, 0}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct id_pair pair = pair_requested(RDMA_PS_TCP);
		struct rdma_ucm_reject cmd = {
			.id = pair.passive, .reason = rows[i].reason};

		assert_int_equal(COMMAND(&ctx.server, REJECT, &cmd, NULL),
			rows[i].status != 0 ? 0 : -EINVAL);
		if (rows[i].status != 0)
			assert_int_equal(
				expect_event(&ctx.client, UCM_EVENT_REJECTED).status,
				rows[i].status);
		else /* the request is still there */
			assert_int_equal(
				accept_id(&ctx.server, pair.passive, 1, SERVER_QPN), 0);
		assert_int_equal(destroy_id(&ctx.client, pair.active, NULL), 0);
		assert_int_equal(destroy_id(&ctx.server, pair.passive, NULL), 0);
		assert_int_equal(destroy_id(&ctx.server, pair.listener, NULL), 0);
		ctx.now += 10 * NS_PER_SEC; /* the time waits end */
		ucm_run(ctx.ucm, ctx.now);
	}
}

TEST_WITH(datagram_id_gets_remote_qpn, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_requested(RDMA_PS_UDP);
	struct rdma_ucm_event_resp event;

	assert_int_equal(accept_id(&ctx.server, pair.passive, 1, SERVER_QPN), 0);
	event = expect_event(&ctx.client, UCM_EVENT_ESTABLISHED);
	assert_int_equal(event.param.ud.qp_num, SERVER_QPN);
	assert_int_equal(event.param.ud.qkey, UCM_QKEY);
	assert_int_equal(event.param.ud.ah_attr.is_global, 1);
	expect_no_event(&ctx.server);
}

TEST_WITH(failed_accept_of_a_datagram_request_rejects_it, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_requested(RDMA_PS_UDP);

	assert_int_equal(accept_id(&ctx.server, pair.passive, 1, CLIENT_QPN), -EINVAL);
	assert_int_equal(expect_event(&ctx.client, UCM_EVENT_UNREACHABLE).status,
		CM_SIDR_REJECTED);
}

TEST_WITH(datagram_request_is_rejected, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_requested(RDMA_PS_UDP);
	struct rdma_ucm_reject cmd = {.id = pair.passive};
	struct rdma_ucm_event_resp event;

	assert_int_equal(COMMAND(&ctx.server, REJECT, &cmd, NULL), 0);
	event = expect_event(&ctx.client, UCM_EVENT_UNREACHABLE);
	assert_int_equal(event.status, CM_SIDR_REJECTED);
}

TEST_WITH(data_before_rtu_establishes, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_requested(RDMA_PS_TCP);
	struct rdma_ucm_notify cmd = {.id = pair.passive, .event = 4 /* COMM_EST */};

	assert_int_equal(accept_id(&ctx.server, pair.passive, 9, SERVER_QPN), 0);
	assert_int_equal(COMMAND(&ctx.server, NOTIFY, &cmd, NULL), 0);
	assert_int_equal(expect_event(&ctx.server, UCM_EVENT_ESTABLISHED).uid, 9);
}
