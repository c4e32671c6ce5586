/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of an id. */
#include "ucm_fixture.h"

TEST_WITH(options_are_checked, ucm_setup, ucm_teardown)
{
	static const struct {
		uint32_t level, name, len;
		uint8_t value;
		int rc;
	} rows[] = {
		{RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1, 0x28, 0},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 2, 0x28, -EINVAL},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4, 1, 0},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, 1, -EINVAL},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 4, 1, 0},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1, 14, 0},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1, 32, -EINVAL},
		{RDMA_OPTION_ID, 77, 4, 1, -ENOSYS},
		{RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 64, 0, -ENOSYS},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, UCM_OPTION_MAX + 1, 0, -EINVAL},
	};
	struct ucm_set_option cmd = {.head = {.id = make_id(&ctx.client, RDMA_PS_TCP)}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		cmd.head.level = rows[i].level;
		cmd.head.optname = rows[i].name;
		cmd.head.optlen = rows[i].len;
		cmd.value[0] = rows[i].value;
		assert_int_equal(
			COMMAND(&ctx.client, SET_OPTION, &cmd, NULL), rows[i].rc);
	}
	/* The command must contain the value. */
	cmd.head.level = RDMA_OPTION_ID;
	cmd.head.optname = RDMA_OPTION_ID_TOS;
	cmd.head.optlen = 1;
	assert_int_equal(command_run(&ctx.client, RDMA_USER_CM_CMD_SET_OPTION, &cmd,
				 sizeof(cmd.head), NULL),
		-EINVAL);
}

TEST_WITH(options_reach_the_qp, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_requested(RDMA_PS_TCP);
	struct ucm_set_option cmd = {.head = {.id = pair.passive,
					     .optname = RDMA_OPTION_ID_ACK_TIMEOUT,
					     .optlen = 1},
		.value = {9}};

	assert_int_equal(qp_attr_of(&ctx.server, pair.passive, 3).timeout, 19);
	assert_int_equal(COMMAND(&ctx.server, SET_OPTION, &cmd, NULL), 0);
	assert_int_equal(qp_attr_of(&ctx.server, pair.passive, 3).timeout, 9);
	cmd.head.optname = RDMA_OPTION_ID_TOS;
	cmd.value[0] = 0x68;
	assert_int_equal(COMMAND(&ctx.server, SET_OPTION, &cmd, NULL), 0);
	assert_int_equal(
		qp_attr_of(&ctx.server, pair.passive, 2).ah_attr.grh.traffic_class, 0x68);
}

static void
ack_timeout_set(struct test_process *p, uint32_t id, uint8_t code)
{
	struct ucm_set_option cmd = {
		.head = {.id = id, .optname = RDMA_OPTION_ID_ACK_TIMEOUT, .optlen = 1},
		.value = {code}};

	assert_int_equal(COMMAND(p, SET_OPTION, &cmd, NULL), 0);
}

/* The REQ has the timeout of the active side for the QP of the other side (IBA 12.7.34),
 * whose program may set another one. 0 is no timeout, of the own QP alone. */
TEST_WITH(ack_timeouts_of_both_ends, ucm_setup, ucm_teardown)
{
	static const struct {
		int active, listener, passive; /* options; -1: not set */
		uint8_t active_qp, passive_qp;
	} rows[] = {
		{-1, -1, -1, 19, 19},
		{14, -1, -1, 14, 14},
		{14, 11, -1, 14, 11},
		{14, 11, 20, 14, 20},
		{14, -1, 0, 14, 0},
		{14, 0, -1, 14, 0},
		{0, -1, -1, 0, 19},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct id_pair pair = {.listener = make_listener(RDMA_PS_TCP)};

		if (rows[i].listener >= 0)
			ack_timeout_set(
				&ctx.server, pair.listener, (uint8_t)rows[i].listener);
		pair.active = make_routed_id(RDMA_PS_TCP);
		if (rows[i].active >= 0)
			ack_timeout_set(
				&ctx.client, pair.active, (uint8_t)rows[i].active);
		assert_int_equal(connect_id(&ctx.client, pair.active, CLIENT_QPN, ""), 0);
		pair.passive = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST).id;
		if (rows[i].passive >= 0)
			ack_timeout_set(
				&ctx.server, pair.passive, (uint8_t)rows[i].passive);
		assert_int_equal(accept_id(&ctx.server, pair.passive, 1, SERVER_QPN), 0);
		expect_event(&ctx.client, UCM_EVENT_CONNECT_RESPONSE);
		assert_int_equal(
			qp_attr_of(&ctx.client, pair.active, IBV_QPS_RTS).timeout,
			rows[i].active_qp);
		assert_int_equal(
			qp_attr_of(&ctx.server, pair.passive, IBV_QPS_RTS).timeout,
			rows[i].passive_qp);
		assert_int_equal(destroy_id(&ctx.client, pair.active, NULL), 0);
		assert_int_equal(destroy_id(&ctx.server, pair.passive, NULL), 0);
		assert_int_equal(destroy_id(&ctx.server, pair.listener, NULL), 0);
		/* The time waits end: the next row has the same QPs. */
		ctx.now += 10 * NS_PER_SEC;
		ucm_run(ctx.ucm, ctx.now);
	}
}
