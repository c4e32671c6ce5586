/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <errno.h>

#include "queue/sq.h"

/* The slots, followed by the PSN ranges. */
static size_t
sq_bytes(const struct sq *sq)
{
	return (size_t)sq->max_wr * (sq->ring.stride + sizeof(struct psn_range));
}

/* dest: size of the struct ud_dest that precedes the SGEs; 0: none. */
static uint32_t
sq_stride(uint32_t max_sge, uint32_t max_inline, uint32_t dest)
{
	uint32_t tail = RTE_MAX(max_sge * (uint32_t)sizeof(struct sge), max_inline);

	return RTE_ALIGN_CEIL(
		(uint32_t)offsetof(struct send_wqe, sge) + dest + tail, LINE_SIZE);
}

/* Control path. */

int
sq_init(struct sq *sq, const struct alloc *mem, uint32_t max_wr, uint32_t max_sge,
	uint32_t max_inline, bool ud)
{
	uint32_t dest = ud ? sizeof(struct ud_dest) : 0;
	uint32_t size = max_wr == 0 ? 1 : rte_align32pow2(max_wr);
	uint32_t stride = sq_stride(max_sge, max_inline, dest);
	uint32_t room = stride - dest - offsetof(struct send_wqe, inline_data);

	assert(max_wr <= SQ_MAX_WR && max_sge <= SEND_MAX_SGE &&
		max_inline <= SEND_MAX_INLINE);
	*sq = (struct sq){
		.ring = {.mask = size - 1, .stride = stride},
		.max_wr = size,
		.max_sge = max_sge,
		.max_inline = RTE_MIN(room, (uint32_t)SEND_MAX_INLINE),
		.mem = mem,
	};
	rte_spinlock_init(&sq->lock);
	sq->ring.slots = alloc_get(mem, "sq ring", sq_bytes(sq));
	if (sq->ring.slots == NULL)
		return -ENOMEM;
	sq->psn_ranges = (struct psn_range *)(sq->ring.slots + (size_t)size * stride);
	sq->post = sq->ring;
	return 0;
}

void
sq_fini(struct sq *sq)
{
	alloc_put(sq->mem, sq->read_bits, sizeof(struct read_bits));
	alloc_put(sq->mem, sq->ring.slots, sq_bytes(sq));
	sq->read_bits = NULL;
	sq->psn_ranges = NULL;
	sq->ring.slots = sq->post.slots = NULL;
}

int
sq_allow_reads(struct sq *sq)
{
	if (sq->read_bits == NULL)
		sq->read_bits = alloc_get(sq->mem, "sq reads", sizeof(struct read_bits));
	return sq->read_bits != NULL ? 0 : -ENOMEM;
}

/* Data path. */

void
sq_clear(struct sq *sq)
{
	/* Atomic: a thread may post to a QP in RESET against the man page. The QP's state
	 * refuses it before it writes. */
	__atomic_store_n(&sq->prod, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&sq->freed, 0, __ATOMIC_RELAXED);
	sq->mark_end[0] = sq->mark_end[1] = sq->oldest_end = 0;
}
