/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. Which offloads of a PMD a port uses. */
#ifndef ROCADE_ETHDEV_OFFLOAD_H
#define ROCADE_ETHDEV_OFFLOAD_H

#include <rte_ethdev.h>

#define OFFLOADS_TEXT 80

struct ethdev_offloads {
	bool rx_ipv4_cksum;
	bool tx_ipv4_cksum;
	bool fast_free; /* sent mbufs are of one pool and have one owner */
	bool rss;
};

/* Chooses the offloads of a port with this many queue pairs, and requests them in eth. */
void offloads_choose(struct ethdev_offloads *out, const struct rte_eth_dev_info *info,
	uint16_t queues, bool no_cksum, struct rte_eth_conf *eth);

/* Writes their names to text, of OFFLOADS_TEXT bytes, and returns it. */
const char *offloads_text(const struct ethdev_offloads *offloads, char *text);

#endif
