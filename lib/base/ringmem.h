/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_ring on memory of our own: the inline operations of rte_ring_elem.h, without the
 * library's rte_ring_create() or rte_ring_init(), so that no DPDK library is linked.
 * Private to a process: the peer's indices are trusted.
 *
 * Elements are copied; their size is a multiple of 4 and the same in every call.
 *
 * Several producers publish one after the other: each waits for the tail with a relaxed load
 * and then stores it with release. That hands on the earlier ones' elements on x86-64 and
 * arm64, whose stores become visible to all at once, but not in the letter of C11, so the
 * thread sanitizer reports such rings. One producer and one consumer are clean.
 */
#ifndef ROCADE_BASE_RINGMEM_H
#define ROCADE_BASE_RINGMEM_H

#include <errno.h>
#include <string.h>

#include "base/common.h"

/* The flavour with C11 atomics on every machine: its barriers are visible to the thread
 * sanitizer, the other one's inline assembly is not. Include this header before others
 * that include rte_ring.h. */
#ifndef RTE_USE_C11_MEM_MODEL
#define RTE_USE_C11_MEM_MODEL 1
#endif
#include <rte_ring.h>
#include <rte_ring_elem.h>

#define RINGMEM_MAX_COUNT (UINT32_C(1) << 30)

/* Slots for count elements: one more than count at least, since rte_ring_count() takes a
 * ring whose every slot is in use for an empty one. */
static inline uint32_t
ringmem_slots(uint32_t count)
{
	uint32_t slots = 2;

	while (slots <= count)
		slots *= 2;
	return slots;
}

/* Bytes for a ring of count elements of esize bytes; 0 if there is no such ring. The
 * memory is aligned to a cache line. */
static inline size_t
ringmem_size(uint32_t count, size_t esize)
{
	if (count == 0 || count > RINGMEM_MAX_COUNT || esize == 0 || esize % 4 != 0 ||
		esize > UINT16_MAX)
		return 0;
	return RTE_ALIGN_CEIL(sizeof(struct rte_ring) + ringmem_slots(count) * esize,
		(size_t)LINE_SIZE);
}

/* An empty ring that holds exactly count elements; mp and mc: several producers, several
 * consumers. Any of the rte_ring_*_elem() calls then does what it says. -EINVAL.
 *
 * Several means RTS (relaxed tail): our threads can be preempted, and in the default mode
 * those behind a preempted one spin through their time slices, in turn, for every element. */
static inline int
ringmem_init(struct rte_ring *r, uint32_t count, bool mp, bool mc)
{
	if (r == NULL || (uintptr_t)r % LINE_SIZE != 0 || count == 0 ||
		count > RINGMEM_MAX_COUNT)
		return -EINVAL;
	memset(r, 0, sizeof(*r));
	r->flags = RING_F_EXACT_SZ;
	r->flags |= mp ? RING_F_MP_RTS_ENQ : RING_F_SP_ENQ;
	r->flags |= mc ? RING_F_MC_RTS_DEQ : RING_F_SC_DEQ;
	r->size = ringmem_slots(count);
	r->mask = r->size - 1;
	r->capacity = count;
	r->prod.sync_type = mp ? RTE_RING_SYNC_MT_RTS : RTE_RING_SYNC_ST;
	r->cons.sync_type = mc ? RTE_RING_SYNC_MT_RTS : RTE_RING_SYNC_ST;
	if (mp)
		rte_ring_set_prod_htd_max(r, count);
	if (mc)
		rte_ring_set_cons_htd_max(r, count);
	return 0;
}

#endif
