/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <string.h>

#include "ethdev/ethdev_offload.h"

void
offloads_choose(struct ethdev_offloads *out, const struct rte_eth_dev_info *info,
	uint16_t queues, bool no_cksum, struct rte_eth_conf *eth)
{
	uint64_t hash = info->flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);

	*out = (struct ethdev_offloads){
		.fast_free =
			(info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0,
		.rss = queues > 1 && hash != 0,
		.rx_ipv4_cksum = !no_cksum && (info->rx_offload_capa &
						      RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) != 0,
		.tx_ipv4_cksum = !no_cksum && (info->tx_offload_capa &
						      RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0,
	};
	if (out->fast_free)
		eth->txmode.offloads |= RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	if (out->rx_ipv4_cksum)
		eth->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
	if (out->tx_ipv4_cksum)
		eth->txmode.offloads |= RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
	if (out->rss) {
		eth->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		eth->rx_adv_conf.rss_conf.rss_hf = hash;
	}
}

static void
name_add(char *text, bool used, const char *name)
{
	if (!used)
		return;
	if (text[0] != '\0')
		strcat(text, " ");
	strcat(text, name);
}

const char *
offloads_text(const struct ethdev_offloads *offloads, char *text)
{
	text[0] = '\0';
	name_add(text, offloads->rx_ipv4_cksum, "rx-ipv4-checksum");
	name_add(text, offloads->tx_ipv4_cksum, "tx-ipv4-checksum");
	name_add(text, offloads->rss, "rss");
	name_add(text, offloads->fast_free, "fast-free");
	return text[0] != '\0' ? text : "none";
}
