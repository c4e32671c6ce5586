/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that a client shares with the daemon: two rings and their packet buffers.
 * The daemon creates and seals it. All sizes follow from the geometry, of which each side
 * keeps a private copy. The client chooses the buffers of the packets that it sends. A
 * frame that it receives in slot i is in receive buffer i.
 */
#ifndef ROCADE_SWITCH_REGION_H
#define ROCADE_SWITCH_REGION_H

#include "switch/sw_report.h"
#include "switch/ring.h"

#define REGION_MAX_SLOTS 65536
#define REGION_MAX_BUF 16384

struct region_geom {
	uint32_t tx_slots; /* powers of two */
	uint32_t rx_slots;
	uint32_t tx_bufs;  /* at least tx_slots */
	uint32_t buf_size; /* bytes, a multiple of LINE_SIZE */
};

struct region_head {
	struct ring_shared tx; /* client to daemon: packets that the client sends */
	struct ring_shared rx; /* daemon to client */
	uint32_t tx_asleep LINE_ALIGNED; /* the daemon sleeps and must be woken */
	uint32_t rx_asleep LINE_ALIGNED; /* the client sleeps and must be woken */
	/* written by the daemon: counts changes of the device */
	uint32_t changes LINE_ALIGNED;
	uint32_t link_down;
};

struct region {
	struct region_head *head;
	struct ring_desc *tx_desc;
	struct ring_desc *rx_desc;
	uint8_t *tx_bufs;
	uint8_t *rx_bufs;
	struct report *report;
	struct region_geom geom;
};

/* Returns whether the geometry is valid. */
bool region_geom_ok(const struct region_geom *geom);

/* Returns the size of the region in bytes, a multiple of the page size. */
size_t region_size(const struct region_geom *geom);

/* Computes the addresses of all parts. mem: region_size() bytes, page-aligned, all zeros
 * before the first side uses it. */
void region_init(struct region *region, void *mem, const struct region_geom *geom);

static inline uint8_t *
region_tx_buf(const struct region *r, uint32_t buf)
{
	return r->tx_bufs + (size_t)buf * r->geom.buf_size;
}

static inline uint8_t *
region_rx_buf(const struct region *r, uint32_t buf)
{
	return r->rx_bufs + (size_t)buf * r->geom.buf_size;
}

#endif
