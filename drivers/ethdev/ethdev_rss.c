/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <string.h>

#include "base/base_log.h"
#include "ethdev/ethdev_rss.h"

#define KEY_BYTES 40 /* of most NICs */
#define GROUPS (RSS_TABLE_MAX / RTE_ETH_RETA_GROUP_SIZE)

static bool
table_read(uint16_t port_id, unsigned size, struct rss *rss)
{
	struct rte_eth_rss_reta_entry64 groups[GROUPS];

	if (size == 0 || size > RSS_TABLE_MAX)
		return false;
	memset(groups, 0, sizeof(groups));
	for (unsigned i = 0; i < size; i++)
		groups[i / RTE_ETH_RETA_GROUP_SIZE].mask |=
			UINT64_C(1) << i % RTE_ETH_RETA_GROUP_SIZE;
	if (rte_eth_dev_rss_reta_query(port_id, groups, (uint16_t)size) != 0)
		return false;
	for (unsigned i = 0; i < size; i++)
		rss->table[i] = groups[i / RTE_ETH_RETA_GROUP_SIZE]
					.reta[i % RTE_ETH_RETA_GROUP_SIZE];
	return true;
}

static bool
hash_read(uint16_t port_id, unsigned key_bytes, struct rss *rss)
{
	struct rte_eth_rss_conf conf = {
		.rss_key = (uint8_t *)rss->key, .rss_key_len = (uint8_t)key_bytes};

	if (key_bytes > sizeof(rss->key) ||
		rte_eth_dev_rss_hash_conf_get(port_id, &conf) != 0)
		return false;
	rss->key_bytes = key_bytes;
	rss->ipv4_udp = (conf.rss_hf & RTE_ETH_RSS_NONFRAG_IPV4_UDP) != 0;
	rss->ipv6_udp = (conf.rss_hf & RTE_ETH_RSS_NONFRAG_IPV6_UDP) != 0;
	return rss->ipv4_udp || rss->ipv6_udp;
}

void
ethdev_rss_read(uint16_t port_id, struct rss *rss)
{
	struct rte_eth_dev_info info;

	*rss = (struct rss){0};
	if (rte_eth_dev_info_get(port_id, &info) != 0)
		return;
	/* Some PMDs leave the size out. */
	if (!hash_read(port_id, info.hash_key_size != 0 ? info.hash_key_size : KEY_BYTES,
		    rss) ||
		!table_read(port_id, info.reta_size, rss)) {
		log_info(
			"ethdev %u: its RSS is not known: QPs are spread over the engines by "
			"turns, and packets are handed over",
			port_id);
		return;
	}
	rss->table_size = info.reta_size;
}
