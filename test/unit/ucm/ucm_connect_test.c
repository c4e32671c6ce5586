/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection commands, and those that are refused. */
#include "bed.h"

#include <infiniband/verbs.h>

static void
a_connection_from_end_to_end(void **state)
{
	struct bed_pair pair = bed_connected();

	(void)state;
	assert_int_equal(bed_disconnect(&bed.client, pair.active), 0);
	assert_int_equal(bed_event(&bed.server, UCM_EVENT_DISCONNECTED).id, pair.passive);
	assert_int_equal(bed_event(&bed.client, UCM_EVENT_DISCONNECTED).id, pair.active);
	/* The other side can disconnect as well. */
	assert_int_equal(bed_disconnect(&bed.server, pair.passive), 0);
}

static void
only_in_its_turn(void **state)
{
	uint32_t id = bed_id(&bed.client, RDMA_PS_TCP);

	(void)state;
	assert_int_equal(bed_connect(&bed.client, id, BED_CLIENT_QPN, ""), -EINVAL);
	assert_int_equal(bed_accept(&bed.client, id, 1, BED_CLIENT_QPN), -EINVAL);
	assert_int_equal(bed_disconnect(&bed.client, id), -EINVAL);
	assert_int_equal(bed_route(&bed.client, id), -EINVAL);
	assert_int_equal(bed_listen(&bed.client, id, 0), 0);
	assert_int_equal(bed_listen(&bed.client, id, 0), -EINVAL);
	assert_int_equal(bed_resolve(&bed.client, id, "192.0.2.1", 1), -EINVAL);
}

static void
with_ones_own_qps_only(void **state)
{
	struct bed_pair pair = {.listener = bed_listener(RDMA_PS_TCP)};

	(void)state;
	pair.active = bed_routed(RDMA_PS_TCP);
	assert_int_equal(
		bed_connect(&bed.client, pair.active, BED_SERVER_QPN, ""), -EINVAL);
	assert_int_equal(bed_connect(&bed.client, pair.active, 1, ""), -EINVAL);
	assert_int_equal(bed_connect(&bed.client, pair.active, BED_CLIENT_QPN, ""), 0);
	pair.passive = bed_event(&bed.server, UCM_EVENT_CONNECT_REQUEST).id;
	assert_int_equal(
		bed_accept(&bed.server, pair.passive, 1, BED_CLIENT_QPN), -EINVAL);
	assert_int_equal(bed_accept(&bed.server, pair.passive, 1, BED_SERVER_QPN), 0);
}

static void
nobody_listens(void **state)
{
	uint32_t id = bed_routed(RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;

	(void)state;
	assert_int_equal(bed_connect(&bed.client, id, BED_CLIENT_QPN, ""), 0);
	bed_hold_end();
	event = bed_event(&bed.client, UCM_EVENT_REJECTED);
	assert_int_equal(event.status, CM_REJ_NO_SERVICE);
}

/* A listener has one transport: a QP of another one could not talk to its QP (IBA
 * 12.6.7.2). */
static void
another_transport(void **state)
{
	static const struct {
		uint8_t listener, asks;
		bool heard;
	} rows[] = {{IBV_QPT_RC, IBV_QPT_RC, true}, {IBV_QPT_RC, IBV_QPT_UC, false},
		{IBV_QPT_UC, IBV_QPT_RC, false}, {IBV_QPT_UC, IBV_QPT_UC, true},
		{IBV_QPT_RC, IBV_QPT_XRC_SEND, false},
		{IBV_QPT_XRC_RECV, IBV_QPT_XRC_SEND, true},
		{IBV_QPT_XRC_RECV, IBV_QPT_RC, false}};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct rdma_ucm_create_id cmd = {
			.ps = RDMA_PS_IB, .qp_type = rows[i].listener};
		struct rdma_ucm_create_id_resp server, client;
		struct rdma_ucm_get_event get = {0};

		assert_int_equal(BED(&bed.server, CREATE_ID, &cmd, &server), 0);
		assert_int_equal(bed_bind(&bed.server, server.id, NULL, BED_PORT), 0);
		assert_int_equal(bed_listen(&bed.server, server.id, 1), 0);
		cmd.qp_type = rows[i].asks;
		assert_int_equal(BED(&bed.client, CREATE_ID, &cmd, &client), 0);
		assert_int_equal(
			bed_resolve(&bed.client, client.id, "192.0.2.1", BED_PORT), 0);
		bed_event(&bed.client, UCM_EVENT_ADDR_RESOLVED);
		assert_int_equal(bed_route(&bed.client, client.id), 0);
		bed_event(&bed.client, UCM_EVENT_ROUTE_RESOLVED);
		assert_int_equal(
			bed_connect(&bed.client, client.id, BED_CLIENT_QPN, ""), 0);
		assert_int_equal(BED(&bed.server, GET_EVENT, &get, NULL),
			rows[i].heard ? 0 : -EAGAIN);
		if (!rows[i].heard)
			assert_int_equal(
				bed_event(&bed.client, UCM_EVENT_REJECTED).status,
				CM_REJ_TRANSPORT);
		assert_int_equal(bed_destroy(&bed.client, client.id, NULL), 0);
		assert_int_equal(bed_destroy(&bed.server, server.id, NULL), 0);
	}
}

