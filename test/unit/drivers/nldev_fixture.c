/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rocade/rocade.h>

#include "nldev_fixture.h"
#include "own_trees.h"
#include "preload/served.h"
#include "verbs/forward.h"

struct device_facts rocade0 = {.name = "rocade0",
	.guid = 0x0123456789abcdef,
	.instance = 7,
	.gids = {{[0] = 0xfe, [1] = 0x80, [15] = 1}},
	.index = INDEX,
	.link_up = true,
	.tx_packets = 3,
	.rx_packets = 5,
	.qps = 11,
	.cm_ids = 2};

bool absent;

__thread unsigned forward_depth;

bool
forward_caller(const void *address)
{
	return false;
}

const char *
rocade_version(void)
{
	return "1.2.3";
}

static bool
has_device(const char *name)
{
	return name == NULL || strcmp(name, "rocade0") == 0;
}

static bool
device_facts(unsigned index, bool counters, struct device_facts *out)
{
	*out = rocade0;
	if (!counters)
		out->tx_packets = out->rx_packets = out->qps = out->cm_ids = 0;
	return index == 0 && !absent;
}

static bool
has_any(void)
{
	return !absent;
}

const struct served served_by = {.device = has_device,
	.facts = device_facts,
	.netlink = has_any,
	.backend = ucm_backend_get};

struct message
message_make(unsigned command, unsigned flags)
{
	struct nlmsghdr hdr = {.nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
		.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
		.nlmsg_seq = SEQ};
	struct message m = {.len = sizeof(hdr)};

	memcpy(m.bytes, &hdr, sizeof(hdr));
	return m;
}

void
message_add(struct message *m, uint16_t type, const void *value, uint16_t len)
{
	struct nlattr attr = {.nla_len = NLA_HDRLEN + len, .nla_type = type};
	uint32_t whole;

	assert_true(m->len + NLA_HDRLEN + NLA_ALIGN(len) <= sizeof(m->bytes));
	memcpy(m->bytes + m->len, &attr, sizeof(attr));
	memcpy(m->bytes + m->len + NLA_HDRLEN, value, len);
	m->len += NLA_HDRLEN + NLA_ALIGN(len);
	whole = (uint32_t)m->len;
	memcpy(m->bytes, &whole, sizeof(whole));
}

void
message_add_u32(struct message *m, uint16_t type, uint32_t value)
{
	message_add(m, type, &value, sizeof(value));
}

struct message
device_message(unsigned command, unsigned flags)
{
	struct message m = message_make(command, flags);

	message_add_u32(&m, RDMA_NLDEV_ATTR_DEV_INDEX, INDEX);
	return m;
}

struct message
port_message(unsigned command, unsigned flags)
{
	struct message m = device_message(command, flags);

	message_add_u32(&m, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	return m;
}

struct nldev_answers answers;

static int
answer_keep(void *arg, const void *bytes, size_t len)
{
	if (answers.rc != 0)
		return answers.rc;
	assert_true(answers.count < GIVEN_MAX);
	assert_in_range(len, NLMSG_HDRLEN, NL_OUT_MAX);
	memcpy(&answers.given[answers.count].hdr, bytes, NLMSG_HDRLEN);
	memcpy(answers.given[answers.count].bytes, bytes, len);
	answers.given[answers.count++].len = len;
	return 0;
}

int
ask_bytes(const void *bytes, size_t len, bool capped)
{
	struct nldev_socket socket = {.port = OWN, .capped = capped, .give = answer_keep};
	void *exact = malloc(len > 0 ? len : 1);
	int rc;

	assert_non_null(exact);
	memcpy(exact, bytes, len);
	answers.count = 0;
	rc = nldev_ask(&socket, exact, len);
	free(exact);
	return rc;
}

void
ask(const struct message *m)
{
	assert_int_equal(ask_bytes(m->bytes, m->len, false), 0);
}

void
expect_answer(unsigned i, const struct message *m, unsigned flags)
{
	struct nlmsghdr asked;

	memcpy(&asked, m->bytes, sizeof(asked));
	assert_true(i < answers.count);
	assert_int_equal(answers.given[i].hdr.nlmsg_type, asked.nlmsg_type);
	assert_int_equal(answers.given[i].hdr.nlmsg_len, answers.given[i].len);
	assert_int_equal(answers.given[i].hdr.nlmsg_flags, flags);
	assert_int_equal(answers.given[i].hdr.nlmsg_seq, SEQ);
	assert_int_equal(answers.given[i].hdr.nlmsg_pid, OWN);
}

int32_t
result_of(unsigned i)
{
	int32_t result;

	assert_true(i < answers.count);
	assert_true(answers.given[i].len >= NLMSG_HDRLEN + sizeof(result));
	memcpy(&result, answers.given[i].bytes + NLMSG_HDRLEN, sizeof(result));
	return result;
}

void
expect_error(const struct message *m, int error)
{
	ask(m);
	assert_int_equal(answers.count, 1);
	assert_int_equal(answers.given[0].hdr.nlmsg_type, NLMSG_ERROR);
	assert_int_equal(result_of(0), -error);
}

void
expect_done(unsigned i, int error)
{
	assert_int_equal(answers.count, i + 1);
	assert_int_equal(answers.given[i].hdr.nlmsg_type, NLMSG_DONE);
	assert_int_equal(answers.given[i].hdr.nlmsg_flags, NLM_F_MULTI);
	assert_int_equal(answers.given[i].len, NLMSG_HDRLEN + sizeof(int));
	assert_int_equal(result_of(i), -error);
}

bool
attr_find(
	const uint8_t *bytes, size_t len, uint16_t type, unsigned n, struct nl_attr *attr)
{
	size_t at = 0;

	while (nl_attr_next(bytes, len, &at, attr)) {
		if (attr->type == type && n-- == 0)
			return true;
	}
	return false;
}

struct nl_attr
answer_attr(unsigned i, uint16_t type)
{
	struct nl_attr attr;

	assert_true(i < answers.count);
	if (!attr_find(answers.given[i].bytes + NLMSG_HDRLEN,
		    answers.given[i].len - NLMSG_HDRLEN, type, 0, &attr))
		fail_msg("no attribute %u", type);
	return attr;
}

bool
answer_has(unsigned i, uint16_t type)
{
	struct nl_attr attr;

	return attr_find(answers.given[i].bytes + NLMSG_HDRLEN,
		answers.given[i].len - NLMSG_HDRLEN, type, 0, &attr);
}

void
expect_number(struct nl_attr attr, uint64_t value, size_t len)
{
	uint64_t got = 0;

	assert_int_equal(attr.len, len);
	memcpy(&got, attr.value, len); /* little endian */
	assert_int_equal(got, value);
}

void
expect_text(struct nl_attr attr, const char *text)
{
	assert_int_equal(attr.len, strlen(text) + 1);
	assert_memory_equal(attr.value, text, attr.len);
}

void
expect_handle(unsigned i)
{
	expect_number(answer_attr(i, RDMA_NLDEV_ATTR_DEV_INDEX), INDEX, 4);
	expect_text(answer_attr(i, RDMA_NLDEV_ATTR_DEV_NAME), "rocade0");
}
