/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A slab allocator: small pieces out of larger blocks. Objects of which a program has
 * thousands (a QP, its rings) need no allocator header each, and lie close together in
 * the underlying memory, which is hugepages in a DPDK process. Pieces have no header: the
 * length is passed when they are freed, as struct alloc requires. Control path only, any
 * thread.
 */
#ifndef ROCADE_BASE_SLAB_H
#define ROCADE_BASE_SLAB_H

#include <pthread.h>
#include <sys/queue.h>

#include "base/base_alloc.h"

#define SLAB_PIECE_MAX (16u << 10)
/* length of a full-size block, unless 16 pieces take more */
#define SLAB_BLOCK_LEN (16u << 10)

struct slab_block;
LIST_HEAD(slab_blocks, slab_block);

/* Blocks of pieces of one length. The first block has one piece, and each further one up
 * to twice as many, because most programs have one QP. */
struct slab_class {
	struct slab_blocks partial; /* those with a free piece */
	uint32_t count;             /* all blocks of this class */
};

struct slab {
	struct alloc from;
	size_t piece_max;
	pthread_mutex_t lock;
	/* All blocks, ordered by address, to find the block of a piece: count of them, in
	 * an array of room entries. */
	struct slab_block **blocks;
	uint32_t count, room;
	struct slab_class classes[SLAB_PIECE_MAX / LINE_SIZE];
};

/* Serves pieces up to piece_max bytes (at most SLAB_PIECE_MAX). Longer ones are allocated
 * from the underlying allocator; with 0, all are. */
void slab_init(struct slab *slab, const struct alloc *from, size_t piece_max);
/* Every piece must have been freed (asserted). */
void slab_fini(struct slab *slab);

/* Returns the allocator that uses the slab. Valid until slab_fini(). */
struct alloc slab_alloc(struct slab *slab);

#endif
