/* SPDX-License-Identifier: BSD-3-Clause */
/* The data path of an ethdev port: passes mbufs as packet views (struct pkt). Nothing is
 * kept between calls. These functions are for the struct port_ops in ethdev.c. */
#ifndef ROCADE_ETHDEV_BURST_H
#define ROCADE_ETHDEV_BURST_H

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "port/port.h"

#define L2_BYTES (RTE_ETHER_HDR_LEN + 4u) /* with a VLAN tag */
/* of the pools: bursts per queue, in hand-off rings, tx backlogs and engines */
#define BURSTS_IN_FLIGHT 64
#define POOL_CACHE 256

struct ethdev_queue {
	uint16_t port_id;
	uint16_t queue_id;
	int wait_fd;    /* readable when frames may be waiting; -1: there is none */
	bool always_on; /* a descriptor of the kernel: nothing is to be turned on */
	struct rte_mempool *pool;
} LINE_ALIGNED;

/* Describes received mbufs as packets. Frees those of several segments for which there is no
 * buffer. Returns how many it kept. */
unsigned ethdev_rx_wrap(struct ethdev_queue *q, struct rte_mbuf *const *mbufs,
	struct pkt *pkts, unsigned n);
/* Describes packets to be sent in their mbufs. */
void ethdev_tx_unwrap(const struct pkt *pkts, struct rte_mbuf **mbufs, unsigned n);

unsigned ethdev_rx_burst(void *queue, struct pkt *pkts, unsigned n);
unsigned ethdev_tx_alloc(void *queue, struct pkt *pkts, unsigned n);
unsigned ethdev_tx_burst(void *queue, struct pkt *pkts, unsigned n);
void ethdev_release(void *queue, struct pkt *pkts, unsigned n);
int ethdev_wait_fd(void *queue);

#endif
