/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries about RDMA devices by netlink that are wrong, and what is not supported. */
#include <errno.h>
#include <string.h>

#include "base/splitmix64.h"
#include "nldev_fixture.h"

#define MUTATED 100000

TEST(what_can_be_changed_or_listed_not)
{
	static const unsigned commands[] = {RDMA_NLDEV_CMD_SET, RDMA_NLDEV_CMD_NEWLINK,
		RDMA_NLDEV_CMD_DELLINK, RDMA_NLDEV_CMD_SYS_SET, RDMA_NLDEV_CMD_RES_QP_GET,
		RDMA_NLDEV_CMD_RES_CM_ID_GET, RDMA_NLDEV_CMD_RES_CQ_GET,
		RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_CMD_RES_PD_GET,
		RDMA_NLDEV_CMD_STAT_SET, RDMA_NLDEV_CMD_STAT_DEL,
		RDMA_NLDEV_CMD_RES_QP_GET_RAW, RDMA_NLDEV_CMD_RES_CQ_GET_RAW,
		RDMA_NLDEV_CMD_RES_MR_GET_RAW, RDMA_NLDEV_CMD_RES_CTX_GET,
		RDMA_NLDEV_CMD_RES_SRQ_GET};

	for (unsigned i = 0; i < RTE_DIM(commands); i++) {
		struct message one = port_message(commands[i], NLM_F_ACK);
		struct message all = port_message(commands[i], NLM_F_DUMP);

		expect_error(&one, EOPNOTSUPP);
		expect_error(&all, EOPNOTSUPP);
	}
}

TEST(unknown_commands)
{
	struct message m = message_make(0, 0), other = message_make(8, NLM_F_DUMP);
	struct nlmsghdr hdr;

	expect_error(&m, EINVAL);
	expect_error(&other, EINVAL);
	m = message_make(1000, 0);
	expect_error(&m, EINVAL);
	memcpy(&hdr, m.bytes, sizeof(hdr));
	hdr.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_LS, RDMA_NLDEV_CMD_GET);
	memcpy(m.bytes, &hdr, sizeof(hdr));
	expect_error(&m, EINVAL);
}

TEST(unknown_devices_and_ports)
{
	static const unsigned of_port[] = {RDMA_NLDEV_CMD_PORT_GET,
		RDMA_NLDEV_CMD_STAT_GET, RDMA_NLDEV_CMD_STAT_GET_STATUS};
	static const unsigned of_device[] = {RDMA_NLDEV_CMD_GET, RDMA_NLDEV_CMD_RES_GET};

	for (unsigned i = 0; i < RTE_DIM(of_device); i++) {
		struct message m = message_make(of_device[i], 0);

		expect_error(&m, EINVAL);
		message_add_u32(&m, RDMA_NLDEV_ATTR_DEV_INDEX, INDEX + 1);
		expect_error(&m, EINVAL);
	}
	for (unsigned i = 0; i < RTE_DIM(of_port); i++) {
		struct message m = device_message(of_port[i], 0);

		expect_error(&m, EINVAL);
		message_add_u32(&m, RDMA_NLDEV_ATTR_PORT_INDEX, 2);
		expect_error(&m, EINVAL);
		message_add_u32(&m, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
		absent = true;
		expect_error(&m, EINVAL);
		absent = false;
		message_add(&m, RDMA_NLDEV_ATTR_PORT_INDEX, "", 1);
		expect_error(&m, EINVAL); /* too short a number */
	}
}

TEST(an_error_has_the_message_unless_that_is_not_wanted)
{
	struct message m = device_message(RDMA_NLDEV_CMD_SET, 0);
	struct nlmsgerr error = {.error = -EOPNOTSUPP};
	const size_t head = NLMSG_HDRLEN + sizeof(error);

	memcpy(&error.msg, m.bytes, sizeof(error.msg));
	ask(&m);
	assert_int_equal(answers.given[0].hdr.nlmsg_flags, 0);
	assert_int_equal(answers.given[0].len, head + m.len - NLMSG_HDRLEN);
	assert_memory_equal(answers.given[0].bytes + NLMSG_HDRLEN, &error, sizeof(error));
	assert_memory_equal(answers.given[0].bytes + head, m.bytes + NLMSG_HDRLEN,
		m.len - NLMSG_HDRLEN);
	assert_int_equal(ask_bytes(m.bytes, m.len, true), 0);
	assert_int_equal(answers.given[0].hdr.nlmsg_flags, NLM_F_CAPPED);
	assert_int_equal(answers.given[0].len, head);
}

TEST(messages_that_are_no_requests_have_no_effect)
{
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);
	struct nlmsghdr hdr;

	memcpy(&hdr, m.bytes, sizeof(hdr));
	hdr.nlmsg_flags = 0;
	memcpy(m.bytes, &hdr, sizeof(hdr));
	ask(&m);
	assert_int_equal(answers.count, 0);
	hdr.nlmsg_flags = NLM_F_ACK;
	memcpy(m.bytes, &hdr, sizeof(hdr));
	expect_error(&m, 0);
	hdr.nlmsg_flags = NLM_F_REQUEST;
	hdr.nlmsg_type = NLMSG_NOOP;
	memcpy(m.bytes, &hdr, sizeof(hdr));
	ask(&m);
	assert_int_equal(answers.count, 0);
}

