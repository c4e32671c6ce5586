/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCADE_ETHDEV_INTERNAL_H
#define ROCADE_ETHDEV_INTERNAL_H

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "port/port.h"

#define ETHDEV_QUEUES_MAX 16

struct ethdev_queue {
	uint16_t port_id;
	uint16_t queue_id;
	struct rte_mempool *pool;
};

struct ethdev {
	uint16_t port_id;
	uint16_t rx_desc;
	bool tx_cksum;
	uint32_t max_frame;
	struct rte_mempool *pool; /* of all queues: what RX and TX use is handed around */
	struct ethdev_queue queues[ETHDEV_QUEUES_MAX];
	void *handles[ETHDEV_QUEUES_MAX];
};

unsigned ethdev_rx_burst(void *queue, struct pkt *pkts, unsigned n);
void ethdev_release(void *queue, struct pkt *pkts, unsigned n);
unsigned ethdev_tx_alloc(void *queue, struct pkt *pkts, unsigned n);
unsigned ethdev_tx_burst(void *queue, struct pkt *pkts, unsigned n);
int ethdev_wait_fd(void *queue);

#endif
