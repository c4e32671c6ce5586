/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <errno.h>

#include "base/base_alloc.h"
#include "recovery/txmap.h"

#define TXMAPS_BYTES (TXMAPS * sizeof(struct txmap))

/* Control path. */

int
txmaps_init(struct txmaps *maps)
{
	/* Most engines never use this memory. It is zero. */
	maps->touched = 0;
	SLIST_INIT(&maps->free);
	maps->all = alloc_get(&alloc_demand, "txmaps", TXMAPS_BYTES);
	return maps->all != NULL ? 0 : -ENOMEM;
}

void
txmaps_fini(struct txmaps *maps)
{
	struct txmap *map;
	unsigned free = 0;

	if (maps->all == NULL)
		return;
	SLIST_FOREACH (map, &maps->free, link)
		free++;
	assert(free == maps->touched);
	alloc_put(&alloc_demand, maps->all, TXMAPS_BYTES);
}

/* Data path. */

struct txmap *
txmap_get(struct txmaps *maps, uint32_t una_psn, bool reads)
{
	struct txmap *map = SLIST_FIRST(&maps->free);

	if (map != NULL)
		SLIST_REMOVE_HEAD(&maps->free, link);
	else if (maps->touched < TXMAPS)
		map = &maps->all[maps->touched++];
	else
		return NULL;
	/* All but `again`, which is long: number_before makes its entries invalid. */
	map->arrived = map->lost = (struct psn_bits){0};
	map->end = map->vain = una_psn;
	map->reads = reads;
	map->number_before = map->number;
	return map;
}

void
txmap_put(struct txmaps *maps, struct txmap *map)
{
	SLIST_INSERT_HEAD(&maps->free, map, link);
}

static void
end_reach(struct txmap *map, uint32_t psn)
{
	if (psn_diff(psn, map->end) >= 0)
		map->end = psn_add(psn, 1);
}

bool
txmap_set_arrived(struct txmap *map, uint32_t psn)
{
	if (psn_bit(&map->arrived, psn))
		return false;
	psn_bit_set(&map->arrived, psn);
	psn_bits_clear(&map->lost, psn, 1);
	end_reach(map, psn);
	return true;
}

void
txmap_set_lost(struct txmap *map, uint32_t psn)
{
	if (psn_bit(&map->arrived, psn))
		return;
	psn_bit_set(&map->lost, psn);
	end_reach(map, psn);
}

void
txmap_advanced(struct txmap *map, uint32_t before, uint32_t packets)
{
	psn_bits_clear(&map->lost, before, packets);
	psn_bits_clear(&map->arrived, before, packets);
}

void
txmap_sent_again(struct txmap *map, uint32_t psn, uint32_t packets, uint32_t next_psn,
	uint64_t now)
{
	psn_bits_clear(&map->lost, psn, packets);
	map->number++;
	for (uint32_t i = 0; i < packets; i++) {
		uint32_t each = psn_add(psn, i);

		map->again[each % PSN_BITS] = (struct txmap_again){
			.psn = each,
			.next_psn = next_psn,
			.number = map->number,
			.ns = (uint32_t)now,
		};
	}
}

bool
txmap_sent_before(const struct txmap *map, uint32_t a, uint32_t b)
{
	const struct txmap_again *again_a = txmap_again_of(map, a),
				 *again_b = txmap_again_of(map, b);

	if (again_a != NULL && again_b != NULL && again_a->number != again_b->number)
		return (int32_t)(again_a->number - again_b->number) < 0;
	if (again_a != NULL && again_b == NULL)
		return psn_diff(again_a->next_psn, b) <= 0;
	if (again_a == NULL && again_b != NULL)
		return psn_diff(a, again_b->next_psn) < 0;
	return psn_diff(a, b) < 0;
}
