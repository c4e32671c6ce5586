/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of an id. */
#include "ucm_fixture.h"

static void
options_are_checked(void **state)
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

static void
options_reach_the_qp(void **state)
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			options_are_checked, ucm_setup, ucm_teardown),
		cmocka_unit_test_setup_teardown(
			options_reach_the_qp, ucm_setup, ucm_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
