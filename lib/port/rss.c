/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <string.h>

#include <rte_byteorder.h>
#include <rte_thash.h>

#include "port/gid.h"
#include "port/rss.h"

#define IPV4_WORDS 1
#define IPV6_WORDS 4

int
rss_queue(const struct rss *rss, const struct port_flow *flow)
{
	bool ipv4 = gid_is_ipv4(flow->src);
	unsigned words = ipv4 ? IPV4_WORDS : IPV6_WORDS, n = 2 * words;
	/* what is hashed: the source, the destination, and the ports */
	uint32_t fields[2 * IPV6_WORDS + 1];

	if (rss->table_size == 0 || !(ipv4 ? rss->ipv4_udp : rss->ipv6_udp))
		return -1;
	/* The address is at the end of a GID. */
	memcpy(fields, flow->src + 16 - 4 * words, 4 * words);
	memcpy(fields + words, flow->dst + 16 - 4 * words, 4 * words);
	for (unsigned i = 0; i < n; i++)
		fields[i] = rte_be_to_cpu_32(fields[i]);
	fields[n++] = (uint32_t)flow->sport << 16 | flow->dport;
	/* Each bit of a field selects 32 bits of the key, which begin at the bit's number. */
	if (4 * (n + 1) > rss->key_bytes)
		return -1;
	return rss->table[rte_softrss(fields, n, (const uint8_t *)rss->key) %
			  rss->table_size];
}
