/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. rte_flow rules that bring UDP datagrams for port 4791 of some addresses to a
 * range of receive queues. */
#ifndef ROCADE_ETHDEV_STEER_H
#define ROCADE_ETHDEV_STEER_H

#include <rte_ethdev.h>
#include <rte_flow.h>

#include "port/net.h"

struct steer {
	uint16_t port_id;
	uint16_t first_queue, queues;
	uint16_t rule_count;
	struct rte_flow *rules[NET_MAX_ADDRS];
};

/* Replaces the rules by one for each address. Logs what the PMD rejects. */
void steer_set(struct steer *s, const struct net_conf *conf);
void steer_clear(struct steer *s);

#endif
