/* SPDX-License-Identifier: BSD-3-Clause */
/* What rules of rocade-run --faults have happen to IDs. */
#include "ucm_fixture.h"

#define WAIT_NS (10 * NS_PER_SEC) /* more than a response is waited for */

static int
fault_set_sized(
	struct test_process *p, uint32_t id, uint32_t fault, uint32_t value, uint32_t len)
{
	const struct ucm_option_fault option = {.fault = fault, .value = value};
	struct ucm_set_option cmd = {.head = {.id = id,
					     .level = UCM_LEVEL_ROCADE,
					     .optname = UCM_ROCADE_FAULT,
					     .optlen = len}};

	memcpy(cmd.value, &option, sizeof(option));
	return COMMAND(p, SET_OPTION, &cmd, NULL);
}

static int
fault_set(struct test_process *p, uint32_t id, uint32_t fault, uint32_t value)
{
	return fault_set_sized(p, id, fault, value, sizeof(struct ucm_option_fault));
}

/* Sets one that can happen. */
static void
fault_arm(struct test_process *p, uint32_t id, uint32_t fault)
{
	assert_int_equal(fault_set(p, id, fault, 1), 0);
}

static void
expect_error(enum ucm_event_type type, uint32_t id, int status)
{
	struct rdma_ucm_event_resp event = expect_event(&ctx.client, type);

	assert_int_equal(event.id, id);
	assert_int_equal((int)event.status, status);
	expect_no_event(&ctx.client);
}

static void
time_pass(void)
{
	ctx.now += WAIT_NS;
	ucm_run(ctx.ucm, ctx.now);
}

static uint64_t
resent(void)
{
	return ucm_stats(ctx.ucm)->resent;
}

TEST_WITH(a_resolution_fails_and_the_next_one_does_not, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);

	fault_arm(&ctx.client, id, UCM_FAULT_ADDR_ERROR);
	assert_int_equal(resolve_addr(&ctx.client, id, "192.0.2.1", LISTEN_PORT), 0);
	expect_error(UCM_EVENT_ADDR_ERROR, id, -ETIMEDOUT);
	assert_int_equal(resolve_addr(&ctx.client, id, "192.0.2.1", LISTEN_PORT), 0);
	expect_event(&ctx.client, UCM_EVENT_ADDR_RESOLVED);
	fault_arm(&ctx.client, id, UCM_FAULT_ROUTE_ERROR);
	assert_int_equal(resolve_route(&ctx.client, id), 0);
	expect_error(UCM_EVENT_ROUTE_ERROR, id, -ETIMEDOUT);
	assert_int_equal(resolve_route(&ctx.client, id), 0);
	expect_event(&ctx.client, UCM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(ucm_stats(ctx.ucm)->faults, 2);
}

TEST_WITH(a_request_fails_before_it_is_sent, ucm_setup, ucm_teardown)
{
	uint32_t id, ud;

	make_listener(RDMA_PS_TCP);
	id = make_routed_id(RDMA_PS_TCP);
	fault_arm(&ctx.client, id, UCM_FAULT_UNREACHABLE);
	assert_int_equal(connect_id(&ctx.client, id, CLIENT_QPN, ""), 0);
	expect_error(UCM_EVENT_UNREACHABLE, id, -ETIMEDOUT);
	assert_int_equal(connect_id(&ctx.client, id, CLIENT_QPN, ""), -EINVAL);
	assert_int_equal(disconnect_id(&ctx.client, id), 0); /* as after a REJ */
	id = make_routed_id(RDMA_PS_TCP);
	assert_int_equal(fault_set(&ctx.client, id, UCM_FAULT_REJECTED, 27), 0);
	assert_int_equal(connect_id(&ctx.client, id, CLIENT_QPN, ""), 0);
	expect_error(UCM_EVENT_REJECTED, id, 27);
	ud = make_routed_id(RDMA_PS_UDP);
	fault_arm(&ctx.client, ud, UCM_FAULT_UNREACHABLE);
	assert_int_equal(connect_id(&ctx.client, ud, CLIENT_QPN, ""), 0);
	expect_error(UCM_EVENT_UNREACHABLE, ud, -ETIMEDOUT);
	expect_no_event(&ctx.server);
	assert_int_equal(ucm_stats(ctx.ucm)->faults, 3);
}

TEST_WITH(a_lost_req_is_sent_again, ucm_setup, ucm_teardown)
{
	uint32_t id;

	make_listener(RDMA_PS_TCP);
	id = make_routed_id(RDMA_PS_TCP);
	fault_arm(&ctx.client, id, UCM_FAULT_LOSE_REQ);
	assert_int_equal(connect_id(&ctx.client, id, CLIENT_QPN, ""), 0);
	expect_no_event(&ctx.server);
	time_pass();
	expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	assert_int_equal(resent(), 1);
	assert_int_equal(ucm_stats(ctx.ucm)->faults, 1);
}

/* It waits for a listener first. */
TEST_WITH(a_deferred_req_is_lost_when_it_is_sent, ucm_setup, ucm_teardown)
{
	uint32_t id = make_routed_id(RDMA_PS_TCP);

	fault_arm(&ctx.client, id, UCM_FAULT_LOSE_REQ);
	assert_int_equal(connect_id(&ctx.client, id, CLIENT_QPN, ""), 0);
	make_listener(RDMA_PS_TCP);
	expect_no_event(&ctx.server);
	time_pass();
	expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	assert_int_equal(resent(), 1);
}

