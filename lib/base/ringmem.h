/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_ring on memory that the caller allocates, for one producer and one consumer: the
 * inline operations of rte_ring_elem.h, without rte_ring_create() or rte_ring_init(), so
 * that no DPDK library is linked. Private to a process: the indices are trusted.
 *
 * Elements are copied. Their size is a multiple of 4 and the same in every call.
 */
#ifndef ROCADE_BASE_RINGMEM_H
#define ROCADE_BASE_RINGMEM_H

#include <errno.h>
#include <string.h>

#include "base/common.h"

/* The variant with C11 atomics on every machine: ThreadSanitizer sees its barriers, but
 * not those of the other variant's inline assembly. Include this header before others
 * that include rte_ring.h. */
#ifndef RTE_USE_C11_MEM_MODEL
#define RTE_USE_C11_MEM_MODEL 1
#endif
#include <rte_ring.h>
#include <rte_ring_elem.h>

#define RINGMEM_MAX_COUNT (UINT32_C(1) << 30)

/* Slots for count elements: at least one more than count, because rte_ring_count() takes
 * a ring with every slot in use for an empty one. */
static inline uint32_t
ringmem_slots(uint32_t count)
{
	uint32_t slots = 2;

	while (slots <= count)
		slots *= 2;
	return slots;
}

/* Returns the bytes of a ring of count elements of esize bytes, or 0 if they are out of
 * range. The memory must be aligned to RTE_CACHE_LINE_SIZE, as all of alloc_get() is. */
static inline size_t
ringmem_size(uint32_t count, size_t esize)
{
	if (count == 0 || count > RINGMEM_MAX_COUNT || esize == 0 || esize % 4 != 0 ||
		esize > UINT16_MAX)
		return 0;
	return RTE_ALIGN_CEIL(sizeof(struct rte_ring) + ringmem_slots(count) * esize,
		(size_t)RTE_CACHE_LINE_SIZE);
}

/* Makes an empty ring that holds exactly count elements. All rte_ring_*_elem() calls then
 * work. Returns 0 or -EINVAL. */
static inline int
ringmem_init(struct rte_ring *r, uint32_t count)
{
	if (r == NULL || (uintptr_t)r % RTE_CACHE_LINE_SIZE != 0 || count == 0 ||
		count > RINGMEM_MAX_COUNT)
		return -EINVAL;
	memset(r, 0, sizeof(*r));
	r->flags = RING_F_EXACT_SZ | RING_F_SP_ENQ | RING_F_SC_DEQ;
	r->size = ringmem_slots(count);
	r->mask = r->size - 1;
	r->capacity = count;
	r->prod.sync_type = RTE_RING_SYNC_ST;
	r->cons.sync_type = RTE_RING_SYNC_ST;
	return 0;
}

#endif
