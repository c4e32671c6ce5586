/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands that answer about devices and ports: a value is that of the device's file. */
#include <errno.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <stdlib.h>
#include <string.h>

#include "preload/nldev_query.h"
#include "preload/served.h"
#include "verbs/device_caps.h"
#include "verbs/sysfs_values.h"

#define COUNTERS "ports/1/hw_counters/"
#define INTERFACE "lo" /* the entry of device/net in sysfs.def */

/* ---- Values of the device's files ---- */

/* Returns the text without the line's end. */
static const char *
file_text(const struct device_facts *facts, const char *file, char text[SYSFS_TEXT_MAX])
{
	if (!sysfs_value(facts, file, 0, text))
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static uint64_t
file_number(const struct device_facts *facts, const char *file)
{
	char text[SYSFS_TEXT_MAX];

	return strtoull(file_text(facts, file, text), NULL, 10);
}

/* Four groups of digits. */
static uint64_t
file_guid(const struct device_facts *facts, const char *file)
{
	char text[SYSFS_TEXT_MAX];
	const char *at = file_text(facts, file, text);
	uint64_t guid = 0;

	for (; *at != '\0'; at += strspn(at, ":"))
		guid = guid << 16 | strtoul(at, (char **)&at, 16);
	return guid;
}

static void
handle_put(struct nldev_query *q, const struct device_facts *facts)
{
	nl_put_u32(&q->out, RDMA_NLDEV_ATTR_DEV_INDEX, facts->index);
	nl_put_text(&q->out, RDMA_NLDEV_ATTR_DEV_NAME, facts->name);
}

static void
info_put(struct nldev_query *q, const struct device_facts *facts)
{
	struct nl_out *out = &q->out;
	char text[SYSFS_TEXT_MAX];

	handle_put(q, facts);
	nl_put_u32(out, RDMA_NLDEV_ATTR_PORT_INDEX, NLDEV_PORT); /* the last one */
	nl_put_u64(out, RDMA_NLDEV_ATTR_CAP_FLAGS, DEVICE_CAPS_EX);
	nl_put_text(out, RDMA_NLDEV_ATTR_FW_VERSION, file_text(facts, "fw_ver", text));
	nl_put_u64(out, RDMA_NLDEV_ATTR_NODE_GUID, file_guid(facts, "node_guid"));
	nl_put_u64(
		out, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, file_guid(facts, "sys_image_guid"));
	nl_put_u8(out, RDMA_NLDEV_ATTR_DEV_NODE_TYPE,
		(uint8_t)file_number(facts, "node_type"));
	nl_put_u8(out, RDMA_NLDEV_ATTR_DEV_DIM, 0);
	nl_put_text(out, RDMA_NLDEV_ATTR_DEV_PROTOCOL, "roce");
}

/* A port of RoCE has no LIDs, and the kernel shows the capabilities of ports of InfiniBand only. The interface is the
 * port's, also where it has no GIDs. */
static void
port_put(struct nldev_query *q, const struct device_facts *facts)
{
	struct nl_out *out = &q->out;
	unsigned interface = if_nametoindex(INTERFACE);

	handle_put(q, facts);
	nl_put_u32(out, RDMA_NLDEV_ATTR_PORT_INDEX, NLDEV_PORT);
	nl_put_u8(out, RDMA_NLDEV_ATTR_PORT_STATE,
		(uint8_t)file_number(facts, "ports/1/state"));
	nl_put_u8(out, RDMA_NLDEV_ATTR_PORT_PHYS_STATE,
		(uint8_t)file_number(facts, "ports/1/phys_state"));
	if (interface == 0)
		return;
	nl_put_u32(out, RDMA_NLDEV_ATTR_NDEV_INDEX, interface);
	nl_put_text(out, RDMA_NLDEV_ATTR_NDEV_NAME, INTERFACE);
}

static void
count_put(struct nl_out *out, const char *name, uint64_t count)
{
	size_t entry = nl_nest(out, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);

	nl_put_text(out, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, name);
	nl_put_u64(out, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, count);
	nl_nest_end(out, entry);
}

/* The daemon does not know of PDs, CQs and memory regions. */
static void
summary_put(struct nldev_query *q, const struct device_facts *facts)
{
	size_t table;

	handle_put(q, facts);
	table = nl_nest(&q->out, RDMA_NLDEV_ATTR_RES_SUMMARY);
	count_put(&q->out, "qp", facts->qps);
	count_put(&q->out, "cm_id", facts->cm_ids);
	nl_nest_end(&q->out, table);
}

/* status: their places instead of their values. */
static void
counters_put(struct nldev_query *q, const struct device_facts *facts, bool status)
{
	size_t table = nl_nest(&q->out, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS), entry;
	const char *file;

	for (uint32_t i = 0; (file = sysfs_value_file(COUNTERS, i)) != NULL; i++) {
		entry = nl_nest(&q->out, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
		nl_put_text(&q->out, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME,
			file + strlen(COUNTERS));
		if (status)
			nl_put_u32(&q->out, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_INDEX, i);
		else
			nl_put_u64(&q->out, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE,
				file_number(facts, file));
		nl_nest_end(&q->out, entry);
	}
	nl_nest_end(&q->out, table);
}

/* Puts the place of each counter of the port. */
static void
status_put(struct nldev_query *q, const struct device_facts *facts)
{
	handle_put(q, facts);
	nl_put_u32(&q->out, RDMA_NLDEV_ATTR_PORT_INDEX, NLDEV_PORT);
	counters_put(q, facts, true);
}

/* ---- Commands ---- */

typedef int find_fn(
	const struct nldev_query *q, bool counters, struct device_facts *facts);
typedef void put_fn(struct nldev_query *q, const struct device_facts *facts);

/* Answers with the device, or its port, that is asked for. */
static int
one_give(struct nldev_query *q, find_fn *find, bool counters, uint16_t flags, put_fn *put)
{
	struct device_facts facts;
	int rc = find(q, counters, &facts);

	if (rc != 0)
		return rc;
	nldev_begin(q, flags);
	put(q, &facts);
	return nldev_give(q);
}

/* Answers with all devices. */
static int
devices_give(struct nldev_query *q, bool counters, put_fn *put)
{
	struct device_facts facts;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && served_by.facts(i, counters, &facts); i++) {
		nldev_begin(q, NLM_F_MULTI);
		put(q, &facts);
		rc = nldev_give(q);
	}
	return rc;
}

int
nldev_device_get(struct nldev_query *q)
{
	return one_give(q, nldev_device_find, false, 0, info_put);
}

int
nldev_device_get_all(struct nldev_query *q)
{
	return devices_give(q, false, info_put);
}

int
nldev_port_get(struct nldev_query *q)
{
	return one_give(q, nldev_port_find, false, 0, port_put);
}

/* Of one device. */
int
nldev_port_get_all(struct nldev_query *q)
{
	return one_give(q, nldev_device_find, false, NLM_F_MULTI, port_put);
}

int
nldev_summary_get(struct nldev_query *q)
{
	return one_give(q, nldev_device_find, true, 0, summary_put);
}

int
nldev_summary_get_all(struct nldev_query *q)
{
	return devices_give(q, true, summary_put);
}

/* The daemon's device is there in all network namespaces. A region is memory of the process at these addresses:
 * no fork(2) gives its pages to the child. */
int
nldev_system_get(struct nldev_query *q)
{
	nldev_begin(q, 0);
	nl_put_u8(&q->out, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1);
	nl_put_u8(&q->out, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
	return nldev_give(q);
}

/* Only counters of a port: none can be bound to QPs. */
int
nldev_counters_get(struct nldev_query *q)
{
	bool of_qps = q->resource.given && q->resource.value == RDMA_NLDEV_ATTR_RES_QP;
	struct device_facts facts;
	int rc;

	if (q->resource.given && !of_qps)
		return q->resource.value == RDMA_NLDEV_ATTR_RES_MR ? -EOPNOTSUPP
								   : -EINVAL;
	if (of_qps && q->counter.given)
		return -ENOENT;
	if (of_qps && !q->mode.given)
		return -EINVAL;
	rc = nldev_port_find(q, !of_qps, &facts);
	if (rc != 0)
		return rc;
	nldev_begin(q, 0);
	handle_put(q, &facts);
	nl_put_u32(&q->out, RDMA_NLDEV_ATTR_PORT_INDEX, NLDEV_PORT);
	if (of_qps)
		nl_put_u32(&q->out, RDMA_NLDEV_ATTR_STAT_MODE, RDMA_COUNTER_MODE_NONE);
	else
		counters_put(q, &facts, false);
	return nldev_give(q);
}

int
nldev_counters_get_all(struct nldev_query *q)
{
	struct device_facts facts;

	if (!q->resource.given)
		return -EINVAL;
	if (q->resource.value != RDMA_NLDEV_ATTR_RES_QP)
		return q->resource.value == RDMA_NLDEV_ATTR_RES_MR ? -EOPNOTSUPP
								   : -EINVAL;
	return q->port.given ? nldev_port_find(q, false, &facts)
			     : nldev_device_find(q, false, &facts);
}

int
nldev_counters_status(struct nldev_query *q)
{
	return one_give(q, nldev_port_find, false, 0, status_put);
}
