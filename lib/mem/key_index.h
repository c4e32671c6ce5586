/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Indices and variants of keys: in which order they are given, and given again. With the table's lock
 * held. */
#ifndef ROCADE_MEM_KEY_INDEX_H
#define ROCADE_MEM_KEY_INDEX_H

#include "mem/key.h"

/* The entry of an index that has been given. */
static inline struct key_entry *
key_entry_at(const struct key_table *t, uint32_t index)
{
	return &t->chunks[index >> KEY_CHUNK_BITS][index & (KEY_CHUNK - 1)];
}

/* Each index has a secret order of the 256 variants, and takes them in turn. */
uint8_t key_variant(const struct key_table *t, uint32_t index, uint8_t turn);
uint8_t key_turn(const struct key_table *t, uint32_t key);

/* Returns 0 if no index is left. */
uint32_t key_index_take(struct key_table *t);
/* To be taken again behind those that are free now. */
void key_index_release(struct key_table *t, uint32_t index);

#endif
