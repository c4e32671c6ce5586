/* SPDX-License-Identifier: BSD-3-Clause */
/* Part of Rocade's programs; no installed library exports these functions. */
/* Writes pcapng (draft-ietf-opsawg-pcapng), the format of Wireshark: little-endian, Ethernet,
 * times in nanoseconds. Errors show in ferror(to). Pointers must be valid, or NULL where a description
 * allows that. */
#ifndef ROCADE_PCAPNG_H
#define ROCADE_PCAPNG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The section header, which comes first. */
void pcapng_begin(FILE *to, const char *program);

/* The next interface; the first one is 0. snap: bytes of a packet, at most; 0: all. */
void pcapng_interface(FILE *to, const char *name, const char *description, uint32_t snap);

struct pcapng_packet {
	uint32_t interface;
	uint64_t wall_ns;
	uint32_t len;  /* of the packet */
	uint32_t kept; /* bytes of it at data */
	const uint8_t *data;
	bool out;            /* sent, not received */
	uint32_t lost;       /* packets lost since the one before */
	const char *comment; /* NULL: none */
};
void pcapng_packet(FILE *to, const struct pcapng_packet *packet);

/* Statistics of an interface: packets that were written, and lost. */
void pcapng_statistics(
	FILE *to, uint32_t interface, uint64_t wall_ns, uint64_t written, uint64_t lost);

#endif
