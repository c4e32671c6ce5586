/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/slab.h"

#define LEAST_PIECES 16

/* The header of a block: one cache line before its pieces. */
struct slab_block {
	/* in the class's partial list, unless all pieces are in use */
	LIST_ENTRY(slab_block) link;
	void *free;     /* list of freed pieces; each begins with a pointer to the next */
	uint32_t len;   /* of a piece */
	uint32_t count; /* pieces of the block */
	uint32_t fresh; /* pieces from this one on have never been given out */
	uint32_t used;
};
static_assert(sizeof(struct slab_block) <= LINE_SIZE, "a line");

static size_t
piece_len(size_t len)
{
	return len == 0 ? LINE_SIZE : RTE_ALIGN_CEIL(len, LINE_SIZE);
}

static uint8_t *
piece_at(struct slab_block *block, uint32_t i)
{
	return (uint8_t *)block + LINE_SIZE + (size_t)i * block->len;
}

static size_t
block_len(uint32_t count, uint32_t len)
{
	return LINE_SIZE + (size_t)count * len;
}

static struct slab_class *
class_of(struct slab *slab, size_t len)
{
	return &slab->classes[len / LINE_SIZE - 1];
}

/* Returns how many blocks begin at or before this address. */
static uint32_t
blocks_before(const struct slab *slab, const void *mem)
{
	uint32_t low = 0, high = slab->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if ((uintptr_t)slab->blocks[middle] <= (uintptr_t)mem)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool
index_grow(struct slab *slab)
{
	uint32_t room = slab->room == 0 ? 16 : 2 * slab->room;
	struct slab_block **blocks;

	if (slab->count < slab->room)
		return true;
	blocks = realloc(slab->blocks, room * sizeof(struct slab_block *));
	if (blocks == NULL)
		return false;
	slab->blocks = blocks;
	slab->room = room;
	return true;
}

static struct slab_block *
block_get(struct slab *slab, struct slab_class *class, uint32_t len)
{
	uint32_t most = RTE_MAX(SLAB_BLOCK_LEN / len, (uint32_t)LEAST_PIECES);
	uint32_t count = RTE_MIN(most, UINT32_C(1) << RTE_MIN(class->count, 16u));
	struct slab_block *block;
	uint32_t at;

	if (!index_grow(slab))
		return NULL;
	block = alloc_get(&slab->from, "slab", block_len(count, len));
	if (block == NULL)
		return NULL;
	block->len = len;
	block->count = count;
	at = blocks_before(slab, block);
	memmove(slab->blocks + at + 1, slab->blocks + at,
		(slab->count - at) * sizeof(struct slab_block *));
	slab->blocks[at] = block;
	slab->count++;
	LIST_INSERT_HEAD(&class->partial, block, link);
	class->count++;
	return block;
}

static void
block_put(struct slab *slab, struct slab_class *class, uint32_t at)
{
	struct slab_block *block = slab->blocks[at];

	LIST_REMOVE(block, link);
	class->count--;
	slab->count--;
	memmove(slab->blocks + at, slab->blocks + at + 1,
		(slab->count - at) * sizeof(struct slab_block *));
	alloc_put(&slab->from, block, block_len(block->count, block->len));
}

static void *
piece_get(struct slab *slab, uint32_t len)
{
	struct slab_class *class = class_of(slab, len);
	struct slab_block *block = LIST_FIRST(&class->partial);
	void *piece;

	if (block == NULL)
		block = block_get(slab, class, len);
	if (block == NULL)
		return NULL;
	piece = block->free;
	if (piece != NULL)
		memcpy(&block->free, piece, sizeof(block->free));
	else
		piece = piece_at(block, block->fresh++);
	if (++block->used == block->count)
		LIST_REMOVE(block, link);
	return piece;
}

static void
piece_put(struct slab *slab, void *piece, uint32_t len)
{
	struct slab_class *class = class_of(slab, len);
	uint32_t at = blocks_before(slab, piece) - 1;
	struct slab_block *block;

	assert(at < slab->count);
	block = slab->blocks[at];
	assert(block->len == len && (uint8_t *)piece < piece_at(block, block->fresh) &&
		((uint8_t *)piece - piece_at(block, 0)) % len == 0);
	if (block->used-- == block->count)
		LIST_INSERT_HEAD(&class->partial, block, link);
	memcpy(piece, &block->free, sizeof(block->free));
	block->free = piece;
	/* The last block with room stays, so that alternating calls do not allocate each
	 * time. */
	if (block->used == 0 &&
		(LIST_FIRST(&class->partial) != block || LIST_NEXT(block, link) != NULL))
		block_put(slab, class, at);
}

static bool
is_piece(const struct slab *slab, size_t len)
{
	return len <= slab->piece_max && slab->piece_max != 0;
}

static void *
slab_get(void *ctx, const char *name, size_t len)
{
	struct slab *slab = ctx;
	size_t bytes = piece_len(len);
	void *piece;

	if (!is_piece(slab, len))
		return alloc_get(&slab->from, name, len);
	pthread_mutex_lock(&slab->lock);
	piece = piece_get(slab, (uint32_t)bytes);
	pthread_mutex_unlock(&slab->lock);
	return piece != NULL ? memset(piece, 0, bytes) : NULL;
}

static void
slab_put(void *ctx, void *mem, size_t len)
{
	struct slab *slab = ctx;

	if (!is_piece(slab, len)) {
		alloc_put(&slab->from, mem, len);
		return;
	}
	pthread_mutex_lock(&slab->lock);
	piece_put(slab, mem, (uint32_t)piece_len(len));
	pthread_mutex_unlock(&slab->lock);
}

void
slab_init(struct slab *slab, const struct alloc *from, size_t piece_max)
{
	assert(piece_max <= SLAB_PIECE_MAX);
	*slab = (struct slab){.from = *from, .piece_max = piece_max};
	pthread_mutex_init(&slab->lock, NULL);
}

void
slab_fini(struct slab *slab)
{
	while (slab->count != 0) {
		struct slab_block *last = slab->blocks[slab->count - 1];

		assert(last->used == 0);
		block_put(slab, class_of(slab, last->len), slab->count - 1);
	}
	free(slab->blocks);
	pthread_mutex_destroy(&slab->lock);
}

struct alloc
slab_alloc(struct slab *slab)
{
	return (struct alloc){.get = slab_get, .put = slab_put, .ctx = slab};
}
