/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames for the tests of lib/wire, built and checked byte by byte without its code. */
#ifndef ROCADE_TEST_WIRE_FRAME_H
#define ROCADE_TEST_WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/pkt_parse.h"

/* The two test vectors: a SEND_ONLY of 0 bytes over IPv4 to QP 0x13 and one of 5 bytes
 * over IPv6 to QP 0x29, both PSN 0x1000 with AckReq, behind an Ethernet header. */
#define VECTOR4_LEN (14 + 44)
#define VECTOR6_LEN (14 + 72)
extern const uint8_t frame_vector4[VECTOR4_LEN];
extern const uint8_t frame_vector6[VECTOR6_LEN];

/* Offsets in the vectors. */
#define IP_OFF 14
#define UDP4_OFF (IP_OFF + 20)
#define BTH4_OFF (UDP4_OFF + 8)
#define UDP6_OFF (IP_OFF + 40)
#define BTH6_OFF (UDP6_OFF + 8)

void be16_put(uint8_t *at, unsigned value);
unsigned be16_at(const uint8_t *at);
uint64_t be_get(const void *at, size_t len);

/* CRC-32, bit by bit, not complemented. */
uint32_t ref_crc(uint32_t crc, const uint8_t *data, size_t len);

/* The ICRC of the packet whose IP header is at ip, and the offset of its ICRC field. */
uint32_t ref_icrc(const uint8_t *ip, size_t *icrc_off);

/* Sets the IPv4 checksum and the ICRC. */
void frame_seal(uint8_t *frame, size_t ip_off);

/* Calls pkt_parse() for a copy in a buffer of exactly len bytes. The view points into the
 * copy, which the caller frees; copy may be NULL if no view is wanted. */
unsigned parse_exact(const uint8_t *frame, size_t len, uint32_t flags, uint16_t vlan,
	struct pkt_view *view, uint8_t **copy);

#define RAW_FRAME_ROOM 256

/* A frame that a test modifies. */
struct raw_frame {
	uint8_t data[RAW_FRAME_ROOM];
	size_t len;
	size_t ip_off;
};

struct raw_frame raw_frame4(void); /* a copy of the vector */
struct raw_frame raw_frame6(void);
void raw_frame_tag(struct raw_frame *c, unsigned tci);
/* Sets the UDP length of an IPv4 frame, and IP length, frame length, checksum and ICRC to
 * match. */
void raw_frame_udp_len(struct raw_frame *c, unsigned udp_len);
/* Parses as from a port that has verified the IPv4 checksum. */
unsigned raw_frame_parse(const struct raw_frame *c, uint16_t vlan);

#endif
