/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that come of messages, also of other machines. */
#include "ucm_fixture.h"

static int
setup(void **state)
{
	fixture_open(true);
	return 0;
}

TEST_WITH(connect_request_has_peer_parameters, setup, ucm_teardown)
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
	assert_int_equal(event.param.conn.responder_resources, 4);
	assert_int_equal(event.param.conn.initiator_depth, 3);
	assert_int_equal(event.param.conn.retry_count, 6);
	assert_int_equal(event.param.conn.rnr_retry_count, 5);
	assert_int_equal(event.param.conn.private_data_len, CMA_REQ_PRIVATE);
	assert_memory_equal(event.param.conn.private_data, "hello", 6);
	assert_int_equal(ctx.sent_count, 0);
}

TEST_WITH(remote_machine_gets_a_mad, setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;
	struct cm_path back = {.local = false};
	struct mad rej;

	assert_int_equal(resolve_addr(&ctx.client, id, "203.0.113.9", LISTEN_PORT), 0);
	connect_resolving(&ctx.client, id, CLIENT_QPN);
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

TEST_WITH(no_answer_raises_unreachable, setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;

	assert_int_equal(resolve_addr(&ctx.client, id, "203.0.113.9", LISTEN_PORT), 0);
	connect_resolving(&ctx.client, id, CLIENT_QPN);
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

TEST_WITH(request_without_free_id_is_rejected, setup, ucm_teardown)
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

TEST_WITH(time_wait_end_raises_event, setup, ucm_teardown)
{
	struct id_pair pair = pair_connected();

	assert_int_equal(disconnect_id(&ctx.client, pair.active), 0);
	assert_int_equal(disconnect_id(&ctx.server, pair.passive), 0);
	expect_event(&ctx.client, UCM_EVENT_DISCONNECTED);
	while (TAILQ_EMPTY(&ctx.client.channel->events)) {
		ctx.now = ucm_deadline(ctx.ucm);
		assert_true(ctx.now != TIME_NEVER);
		ucm_run(ctx.ucm, ctx.now);
	}
	assert_int_equal(
		expect_event(&ctx.client, UCM_EVENT_TIMEWAIT_EXIT).id, pair.active);
}

/* ---- Many requests of hosts that may not exist ---- */

static struct test_process busy; /* a program with a listener and many ids */

static void
busy_open(void)
{
	uint32_t id;

	busy = (struct test_process){.base = 0x300};
	ctx.ucm->conf.limits.ids = 300;
	assert_int_equal(ucm_session_create(ctx.ucm, &busy, &busy.session), 0);
	assert_int_equal(
		ucm_channel_open(busy.session, &busy, &busy.channel, &busy.number), 0);
	id = make_id(&busy, RDMA_PS_TCP);
	assert_int_equal(bind_id(&busy, id, NULL, LISTEN_PORT), 0);
	assert_int_equal(listen_id(&busy, id, 200), 0);
}

/* A REQ from 10.0.0.0 + host. */
static void
remote_request(uint32_t host)
{
	struct cm_path path = {.local = false};
	struct cma_hdr hdr = {.sport = 1};
	struct mad req;

	memcpy(path.sgid, ctx.device->conf.net.addr[0].gid, 16);
	memcpy(path.dgid, path.sgid, 12);
	path.dgid[12] = 10;
	path.dgid[14] = (uint8_t)(host >> 8);
	path.dgid[15] = (uint8_t)host;
	mad_init(&req, MAD_REQ, host);
	mad_put(&req, MAD_REQ_local_id, 1 + host);
	mad_put(&req, MAD_REQ_service_id, cma_service_id(CMA_PS_TCP, LISTEN_PORT));
	mad_put(&req, MAD_REQ_local_qpn, 0x100);
	mad_put(&req, MAD_REQ_path_mtu, 3);
	mad_put(&req, MAD_REQ_max_cm_retries, 15);
	mad_put_bytes(&req, MAD_REQ_primary_local_gid, path.dgid);
	mad_put_bytes(&req, MAD_REQ_primary_remote_gid, path.sgid);
	memcpy(hdr.src, path.dgid, 16);
	memcpy(hdr.dst, path.sgid, 16);
	cma_put(&req, &hdr);
	ucm_rx(ctx.ucm, (const uint8_t *)&req, sizeof(req), &path, ctx.now);
}

/* Accepts each request, and destroys the ids of those that fail. */
static void
busy_serve(void)
{
	struct rdma_ucm_get_event cmd = {0};
	struct rdma_ucm_event_resp event;

	while (COMMAND(&busy, GET_EVENT, &cmd, &event) == 0) {
		if (event.event == UCM_EVENT_CONNECT_REQUEST)
			assert_int_equal(
				accept_id(&busy, event.id, event.id, busy.base), 0);
		else
			assert_int_equal(destroy_id(&busy, event.id, NULL), 0);
	}
}

TEST_WITH(flood_leaves_room_for_others, setup, ucm_teardown)
{
	uint32_t id;

	busy_open();
	for (uint32_t i = 0; i < 5000; i++) {
		remote_request(i);
		busy_serve();
		ctx.now += NS_PER_MS / 10;
		ucm_run(ctx.ucm, ctx.now);
	}
	assert_in_range(ucm_session_ids(busy.session), 1, 64);
	/* Programs of this host connect, and a host that exists. */
	id = make_routed_id(RDMA_PS_TCP);
	assert_int_equal(connect_id(&ctx.client, id, CLIENT_QPN, ""), 0);
	busy_serve();
	expect_event(&ctx.client, UCM_EVENT_CONNECT_RESPONSE);
	ctx.sent_count = 0;
	remote_request(5000);
	busy_serve();
	assert_int_equal(mad_attr_of(&ctx.sent), MAD_REP);
	ucm_session_destroy(busy.session, ctx.now);
}

/* A request that had to make room can no longer be accepted or rejected. */
TEST_WITH(ended_request_cannot_be_accepted, setup, ucm_teardown)
{
	struct rdma_ucm_event_resp event;
	struct rdma_ucm_reject reject = {0};

	busy_open();
	for (uint32_t i = 0; i < 60; i++)
		remote_request(i);
	assert_true(ucm_stats(ctx.ucm)->evicted > 0);
	/* Its connection was freed: the ID of the program does not keep it. */
	assert_in_range(cm_in_use(ctx.ucm->cm), 50, 57);
	event = expect_event(&busy, UCM_EVENT_CONNECT_REQUEST);
	reject.id = event.id;
	assert_int_equal(accept_id(&busy, event.id, 1, busy.base), -ENOTCONN);
	assert_int_equal(COMMAND(&busy, REJECT, &reject, NULL), -ENOTCONN);
	assert_int_equal(disconnect_id(&busy, event.id), 0);
	assert_int_equal(destroy_id(&busy, event.id, NULL), 0);
	ucm_session_destroy(busy.session, ctx.now);
}

/* A REQ that asks for a QP without ACK timeout: the QP gets the default. */
TEST_WITH(request_without_ack_timeout, setup, ucm_teardown)
{
	uint32_t id;

	busy_open();
	remote_request(1);
	id = expect_event(&busy, UCM_EVENT_CONNECT_REQUEST).id;
	assert_int_equal(qp_attr_of(&busy, id, IBV_QPS_RTS).timeout, 19);
	ucm_session_destroy(busy.session, ctx.now);
}
