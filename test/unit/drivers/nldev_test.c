/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries about RDMA devices by netlink: each command. */
#include <errno.h>
#include <net/if.h>
#include <sys/sysmacros.h>

#include "nldev_fixture.h"
#include "preload/preload_channel.h"
#include "verbs/device_caps.h"

static void
expect_device(unsigned i)
{
	expect_handle(i);
	expect_number(answer_attr(i, RDMA_NLDEV_ATTR_PORT_INDEX), 1, 4);
	expect_number(answer_attr(i, RDMA_NLDEV_ATTR_CAP_FLAGS), DEVICE_CAPS_EX, 8);
	expect_text(answer_attr(i, RDMA_NLDEV_ATTR_FW_VERSION), "1.2.3");
	expect_number(answer_attr(i, RDMA_NLDEV_ATTR_NODE_GUID), rocade0.guid, 8);
	expect_number(answer_attr(i, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID), rocade0.guid, 8);
	expect_number(answer_attr(i, RDMA_NLDEV_ATTR_DEV_NODE_TYPE), 1, 1);
	expect_number(answer_attr(i, RDMA_NLDEV_ATTR_DEV_DIM), 0, 1);
	expect_text(answer_attr(i, RDMA_NLDEV_ATTR_DEV_PROTOCOL), "roce");
}

TEST(a_device)
{
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);

	ask(&m);
	assert_int_equal(answers.count, 1);
	expect_answer(0, &m, 0);
	expect_device(0);
}

TEST(all_devices)
{
	struct message m =
		message_make(RDMA_NLDEV_CMD_GET, NLM_F_ACK | NLM_F_ROOT | NLM_F_MATCH);

	ask(&m);
	expect_answer(0, &m, NLM_F_MULTI);
	expect_device(0);
	expect_done(1, 0);
	absent = true;
	ask(&m);
	absent = false;
	expect_done(0, 0);
}

static void
expect_port(unsigned i, unsigned state, unsigned phys_state)
{
	expect_handle(i);
	expect_number(answer_attr(i, RDMA_NLDEV_ATTR_PORT_INDEX), 1, 4);
	expect_number(answer_attr(i, RDMA_NLDEV_ATTR_PORT_STATE), state, 1);
	expect_number(answer_attr(i, RDMA_NLDEV_ATTR_PORT_PHYS_STATE), phys_state, 1);
	expect_text(answer_attr(i, RDMA_NLDEV_ATTR_NDEV_NAME), "lo");
	expect_number(
		answer_attr(i, RDMA_NLDEV_ATTR_NDEV_INDEX), if_nametoindex("lo"), 4);
	assert_false(answer_has(i, RDMA_NLDEV_ATTR_LID));
	assert_false(answer_has(i, RDMA_NLDEV_ATTR_CAP_FLAGS));
}

TEST(a_port)
{
	struct message m = port_message(RDMA_NLDEV_CMD_PORT_GET, NLM_F_ACK);

	ask(&m);
	assert_int_equal(answers.count, 2);
	expect_answer(0, &m, 0);
	expect_port(0, 4, 5);
	assert_int_equal(answers.given[1].hdr.nlmsg_type, NLMSG_ERROR);
	assert_int_equal(result_of(1), 0);
	rocade0.link_up = false;
	ask(&m);
	rocade0.link_up = true;
	expect_port(0, 1, 2);
}

TEST(all_ports_of_a_device)
{
	struct message m = device_message(RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP);

	ask(&m);
	expect_answer(0, &m, NLM_F_MULTI);
	expect_port(0, 4, 5);
	expect_done(1, 0);
	m = message_make(RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP);
	ask(&m);
	expect_done(0, EINVAL);
}

TEST(the_system)
{
	struct message m = message_make(RDMA_NLDEV_CMD_SYS_GET, 0);

	ask(&m);
	assert_int_equal(answers.count, 1);
	expect_answer(0, &m, 0);
	expect_number(answer_attr(0, RDMA_NLDEV_SYS_ATTR_NETNS_MODE), 1, 1);
	expect_number(answer_attr(0, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK), 1, 1);
}

/* An entry of a table: its name and its number. */
static void
expect_entry(uint16_t table, uint16_t entry, unsigned n, uint16_t name_type,
	const char *name, uint16_t value_type, uint64_t value, size_t len)
{
	struct nl_attr rows = answer_attr(0, table), row, attr;

	assert_true(attr_find(rows.value, rows.len, entry, n, &row));
	assert_true(attr_find(row.value, row.len, name_type, 0, &attr));
	expect_text(attr, name);
	assert_true(attr_find(row.value, row.len, value_type, 0, &attr));
	expect_number(attr, value, len);
}

static void
expect_count(unsigned n, const char *name, uint64_t count)
{
	expect_entry(RDMA_NLDEV_ATTR_RES_SUMMARY, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY, n,
		RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, name,
		RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, count, 8);
}

