/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <string.h>

#include "ethdev/ethdev_mtu.h"

uint32_t
ethdev_mtu_max(const struct rte_eth_dev_info *info)
{
	uint32_t overhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN, max = UINT16_MAX;

	if (info->max_mtu != 0)
		max = info->max_mtu;
	if (info->max_mtu != UINT16_MAX && info->max_mtu != 0 &&
		info->max_rx_pktlen > info->max_mtu)
		overhead = info->max_rx_pktlen - info->max_mtu;
	if (info->max_rx_pktlen > overhead)
		max = RTE_MIN(max, info->max_rx_pktlen - overhead);
	return max;
}

/* net_tap drops a frame that is longer than its MTU when it is to send it (DPDK 22.11,
 * tap_write_mbufs()). */
bool
ethdev_mtu_is_strict(const struct rte_eth_dev_info *info)
{
	return strcmp(info->driver_name, "net_tap") == 0;
}
