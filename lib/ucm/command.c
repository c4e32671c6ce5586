/* SPDX-License-Identifier: BSD-3-Clause */
/* Dispatch of commands: finds the handler, checks the length, runs it. */
#include <errno.h>
#include <string.h>

#include "ucm/id.h"
#include "ucm/ucm_event.h"

struct command {
	int (*serve)(struct ucm_call *call);
	uint16_t in_len, in_len_min, out_len;
};

static const struct command commands[] = {
#define UCM(name, handler, in, least, out)                                               \
	[RDMA_USER_CM_CMD_##name] = {ucm_do_##handler, sizeof(in), least, sizeof(out)},
#define UCM_NO_REPLY(name, handler, in, least)                                           \
	[RDMA_USER_CM_CMD_##name] = {ucm_do_##handler, sizeof(in), least, 0},
#include "ucm/commands.def"
};

static void
channel_state_tell(const struct ucm_channel *channel, struct ucm_result *result)
{
	const struct ucm_event *first = TAILQ_FIRST(&channel->events);

	result->pending = first != NULL;
	result->wakes = first != NULL ? first->wake - 1 : channel->wakes;
}

static int
command_serve(
	struct ucm_call *call, const struct command *command, struct ucm_result *result)
{
	int rc;

	if (command->serve == NULL)
		return -ENOSYS;
	if (call->in_len < command->in_len_min)
		return -EINVAL;
	rc = command->serve(call);
	ucm_pump(call->ucm, call->now);
	if (rc == 0)
		result->out_len = command->out_len;
	return rc;
}

int
ucm_command(struct ucm_session *session, uint32_t channel, uint32_t cmd, const void *in,
	size_t in_len, void *out, struct ucm_result *result, uint64_t now)
{
	uint64_t bytes[UCM_MAX / sizeof(uint64_t)] = {0}, reply[RTE_DIM(bytes)] = {0};
	struct ucm_call call = {.ucm = session->ucm,
		.session = session,
		.channel = ucm_table_find(&session->channels, channel),
		.in = bytes,
		.in_len = in_len,
		.out = reply,
		.now = now};
	int rc = -ENOSYS;

	*result = (struct ucm_result){.out_len = 0};
	if (call.channel == NULL)
		return -EBADF;
	if (cmd < RTE_DIM(commands)) {
		memcpy(bytes, in, RTE_MIN(in_len, (size_t)commands[cmd].in_len));
		rc = command_serve(&call, &commands[cmd], result);
	}
	memcpy(out, reply, result->out_len);
	channel_state_tell(call.channel, result);
	return rc;
}