TEST(counts_of_objects)
{
	struct message m = device_message(RDMA_NLDEV_CMD_RES_GET, 0);

	ask(&m);
	expect_answer(0, &m, 0);
	expect_handle(0);
	expect_count(0, "qp", 11);
	expect_count(1, "cm_id", 2);
	m = message_make(RDMA_NLDEV_CMD_RES_GET, NLM_F_DUMP);
	ask(&m);
	expect_answer(0, &m, NLM_F_MULTI);
	expect_count(0, "qp", 11);
	expect_done(1, 0);
}

static void
expect_counter(
	unsigned n, const char *name, uint16_t value_type, uint64_t value, size_t len)
{
	expect_entry(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS,
		RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY, n,
		RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name, value_type, value, len);
}

TEST(counters_of_a_port)
{
	struct message m = port_message(RDMA_NLDEV_CMD_STAT_GET, 0);

	ask(&m);
	expect_answer(0, &m, 0);
	expect_handle(0);
	expect_number(answer_attr(0, RDMA_NLDEV_ATTR_PORT_INDEX), 1, 4);
	expect_counter(0, "sent_pkts", RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, 3, 8);
	expect_counter(1, "rcvd_pkts", RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, 5, 8);
	rocade0.rx_packets = UINT64_MAX;
	ask(&m);
	rocade0.rx_packets = 5;
	expect_counter(1, "rcvd_pkts", RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE,
		UINT64_MAX, 8);
	m = port_message(RDMA_NLDEV_CMD_STAT_GET_STATUS, 0);
	ask(&m);
	expect_answer(0, &m, 0);
	expect_counter(1, "rcvd_pkts", RDMA_NLDEV_ATTR_STAT_HWCOUNTER_INDEX, 1, 4);
}

/* No counter can be bound to a QP or a memory region. */
TEST(counters_of_objects)
{
	struct message m = port_message(RDMA_NLDEV_CMD_STAT_GET, 0), all;

	message_add_u32(&m, RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_QP);
	expect_error(&m, EINVAL);
	message_add_u32(&m, RDMA_NLDEV_ATTR_STAT_MODE, RDMA_COUNTER_MODE_MANUAL);
	ask(&m);
	expect_answer(0, &m, 0);
	expect_number(
		answer_attr(0, RDMA_NLDEV_ATTR_STAT_MODE), RDMA_COUNTER_MODE_NONE, 4);
	message_add_u32(&m, RDMA_NLDEV_ATTR_STAT_COUNTER_ID, 1);
	expect_error(&m, ENOENT);
	message_add_u32(&m, RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_MR);
	expect_error(&m, EOPNOTSUPP);
	message_add_u32(&m, RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_PD);
	expect_error(&m, EINVAL);
	all = port_message(RDMA_NLDEV_CMD_STAT_GET, NLM_F_DUMP);
	ask(&all);
	expect_done(0, EINVAL);
	message_add_u32(&all, RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_QP);
	ask(&all);
	expect_done(0, 0);
	message_add_u32(&all, RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_MR);
	ask(&all);
	expect_done(0, EOPNOTSUPP);
	message_add_u32(&all, RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_PD);
	ask(&all);
	expect_done(0, EINVAL);
}

TEST(nodes_of_dev)
{
	struct message m = device_message(RDMA_NLDEV_CMD_GET_CHARDEV, 0);
	dev_t cm = channel_device();

	expect_error(&m, EINVAL);
	message_add(&m, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs", 7);
	ask(&m);
	expect_answer(0, &m, 0);
	expect_text(answer_attr(0, RDMA_NLDEV_ATTR_CHARDEV_NAME), "uverbs0");
	expect_number(answer_attr(0, RDMA_NLDEV_ATTR_CHARDEV_ABI), 1, 8);
	expect_number(answer_attr(0, RDMA_NLDEV_ATTR_CHARDEV), 231 << 8 | 192, 8);
	message_add(&m, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "umad", 5);
	expect_error(&m, ENOENT);
	message_add(&m, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "rdma_cm", 8);
	expect_error(&m, ENOENT); /* it is of no device */
	message_add(&m, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs", 6);
	expect_error(&m, EINVAL); /* no end */
	m = message_make(RDMA_NLDEV_CMD_GET_CHARDEV, 0);
	message_add(&m, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "rdma_cm", 8);
	ask(&m);
	expect_text(answer_attr(0, RDMA_NLDEV_ATTR_CHARDEV_NAME), "rdma_cm");
	expect_number(answer_attr(0, RDMA_NLDEV_ATTR_CHARDEV_ABI), 4, 8);
	expect_number(answer_attr(0, RDMA_NLDEV_ATTR_CHARDEV),
		(uint64_t)major(cm) << 8 | minor(cm), 8);
}
