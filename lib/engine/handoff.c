/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <errno.h>

#include "engine/engine_wake.h"
#include "engine/pass.h"

/* Control path. */

int
handoff_create(struct engine *e)
{
	for (unsigned i = 0; i < e->dev->port.queue_count; i++) {
		struct rte_ring *ring;

		if (i == e->index)
			continue;
		ring = alloc_get(&alloc_plain, "handoff",
			ringmem_size(HANDOFF_ENTRIES, sizeof(struct pkt)));
		if (ring == NULL)
			return -ENOMEM;
		ringmem_init(ring, HANDOFF_ENTRIES);
		e->handoff[i] = ring;
	}
	return 0;
}

void
handoff_destroy(struct engine *e)
{
	for (unsigned i = 0; i < DEV_MAX_ENGINES; i++) {
		struct pkt pkt;

		if (e->handoff[i] == NULL)
			continue;
		while (rte_ring_sc_dequeue_elem(e->handoff[i], &pkt, sizeof(pkt)) == 0)
			e->io.queue.ops->rx_release(e->io.queue.queue, &pkt, 1);
		alloc_put(&alloc_plain, e->handoff[i],
			ringmem_size(HANDOFF_ENTRIES, sizeof(struct pkt)));
	}
}

/* Data path. */

bool
engine_hand_off(struct engine *e, struct engine *owner, struct pkt *pkt)
{
	if (rte_ring_sp_enqueue_elem(owner->handoff[e->index], pkt, sizeof(*pkt)) != 0) {
		e->stats.drop[DROP_handoff_full]++;
		return false;
	}
	e->stats.rx_handoff++;
	engine_wake_if_asleep(owner);
	return true;
}
