/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet: 24 bytes held by value in an array on the stack, over whatever buffer the port
 * hands out. One segment, from the first byte of the Ethernet header.
 */
#ifndef ROCADE_WIRE_PKT_H
#define ROCADE_WIRE_PKT_H

#include "base/common.h"

#define PKT_BURST 32

/* pkt.flags */
#define PKT_TX_IPV4_CKSUM 0x1 /* the port fills the IPv4 header checksum in (field is 0) */
#define PKT_RX_IPV4_CKSUM_OK 0x2 /* the port has checked the IPv4 header checksum: right */
#define PKT_RX_IPV4_CKSUM_BAD 0x4
/* Above bit 8 of what is sent: the QPN that sends it, 0 for the port's own frames. */
#define PKT_TX_QPN_SHIFT 8
#define PKT_TX_QPN(pkt) ((pkt)->flags >> PKT_TX_QPN_SHIFT)
#define PKT_RX_LINEARISED 0x8 /* came in several segments and was copied into one */
#define PKT_GROUP_COPY 0x10 /* to a group, from the engine that received it: goes no further */

struct pkt {
	uint8_t *data;
	uint16_t len;  /* bytes of the frame */
	uint16_t room; /* bytes that fit at data */
	uint32_t flags;
	void *owner; /* the port's: an mbuf, a loop buffer */
};

static_assert(sizeof(struct pkt) == 24, "a packet is passed by value in arrays");

#endif
