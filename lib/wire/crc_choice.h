/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Which library computes CRC-32: ISA-L or zlib. */
#ifndef ROCADE_WIRE_CRC_CHOICE_H
#define ROCADE_WIRE_CRC_CHOICE_H

#include <stdint.h>

/* The running CRC-32 of more bytes, inverted before and after, as zlib defines it. */
typedef uint32_t crc_fn(uint32_t crc, const unsigned char *data, uint64_t len);

/* Data path: the function in use. It is set when the library is loaded, before other threads
 * run. */
extern crc_fn *crc_in_use __attribute__((visibility("hidden")));

/* Returns the function of the library with this name ("isal", "zlib"), NULL: there is none. */
crc_fn *crc_named(const char *name);

#endif
