/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The running CRC of icrc.h, alone and in one pass with a copy of the payload. */
#ifndef ROCADE_WIRE_ICRC_COPY_H
#define ROCADE_WIRE_ICRC_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "wire/crc_choice.h"

static inline uint32_t
icrc_update(uint32_t crc, const void *data, size_t len)
{
	return crc_in_use(crc, (const unsigned char *)data, len);
}

/* The ICRC of a frame that is being built: crc covers everything before from. */
struct icrc_sum {
	const uint8_t *from;
	uint32_t crc;
};

#define ICRC_COPY_MIN 256 /* the shortest length that icrc_copy() takes */

/* Shortest length for which icrc_copy() beats a copy and a CRC, ICRC_COPY_MIN or more;
 * UINT32_MAX: the CPU lacks AVX-512 or VPCLMULQDQ. Callers compare lengths with it. Tests
 * set it to ICRC_COPY_MIN on every CPU. */
extern uint32_t icrc_copy_min;

/* Copies len bytes. Returns the CRC of before.crc, before_len bytes from before.from on, and
 * the bytes stored, even if src changes meanwhile. One pass, or two where the CPU lacks the
 * instructions. It is fastest if before_len is a multiple of 16. */
uint32_t icrc_copy(struct icrc_sum before, size_t before_len, uint8_t *dst,
	const uint8_t *src, size_t len);

/* As icrc_copy(), into the frame of a sum. The sum returned ends at dst + len. */
struct icrc_sum icrc_sum_copy(
	struct icrc_sum sum, uint8_t *dst, const uint8_t *src, size_t len);

#endif
