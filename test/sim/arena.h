/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host's memory. Every byte outside of the buffers in use holds one pattern, including
 * guard bytes before, between and behind the buffers. A stray write is found at the
 * latest when the buffer is given back or the seed ends. Message contents are a function
 * of a key and an offset.
 */
#ifndef ROCADE_SIM_ARENA_H
#define ROCADE_SIM_ARENA_H

#include "sim.h"

#define ARENA_BYTES ((size_t)24 << 20)
#define ARENA_HOLES 4096

struct hole {
	uint32_t at, len;
};

struct arena {
	uint8_t *base;
	uint32_t holes;
	uint32_t top; /* end of the highest byte ever allocated */
	struct hole hole[ARENA_HOLES];
};

struct buf {
	uint8_t *data;
	uint32_t len;
	uint32_t at, room; /* of the whole block, guard bytes included */
};

/* number: index in the process. Each arena has a fixed place in the address space. */
void arena_init(struct arena *a, unsigned number);
/* Checks that everything is free and holds the pattern. */
void arena_check(struct arena *a);

/* Returns false if there is no room. aligned: to 8 bytes, else at any address. */
bool arena_get(struct arena *a, uint32_t len, bool aligned, struct buf *out);
/* Checks that all of the buffer and its guard bytes hold the pattern. */
void arena_put(struct arena *a, struct buf *buf);

void pattern_fill(uint8_t *at, size_t len);
bool pattern_is(const uint8_t *at, size_t len);

/* Bytes [offset, offset + len) of the message with this key. */
void content_fill(uint64_t key, uint32_t offset, uint8_t *at, uint32_t len);
bool content_is(uint64_t key, uint32_t offset, const uint8_t *at, uint32_t len);

#endif
