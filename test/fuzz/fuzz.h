/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the fuzz targets: reading the input, and making the fields of a frame
 * consistent. */
#ifndef ROCADE_TEST_FUZZ_H
#define ROCADE_TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts, because libFuzzer then keeps the input. */
#define FUZZ_CHECK(what)                                                                 \
	do {                                                                             \
		if (!(what)) {                                                           \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__,       \
				#what);                                                  \
			abort();                                                         \
		}                                                                        \
	} while (0)

/* The rest of an input. After the end everything reads as 0. */
struct input {
	const uint8_t *at;
	size_t left;
};

static inline uint8_t
take8(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->at++;
}

static inline uint16_t
take16(struct input *in)
{
	uint16_t low = take8(in);

	return (uint16_t)(low | take8(in) << 8);
}

static inline const uint8_t *
take_bytes(struct input *in, size_t *len)
{
	const uint8_t *at = in->at;

	if (*len > in->left)
		*len = in->left;
	in->at += *len;
	in->left -= *len;
	return at;
}

#define FIX_LENGTHS 1   /* IP and UDP lengths, from that of the frame; the UDP port */
#define FIX_CHECKSUMS 2 /* IPv4 header, ICMP and ICMPv6 checksums */
#define FIX_ICRC 4      /* at the place given by the UDP length */

/* Makes the frame's fields consistent, as far as its length allows. */
void frame_fix(uint8_t *frame, size_t len, unsigned what);

#endif
