/* SPDX-License-Identifier: BSD-3-Clause */
/* A port over rte_ethdev. The application initialises EAL, and nothing else may start the
 * ethdev port. Also the allocator for rings in EAL's memory (hugepages, or plain pages
 * with --no-huge). */
#ifndef ROCADE_ETHDEV_H
#define ROCADE_ETHDEV_H

#include "base/base_alloc.h"
#include "port/port.h"

struct ethdev_conf {
	uint16_t port_id;
	uint16_t queues;  /* RX/TX pairs */
	uint16_t rx_desc; /* 0: 1024; both are adjusted to the limits of the PMD */
	uint16_t tx_desc;
	uint32_t mtu; /* IP MTU to set; 0: the port's present one */
	bool no_cksum_offload;
	bool keep_promiscuous; /* leave it on at close: the process has no rights by then */
	bool rx_interrupts;    /* if the PMD has them: wait_fd() returns descriptors */
	struct rte_mempool *pool; /* of the program; NULL: the port has one of its own */
	uint32_t
		numa; /* 1 + NUMA node of that pool and of the queues; 0: that of the port */
};

/* Configures and starts the ethdev port, and fills in port. On failure returns -errno and
 * writes one sentence to err. Closing the port stops and closes the ethdev port, as does
 * a failure to set up its queues or to start it. */
int ethdev_open(
	const struct ethdev_conf *conf, struct port *port, char *err, size_t err_size);

/* Returns the IP MTU of a port that ethdev_open() has opened. */
uint32_t ethdev_mtu(const void *drv);

/* Returns an allocator of rte_malloc memory on a socket; its ctx is the socket id cast to
 * a pointer. */
struct alloc ethdev_alloc(int socket);

#endif
