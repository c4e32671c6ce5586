/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host's memory: every byte that nobody may write holds one pattern, in front of,
 * between and behind the buffers too, so that a stray write is found at the latest when
 * the buffer is given back or the seed ends. And what stands in messages: a function of a
 * key and the place.
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
	uint32_t top; /* behind the highest byte ever given out */
	struct hole hole[ARENA_HOLES];
};

struct buf {
	uint8_t *data;
	uint32_t len;
	uint32_t at, room; /* of the whole piece, with what guards it */
};

/* number: which of the process; each has its fixed place in the address space. */
void
arena_init(struct arena *a, unsigned number);
/* Everything is free again and holds the pattern (checked). */
void
arena_check(struct arena *a);

/* False: no room. aligned: to 8 bytes, else anyhow. */
bool
arena_get(struct arena *a, uint32_t len, bool aligned, struct buf *out);
/* All of it holds the pattern again (checked). */
void
arena_put(struct arena *a, struct buf *buf);

void
pattern_fill(uint8_t *at, size_t len);
bool
pattern_is(const uint8_t *at, size_t len);

/* Bytes [offset, offset + len) of the message with this key. */
void
content_fill(uint64_t key, uint32_t offset, uint8_t *at, uint32_t len);
bool
content_is(uint64_t key, uint32_t offset, const uint8_t *at, uint32_t len);

#endif
