/* SPDX-License-Identifier: BSD-3-Clause */
/* The port's addresses: which are valid, what is on one of its links, and the next hop
 * elsewhere. */
#include <errno.h>
#include <string.h>

#include "port/frame.h"
#include "port/net_addr.h"

#define VLAN_MAX 4094 /* 4095 is reserved (IEEE 802.1Q) */

/* Examines the host bits, those behind the prefix. All zeros name the subnet, all ones
 * are its broadcast address. */
static void
host_part(const struct net_addr *addr, bool *zeros, bool *ones)
{
	unsigned bits = addr->prefix_len + (gid_is_ipv4(addr->gid) ? 96 : 0);

	*zeros = *ones = true;
	for (unsigned i = bits; i < 128; i++) {
		bool bit = addr->gid[i / 8] >> (7 - i % 8) & 1;

		*zeros &= !bit;
		*ones &= bit;
	}
}

static bool
addr_ok(const struct net_addr *addr)
{
	bool ipv4 = gid_is_ipv4(addr->gid);
	unsigned bits = ipv4 ? 32 : 128;
	bool zeros, ones;

	if (!gid_is_host(addr->gid) || addr->prefix_len > bits)
		return false;
	if (addr->prefix_len + 1u >= bits) /* single host or point to point (RFC 3021) */
		return true;
	host_part(addr, &zeros, &ones);
	return !zeros && !(ipv4 && ones);
}

static bool
gateway_ok(const struct net_conf *conf, const uint8_t gid[16], bool ipv4)
{
	if (gid_is_zero(gid))
		return true;
	return gid_is_ipv4(gid) == ipv4 && gid_is_host(gid) && !net_is_ours(conf, gid) &&
	       !net_is_broadcast(conf, gid) && net_is_onlink(conf, gid);
}

int
net_conf_check(const struct net_conf *conf)
{
	if (!mac_is_station(conf->mac) || conf->vlan > VLAN_MAX ||
		conf->addr_count > NET_MAX_ADDRS)
		return -EINVAL;
	for (unsigned i = 0; i < conf->addr_count; i++) {
		if (!addr_ok(&conf->addr[i]))
			return -EINVAL;
		for (unsigned j = 0; j < i; j++)
			if (memcmp(conf->addr[i].gid, conf->addr[j].gid, 16) == 0)
				return -EINVAL;
	}
	if (!gateway_ok(conf, conf->gateway4, true) ||
		!gateway_ok(conf, conf->gateway6, false))
		return -EINVAL;
	return 0;
}

bool
net_is_ours(const struct net_conf *conf, const uint8_t gid[16])
{
	for (unsigned i = 0; i < conf->addr_count; i++)
		if (memcmp(conf->addr[i].gid, gid, 16) == 0)
			return true;
	return false;
}

bool
net_is_onlink(const struct net_conf *conf, const uint8_t gid[16])
{
	bool ipv4 = gid_is_ipv4(gid);

	for (unsigned i = 0; i < conf->addr_count; i++) {
		const struct net_addr *addr = &conf->addr[i];

		if (gid_is_ipv4(addr->gid) != ipv4)
			continue;
		/* Link-local addresses are on-link whatever the prefixes (RFC 4861
		 * 5.1). */
		if (gid_is_link_local(gid) ||
			gid_in_prefix(gid, addr->gid, addr->prefix_len))
			return true;
	}
	return false;
}

bool
net_is_broadcast(const struct net_conf *conf, const uint8_t gid[16])
{
	if (!gid_is_ipv4(gid))
		return false;
	for (unsigned i = 0; i < conf->addr_count; i++) {
		struct net_addr addr = conf->addr[i];
		bool zeros, ones;

		if (!gid_is_ipv4(addr.gid) || addr.prefix_len > 30 ||
			!gid_in_prefix(gid, addr.gid, addr.prefix_len))
			continue;
		memcpy(addr.gid, gid, 16);
		host_part(&addr, &zeros, &ones);
		if (zeros || ones)
			return true;
	}
	return false;
}

const uint8_t *
net_source(const struct net_conf *conf, const uint8_t target[16])
{
	const uint8_t *best = NULL;
	int best_bits = -1;

	for (unsigned i = 0; i < conf->addr_count; i++) {
		const struct net_addr *addr = &conf->addr[i];
		int bits = gid_in_prefix(target, addr->gid, addr->prefix_len)
				   ? addr->prefix_len + 1
				   : 0;

		if (gid_is_ipv4(addr->gid) != gid_is_ipv4(target))
			continue;
		if (gid_is_link_local(target) && gid_is_link_local(addr->gid))
			bits = 256; /* same scope first (RFC 6724 rule 2) */
		if (bits > best_bits) {
			best = addr->gid;
			best_bits = bits;
		}
	}
	return best;
}

int
net_next_hop(const struct net_conf *conf, const uint8_t dst[16], uint8_t hop[16])
{
	const uint8_t *gateway = gid_is_ipv4(dst) ? conf->gateway4 : conf->gateway6;

	if (!gid_is_host(dst) || net_is_broadcast(conf, dst))
		return -ENETUNREACH;
	if (net_is_onlink(conf, dst)) {
		memcpy(hop, dst, 16);
		return 0;
	}
	if (gid_is_zero(gateway) || gid_is_link_local(dst))
		return -ENETUNREACH;
	memcpy(hop, gateway, 16);
	return 0;
}
