/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv6 neighbour discovery (RFC 4861): neighbour solicitations and advertisements. */
#include <string.h>

#include "port/net_proto.h"

#define ND_HOP_LIMIT 255 /* proves that no router has forwarded the message */
#define ND_OPT_SOURCE_LLA 1
#define ND_OPT_TARGET_LLA 2
#define ND_SOLICITED 0x40 /* flags of an advertisement */
#define ND_OVERRIDE 0x20

struct nd_msg {
	uint8_t type;
	uint8_t code;
	uint16_t checksum;
	uint8_t flags;
	uint8_t reserved[3];
	uint8_t target[16];
	uint8_t opt_type; /* at most one option: a link-layer address */
	uint8_t opt_len;  /* in units of 8 bytes */
	uint8_t opt_mac[6];
};
static_assert(sizeof(struct nd_msg) == 32, "RFC 4861 4.3");

#define ND_FIXED_LEN offsetof(struct nd_msg, opt_type)

static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};

static bool
nd_write(const struct net_conf *conf, struct pkt *frame, const uint8_t dst_mac[6],
	const uint8_t src[16], const uint8_t dst[16], struct nd_msg *msg)
{
	uint8_t *at = frame_begin_icmp6(
		conf, frame, dst_mac, src, dst, ND_HOP_LIMIT, sizeof(*msg));

	if (at == NULL)
		return false;
	msg->opt_len = 1;
	memcpy(msg->opt_mac, conf->mac, 6);
	memcpy(at, msg, sizeof(*msg));
	frame_end_icmp6(at, sizeof(*msg));
	return true;
}

bool
nd_solicit(const struct net_conf *conf, const uint8_t gid[16], const uint8_t *mac,
	struct pkt *frame)
{
	struct nd_msg msg = {.type = ND_SOLICITATION, .opt_type = ND_OPT_SOURCE_LLA};
	const uint8_t *src = net_source(conf, gid);
	uint8_t group[16], group_mac[6];

	if (src == NULL)
		return false;
	memcpy(msg.target, gid, 16);
	if (mac != NULL)
		return nd_write(conf, frame, mac, src, gid, &msg);
	gid_solicited_node(gid, group);
	gid_multicast_mac(group, group_mac);
	return nd_write(conf, frame, group_mac, src, group, &msg);
}

/* Writes a neighbour advertisement to dst, or to all nodes if dst is NULL. */
static bool
nd_advertise(const struct net_conf *conf, struct pkt *frame, const uint8_t target[16],
	const uint8_t *dst, const uint8_t *dst_mac)
{
	struct nd_msg msg = {.type = ND_ADVERTISEMENT,
		.flags = dst != NULL ? ND_SOLICITED | ND_OVERRIDE : ND_OVERRIDE,
		.opt_type = ND_OPT_TARGET_LLA};
	uint8_t mac[6];

	memcpy(msg.target, target, 16);
	if (dst != NULL)
		return nd_write(conf, frame, dst_mac, target, dst, &msg);
	gid_multicast_mac(all_nodes, mac);
	return nd_write(conf, frame, mac, target, all_nodes, &msg);
}

bool
nd_announce(const struct net_conf *conf, const uint8_t gid[16], struct pkt *frame)
{
	return nd_advertise(conf, frame, gid, NULL, NULL);
}

/* Parses the options. Returns false if one is malformed or the link-layer address cannot
 * be another station's. *mac is the link-layer address of the given type, NULL if there
 * is none. */
static bool
nd_options(const struct net_conf *conf, const struct icmp6 *in, uint8_t type,
	const uint8_t **mac)
{
	uint32_t off = ND_FIXED_LEN;

	*mac = NULL;
	while (off < in->len) {
		const uint8_t *opt = in->msg + off;
		uint32_t opt_len;

		if (in->len - off < 8)
			return false;
		opt_len = opt[1] * 8u;
		if (opt_len == 0 || opt_len > in->len - off)
			return false;
		if (opt[0] == type && opt_len == 8)
			*mac = opt + 2;
		off += opt_len;
	}
	return *mac == NULL || mac_is_other(conf, *mac);
}

static bool
nd_solicitation_rx(struct net *net, const struct rx_frame *frame, const struct icmp6 *in,
	struct pkt *reply, uint64_t now)
{
	const struct nd_msg *msg = (const struct nd_msg *)in->msg;
	bool probe = gid_is_zero(in->src);
	const uint8_t *mac;
	uint8_t group[16];

	if (!nd_options(&net->conf, in, ND_OPT_SOURCE_LLA, &mac))
		return false;
	if (!net_is_ours(&net->conf, msg->target))
		return false;
	gid_solicited_node(msg->target, group);
	if (memcmp(in->dst, group, 16) != 0 &&
		(probe || memcmp(in->dst, msg->target, 16) != 0))
		return false;
	/* Another host probes for an address of ours (duplicate address detection, RFC
	 * 4862 5.4): answer to all nodes. */
	if (probe)
		return mac == NULL &&
		       nd_advertise(&net->conf, reply, msg->target, NULL, NULL);
	if (!gid_is_host(in->src) || net_is_ours(&net->conf, in->src))
		return false;
	if (mac != NULL)
		neigh_seen(net, in->src, mac, true, now);
	return nd_advertise(&net->conf, reply, msg->target, in->src,
		mac != NULL ? mac : frame->src_mac);
}

static void
nd_advertisement_rx(struct net *net, const struct icmp6 *in, uint64_t now)
{
	const struct nd_msg *msg = (const struct nd_msg *)in->msg;
	const struct neigh *e;
	const uint8_t *mac;

	if (!nd_options(&net->conf, in, ND_OPT_TARGET_LLA, &mac))
		return;
	if (gid_is_multicast(in->dst) && (msg->flags & ND_SOLICITED))
		return;
	if (!gid_is_multicast(in->dst) && !net_is_ours(&net->conf, in->dst))
		return;
	e = neigh_find(net, msg->target);
	if (e == NULL)
		return;
	/* Without a link-layer address it confirms the one in the table (RFC 4861
	 * 7.2.5). */
	if (mac == NULL && neigh_is_known(e) && (msg->flags & ND_SOLICITED))
		mac = e->mac;
	if (mac == NULL)
		return;
	if (neigh_is_known(e) && !(msg->flags & ND_OVERRIDE) &&
		memcmp(mac, e->mac, 6) != 0)
		return;
	neigh_seen(net, msg->target, mac, false, now);
}

bool
nd_rx(struct net *net, const struct rx_frame *frame, const struct icmp6 *in,
	struct pkt *reply, uint64_t now)
{
	const struct nd_msg *msg = (const struct nd_msg *)in->msg;

	/* RFC 4861 7.1.1 and 7.1.2. */
	if (in->hop_limit != ND_HOP_LIMIT || in->len < ND_FIXED_LEN || msg->code != 0)
		return false;
	/* ND does not resolve IPv4 addresses: those entries belong to ARP. */
	if (gid_is_multicast(msg->target) || gid_is_ipv4(msg->target))
		return false;
	if (msg->type == ND_SOLICITATION)
		return nd_solicitation_rx(net, frame, in, reply, now);
	nd_advertisement_rx(net, in, now);
	return false;
}
