/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include <rte_byteorder.h>

#include "base/alloc.h"
#include "engine/bells.h"

/* Eight bytes are tested at once. */
typedef uint64_t word __attribute__((may_alias));

int
bells_init(struct bells *bells, uint32_t count)
{
	*bells = (struct bells){
		.count = RTE_ALIGN_CEIL(count, BELLS_GROUP * (uint32_t)sizeof(word))};
	bells->bell = alloc_get(&alloc_plain, "bells", bells->count);
	bells->group = alloc_get(&alloc_plain, "bells", bells->count / BELLS_GROUP);
	if (bells->bell != NULL && bells->group != NULL)
		return 0;
	bells_fini(bells);
	return -ENOMEM;
}

void
bells_fini(struct bells *bells)
{
	alloc_put(&alloc_plain, bells->bell, bells->count);
	alloc_put(&alloc_plain, bells->group, bells->count / BELLS_GROUP);
}

void
bells_hang(struct bells *bells, uint32_t index)
{
	assert(index < bells->count);
	if (index / BELLS_GROUP >= bells->groups)
		__atomic_store_n(
			&bells->groups, index / BELLS_GROUP + 1, __ATOMIC_RELAXED);
}

/* Clears the byte. Pairs with the release of the same byte in bells_ring(): what was
 * published before it is visible from here on, and so is the byte of the level below. */
static void
byte_take(uint8_t *byte)
{
	if (__atomic_load_n(byte, __ATOMIC_RELAXED) != 0)
		__atomic_exchange_n(byte, 0, __ATOMIC_ACQ_REL);
}

/* As byte_take(), for eight bytes: one locked instruction costs as much for eight as for
 * one. Returns the bytes that were set, lowest address first. */
static uint64_t
word_take(uint8_t *bytes)
{
	if (__atomic_load_n((const word *)bytes, __ATOMIC_RELAXED) == 0)
		return 0;
	return rte_le_to_cpu_64(__atomic_exchange_n((word *)bytes, 0, __ATOMIC_ACQ_REL));
}

/* Returns the index of the first byte set in at..end-1, or end or more if there is
 * none. */
static uint32_t
byte_find(const uint8_t *bytes, uint32_t at, uint32_t end)
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
bells_take(struct bells *bells, uint32_t *at, uint32_t indices[BELLS_GROUP])
{
	unsigned n = 0;

	if (*at == 0)
		byte_take(&bells->any);
	while (n == 0) {
		uint32_t group = byte_find(bells->group, *at, bells->groups);
		uint32_t first = group * BELLS_GROUP;

		if (group >= bells->groups)
			return 0;
		*at = group + 1;
		byte_take(&bells->group[group]);
		/* Each index once, even if its doorbell is rung again meanwhile. */
		for (uint32_t i = first; i < first + BELLS_GROUP; i += sizeof(word)) {
			uint64_t set = word_take(&bells->bell[i]);

			for (; set != 0; set &= set - 1)
				indices[n++] = i + (uint32_t)__builtin_ctzll(set) / 8;
		}
	}
	return n;
}
