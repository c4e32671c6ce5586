/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
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

#include "wire/icrc_copy.h"
#include "wire/pkt_parse.h"

/* The CRC over the ones for the LRH, the IP header at ip, and the UDP ports. Reads, but
 * does not use, the 8 bytes before ip: the end of the Ethernet header. Continue with
 * icrc_update() from the UDP length on, with the UDP checksum and byte 4 of the BTH as
 * ones. */
uint32_t icrc_path(const uint8_t *ip, unsigned ip_version);

/* Returns whether the ICRC in the frame is right. */
bool icrc_check(const struct pkt_view *view);

/* As icrc_check(), and copies the payload to dst in the same pass, whether the ICRC is
 * right or not. No pad, and payload_len >= icrc_copy_min. */
bool icrc_check_copy(const struct pkt_view *view, uint8_t *dst);

#endif
