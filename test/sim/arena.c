/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <sys/mman.h>

#include "arena.h"

#define ARENA_PLACE UINT64_C(0x200000000000)
#define PATTERN 0xD7
#define GUARD 48
#define GRAIN 64

void
pattern_fill(uint8_t *at, size_t len)
{
	memset(at, PATTERN, len);
}

bool
pattern_is(const uint8_t *at, size_t len)
{
	return len == 0 || (at[0] == PATTERN && memcmp(at, at + 1, len - 1) == 0);
}

void
arena_init(struct arena *a, unsigned number)
{
	if (a->base == NULL) {
		/* Fixed addresses, the same in every run: replayed packets contain
		 * them. */
		a->base = mmap((void *)(ARENA_PLACE + number * 2 * ARENA_BYTES),
			ARENA_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
			-1, 0);
		CHECK(a->base != MAP_FAILED, "no memory at the fixed address");
		a->top = 0;
	}
	a->holes = 1;
	a->hole[0] = (struct hole){0, (uint32_t)ARENA_BYTES};
}

void
arena_check(struct arena *a)
{
	CHECK(a->holes == 1 && a->hole[0].len == ARENA_BYTES,
		"memory was not given back");
	CHECK(pattern_is(a->base, a->top), "memory outside of all buffers was written");
}

bool
arena_get(struct arena *a, uint32_t len, bool aligned, struct buf *out)
{
	uint32_t room = RTE_ALIGN_CEIL(len + 2 * GUARD, GRAIN);

	for (uint32_t i = 0; i < a->holes; i++) {
		struct hole *h = &a->hole[i];
		uint32_t at = h->at;

		if (h->len < room)
			continue;
		h->at += room;
		h->len -= room;
		if (h->len == 0) {
			a->holes--;
			memmove(h, h + 1, (a->holes - i) * sizeof(*h));
		}
		if (at + room > a->top) {
			pattern_fill(a->base + a->top, at + room - a->top);
			a->top = at + room;
		}
		CHECK(pattern_is(a->base + at, room),
			"free memory was written, in %p..%p", (void *)(a->base + at),
			(void *)(a->base + at + room));
		*out = (struct buf){.len = len, .at = at, .room = room};
		out->data = a->base + at + 40 + (aligned ? 0 : draw(9));
		return true;
	}
	return false;
}

static void
hole_free(struct arena *a, uint32_t at, uint32_t len)
{
	uint32_t i = a->holes;

	while (i != 0 && a->hole[i - 1].at > at)
		i--;
	if (i != 0 && a->hole[i - 1].at + a->hole[i - 1].len == at) {
		a->hole[i - 1].len += len;
		if (i < a->holes && at + len == a->hole[i].at) {
			a->hole[i - 1].len += a->hole[i].len;
			a->holes--;
			memmove(&a->hole[i], &a->hole[i + 1],
				(a->holes - i) * sizeof(a->hole[0]));
		}
		return;
	}
	if (i < a->holes && at + len == a->hole[i].at) {
		a->hole[i].at = at;
		a->hole[i].len += len;
		return;
	}
	CHECK(a->holes < ARENA_HOLES, "the arena has too many holes");
	memmove(&a->hole[i + 1], &a->hole[i], (a->holes - i) * sizeof(a->hole[0]));
	a->hole[i] = (struct hole){at, len};
	a->holes++;
}

void
arena_put(struct arena *a, struct buf *buf)
{
	CHECK(pattern_is(a->base + buf->at, buf->room),
		"memory beside the buffer %p of %u bytes was written", (void *)buf->data,
		buf->len);
	hole_free(a, buf->at, buf->room);
	buf->data = NULL;
}

static inline uint64_t
content_word(uint64_t key, uint32_t index)
{
	uint64_t w = ((key << 24) + index) * UINT64_C(0x9E3779B97F4A7C15);

	return w ^ w >> 31;
}

void
content_fill(uint64_t key, uint32_t offset, uint8_t *at, uint32_t len)
{
	for (uint32_t i = 0; i < len;) {
		uint64_t word = content_word(key, (offset + i) / 8);
		uint32_t in = (offset + i) % 8, n = RTE_MIN(8 - in, len - i);

		if (likely(n == 8))
			memcpy(at + i, &word, 8);
		else
			memcpy(at + i, (uint8_t *)&word + in, n);
		i += n;
	}
}

bool
content_is(uint64_t key, uint32_t offset, const uint8_t *at, uint32_t len)
{
	for (uint32_t i = 0; i < len;) {
		uint64_t word = content_word(key, (offset + i) / 8);
		uint32_t in = (offset + i) % 8, n = RTE_MIN(8 - in, len - i);

		if (likely(n == 8)) {
			uint64_t is;

			memcpy(&is, at + i, 8);
			if (is != word)
				return false;
		} else if (memcmp(at + i, (uint8_t *)&word + in, n) != 0) {
			return false;
		}
		i += n;
	}
	return true;
}
