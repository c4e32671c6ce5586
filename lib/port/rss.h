/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Receive-side scaling (RSS): which receive queue a NIC puts the packets of a flow into. */
#ifndef ROCADE_PORT_RSS_H
#define ROCADE_PORT_RSS_H

#include "base/common.h"

#define RSS_KEY_MAX 64     /* bytes */
#define RSS_TABLE_MAX 2048 /* entries of the redirection table */

/* The UDP packets between two addresses and ports. */
struct port_flow {
	uint8_t src[16], dst[16]; /* GIDs, both of one IP version */
	uint16_t sport, dport;
};

/* As the NIC is set. Its hash is Toeplitz's. */
struct rss {
	uint32_t key[RSS_KEY_MAX / 4]; /* bytes in the order of the NIC's key */
	unsigned key_bytes;
	/* Addresses and ports of UDP packets are hashed. The addresses alone do not help: all
	 * connections between two hosts would be on one engine. */
	bool ipv4_udp, ipv6_udp;
	unsigned table_size; /* 0: RSS is off or not known */
	uint16_t table[RSS_TABLE_MAX];
};

/* Returns the queue, or -1 if it cannot be known. */
int rss_queue(const struct rss *rss, const struct port_flow *flow);

#endif
