/* SPDX-License-Identifier: BSD-3-Clause */
/* Private to drivers/ethdev. */
#ifndef ROCADE_ETHDEV_INTERNAL_H
#define ROCADE_ETHDEV_INTERNAL_H

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "ethdev/ethdev.h"

struct ethdev_queue {
	uint16_t port_id;
	uint16_t queue_id;
	struct rte_mempool *pool;
} LINE_ALIGNED;

struct ethdev {
	uint16_t port_id;
	uint16_t queue_count;
	uint16_t rx_desc;
	uint16_t tx_desc;
	uint32_t mtu;
	int socket;
	bool tx_ipv4_cksum;
	bool all_multicast;
	struct rte_mempool *pool;
	struct rte_eth_dev_info info;
	char name[RTE_ETH_NAME_MAX_LEN];
	void **queues;
	struct ethdev_queue queue[];
};

/* burst.c */
extern const struct port_ops ethdev_ops;

/* ethdev.c */
bool ethdev_link_up(void *drv);
int ethdev_set_link(void *drv, bool up);
void ethdev_set_groups(void *drv, const uint8_t (*macs)[6], unsigned n);
void ethdev_close(void *drv);

#endif
