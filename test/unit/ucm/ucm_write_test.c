/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that a program writes to its own channel. */
#include "ucm_fixture.h"

#define ARG UINT64_C(0x1122334455667788)

static int
event_write(uint32_t id, uint32_t event)
{
	const struct ucm_write_cm_event cmd = {
		.id = id, .event = event, .status = (uint32_t)-7, .arg = ARG};

	return COMMAND(&ctx.client, WRITE_CM_EVENT, &cmd, NULL);
}

static int
option_write_of(
	struct test_process *p, uint32_t id, uint32_t name, uint32_t len, uint32_t type)
{
	const struct ucm_option_event event = {
		.event = type, .status = (uint32_t)-7, .arg = ARG};
	struct ucm_set_option cmd = {.head = {.id = id,
					     .level = UCM_LEVEL_ROCADE,
					     .optname = name,
					     .optlen = len}};

	memcpy(cmd.value, &event, sizeof(event));
	return COMMAND(p, SET_OPTION, &cmd, NULL);
}

static int
option_write(uint32_t id, uint32_t name, uint32_t len, uint32_t type)
{
	return option_write_of(&ctx.client, id, name, len, type);
}

/* The argument is where a new librdmacm looks for it, and in the private data, which an old one passes on. */
static void
expect_written(uint32_t id, enum ucm_event_type type, bool ud)
{
	struct rdma_ucm_event_resp event = expect_event(&ctx.client, type);
	uint64_t arg;

	assert_int_equal(event.id, id);
	assert_int_equal((int)event.status, -7);
	memcpy(&arg, &event.param, sizeof(arg));
	assert_true(arg == ARG);
	memcpy(&arg, ud ? event.param.ud.private_data : event.param.conn.private_data,
		sizeof(arg));
	assert_true(arg == ARG);
	assert_int_equal(
		ud ? event.param.ud.private_data_len : event.param.conn.private_data_len,
		sizeof(arg));
	expect_no_event(&ctx.client);
}

TEST_WITH(a_written_event_comes_with_its_argument, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	uint32_t ud = make_id(&ctx.client, RDMA_PS_UDP);

	assert_int_equal(event_write(id, UCM_EVENT_USER), 0);
	expect_written(id, UCM_EVENT_USER, false);
	assert_int_equal(event_write(id, UCM_EVENT_INTERNAL), 0);
	expect_written(id, UCM_EVENT_INTERNAL, false);
	assert_int_equal(event_write(ud, UCM_EVENT_USER), 0);
	expect_written(ud, UCM_EVENT_USER, true);
}

TEST_WITH(only_events_of_the_program_can_be_written, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);

	assert_int_equal(event_write(id, UCM_EVENT_ESTABLISHED), -EINVAL);
	assert_int_equal(event_write(id, UCM_EVENT_ADDRINFO_RESOLVED), -EINVAL);
	assert_int_equal(event_write(id, UCM_EVENT_INTERNAL + 1), -EINVAL);
	assert_int_equal(event_write(id + 1, UCM_EVENT_USER), -ENOENT);
	expect_no_event(&ctx.client);
}

/* The ID has no uid yet: librdmacm would discard the event, and a program wait for it in vain. */
TEST_WITH(a_request_that_is_not_accepted_gets_no_event, ucm_setup, ucm_teardown)
{
	const uint32_t len = sizeof(struct ucm_option_event);
	struct id_pair pair = pair_requested(RDMA_PS_TCP);
	const struct ucm_write_cm_event cmd = {
		.id = pair.passive, .event = UCM_EVENT_USER};

	assert_int_equal(COMMAND(&ctx.server, WRITE_CM_EVENT, &cmd, NULL), -EINVAL);
	assert_int_equal(option_write_of(&ctx.server, pair.passive, UCM_ROCADE_EVENT, len,
				 UCM_EVENT_USER),
		-EINVAL);
	expect_no_event(&ctx.server);
	assert_int_equal(accept_id(&ctx.server, pair.passive, 77, SERVER_QPN), 0);
	assert_int_equal(COMMAND(&ctx.server, WRITE_CM_EVENT, &cmd, NULL), 0);
	assert_int_equal(expect_event(&ctx.server, UCM_EVENT_USER).uid, 77);
}

TEST_WITH(the_option_writes_events_for_an_old_librdmacm, ucm_setup, ucm_teardown)
{
	const uint32_t len = sizeof(struct ucm_option_event);
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);

	assert_int_equal(option_write(id, UCM_ROCADE_EVENT, len, UCM_EVENT_USER), 0);
	expect_written(id, UCM_EVENT_USER, false);
	assert_int_equal(
		option_write(id, UCM_ROCADE_EVENT, len, UCM_EVENT_ADDRINFO_RESOLVED), 0);
	expect_written(id, UCM_EVENT_ADDRINFO_RESOLVED, false);
	assert_int_equal(
		option_write(id, UCM_ROCADE_EVENT, len, UCM_EVENT_INTERNAL), -EINVAL);
	assert_int_equal(
		option_write(id, UCM_ROCADE_EVENT, len, UCM_EVENT_ESTABLISHED), -EINVAL);
	assert_int_equal(
		option_write(id, UCM_ROCADE_EVENT, len - 1, UCM_EVENT_USER), -EINVAL);
	assert_int_equal(
		option_write(id, UCM_ROCADE_EVENT + 1, len, UCM_EVENT_USER), -EINVAL);
	expect_no_event(&ctx.client);
}

/* As many as fit: the daemon's memory is not the program's. */
TEST_WITH(unread_events_are_limited, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP), written = 0, destroyed = 0;

	while (event_write(id, UCM_EVENT_USER) == 0)
		assert_true(++written < 100000);
	assert_int_equal(event_write(id, UCM_EVENT_USER), -ENOMEM);
	assert_true(written > 0);
	assert_int_equal(destroy_id(&ctx.client, id, &destroyed), 0);
	assert_int_equal(destroyed, 0);
	/* The daemon destroys them in several steps. */
	while (ucm_deadline(ctx.ucm) <= ctx.now)
		ucm_run(ctx.ucm, ctx.now);
	id = make_id(&ctx.client, RDMA_PS_TCP);
	assert_int_equal(event_write(id, UCM_EVENT_USER), 0);
}

TEST_WITH(no_service_is_found, ucm_setup, ucm_teardown)
{
	struct ucm_resolve_ib_service cmd = {.id = make_id(&ctx.client, RDMA_PS_TCP)};

	assert_int_equal(
		COMMAND(&ctx.client, RESOLVE_IB_SERVICE, &cmd, NULL), -EOPNOTSUPP);
	cmd.id++;
	assert_int_equal(COMMAND(&ctx.client, RESOLVE_IB_SERVICE, &cmd, NULL), -ENOENT);
	expect_no_event(&ctx.client);
}
