/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <errno.h>

#include <rte_byteorder.h>

#include "base/base_alloc.h"
#include "engine/doorbell.h"

/* Eight bytes are tested at once. */
typedef uint64_t word __attribute__((may_alias));

/* Control path. */

int
doorbells_init(struct doorbells *doorbells, uint32_t count)
{
	*doorbells = (struct doorbells){
		.count = RTE_ALIGN_CEIL(count, DOORBELLS_GROUP * (uint32_t)sizeof(word))};
	doorbells->doorbell = alloc_get(&alloc_plain, "doorbells", doorbells->count);
	doorbells->group =
		alloc_get(&alloc_plain, "doorbells", doorbells->count / DOORBELLS_GROUP);
	if (doorbells->doorbell != NULL && doorbells->group != NULL)
		return 0;
	doorbells_fini(doorbells);
	return -ENOMEM;
}

void
doorbells_fini(struct doorbells *doorbells)
{
	alloc_put(&alloc_plain, doorbells->doorbell, doorbells->count);
	alloc_put(&alloc_plain, doorbells->group, doorbells->count / DOORBELLS_GROUP);
}

/* Data path. */

void
doorbells_enable(struct doorbells *doorbells, uint32_t index)
{
	assert(index < doorbells->count);
	if (index / DOORBELLS_GROUP >= doorbells->groups)
		doorbells->groups = index / DOORBELLS_GROUP + 1;
}

/* Clears the byte. Pairs with the release of the same byte in doorbells_ring(): what was
 * published before it is visible from here on, and so is the byte of the level below. */
static void
flag_clear(uint8_t *byte)
{
	if (__atomic_load_n(byte, __ATOMIC_RELAXED) != 0)
		__atomic_exchange_n(byte, 0, __ATOMIC_ACQ_REL);
}

/* As flag_clear(), for eight bytes: one locked instruction costs as much for eight as for
 * one. Returns the bytes that were set, lowest address first. */
static uint64_t
flags_clear(uint8_t *bytes)
{
	if (__atomic_load_n((const word *)bytes, __ATOMIC_RELAXED) == 0)
		return 0;
	return rte_le_to_cpu_64(__atomic_exchange_n((word *)bytes, 0, __ATOMIC_ACQ_REL));
}

/* Returns the index of the first byte set in at..end-1, or end or more if there is
 * none. */
static uint32_t
flag_find(const uint8_t *bytes, uint32_t at, uint32_t end)
{
	while (at < end) {
		if (at % sizeof(word) == 0 && __atomic_load_n((const word *)(bytes + at),
						      __ATOMIC_RELAXED) == 0)
			at += sizeof(word);
		else if (__atomic_load_n(bytes + at, __ATOMIC_RELAXED) == 0)
			at++;
		else
			break;
	}
	return at;
}

unsigned
doorbells_drain(
	struct doorbells *doorbells, uint32_t *at, uint32_t indices[DOORBELLS_GROUP])
{
	unsigned n = 0;

	if (*at == 0)
		flag_clear(&doorbells->any);
	while (n == 0) {
		uint32_t group = flag_find(doorbells->group, *at, doorbells->groups);
		uint32_t first = group * DOORBELLS_GROUP;

		if (group >= doorbells->groups)
			return 0;
		*at = group + 1;
		flag_clear(&doorbells->group[group]);
		/* Each index once, even if its doorbell is rung again meanwhile. */
		for (uint32_t i = first; i < first + DOORBELLS_GROUP; i += sizeof(word)) {
			uint64_t set = flags_clear(&doorbells->doorbell[i]);

			for (; set != 0; set &= set - 1)
				indices[n++] = i + (uint32_t)__builtin_ctzll(set) / 8;
		}
	}
	return n;
}
