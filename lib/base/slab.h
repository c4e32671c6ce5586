/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small pieces out of larger ones: what a program has thousands of (a QP, its rings) takes no
 * allocator's header each, and lies close together in the memory that it comes from, which is
 * hugepages in a DPDK process. A piece knows nothing of itself: who puts it back says its length,
 * as the allocator interface has it. Control path only, from any thread.
 */
#ifndef ROCADE_BASE_SLAB_H
#define ROCADE_BASE_SLAB_H

#include <pthread.h>
#include <sys/queue.h>

#include "base/alloc.h"

#define SLAB_PIECE_MAX (16u << 10)
#define SLAB_BLOCK_LEN (16u << 10) /* about; a block grows to sixteen pieces at the least */

struct slab_block;
LIST_HEAD(slab_blocks, slab_block);

/* Of one length. Its first blocks have fewer pieces: most programs have one QP. */
struct slab_class {
	struct slab_blocks roomy;
	uint32_t count; /* of its blocks */
};

struct slab {
	struct alloc from;
	size_t piece_max;
	pthread_mutex_t lock;
	struct slab_block **blocks; /* all, by address: whose a piece is */
	uint32_t count, room;
	struct slab_class classes[SLAB_PIECE_MAX / LINE_SIZE];
};

/* Pieces up to piece_max bytes (SLAB_PIECE_MAX at the most) are its own; longer ones, and with 0
 * all, are passed on to from. */
void slab_init(struct slab *slab, const struct alloc *from, size_t piece_max);
/* Every piece has been put back (asserted). */
void slab_fini(struct slab *slab);

/* What it is used by, as long as it is there. */
struct alloc slab_alloc(struct slab *slab);

#endif
