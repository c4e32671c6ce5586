/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that a client and the daemon share: two rings and their packet buffers. One
 * part is written by the client and the other one by the daemon, and each side can only
 * read the other's part. An index lies in the part of the side that writes it.
 *
 * The daemon creates both, and each side seals the part that it writes when it has mapped it.
 * The client allocates all pages of both, so that they are charged to the client. All sizes
 * follow from the geometry, of which each side keeps a private copy. The client chooses the
 * buffers of the packets that it sends. A frame that it receives in slot i is in receive
 * buffer i.
 */
#ifndef ROCADE_SWITCH_REGION_H
#define ROCADE_SWITCH_REGION_H

#include "base/asleep.h"
#include "base/slowest.h"
#include "port/impair.h"
#include "switch/sw_report.h"
#include "switch/ring.h"

/* Seals of a part, also of one of a pair (memfd_create(2)). Its size is fixed from the start. When its
 * writer has mapped it, it cannot be mapped for writing again, and no pages can be taken away. The writer
 * adds these seals, and its reader only looks whether they are there: to add one, a process waits while
 * another one is in write(2) to the same memory, which takes as long as that likes. */
#define REGION_SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define REGION_WRITER_SEALS (F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

#define REGION_MAX_SLOTS 65536
#define REGION_MAX_BUF 16384

struct region_geom {
	uint32_t tx_slots; /* powers of two */
	uint32_t rx_slots;
	uint32_t tx_bufs;  /* at least tx_slots */
	uint32_t buf_size; /* bytes, a multiple of LINE_SIZE */
};

/* The parts begin with these. */
struct region_client {
	uint32_t tx_prod LINE_ALIGNED; /* packets that the client sends */
	uint32_t rx_cons LINE_ALIGNED;
	uint32_t
		rx_answered; /* packets to which it has sent the answers, if there are any */
	uint32_t rx_asleep LINE_ALIGNED; /* the client sleeps (base/asleep.h) */
	/* packets that it has taken from its pairs (switch/pair.h), and their bytes */
	uint64_t pair_packets LINE_ALIGNED;
	uint64_t pair_bytes;
	/* packets that it has impaired, because the daemon told it to (struct sw_device) */
	struct impair_stats impaired;
	struct latencies latencies LINE_ALIGNED; /* of its requests */
	struct slowest slowest LINE_ALIGNED;     /* of its requests */
};
static_assert(sizeof(struct region_client) <= 4 * 4096, "four pages");

struct region_daemon {
	uint32_t tx_cons LINE_ALIGNED;
	uint32_t rx_prod LINE_ALIGNED;   /* packets for the client */
	uint32_t tx_asleep LINE_ALIGNED; /* the daemon sleeps */
	/* counts changes of the device */
	uint32_t changes LINE_ALIGNED;
	uint32_t link_down;
	uint32_t report_requested; /* generation of the statistics */
	uint32_t flight_requested; /* generation of the record of a QP */
	uint32_t flight_qpn;       /* the QP, written before the generation */
	uint32_t pair_events; /* counts events of its pairs (switch/proto.h, SW_PAIR) */
	uint32_t
		take_requested; /* how often it was asked to take all packets (SW_TAKEN) */
	uint32_t
		pairs_off; /* it sends nothing by its pairs: a client dumps its packets */
};

struct region {
	struct region_client *client;
	struct ring_desc *tx_desc;
	uint8_t *tx_bufs;
	struct report *report;
	struct region_daemon *daemon;
	struct ring_desc *rx_desc;
	uint8_t *rx_bufs;
	struct region_geom geom;
};

/* Returns whether the geometry is valid. */
bool region_geom_ok(const struct region_geom *geom);

/* Return the sizes of the parts in bytes, multiples of the page size. */
size_t region_client_size(const struct region_geom *geom);
size_t region_daemon_size(const struct region_geom *geom);

/* Computes all addresses. client, daemon: the parts, page-aligned, all zeros before the
 * first side uses them. */
void region_init(struct region *region, void *client, void *daemon,
	const struct region_geom *geom);

/* The ends of the rings. */
static inline void
region_client_rings(const struct region *r, struct ring_prod *tx, struct ring_cons *rx)
{
	ring_prod_init(tx, &r->client->tx_prod, &r->daemon->tx_cons, r->tx_desc,
		r->geom.tx_slots);
	ring_cons_init(rx, &r->daemon->rx_prod, &r->client->rx_cons, r->rx_desc,
		r->geom.rx_slots);
}

static inline void
region_daemon_rings(const struct region *r, struct ring_cons *tx, struct ring_prod *rx)
{
	ring_cons_init(tx, &r->client->tx_prod, &r->daemon->tx_cons, r->tx_desc,
		r->geom.tx_slots);
	ring_prod_init(rx, &r->daemon->rx_prod, &r->client->rx_cons, r->rx_desc,
		r->geom.rx_slots);
}

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
