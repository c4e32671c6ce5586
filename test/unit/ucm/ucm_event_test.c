/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that come of messages, also of other machines. */
#include "bed.h"

static int
setup(void **state)
{
	(void)state;
	bed_open(true);
	return 0;
}

static void
a_request_says_who_asks(void **state)
{
	struct bed_pair pair = {.listener = bed_listener(RDMA_PS_TCP)};
	struct rdma_ucm_event_resp event;

	(void)state;
	pair.active = bed_routed(RDMA_PS_TCP);
	assert_int_equal(
		bed_connect(&bed.client, pair.active, BED_CLIENT_QPN, "hello"), 0);
	event = bed_event(&bed.server, UCM_EVENT_CONNECT_REQUEST);
	/* The listener's uid, and a new id. */
	assert_int_equal(event.uid, 0x1000);
	assert_int_not_equal(event.id, pair.listener);
	assert_int_equal(event.param.conn.qp_num, BED_CLIENT_QPN);
	/* Swapped: what the peer asks of this side. */
	assert_int_equal(event.param.conn.responder_resources, 2);
	assert_int_equal(event.param.conn.initiator_depth, 3);
	assert_int_equal(event.param.conn.retry_count, 6);
	assert_int_equal(event.param.conn.rnr_retry_count, 5);
	assert_int_equal(event.param.conn.private_data_len, CMA_REQ_PRIVATE);
	assert_memory_equal(event.param.conn.private_data, "hello", 6);
	assert_int_equal(bed.sent_count, 0);
}

static void
elsewhere_by_message(void **state)
{
	uint32_t id = bed_id(&bed.client, RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;
	struct cm_path back;
	struct mad rej;

	(void)state;
	assert_int_equal(bed_resolve(&bed.client, id, "203.0.113.9", BED_PORT), 0);
	bed_event(&bed.client, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(bed_route(&bed.client, id), 0);
	bed_event(&bed.client, UCM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(bed_connect(&bed.client, id, BED_CLIENT_QPN, "x"), 0);
	assert_int_equal(bed.sent_count, 1);
	assert_int_equal(mad_attr_of(&bed.sent), MAD_REQ);
	assert_int_equal(mad_get(&bed.sent, MAD_REQ_service_id),
		cma_service_id(CMA_PS_TCP, BED_PORT));
	memcpy(back.sgid, bed.sent_path.dgid, 16);
	memcpy(back.dgid, bed.sent_path.sgid, 16);
	mad_init(&rej, MAD_REJ, bed.sent.tid);
	mad_put(&rej, MAD_REJ_remote_id, mad_get(&bed.sent, MAD_REQ_local_id));
	mad_put(&rej, MAD_REJ_reason, CM_REJ_NO_SERVICE);
	memcpy(back.sgid, bed.sent_path.sgid, 16);
	memcpy(back.dgid, bed.sent_path.dgid, 16);
	ucm_rx(bed.ucm, (const uint8_t *)&rej, sizeof(rej), &back, bed.now);
	event = bed_event(&bed.client, UCM_EVENT_REJECTED);
	assert_int_equal(event.status, CM_REJ_NO_SERVICE);
}

static void
no_answer_at_all(void **state)
{
	uint32_t id = bed_id(&bed.client, RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;

	(void)state;
	assert_int_equal(bed_resolve(&bed.client, id, "203.0.113.9", BED_PORT), 0);
	bed_event(&bed.client, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(bed_route(&bed.client, id), 0);
	bed_event(&bed.client, UCM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(bed_connect(&bed.client, id, BED_CLIENT_QPN, "x"), 0);
	for (unsigned i = 0; i < 100 && TAILQ_EMPTY(&bed.client.channel->events); i++) {
		bed.now = ucm_deadline(bed.ucm);
		ucm_run(bed.ucm, bed.now);
	}
	event = bed_event(&bed.client, UCM_EVENT_UNREACHABLE);
	assert_int_equal((int)event.status, -ETIMEDOUT);
	/* A REQ, 15 retries, and the REJ that gives it up. */
	assert_int_equal(bed.sent_count, 17);
	assert_int_equal(mad_attr_of(&bed.sent), MAD_REJ);
}

static void
no_room_for_a_request(void **state)
{
	uint32_t active, ids[BED_IDS];

	(void)state;
	bed_listener(RDMA_PS_TCP);
	active = bed_routed(RDMA_PS_TCP);
	for (unsigned i = 1; i < BED_IDS; i++)
		ids[i] = bed_id(&bed.server, RDMA_PS_TCP);
	assert_int_equal(bed_connect(&bed.client, active, BED_CLIENT_QPN, ""), 0);
	assert_int_equal(
		bed_event(&bed.client, UCM_EVENT_REJECTED).status, CM_REJ_NO_RESOURCES);
	bed_no_event(&bed.server);
	assert_int_equal(bed_destroy(&bed.server, ids[1], NULL), 0);
}

static void
time_wait_ends(void **state)
{
	struct bed_pair pair = bed_connected();

	(void)state;
	assert_int_equal(bed_disconnect(&bed.client, pair.active), 0);
	bed_event(&bed.client, UCM_EVENT_DISCONNECTED);
	while (TAILQ_EMPTY(&bed.client.channel->events)) {
		bed.now = ucm_deadline(bed.ucm);
		assert_true(bed.now != TIME_NEVER);
		ucm_run(bed.ucm, bed.now);
	}
	assert_int_equal(bed_event(&bed.client, UCM_EVENT_TIMEWAIT_EXIT).id, pair.active);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_request_says_who_asks, setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			elsewhere_by_message, setup, bed_teardown),
		cmocka_unit_test_setup_teardown(no_answer_at_all, setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			no_room_for_a_request, setup, bed_teardown),
		cmocka_unit_test_setup_teardown(time_wait_ends, setup, bed_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
