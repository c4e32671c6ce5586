/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port over rte_ethdev. EAL is the application's; the ethdev port must not be started by
 * anybody else. Also the allocator that puts rings into EAL's memory (hugepages, or what
 * --no-huge gives).
 */
#ifndef ROCADE_ETHDEV_H
#define ROCADE_ETHDEV_H

#include "base/alloc.h"
#include "port/port.h"

struct ethdev_conf {
	uint16_t port_id;
	uint16_t queues;   /* RX/TX pairs */
	uint16_t rx_desc;  /* 0: 1024; both are adjusted to what the PMD takes */
	uint16_t tx_desc;
	uint32_t mtu;	   /* IP MTU wanted; 0: the port's present one */
	bool no_cksum_offload;
};

/* Configures, starts, and fills the port. On failure -errno and one sentence of why in err.
 * Closing the port stops and closes the ethdev port, and so does a PMD that refuses queues or
 * start. */
int ethdev_open(const struct ethdev_conf *conf, struct port *port, char *err, size_t err_size);

/* IP; of a port that ethdev_open() has opened. */
uint32_t ethdev_mtu(const void *drv);

/* rte_malloc'ed memory on a socket; ctx is the socket id cast to a pointer. */
struct alloc ethdev_alloc(int socket);

#endif
