/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariant CRC (annex A17.3.3): CRC-32 over 8 bytes of ones (for the LRH), the IP and UDP
 * headers, BTH, extended headers, payload and pad, with the fields that routers change taken
 * as ones. The running value is ISA-L's (complemented between calls, so it can be seeded with
 * itself), and starts as 0.
 *
 * Sizes matter: ISA-L takes 12 bytes in 17 ns but 16 in 4. So the headers are cut where the
 * constant part of a path ends on the transmit side: behind the UDP ports. What follows, UDP
 * length and checksum and the BTH, is 16 bytes, and frame_end() takes it with all behind it.
 */
#ifndef ROCADE_WIRE_ICRC_H
#define ROCADE_WIRE_ICRC_H

#include <isa-l/crc.h>

#include "wire/parse.h"

static inline uint32_t
icrc_update(uint32_t crc, const void *data, size_t len)
{
	return crc32_gzip_refl(crc, (const unsigned char *)data, len);
}

/* The ICRC of a frame that is being built: crc is of all that stands before from. */
struct icrc_sum {
	const uint8_t *from;
	uint32_t crc;
};

/* From so many bytes on icrc_copy() is the faster way; where the CPU has not what it takes,
 * there is no such number: UINT32_MAX. */
extern uint32_t icrc_copy_min;

/* Copies len bytes, and returns what icrc_update() would say of them, in one pass: what is summed
 * is what is stored, even where src changes meanwhile. len >= icrc_copy_min. */
uint32_t icrc_copy(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len);

/* The same into the frame of a sum, which then ends behind dst + len. */
struct icrc_sum icrc_sum_copy(
	struct icrc_sum sum, uint8_t *dst, const uint8_t *src, size_t len);

/* Over the ones, the IP header at ip and the UDP ports behind it. Reads (and does not use)
 * the 8 bytes before ip: the end of the Ethernet header. What follows is icrc_update()'s, with the UDP
 * checksum and byte 4 of the BTH as ones. */
uint32_t icrc_path(const uint8_t *ip, unsigned ip_version);

/* Whether the four bytes behind the pad are right for this view. Writes to the frame, and puts
 * it right again. */
bool icrc_check(const struct pkt_view *view);

/* In two steps: over all before the extended headers, and then over the len bytes from there to
 * the four. The first writes as above. */
uint32_t icrc_head(const struct pkt_view *view);
bool icrc_check_from(uint32_t crc, const uint8_t *ext, size_t len);

/* The same, and copies the payload to dst in one pass, right or not. No pad, and payload_len >=
 * icrc_copy_min. */
bool icrc_check_copy(const struct pkt_view *view, uint8_t *dst);

#endif
