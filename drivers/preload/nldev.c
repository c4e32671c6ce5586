/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's answers about a device with one port of RoCE. A value is that of the device's file
 * (lib/verbs/sysfs.def), if it has one. Nothing can be changed: EOPNOTSUPP, to every user. As with the kernel, a
 * query about a device or a port that does not exist gets EINVAL, and a message that is cut off no answer.
 */
#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>

#include "base/in_vain.h"
#include "preload/nldev_query.h"

/* one: answers a message; all: one with NLM_F_DUMP. Both NULL: not supported. */
static const struct command {
	const char *name;
	int (*one)(struct nldev_query *q);
	int (*all)(struct nldev_query *q);
} commands[RDMA_NLDEV_NUM_OPS] = {
#define COMMAND(name, one, all)                                                          \
	[RDMA_NLDEV_CMD_##name] = {"RDMA_NLDEV_CMD_" #name, one, all}
	COMMAND(GET, nldev_device_get, nldev_device_get_all),
	COMMAND(SET, NULL, NULL),
	COMMAND(NEWLINK, NULL, NULL),
	COMMAND(DELLINK, NULL, NULL),
	COMMAND(PORT_GET, nldev_port_get, nldev_port_get_all),
	COMMAND(SYS_GET, nldev_system_get, NULL),
	COMMAND(SYS_SET, NULL, NULL),
	COMMAND(RES_GET, nldev_summary_get, nldev_summary_get_all),
	COMMAND(RES_QP_GET, NULL, NULL),
	COMMAND(RES_CM_ID_GET, NULL, NULL),
	COMMAND(RES_CQ_GET, NULL, NULL),
	COMMAND(RES_MR_GET, NULL, NULL),
	COMMAND(RES_PD_GET, NULL, NULL),
	COMMAND(GET_CHARDEV, nldev_chardev_get, NULL),
	COMMAND(STAT_SET, NULL, NULL),
	COMMAND(STAT_GET, nldev_counters_get, nldev_counters_get_all),
	COMMAND(STAT_DEL, NULL, NULL),
	COMMAND(RES_QP_GET_RAW, NULL, NULL),
	COMMAND(RES_CQ_GET_RAW, NULL, NULL),
	COMMAND(RES_MR_GET_RAW, NULL, NULL),
	COMMAND(RES_CTX_GET, NULL, NULL),
	COMMAND(RES_SRQ_GET, NULL, NULL),
	COMMAND(STAT_GET_STATUS, nldev_counters_status, NULL),
#undef COMMAND
};

/* NULL: the kernel of rdma/rdma_netlink.h has no such command. */
static const struct command *
command_find(const struct nldev_query *q)
{
	unsigned op = RDMA_NL_GET_OP(q->hdr.nlmsg_type);

	return RDMA_NL_GET_CLIENT(q->hdr.nlmsg_type) == RDMA_NL_NLDEV &&
			       op < RDMA_NLDEV_NUM_OPS && commands[op].name != NULL
		       ? &commands[op]
		       : NULL;
}

/* For `rocade-run --explain`. */
static void
nldev_note(const struct nldev_query *q, const struct command *command, int rc)
{
	char text[96];

	if (rc == 0)
		return;
	if (command != NULL)
		snprintf(text, sizeof(text), "%s (%s)", command->name,
			strerrorname_np(-rc));
	else
		snprintf(text, sizeof(text), "RDMA command %u of client %u (%s)",
			(unsigned)RDMA_NL_GET_OP(q->hdr.nlmsg_type),
			(unsigned)RDMA_NL_GET_CLIENT(q->hdr.nlmsg_type),
			strerrorname_np(-rc));
	in_vain_note(IN_VAIN_NETLINK, text);
}

/* The result of a message, with the message itself behind its header if that was not successful, as far as there
 * is room. */
static int
result_give(struct nldev_query *q, int result)
{
	bool whole = result != 0 && !q->asker->capped &&
		     q->attrs_len + sizeof(struct nlmsghdr) + sizeof(struct nlmsgerr) <
			     NL_OUT_MAX;
	struct nlmsgerr error = {.error = result, .msg = q->hdr};

	nl_begin(&q->out, &q->hdr, q->asker->port, NLMSG_ERROR, whole ? 0 : NLM_F_CAPPED);
	nl_append(&q->out, &error, sizeof(error));
	if (whole)
		nl_append(&q->out, q->attrs, q->attrs_len);
	return nldev_give(q);
}

/* The end of a dump, which has the result. */
static int
done_give(struct nldev_query *q, int result)
{
	nl_begin(&q->out, &q->hdr, q->asker->port, NLMSG_DONE, NLM_F_MULTI);
	nl_append(&q->out, &result, sizeof(result));
	return nldev_give(q);
}

static int
message_answer(struct nldev_query *q)
{
	const struct command *command = command_find(q);
	bool dump = (q->hdr.nlmsg_flags & NLM_F_DUMP) != 0 && command != NULL &&
		    command->all != NULL;
	int rc = nldev_attrs_read(q);

	if (command == NULL)
		rc = -EINVAL;
	else if (command->one == NULL)
		rc = -EOPNOTSUPP;
	else if (rc == 0)
		rc = dump ? command->all(q) : command->one(q);
	if (rc == -ENOBUFS)
		return rc;
	nldev_note(q, command, rc);
	if (dump)
		return done_give(q, rc);
	return rc != 0 || (q->hdr.nlmsg_flags & NLM_F_ACK) != 0 ? result_give(q, rc) : 0;
}

/* As the kernel: messages that are no requests have no effect. */
static int
message_take(struct nldev_query *q)
{
	if ((q->hdr.nlmsg_flags & NLM_F_REQUEST) != 0 &&
		q->hdr.nlmsg_type >= NLMSG_MIN_TYPE)
		return message_answer(q);
	return (q->hdr.nlmsg_flags & NLM_F_ACK) != 0 ? result_give(q, 0) : 0;
}

int
nldev_ask(const struct nldev_socket *asker, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	int rc = 0;

	while (rc == 0 && len >= NLMSG_HDRLEN) {
		struct nldev_query q = {.asker = asker};
		size_t taken;

		memcpy(&q.hdr, at, sizeof(q.hdr));
		if (q.hdr.nlmsg_len < NLMSG_HDRLEN || q.hdr.nlmsg_len > len)
			break;
		q.attrs = at + NLMSG_HDRLEN;
		q.attrs_len = q.hdr.nlmsg_len - NLMSG_HDRLEN;
		rc = message_take(&q);
		taken = NLMSG_ALIGN((size_t)q.hdr.nlmsg_len);
		taken = taken < len ? taken : len;
		at += taken;
		len -= taken;
	}
	return rc;
}
