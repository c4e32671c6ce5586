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

struct client_offsets {
	size_t tx_desc, tx_bufs, report, end;
};

static struct client_offsets
client_offsets_of(const struct region_geom *geom)
{
	struct client_offsets o = {.end = 0};

	part_add(&o.end, sizeof(struct region_client));
	o.tx_desc = part_add(&o.end, geom->tx_slots * sizeof(struct ring_desc));
	o.tx_bufs = part_add(&o.end, (size_t)geom->tx_bufs * geom->buf_size);
	o.report = part_add(&o.end, sizeof(struct report));
	return o;
}

struct daemon_offsets {
	size_t rx_desc, rx_bufs, end;
};

static struct daemon_offsets
daemon_offsets_of(const struct region_geom *geom)
{
	struct daemon_offsets o = {.end = 0};

	part_add(&o.end, sizeof(struct region_daemon));
	o.rx_desc = part_add(&o.end, geom->rx_slots * sizeof(struct ring_desc));
	o.rx_bufs = part_add(&o.end, (size_t)geom->rx_slots * geom->buf_size);
	return o;
}

size_t
region_client_size(const struct region_geom *geom)
{
	return client_offsets_of(geom).end;
}

size_t
region_daemon_size(const struct region_geom *geom)
{
	return daemon_offsets_of(geom).end;
}

void
region_init(
	struct region *region, void *client, void *daemon, const struct region_geom *geom)
{
	struct client_offsets c = client_offsets_of(geom);
	struct daemon_offsets d = daemon_offsets_of(geom);

	region->client = client;
	region->tx_desc = (struct ring_desc *)((uint8_t *)client + c.tx_desc);
	region->tx_bufs = (uint8_t *)client + c.tx_bufs;
	region->report = (struct report *)((uint8_t *)client + c.report);
	region->daemon = daemon;
	region->rx_desc = (struct ring_desc *)((uint8_t *)daemon + d.rx_desc);
	region->rx_bufs = (uint8_t *)daemon + d.rx_bufs;
	region->geom = *geom;
}
