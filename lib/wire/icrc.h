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

/* Over the ones, the IP header at ip and the UDP ports behind it. Reads (and does not use)
 * the 8 bytes before ip: the end of the Ethernet header. What follows is icrc_update()'s, with the UDP
 * checksum and byte 4 of the BTH as ones. */
uint32_t icrc_path(const uint8_t *ip, unsigned ip_version);

/* Whether the four bytes behind the pad are right for this view. Writes to the frame, and puts
 * it right again. */
bool icrc_check(const struct pkt_view *view);

#endif
