/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <string.h>

#include "preload/nldev_query.h"
#include "preload/served.h"

void
nldev_begin(struct nldev_query *q, uint16_t flags)
{
	nl_begin(&q->out, &q->hdr, q->asker->port, q->hdr.nlmsg_type, flags);
}

int
nldev_give(struct nldev_query *q)
{
	int rc = nl_end(&q->out);

	return rc != 0 ? rc : q->asker->give(q->asker->arg, q->out.bytes, q->out.len);
}

static struct asked_number *
asked_number_of(struct nldev_query *q, uint16_t type)
{
	switch (type) {
	case RDMA_NLDEV_ATTR_DEV_INDEX:
		return &q->device;
	case RDMA_NLDEV_ATTR_PORT_INDEX:
		return &q->port;
	case RDMA_NLDEV_ATTR_STAT_RES:
		return &q->resource;
	case RDMA_NLDEV_ATTR_STAT_MODE:
		return &q->mode;
	case RDMA_NLDEV_ATTR_STAT_COUNTER_ID:
		return &q->counter;
	default:
		return NULL;
	}
}

static int
chardev_read(struct nldev_query *q, const struct nl_attr *attr)
{
	size_t len = strnlen((const char *)attr->value, attr->len);

	if (len == attr->len || len >= sizeof(q->chardev))
		return -EINVAL;
	memcpy(q->chardev, attr->value, len + 1);
	return 0;
}

int
nldev_attrs_read(struct nldev_query *q)
{
	struct asked_number *number;
	struct nl_attr attr;
	size_t at = 0;
	int rc = 0;

	while (rc == 0 && nl_attr_next(q->attrs, q->attrs_len, &at, &attr)) {
		number = asked_number_of(q, attr.type);
		if (attr.type == RDMA_NLDEV_ATTR_CHARDEV_TYPE)
			rc = chardev_read(q, &attr);
		if (number == NULL)
			continue;
		if (attr.len < sizeof(number->value))
			return -EINVAL;
		memcpy(&number->value, attr.value, sizeof(number->value));
		number->given = true;
	}
	return rc;
}

int
nldev_device_find(const struct nldev_query *q, bool counters, struct device_facts *facts)
{
	if (!q->device.given)
		return -EINVAL;
	for (unsigned i = 0; served_by.facts(i, counters, facts); i++) {
		if (facts->index == q->device.value)
			return 0;
	}
	return -EINVAL;
}

int
nldev_port_find(const struct nldev_query *q, bool counters, struct device_facts *facts)
{
	return q->port.given && q->port.value == NLDEV_PORT
		       ? nldev_device_find(q, counters, facts)
		       : -EINVAL;
}
