/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of a host: a transmit ring in front of its link, and a receive ring. It answers
 * the host's ARP requests itself, so that no scenario begins with a broadcast. */
#ifndef ROCADE_FABRIC_NIC_H
#define ROCADE_FABRIC_NIC_H

#include "outq.h"
#include "port/port.h"

#define NIC_RX_RING 1024 /* the defaults of the ports */
#define NIC_TX_RING 1024

struct nic {
	struct port port; /* for dev_create() */
	void *queue_list[1];
	struct outq tx;
	struct frame *rx[NIC_RX_RING];
	uint32_t rx_head, rx_tail;
	uint64_t rx_full;  /* frames lost because the receive ring was full */
	uint32_t lent;     /* frames that the device holds */
	uint64_t payloads; /* frames with payload that were sent */
	/* Told of each frame that arrives. */
	void (*wake)(void *arg);
	void *arg;
};

void nic_init(struct nic *n, unsigned host, const struct outq_conf *link);
void nic_fini(struct nic *n);
/* The deliver() of the link that ends here. */
void nic_rx(void *nic, struct frame *frame);

static inline bool
nic_rx_empty(const struct nic *n)
{
	return n->rx_head == n->rx_tail;
}

#endif
