/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that come of messages, also of other machines. */
#include "ucm_fixture.h"

static int
setup(void **state)
{
	fixture_open(true);
	return 0;
}

static void
connect_request_has_peer_parameters(void **state)
{
	struct id_pair pair = {.listener = make_listener(RDMA_PS_TCP)};
	struct rdma_ucm_event_resp event;

	pair.active = make_routed_id(RDMA_PS_TCP);
	assert_int_equal(connect_id(&ctx.client, pair.active, CLIENT_QPN, "hello"), 0);
	event = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	/* The listener's uid, and a new id. */
	assert_int_equal(event.uid, 0x1000);
	assert_int_not_equal(event.id, pair.listener);
	assert_int_equal(event.param.conn.qp_num, CLIENT_QPN);
	/* Swapped: what the peer asks of this side. */
	assert_int_equal(event.param.conn.responder_resources, 2);
	assert_int_equal(event.param.conn.initiator_depth, 3);
	assert_int_equal(event.param.conn.retry_count, 6);
	assert_int_equal(event.param.conn.rnr_retry_count, 5);
	assert_int_equal(event.param.conn.private_data_len, CMA_REQ_PRIVATE);
	assert_memory_equal(event.param.conn.private_data, "hello", 6);
	assert_int_equal(ctx.sent_count, 0);
}

static void
remote_machine_gets_a_mad(void **state)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;
	struct cm_path back;
	struct mad rej;

	assert_int_equal(resolve_addr(&ctx.client, id, "203.0.113.9", LISTEN_PORT), 0);
	expect_event(&ctx.client, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(resolve_route(&ctx.client, id), 0);
	expect_event(&ctx.client, UCM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(connect_id(&ctx.client, id, CLIENT_QPN, "x"), 0);
	assert_int_equal(ctx.sent_count, 1);
	assert_int_equal(mad_attr_of(&ctx.sent), MAD_REQ);
	assert_int_equal(mad_get(&ctx.sent, MAD_REQ_service_id),
		cma_service_id(CMA_PS_TCP, LISTEN_PORT));
	memcpy(back.sgid, ctx.sent_path.dgid, 16);
	memcpy(back.dgid, ctx.sent_path.sgid, 16);
	mad_init(&rej, MAD_REJ, ctx.sent.tid);
	mad_put(&rej, MAD_REJ_remote_id, mad_get(&ctx.sent, MAD_REQ_local_id));
	mad_put(&rej, MAD_REJ_reason, CM_REJ_NO_SERVICE);
	memcpy(back.sgid, ctx.sent_path.sgid, 16);
	memcpy(back.dgid, ctx.sent_path.dgid, 16);
	ucm_rx(ctx.ucm, (const uint8_t *)&rej, sizeof(rej), &back, ctx.now);
	event = expect_event(&ctx.client, UCM_EVENT_REJECTED);
	assert_int_equal(event.status, CM_REJ_NO_SERVICE);
}

static void
no_answer_raises_unreachable(void **state)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;

	assert_int_equal(resolve_addr(&ctx.client, id, "203.0.113.9", LISTEN_PORT), 0);
	expect_event(&ctx.client, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(resolve_route(&ctx.client, id), 0);
	expect_event(&ctx.client, UCM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(connect_id(&ctx.client, id, CLIENT_QPN, "x"), 0);
	for (unsigned i = 0; i < 100 && TAILQ_EMPTY(&ctx.client.channel->events); i++) {
		ctx.now = ucm_deadline(ctx.ucm);
		ucm_run(ctx.ucm, ctx.now);
	}
	event = expect_event(&ctx.client, UCM_EVENT_UNREACHABLE);
	assert_int_equal((int)event.status, -ETIMEDOUT);
	/* A REQ, 15 retries, and the REJ that gives it up. */
	assert_int_equal(ctx.sent_count, 17);
	assert_int_equal(mad_attr_of(&ctx.sent), MAD_REJ);
}

static void
request_without_free_id_is_rejected(void **state)
{
	uint32_t active, ids[MAX_IDS];

	make_listener(RDMA_PS_TCP);
	active = make_routed_id(RDMA_PS_TCP);
	for (unsigned i = 1; i < MAX_IDS; i++)
		ids[i] = make_id(&ctx.server, RDMA_PS_TCP);
	assert_int_equal(connect_id(&ctx.client, active, CLIENT_QPN, ""), 0);
	assert_int_equal(expect_event(&ctx.client, UCM_EVENT_REJECTED).status,
		CM_REJ_NO_RESOURCES);
	expect_no_event(&ctx.server);
	assert_int_equal(destroy_id(&ctx.server, ids[1], NULL), 0);
}

static void
time_wait_end_raises_event(void **state)
{
	struct id_pair pair = pair_connected();

	assert_int_equal(disconnect_id(&ctx.client, pair.active), 0);
	expect_event(&ctx.client, UCM_EVENT_DISCONNECTED);
	while (TAILQ_EMPTY(&ctx.client.channel->events)) {
		ctx.now = ucm_deadline(ctx.ucm);
		assert_true(ctx.now != TIME_NEVER);
		ucm_run(ctx.ucm, ctx.now);
	}
	assert_int_equal(
		expect_event(&ctx.client, UCM_EVENT_TIMEWAIT_EXIT).id, pair.active);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			connect_request_has_peer_parameters, setup, ucm_teardown),
		cmocka_unit_test_setup_teardown(
			remote_machine_gets_a_mad, setup, ucm_teardown),
		cmocka_unit_test_setup_teardown(
			no_answer_raises_unreachable, setup, ucm_teardown),
		cmocka_unit_test_setup_teardown(
			request_without_free_id_is_rejected, setup, ucm_teardown),
		cmocka_unit_test_setup_teardown(
			time_wait_end_raises_event, setup, ucm_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
