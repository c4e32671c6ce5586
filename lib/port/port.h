/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port interface: what an engine needs of a network interface, implemented by
 * drivers/. Function pointers are called once a burst, never per packet. A queue is used
 * by one engine at a time, except that rx_release() and tx_release() of any queue of the
 * port take any packet of that port from any engine: packets are handed from engine to
 * engine.
 */
#ifndef ROCADE_PORT_PORT_H
#define ROCADE_PORT_PORT_H

#include "wire/pkt.h"

struct port_caps {
	uint32_t max_frame; /* bytes of the longest frame that fits a buffer, L2 header
			       included */
	uint32_t rx_ring;   /* frames that one receive ring holds */
	bool tx_ipv4_cksum; /* honours PKT_TX_IPV4_CKSUM */
};

struct port_ops {
	/* Up to n received frames, each one segment. */
	unsigned (*rx_burst)(void *queue, struct pkt *pkts, unsigned n);
	/* Gives received frames back; also takes what tx_alloc() gave, filled or not. */
	void (*rx_release)(void *queue, struct pkt *pkts, unsigned n);
	/* Up to n empty frames: data, room and owner set, len 0, flags 0. */
	unsigned (*tx_alloc)(void *queue, struct pkt *pkts, unsigned n);
	/* Gives frames back that were allocated and not sent. */
	void (*tx_release)(void *queue, struct pkt *pkts, unsigned n);
	/* Sends pkts[0..n); returns how many it took, in order. The rest still is the
	 * caller's. */
	unsigned (*tx_burst)(void *queue, struct pkt *pkts, unsigned n);
	/* A descriptor that polls readable when frames may be waiting, -1 when there is
	 * none. */
	int (*wait_fd)(void *queue);
	/* Control path. */
	bool (*link_up)(void *drv);
	/* The multicast MACs that the port has to receive, all of them, from now on; more is
	 * no harm. May be NULL. */
	void (*set_groups)(void *drv, const uint8_t (*macs)[6], unsigned n);
	/* Takes the link down or up: 0 or -errno. May be NULL. */
	int (*set_link)(void *drv, bool up);
	void (*close)(void *drv);
};

struct port_queue {
	const struct port_ops *ops;
	void *queue;
};

/* What a driver's open call fills in. */
struct port {
	const struct port_ops *ops;
	void *drv;
	void **queues; /* the driver's, queue_count of them */
	unsigned queue_count;
	struct port_caps caps;
	uint8_t mac[6];
};

#endif
