/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of the port's own messages, as received and as sent. For the files of this folder. */
#ifndef ROCADE_PORT_FRAME_H
#define ROCADE_PORT_FRAME_H

#include "port/net.h"

/* A received frame, parsed up to the Ethernet header. */
struct rx_frame {
	const uint8_t *dst_mac;
	const uint8_t *src_mac;
	const uint8_t *l3;
	uint32_t l3_len; /* to the end of the frame, with any padding */
	uint32_t flags;  /* flags of struct pkt */
	uint16_t type;   /* EtherType */
};

bool frame_split(
	const struct net_conf *conf, const struct pkt *pkt, struct rx_frame *frame);
bool mac_is_station(const uint8_t mac[6]);
/* Returns whether mac can belong to another station than this port, so that a neighbour
 * may claim it. */
bool mac_is_other(const struct net_conf *conf, const uint8_t mac[6]);
/* Writes the Ethernet header, with a VLAN tag if configured, and sets pkt->len. Returns
 * the place of the l3_len bytes behind it, NULL if they do not fit. */
uint8_t *frame_begin_l2(const struct net_conf *conf, struct pkt *pkt,
	const uint8_t dst_mac[6], uint16_t type, uint32_t l3_len);
/* As frame_begin_l2(), and writes the IPv6 header of an ICMPv6 message of len bytes. */
uint8_t *frame_begin_icmp6(const struct net_conf *conf, struct pkt *pkt,
	const uint8_t dst_mac[6], const uint8_t src[16], const uint8_t dst[16],
	uint8_t hop_limit, uint32_t len);
/* Fills in the checksum of the message that frame_begin_icmp6() made room for. */
void frame_end_icmp6(uint8_t *msg, uint32_t len);
/* Internet checksum (RFC 1071). sum_add() continues from sum. sum_fold() returns the
 * checksum; it is 0 if the data contain a correct one. */
uint32_t sum_add(uint32_t sum, const void *data, uint32_t len);
uint16_t sum_fold(uint32_t sum);
/* Sum of the pseudo header of an ICMPv6 message. */
uint32_t sum_icmp6(const void *src, const void *dst, uint32_t len);

#endif