TEST_WITH(a_lost_rep_is_sent_again, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_requested(RDMA_PS_TCP);

	fault_arm(&ctx.server, pair.passive, UCM_FAULT_LOSE_REP);
	assert_int_equal(accept_id(&ctx.server, pair.passive, 0x2000, SERVER_QPN), 0);
	expect_no_event(&ctx.client);
	time_pass();
	expect_event(&ctx.client, UCM_EVENT_CONNECT_RESPONSE);
	assert_true(resent() != 0);
}

/* The rule comes with the call of the program, the RTU when the peer has answered. */
TEST_WITH(a_lost_rtu_is_sent_again, ucm_setup, ucm_teardown)
{
	uint32_t id, passive;

	make_listener(RDMA_PS_TCP);
	id = make_routed_id(RDMA_PS_TCP);
	fault_arm(&ctx.client, id, UCM_FAULT_LOSE_RTU);
	assert_int_equal(connect_id(&ctx.client, id, CLIENT_QPN, ""), 0);
	passive = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST).id;
	assert_int_equal(accept_id(&ctx.server, passive, 0x2000, SERVER_QPN), 0);
	expect_event(&ctx.client, UCM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(accept_id(&ctx.client, id, 0, 0), 0);
	expect_no_event(&ctx.server);
	time_pass();
	expect_event(&ctx.server, UCM_EVENT_ESTABLISHED);
	assert_int_equal(resent(), 1); /* of the REP */
}

TEST_WITH(a_lost_dreq_is_sent_again, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_connected();

	fault_arm(&ctx.client, pair.active, UCM_FAULT_LOSE_DREQ);
	assert_int_equal(disconnect_id(&ctx.client, pair.active), 0);
	expect_no_event(&ctx.server);
	time_pass();
	expect_event(&ctx.server, UCM_EVENT_DISCONNECTED);
	assert_int_equal(resent(), 1);
	assert_int_equal(
		fault_set(&ctx.server, pair.passive, UCM_FAULT_LOSE_DREQ, 0), -EINVAL);
}

TEST_WITH(a_connection_ends_at_both_ends, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_connected();

	assert_int_equal(fault_set(&ctx.client, pair.active, UCM_FAULT_BREAK, 0), 0);
	expect_no_event(&ctx.client);
	assert_int_equal(ucm_stats(ctx.ucm)->faults, 0);
	assert_int_equal(fault_set(&ctx.client, pair.active, UCM_FAULT_BREAK, 1), 0);
	expect_error(UCM_EVENT_DISCONNECTED, pair.active, 0);
	expect_event(&ctx.server, UCM_EVENT_DISCONNECTED);
	assert_int_equal(
		fault_set(&ctx.client, pair.active, UCM_FAULT_BREAK, 0), -EINVAL);
	assert_int_equal(disconnect_id(&ctx.client, pair.active), 0);
	assert_int_equal(disconnect_id(&ctx.server, pair.passive), 0);
	expect_no_event(&ctx.client);
	assert_int_equal(ucm_stats(ctx.ucm)->faults, 1);
}

/* The call for which it was set has not reached the server. */
TEST_WITH(a_fault_is_taken_back, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);

	fault_arm(&ctx.client, id, UCM_FAULT_ADDR_ERROR);
	fault_arm(&ctx.client, id, UCM_FAULT_NONE);
	assert_int_equal(resolve_addr(&ctx.client, id, "192.0.2.1", LISTEN_PORT), 0);
	expect_event(&ctx.client, UCM_EVENT_ADDR_RESOLVED);
}

/* can: the faults that the ID can have now, a bit each. */
static void
expect_possible(struct test_process *p, uint32_t id, uint32_t can)
{
	for (unsigned fault = 0; fault <= UCM_FAULT_BREAK + 1; fault++)
		assert_int_equal(fault_set(p, id, fault, 0),
			(can >> fault & 1) != 0 ? 0 : -EINVAL);
}

TEST_WITH(what_cannot_happen_is_refused, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_requested(RDMA_PS_TCP);
	uint32_t idle = make_id(&ctx.client, RDMA_PS_TCP);
	uint32_t ud = make_routed_id(RDMA_PS_UDP);
	const uint32_t none = 1u << UCM_FAULT_NONE;

	expect_possible(&ctx.client, idle, none | 1u << UCM_FAULT_ADDR_ERROR);
	expect_possible(&ctx.client, ud, none | 1u << UCM_FAULT_UNREACHABLE);
	expect_possible(&ctx.client, pair.active, none);
	expect_possible(&ctx.server, pair.listener, none);
	expect_possible(&ctx.server, pair.passive, none | 1u << UCM_FAULT_LOSE_REP);
	fault_arm(&ctx.server, pair.passive, UCM_FAULT_NONE);
	assert_int_equal(accept_id(&ctx.server, pair.passive, 0x2000, SERVER_QPN), 0);
	/* its peer has sent no RTU */
	expect_possible(&ctx.server, pair.passive, none | 1u << UCM_FAULT_LOSE_DREQ);
	assert_int_equal(
		fault_set_sized(&ctx.client, idle, UCM_FAULT_NONE, 0, 4), -EINVAL);
	assert_int_equal(fault_set(&ctx.client, 999, UCM_FAULT_NONE, 0), -ENOENT);
}
