/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <string.h>

#include <rte_ethdev.h>

#include "base/base_log.h"
#include "ethdev/vlan_filter.h"

static bool
port_filters_vlans(uint16_t port_id)
{
	struct rte_eth_dev_info info;

	return rte_eth_dev_info_get(port_id, &info) == 0 &&
	       (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER) != 0;
}

/* The filter keeps frames of other VLANs from the engines. Some ports need it: net_virtio tells the
 * device that it has a filter, and then receives no tagged frame until a VLAN is added. Without a
 * VLAN there is no filter, because not every PMD admits untagged frames beside VLAN 0. */
void
vlan_filter_set(uint16_t port_id, const char *name, uint16_t old, uint16_t vlan)
{
	int offloads = rte_eth_dev_get_vlan_offload(port_id), ret = 0;

	if (offloads < 0 || !port_filters_vlans(port_id))
		return;
	if (old != 0)
		(void)rte_eth_dev_vlan_filter(port_id, old, 0);
	offloads &= ~RTE_ETH_VLAN_FILTER_OFFLOAD;
	if (vlan != 0) {
		ret = rte_eth_dev_set_vlan_offload(
			port_id, offloads | RTE_ETH_VLAN_FILTER_OFFLOAD);
		if (ret == 0)
			ret = rte_eth_dev_vlan_filter(port_id, vlan, 1);
	}
	if (vlan != 0 && ret == 0)
		log_info("%s receives the frames of VLAN %u only, by its filter", name,
			vlan);
	if (ret != 0)
		log_warn("%s rejects a filter for VLAN %u (%s); continuing without one",
			name, vlan, strerror(-ret));
	if (vlan == 0 || ret != 0)
		(void)rte_eth_dev_set_vlan_offload(port_id, offloads);
}
