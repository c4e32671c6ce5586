/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transmission on one queue of a port, for an engine and for the daemon's port: the tx
 * frame cache, the tx backlog, and the port's own frames (net.h). Used by one thread at a
 * time.
 *
 * Frames are taken from the cache, one by one or as the array that it is, and filled in.
 * port_io_burst() offers them to the port at once; port_io_queue() puts them behind the
 * backlog, which the next port_io_flush() offers.
 */
#ifndef ROCADE_PORT_PORT_IO_H
#define ROCADE_PORT_PORT_IO_H

#include "base/base_stats.h"
#include "port/net.h"
#include "port/port.h"

#define PORT_IO_BACKLOG (4 * PKT_BURST)
#define PORT_IO_LINK_POLL_NS (250 * NS_PER_MS) /* interval of link polls */

struct port_io {
	struct port_queue queue;
	struct net *net;
	struct port_stats *stats;
	/* Read relaxed: a change that is seen late only sends, or drops, a little
	 * longer. */
	const bool *link_up;
	/* When the port has taken no frame for this long, the backlog is dropped. */
	uint64_t stall_ns;
	uint64_t link_poll_ns; /* when the link is polled next */
	uint64_t backlog_ns;   /* when the port last took a frame, or the backlog began */
	uint64_t full_since_ns; /* full_ns counts up to then */
	uint64_t full_ns;       /* for how long the port has refused frames, all in all */
	uint32_t cache_first, cache_count;
	uint32_t backlog_count;
	uint32_t backlog_refused;    /* the port has refused this many of them before */
	struct pkt cache[PKT_BURST]; /* allocated and not used yet */
	struct pkt backlog[PORT_IO_BACKLOG]; /* sent first, oldest first */
};

/* io: zeroed. */
void port_io_init(struct port_io *io, const struct port_queue *queue, struct net *net,
	struct port_stats *stats, const bool *link_up, uint64_t stall_ns);
/* Releases all frames. */
void port_io_fini(struct port_io *io);

/* ---- Tx frame cache ---- */

/* Refills the cache if it holds fewer than want frames. Returns how many it then holds,
 * from cache[cache_first] on, which may be fewer. */
static inline uint32_t
port_io_cache_fill(struct port_io *io, uint32_t want)
{
	if (likely(io->cache_count >= want))
		return io->cache_count;
	__builtin_memmove(io->cache, io->cache + io->cache_first,
		io->cache_count * sizeof(io->cache[0]));
	io->cache_first = 0;
	io->cache_count += io->queue.ops->tx_alloc(io->queue.queue,
		io->cache + io->cache_count, PKT_BURST - io->cache_count);
	return io->cache_count;
}

/* Takes an empty frame. Returns false, and counts that, if there is none. */
static inline bool
port_io_frame_get(struct port_io *io, struct pkt *frame)
{
	if (unlikely(port_io_cache_fill(io, 1) == 0)) {
		io->stats->tx_no_buffer++;
		return false;
	}
	*frame = io->cache[io->cache_first + --io->cache_count];
	return true;
}

/* Gives back a frame that is not sent. */
void port_io_frame_put(struct port_io *io, const struct pkt *frame);

/* ---- Sending ---- */

/* For the inline functions: keeps frames that the port refused, with no backlog. */
void port_io_refused(
	struct port_io *io, const struct pkt *pkts, unsigned n, uint64_t now);
bool port_io_backlog_send(struct port_io *io, uint64_t now);

/* Offers the backlog to the port. Returns whether nothing is left of it. */
static inline bool
port_io_flush(struct port_io *io, uint64_t now)
{
	return likely(io->backlog_count == 0) || port_io_backlog_send(io, now);
}

/* Sends the first n frames of the cache, which are filled. Frames that the port
 * refuses become the backlog, which must be empty. */
static inline void
port_io_cache_send(struct port_io *io, unsigned n, uint64_t now)
{
	struct pkt *pkts = io->cache + io->cache_first;
	unsigned sent = io->queue.ops->tx_burst(io->queue.queue, pkts, n);
	uint64_t bytes = 0;

	for (unsigned i = 0; i < sent; i++)
		bytes += pkts[i].len;
	io->stats->tx_packets += sent;
	io->stats->tx_bytes += bytes;
	if (unlikely(sent != n))
		port_io_refused(io, pkts + sent, n - sent, now);
	io->cache_first += n;
	io->cache_count -= n;
}

/* Returns whether the backlog has room for a frame. Offers it to the port first if it is
 * full. */
static inline bool
port_io_has_room(struct port_io *io, uint64_t now)
{
	if (unlikely(io->backlog_count == PORT_IO_BACKLOG))
		(void)port_io_backlog_send(io, now);
	return io->backlog_count < PORT_IO_BACKLOG;
}

/* Puts a frame behind the backlog, which has room. */
static inline void
port_io_queue(struct port_io *io, const struct pkt *frame, uint64_t now)
{
	if (io->backlog_count == 0) {
		io->backlog_ns = now;
		io->backlog_refused = 0;
	}
	io->backlog[io->backlog_count++] = *frame;
}

/* As port_io_queue(). Returns false if there is no room: the frame is then back in the
 * cache. */
bool port_io_send(struct port_io *io, const struct pkt *frame, uint64_t now);

/* ---- The port's own frames, its link ---- */

void port_io_net_send(struct port_io *io, uint64_t now);

/* Queues the frames that net_tx() has due. */
static inline void
port_io_net_tx(struct port_io *io, uint64_t now)
{
	if (unlikely(net_deadline(io->net) <= now))
		port_io_net_send(io, now);
}

/* Handles a received frame for the port itself (ARP, ND, ICMP, IGMP, MLD). */
void port_io_net_rx(struct port_io *io, const struct pkt *frame, uint64_t now);

/* Returns whether the link is to be polled now, and when next: link_poll_ns. */
static inline bool
port_io_link_due(struct port_io *io, uint64_t now)
{
	if (likely(now < io->link_poll_ns))
		return false;
	io->link_poll_ns = now + PORT_IO_LINK_POLL_NS;
	return true;
}

/* Polls the link. Returns whether *link_up has changed. Announces the port's addresses
 * when the link has come up: hosts on it may be new to it. */
bool port_link_update(const struct port *port, struct net *net, bool *link_up);

#endif
