/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* What pair_tx.c and pair_rx.c share. */
#ifndef ROCADE_SHM_PAIR_SLOTS_H
#define ROCADE_SHM_PAIR_SLOTS_H

#include "shm/shm_pairs.h"

/* Requests a cache line from other cores, to be written soon. */
static inline void
line_prefetch_write(const uint8_t *line)
{
#if defined(__x86_64__)
	/* Without -mprfchw __builtin_prefetch() does not take the line away from the others. Where
	 * the CPU does not have the instruction, it does nothing. */
	__asm__ volatile("prefetchw %0" : : "m"(*line));
#else
	__builtin_prefetch(line, 1);
#endif
}

static inline struct pair_slot *
pair_slot_at(const struct shm_pairs *p, const struct pair_part *part, uint32_t index)
{
	return (struct pair_slot *)(uintptr_t)(part->slots +
					       (index & (p->geom.slots - 1)) *
						       p->slot_size);
}

static inline struct pair_qp *
pair_qp_of(const struct shm_pairs *p, uint32_t qpn)
{
	struct pair_qp *q = &p->qps[qpn & p->mask];

	return likely(q->qpn == qpn) ? q : NULL;
}

#endif
