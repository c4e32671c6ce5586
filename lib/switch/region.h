/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that a client shares with the daemon: two rings and their packet buffers.
 * Made and sealed by the daemon; all sizes follow from the geometry, which each side
 * keeps for itself. The buffers of what a client sends are the client's to choose; a
 * frame that it receives in slot i stands in receive buffer i.
 */
#ifndef ROCADE_SWITCH_REGION_H
#define ROCADE_SWITCH_REGION_H

#include "switch/report.h"
#include "switch/ring.h"

#define REGION_MAX_SLOTS 65536
#define REGION_MAX_BUF 16384

struct region_geom {
	uint32_t tx_slots; /* powers of two */
	uint32_t rx_slots;
	uint32_t tx_bufs;  /* at least tx_slots */
	uint32_t buf_size; /* bytes, whole lines */
};

struct region_head {
	struct ring_shared tx; /* client to daemon */
	struct ring_shared rx;
	uint32_t tx_asleep LINE_ALIGNED; /* the daemon sleeps: wake it */
	uint32_t rx_asleep LINE_ALIGNED; /* the client does */
	uint32_t changes LINE_ALIGNED;   /* the daemon's: moves with the device */
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

/* Whether a geometry is one. */
bool
region_geom_ok(const struct region_geom *geom);

/* Bytes of the region, whole pages. */
size_t
region_size(const struct region_geom *geom);

/* Where everything is in mem, which is region_size() bytes, aligned to a page and, for
 * the first side to look, zeros. */
void
region_init(struct region *region, void *mem, const struct region_geom *geom);

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
