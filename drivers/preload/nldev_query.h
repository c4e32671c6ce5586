/* SPDX-License-Identifier: BSD-3-Clause */
/* For the files nldev*.c. */
#ifndef ROCADE_PRELOAD_NLDEV_QUERY_H
#define ROCADE_PRELOAD_NLDEV_QUERY_H

#include "preload/nl_message.h"
#include "preload/nldev.h"
#include "verbs/device_facts.h"

#define NLDEV_PORT 1      /* the only one of a device */
#define NLDEV_TYPE_MAX 32 /* characters of RDMA_NLDEV_ATTR_CHARDEV_TYPE */

/* A message, and what it asks about. */
struct nldev_query {
	const struct nldev_socket *asker;
	struct nlmsghdr hdr;
	const uint8_t *attrs;
	size_t attrs_len;
	/* The attributes that say what is asked for. */
	struct asked_number {
		bool given;
		uint32_t value;
	} device, port, resource, mode, counter;
	char chardev[NLDEV_TYPE_MAX]; /* "": not given */
	struct nl_out out;
};

/* Reads the message's attributes. Of several ones of a type the last counts. Returns 0 or -EINVAL. */
int nldev_attrs_read(struct nldev_query *q);
/* Begins and ends an answer. */
void nldev_begin(struct nldev_query *q, uint16_t flags);
int nldev_give(struct nldev_query *q);
/* Both return 0, or -EINVAL if there is no such device, or no such port of one, or if none was named. The counters
 * only if they are wanted. */
int nldev_device_find(
	const struct nldev_query *q, bool counters, struct device_facts *facts);
int nldev_port_find(
	const struct nldev_query *q, bool counters, struct device_facts *facts);

/* Commands: each answers one message, those with _all one with NLM_F_DUMP. They return 0 or -errno. */
int nldev_device_get(struct nldev_query *q);
int nldev_device_get_all(struct nldev_query *q);
int nldev_port_get(struct nldev_query *q);
int nldev_port_get_all(struct nldev_query *q);
int nldev_system_get(struct nldev_query *q);
int nldev_summary_get(struct nldev_query *q);
int nldev_summary_get_all(struct nldev_query *q);
int nldev_counters_get(struct nldev_query *q);
int nldev_counters_get_all(struct nldev_query *q);
int nldev_counters_status(struct nldev_query *q);
int nldev_chardev_get(struct nldev_query *q);

#endif
