/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/region.h"

#define PAGE 4096

bool
region_geom_ok(const struct region_geom *geom)
{
	return geom->tx_slots >= 2 && geom->tx_slots <= REGION_MAX_SLOTS &&
	       rte_is_power_of_2(geom->tx_slots) && geom->rx_slots >= 2 &&
	       geom->rx_slots <= REGION_MAX_SLOTS && rte_is_power_of_2(geom->rx_slots) &&
	       geom->tx_bufs >= geom->tx_slots && geom->tx_bufs <= 2 * REGION_MAX_SLOTS &&
	       geom->buf_size >= 256 && geom->buf_size <= REGION_MAX_BUF &&
	       geom->buf_size % LINE_SIZE == 0;
}

/* Returns the offset of the next part, and moves end behind it. */
static size_t
part_add(size_t *end, size_t len)
{
	size_t at = *end;

	*end = RTE_ALIGN_CEIL(at + len, (size_t)PAGE);
	return at;
}

struct offsets {
	size_t tx_desc, rx_desc, tx_bufs, rx_bufs, report, end;
};

static struct offsets
offsets_of(const struct region_geom *geom)
{
	struct offsets o = {.end = 0};

	part_add(&o.end, sizeof(struct region_head));
	o.tx_desc = part_add(&o.end, geom->tx_slots * sizeof(struct ring_desc));
	o.rx_desc = part_add(&o.end, geom->rx_slots * sizeof(struct ring_desc));
	o.tx_bufs = part_add(&o.end, (size_t)geom->tx_bufs * geom->buf_size);
	o.rx_bufs = part_add(&o.end, (size_t)geom->rx_slots * geom->buf_size);
	o.report = part_add(&o.end, sizeof(struct report));
	return o;
}

size_t
region_size(const struct region_geom *geom)
{
	return offsets_of(geom).end;
}

void
region_init(struct region *region, void *mem, const struct region_geom *geom)
{
	struct offsets o = offsets_of(geom);
	uint8_t *base = mem;

	region->head = mem;
	region->tx_desc = (struct ring_desc *)(base + o.tx_desc);
	region->rx_desc = (struct ring_desc *)(base + o.rx_desc);
	region->tx_bufs = base + o.tx_bufs;
	region->rx_bufs = base + o.rx_bufs;
	region->report = (struct report *)(base + o.report);
	region->geom = *geom;
}
