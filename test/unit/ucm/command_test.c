/* SPDX-License-Identifier: BSD-3-Clause */
/* Unknown commands, and commands of a wrong size. */
#include "ucm_fixture.h"

TEST_WITH(short_and_unknown_commands_are_refused, ucm_setup, ucm_teardown)
{
	uint8_t bytes[UCM_MAX] = {0};
	static const uint16_t least[] = {
#define UCM(name, handler, in, size, out) [RDMA_USER_CM_CMD_##name] = size,
#define UCM_NO_REPLY(name, handler, in, size) [RDMA_USER_CM_CMD_##name] = size,
#include "ucm/commands.def"
	};

	for (uint32_t cmd = 0; cmd < RTE_DIM(least); cmd++) {
		if (least[cmd] == 0) {
			assert_int_equal(
				command_run(&ctx.client, cmd, bytes, sizeof(bytes), NULL),
				-ENOSYS);
			continue;
		}
		assert_int_equal(
			command_run(&ctx.client, cmd, bytes, least[cmd] - 1u, NULL),
			-EINVAL);
		/* No id is 0. */
		if (cmd != RDMA_USER_CM_CMD_GET_EVENT &&
			cmd != RDMA_USER_CM_CMD_CREATE_ID &&
			cmd != RDMA_USER_CM_CMD_MIGRATE_ID)
			assert_int_equal(
				command_run(&ctx.client, cmd, bytes, least[cmd], NULL),
				-ENOENT);
	}
	assert_int_equal(command_run(&ctx.client, 1000, bytes, 8, NULL), -ENOSYS);
}

TEST_WITH(unknown_channel_is_refused, ucm_setup, ucm_teardown)
{
	struct rdma_ucm_create_id cmd = {.ps = RDMA_PS_TCP};
	struct test_process other = ctx.client;

	other.number = 77;
	assert_int_equal(COMMAND(&other, CREATE_ID, &cmd, NULL), -EBADF);
	other.number = 0;
	assert_int_equal(COMMAND(&other, CREATE_ID, &cmd, NULL), -EBADF);
}

TEST_WITH(random_commands, ucm_setup, ucm_teardown)
{
	uint64_t x = 88172645463325252u;

	for (unsigned i = 0; i < 20000; i++) {
		uint8_t bytes[UCM_MAX];

		for (unsigned k = 0; k < sizeof(bytes); k++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			/* Small numbers are more often valid. */
			bytes[k] = x % 3 != 0 ? 0 : (uint8_t)(x >> 32) % 9;
		}
		(void)command_run(x & 64 ? &ctx.client : &ctx.server,
			(uint32_t)(x >> 40) % 26, bytes, sizeof(bytes), NULL);
	}
}
