/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariant CRC (annex A17.3.3): CRC-32 over 8 bytes of ones, the IP and UDP headers, BTH,
 * extended headers, payload and pad, with the fields that routers change taken as ones. The
 * running value is ISA-L's (complemented between calls, so it can be seeded with itself).
 */
#ifndef ROCADE_WIRE_ICRC_H
#define ROCADE_WIRE_ICRC_H

#include <isa-l/crc.h>

#include "wire/parse.h"

/* The CRC of the eight bytes of ones that stand for the LRH. */
#define ICRC_SEED 0x2144DF1Cu

static inline uint32_t
icrc_update(uint32_t crc, const void *data, size_t len)
{
	return crc32_gzip_refl(crc, (const unsigned char *)data, len);
}

/* The CRC of the seed, the IP header at ip (version 4 or 6) and the UDP header behind it. */
uint32_t icrc_headers(const uint8_t *ip, unsigned ip_version);

/* Whether the four bytes behind the pad are right for this view. */
bool icrc_check(const struct pkt_view *view);

#endif