static void
rejected_with_private_data(void **state)
{
	struct bed_pair pair = bed_requested(RDMA_PS_TCP);
	struct rdma_ucm_reject cmd = {
		.id = pair.passive, .private_data_len = 2, .private_data = "no"};
	struct rdma_ucm_event_resp event;

	(void)state;
	assert_int_equal(BED(&bed.server, REJECT, &cmd, NULL), 0);
	event = bed_event(&bed.client, UCM_EVENT_REJECTED);
	assert_int_equal(event.status, CM_REJ_CONSUMER);
	assert_memory_equal(event.param.conn.private_data, "no", 2);
}

static void
datagrams(void **state)
{
	struct bed_pair pair = bed_requested(RDMA_PS_UDP);
	struct rdma_ucm_event_resp event;

	(void)state;
	assert_int_equal(
		bed_accept(&bed.server, pair.passive, 1, BED_CLIENT_QPN), -EINVAL);
	assert_int_equal(bed_accept(&bed.server, pair.passive, 1, BED_SERVER_QPN), 0);
	event = bed_event(&bed.client, UCM_EVENT_ESTABLISHED);
	assert_int_equal(event.param.ud.qp_num, BED_SERVER_QPN);
	assert_int_equal(event.param.ud.qkey, UCM_QKEY);
	assert_int_equal(event.param.ud.ah_attr.is_global, 1);
	bed_no_event(&bed.server);
}

static void
datagrams_refused(void **state)
{
	struct bed_pair pair = bed_requested(RDMA_PS_UDP);
	struct rdma_ucm_reject cmd = {.id = pair.passive};
	struct rdma_ucm_event_resp event;

	(void)state;
	assert_int_equal(BED(&bed.server, REJECT, &cmd, NULL), 0);
	event = bed_event(&bed.client, UCM_EVENT_UNREACHABLE);
	assert_int_equal(event.status, CM_SIDR_REJECTED);
}

static void
data_before_the_last_word(void **state)
{
	struct bed_pair pair = bed_requested(RDMA_PS_TCP);
	struct rdma_ucm_notify cmd = {.id = pair.passive, .event = 4 /* COMM_EST */};

	(void)state;
	assert_int_equal(bed_accept(&bed.server, pair.passive, 9, BED_SERVER_QPN), 0);
	assert_int_equal(BED(&bed.server, NOTIFY, &cmd, NULL), 0);
	assert_int_equal(bed_event(&bed.server, UCM_EVENT_ESTABLISHED).uid, 9);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_connection_from_end_to_end, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			only_in_its_turn, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			with_ones_own_qps_only, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(nobody_listens, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			another_transport, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			rejected_with_private_data, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(datagrams, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			datagrams_refused, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			data_before_the_last_word, bed_setup, bed_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
