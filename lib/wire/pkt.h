/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* A packet: 24 bytes that describe a buffer of the port, passed by value in arrays. The
 * frame is one segment, from the first byte of the Ethernet header. */
#ifndef ROCADE_WIRE_PKT_H
#define ROCADE_WIRE_PKT_H

#include "base/common.h"

#define PKT_BURST 32

/* pkt.flags */
/* Transmit: the port fills in the IPv4 header checksum (the field is 0). */
#define PKT_TX_IPV4_CKSUM 0x1
/* Receive: the port has checked the IPv4 header checksum. */
#define PKT_RX_IPV4_CKSUM_OK 0x2
#define PKT_RX_IPV4_CKSUM_BAD 0x4
/* Transmit: the sending QPN is in bits 8 to 31; 0 for frames of the port itself. */
#define PKT_TX_QPN_SHIFT 8
#define PKT_TX_QPN(pkt) ((pkt)->flags >> PKT_TX_QPN_SHIFT)
#define PKT_RX_LINEARISED 0x8 /* came in several segments and was copied into one */
/* Receive: a copy of a multicast packet, handed off by the engine that received it. It is
 * not handed off again. */
#define PKT_GROUP_COPY 0x10
/* Receive: the sender can still write the frame. data points to a copy of its headers, the first
 * member of a struct pkt_headers (wire/pkt_parse.h). */
#define PKT_RX_HEADERS 0x20

struct pkt {
	uint8_t *data;
	uint16_t len;  /* bytes of the frame */
	uint16_t room; /* size of the buffer at data */
	uint32_t flags;
	void *owner; /* set by the port: an mbuf, a loop buffer */
};

static_assert(sizeof(struct pkt) == 24, "a packet is passed by value in arrays");

#endif
