/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include "base/base_alloc.h"
#include "mem/key_index.h"

uint8_t
key_variant(const struct key_table *t, uint32_t index, uint8_t turn)
{
	return (uint8_t)random_permute(&t->variant_key, index, 8, turn);
}

uint8_t
key_turn(const struct key_table *t, uint32_t key)
{
	return (uint8_t)random_permute_back(&t->variant_key, key >> 8, 8, key & 0xFF);
}

/* Returns the index at a place in the secret order of indices. */
static uint32_t
index_at(const struct key_table *t, uint32_t place)
{
	const unsigned group_bits = KEY_BITS - KEY_GROUP_BITS;
	uint32_t group = random_permute(
		&t->index_key, KEY_MAX, group_bits, place >> KEY_GROUP_BITS);

	place &= (1u << KEY_GROUP_BITS) - 1;
	return group << KEY_GROUP_BITS |
	       random_permute(&t->index_key, group, KEY_GROUP_BITS, place);
}

static bool
chunk_present(struct key_table *t, uint32_t chunk)
{
	void *mem;

	if (t->chunks[chunk] != NULL)
		return true;
	mem = alloc_get(&alloc_plain, "keys", KEY_CHUNK_BYTES);
	/* Pairs with the acquire of the chunk in key_find(). */
	__atomic_store_n(&t->chunks[chunk], mem, __ATOMIC_RELEASE);
	return mem != NULL;
}

/* Returns an index that was never used, or 0 if none is left or its chunk cannot be
 * allocated. */
static uint32_t
index_fresh(struct key_table *t)
{
	uint32_t index = 0;

	while (index == 0) { /* 0 stands at one place of the order: it is left out */
		if (t->fresh == KEY_MAX)
			return 0;
		index = index_at(t, t->fresh);
		if (!chunk_present(t, index >> KEY_CHUNK_BITS))
			return 0;
		t->fresh++;
	}
	return index;
}

static uint32_t
index_reuse(struct key_table *t)
{
	uint32_t index = t->free_head;

	if (index == 0)
		return 0;
	t->free_head = (uint32_t)key_entry_at(t, index)->va;
	if (t->free_head == 0)
		t->free_tail = 0;
	t->free_count--;
	return index;
}

uint32_t
key_index_take(struct key_table *t)
{
	uint32_t index = 0;

	if (t->free_count < KEY_CHUNK)
		index = index_fresh(t);
	if (index == 0)
		index = index_reuse(t);
	return index;
}

void
key_index_release(struct key_table *t, uint32_t index)
{
	key_entry_at(t, index)->va = 0;
	if (t->free_tail != 0)
		key_entry_at(t, t->free_tail)->va = index;
	else
		t->free_head = index;
	t->free_tail = index;
	t->free_count++;
}
