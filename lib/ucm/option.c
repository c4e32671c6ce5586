/* SPDX-License-Identifier: BSD-3-Clause */
/* SET_OPTION: the options of an ID. */
#include <errno.h>
#include <string.h>

#include "ucm/id.h"
#include "ucm/queue.h"
#include "ucm/ucm_fault.h"

static int
byte_read(const struct ucm_set_option *cmd, uint8_t *out)
{
	if (cmd->head.optlen != sizeof(*out))
		return -EINVAL;
	*out = cmd->value[0];
	return 0;
}

static int
flag_read(const struct ucm_set_option *cmd, bool *out)
{
	int value;

	if (cmd->head.optlen != sizeof(value))
		return -EINVAL;
	memcpy(&value, cmd->value, sizeof(value));
	*out = value != 0;
	return 0;
}

/* Only before the ID connects or listens. */
static int
afonly_read(const struct ucm_set_option *cmd, struct ucm_id *id)
{
	if (id->state != UCM_IDLE && id->state != UCM_BOUND)
		return -EINVAL;
	if (flag_read(cmd, &id->afonly) != 0)
		return -EINVAL;
	id->afonly_set = true;
	return 0;
}

/* 0: the QP has no timeout, as with Linux. */
static int
ack_timeout_read(const struct ucm_set_option *cmd, struct ucm_id *id)
{
	if (cmd->value[0] > 31 || byte_read(cmd, &id->ack_timeout) != 0)
		return -EINVAL;
	id->ack_timeout_set = true;
	return 0;
}

/* librdmacm knows which ID has the number of the command, and Rocade's library does not. */
static int
event_write(const struct ucm_set_option *cmd, struct ucm_id *id)
{
	struct ucm_option_event event;

	if (cmd->head.optname != UCM_ROCADE_EVENT || cmd->head.optlen != sizeof(event))
		return -EINVAL;
	memcpy(&event, cmd->value, sizeof(event));
	if (event.event != UCM_EVENT_USER && event.event != UCM_EVENT_ADDRINFO_RESOLVED)
		return -EINVAL;
	return ucm_event_write(id, event.event, event.status, event.arg);
}

static int
fault_write(const struct ucm_set_option *cmd, struct ucm_id *id, uint64_t now)
{
	struct ucm_option_fault fault;

	if (cmd->head.optlen != sizeof(fault))
		return -EINVAL;
	memcpy(&fault, cmd->value, sizeof(fault));
	return ucm_fault_set(id, &fault, now);
}

int
ucm_do_set_option(struct ucm_call *call)
{
	const struct ucm_set_option *cmd = call->in;
	struct ucm_id *id = ucm_id_find(call, cmd->head.id);

	if (id == NULL)
		return -ENOENT;
	if (cmd->head.optlen > UCM_OPTION_MAX ||
		call->in_len < sizeof(cmd->head) + cmd->head.optlen)
		return -EINVAL;
	if (cmd->head.level == UCM_LEVEL_ROCADE)
		return cmd->head.optname == UCM_ROCADE_FAULT
			       ? fault_write(cmd, id, call->now)
			       : event_write(cmd, id);
	/* RDMA_OPTION_IB sets a path record; paths here are given by addresses. */
	if (cmd->head.level != RDMA_OPTION_ID)
		return -ENOSYS;
	switch (cmd->head.optname) {
	case RDMA_OPTION_ID_TOS:
		return byte_read(cmd, &id->tos);
	case RDMA_OPTION_ID_REUSEADDR:
		return flag_read(cmd, &id->reuse);
	case RDMA_OPTION_ID_AFONLY:
		return afonly_read(cmd, id);
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		return ack_timeout_read(cmd, id);
	default:
		return -ENOSYS;
	}
}
