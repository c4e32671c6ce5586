/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocols that the port speaks for itself. Called by net.c, under the lock of
 * struct net; nd_rx() by icmp.c. */
#ifndef ROCADE_PORT_NET_PROTO_H
#define ROCADE_PORT_NET_PROTO_H

#include "port/frame.h"
#include "port/net_addr.h"
#include "port/net_state.h"

/* Each handles a received frame of its protocol and returns true if it wrote an answer to
 * reply. */
bool arp_rx(
	struct net *net, const struct rx_frame *frame, struct pkt *reply, uint64_t now);
bool icmp4_rx(struct net *net, const struct rx_frame *frame, struct pkt *reply);
bool icmp6_rx(
	struct net *net, const struct rx_frame *frame, struct pkt *reply, uint64_t now);

#define ND_SOLICITATION 135
#define ND_ADVERTISEMENT 136

/* An ICMPv6 message with valid lengths and checksum. */
struct icmp6 {
	const uint8_t *src;
	const uint8_t *dst;
	const uint8_t *msg;
	uint32_t len; /* at least 4 */
	uint8_t hop_limit;
};
bool nd_rx(struct net *net, const struct rx_frame *frame, const struct icmp6 *in,
	struct pkt *reply, uint64_t now);

/* Write a request for gid to mac, or to all if mac is NULL, or an announcement of an
 * address. */
bool arp_request(const struct net_conf *conf, const uint8_t gid[16], const uint8_t *mac,
	struct pkt *frame);
bool arp_announce(const struct net_conf *conf, const uint8_t gid[16], struct pkt *frame);
bool nd_solicit(const struct net_conf *conf, const uint8_t gid[16], const uint8_t *mac,
	struct pkt *frame);
bool nd_announce(const struct net_conf *conf, const uint8_t gid[16], struct pkt *frame);

/* _rx() handles a received frame, and returns why it was dropped, or DROP_none. _write() writes a report in
 * the given version (0: the newest); it returns false if the report cannot or need not be sent. */
enum drop_reason igmp_rx(struct net *net, const struct rx_frame *frame, uint64_t now);
bool igmp_write(const struct net_conf *conf, const uint8_t gid[16],
	enum group_report_type what, uint8_t version, struct pkt *frame);
enum drop_reason mld_rx(struct net *net, const struct rx_frame *frame, uint64_t now);
bool mld_write(const struct net_conf *conf, const uint8_t gid[16],
	enum group_report_type what, uint8_t version, struct pkt *frame);

#endif
