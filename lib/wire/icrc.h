/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariant CRC (annex A17.3.3): CRC-32 over 8 bytes of ones (for the LRH), the IP
 * and UDP headers, BTH, extended headers, payload and pad, with the fields that routers
 * change taken as ones. The running value is that of ISA-L (complemented between calls,
 * so that it can be passed on as the seed of the next), and starts as 0.
 *
 * Lengths matter: ISA-L takes 17 ns for 12 bytes, but 4 ns for 16. So the transmit side
 * splits the headers behind the UDP ports, where the constant part of a path ends. The
 * rest of the headers, UDP length and checksum and the BTH, is 16 bytes. frame_end() sums
 * it together with all data behind it.
 */
#ifndef ROCADE_WIRE_ICRC_H
#define ROCADE_WIRE_ICRC_H

#include <isa-l/crc.h>

#include "wire/pkt_parse.h"

static inline uint32_t
icrc_update(uint32_t crc, const void *data, size_t len)
{
	return crc32_gzip_refl(crc, (const unsigned char *)data, len);
}

/* The ICRC of a frame that is being built: crc covers everything before from. */
struct icrc_sum {
	const uint8_t *from;
	uint32_t crc;
};

/* Shortest length for which icrc_copy() beats a copy and a CRC; UINT32_MAX: the CPU lacks
 * AVX-512 or VPCLMULQDQ. */
extern uint32_t icrc_copy_min;

/* Copies len bytes and returns their icrc_update(), in one pass: what is summed is what
 * is stored, even if src changes meanwhile. len >= icrc_copy_min. */
uint32_t icrc_copy(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len);

/* As icrc_copy(), into the frame of a sum. The sum returned ends at dst + len. */
struct icrc_sum icrc_sum_copy(
	struct icrc_sum sum, uint8_t *dst, const uint8_t *src, size_t len);

/* The CRC over the ones for the LRH, the IP header at ip, and the UDP ports. Reads, but
 * does not use, the 8 bytes before ip: the end of the Ethernet header. Continue with
 * icrc_update() from the UDP length on, with the UDP checksum and byte 4 of the BTH as
 * ones. */
uint32_t icrc_path(const uint8_t *ip, unsigned ip_version);

/* Returns whether the ICRC in the frame is right. Writes to the frame, and restores it
 * before it returns. */
bool icrc_check(const struct pkt_view *view);

/* As icrc_check(), and copies the payload to dst in the same pass, whether the ICRC is
 * right or not. No pad, and payload_len >= icrc_copy_min. */
bool icrc_check_copy(const struct pkt_view *view, uint8_t *dst);

#endif