TEST(several_messages_and_one_that_is_cut_off)
{
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);
	struct message port = port_message(RDMA_NLDEV_CMD_PORT_GET, 0);
	uint8_t bytes[sizeof(m.bytes) + sizeof(port.bytes)];

	memcpy(bytes, m.bytes, m.len);
	memcpy(bytes + m.len, port.bytes, port.len);
	assert_int_equal(ask_bytes(bytes, m.len + port.len, false), 0);
	assert_int_equal(answers.count, 2);
	expect_answer(0, &m, 0);
	expect_answer(1, &port, 0);
	for (size_t len = 0; len < port.len; len++) {
		assert_int_equal(ask_bytes(bytes, m.len + len, false), 0);
		assert_int_equal(answers.count, 1);
	}
}

TEST(answers_that_cannot_be_given_end_the_datagram)
{
	struct message m = message_make(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);

	answers.rc = -ENOBUFS;
	assert_int_equal(ask_bytes(m.bytes, m.len, false), -ENOBUFS);
	answers.rc = 0;
}

/* Attributes at all depths end where their message ends. */
static void
expect_whole(void)
{
	for (unsigned i = 0; i < answers.count; i++) {
		size_t len = answers.given[i].len - NLMSG_HDRLEN, at = 0;
		struct nl_attr attr;

		assert_int_equal(answers.given[i].hdr.nlmsg_len, answers.given[i].len);
		if (answers.given[i].hdr.nlmsg_type < NLMSG_MIN_TYPE)
			continue;
		while (nl_attr_next(
			answers.given[i].bytes + NLMSG_HDRLEN, len, &at, &attr))
			assert_true(attr.type < RDMA_NLDEV_ATTR_MAX);
		assert_int_equal(at, len);
	}
}

TEST(mutated_messages)
{
	uint64_t seed = 43;
	unsigned answered = 0;

	for (unsigned run = 0; run < MUTATED; run++) {
		struct message m = port_message(
			(unsigned)(splitmix64(&seed) % (RDMA_NLDEV_NUM_OPS + 1)),
			splitmix64(&seed) % 2 == 0 ? NLM_F_DUMP : NLM_F_ACK);
		unsigned count = (unsigned)(splitmix64(&seed) % 4);
		size_t len;

		if (splitmix64(&seed) % 2 == 0)
			message_add_u32(
				&m, RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_QP);
		message_add(&m, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "rdma_cm", 8);
		for (unsigned i = 0; i < count; i++)
			m.bytes[splitmix64(&seed) % m.len] = (uint8_t)splitmix64(&seed);
		len = splitmix64(&seed) % 8 == 0 ? splitmix64(&seed) % (m.len + 1)
						 : m.len;
		assert_int_equal(ask_bytes(m.bytes, len, splitmix64(&seed) % 2 == 0), 0);
		expect_whole();
		answered += answers.count > 0 &&
			    answers.given[0].hdr.nlmsg_type >= NLMSG_MIN_TYPE;
	}
	assert_true(answered > MUTATED / 10);
}
