/* SPDX-License-Identifier: BSD-3-Clause */
/* Transmission on one queue of a port: frame cache, backlog, the port's own frames. */
#include <string.h>

#include "port/port_io.h"

void
port_io_init(struct port_io *io, const struct port_queue *queue, struct net *net,
	struct port_stats *stats, const bool *link_up, uint64_t stall_ns)
{
	io->queue = *queue;
	io->net = net;
	io->stats = stats;
	io->link_up = link_up;
	io->stall_ns = stall_ns;
}

void
port_io_fini(struct port_io *io)
{
	io->queue.ops->tx_release(io->queue.queue, io->backlog, io->backlog_count);
	io->queue.ops->tx_release(
		io->queue.queue, io->cache + io->cache_first, io->cache_count);
}

void
port_io_frame_put(struct port_io *io, const struct pkt *frame)
{
	struct pkt empty = *frame;

	empty.len = 0;
	empty.flags = 0;
	if (io->cache_first + io->cache_count < PKT_BURST)
		io->cache[io->cache_first + io->cache_count++] = empty;
	else
		io->queue.ops->tx_release(io->queue.queue, &empty, 1);
}

void
port_io_refused(struct port_io *io, const struct pkt *pkts, unsigned n, uint64_t now)
{
	assert(io->backlog_count == 0);
	memcpy(io->backlog, pkts, n * sizeof(pkts[0]));
	io->backlog_count = io->backlog_refused = n;
	io->backlog_ns = now;
	io->full_since_ns = now;
	io->stats->tx_stalled++;
}

/* The port has refused the oldest frame until now. */
static void
full_count(struct port_io *io, uint64_t now)
{
	/* The clock of a post may be behind. */
	if (now <= io->full_since_ns)
		return;
	if (io->backlog_refused != 0)
		io->full_ns += now - io->full_since_ns;
	io->full_since_ns = now;
}

/* A port that is down, or takes nothing for long, may never take anything again. Its
 * frames are lost then, as on any link: QPs retransmit them, and run out of retries in
 * the end. */
static void
port_io_drop(struct port_io *io)
{
	io->stats->tx_given_up += io->backlog_count;
	io->queue.ops->tx_release(io->queue.queue, io->backlog, io->backlog_count);
	io->backlog_count = 0;
}

bool
port_io_backlog_send(struct port_io *io, uint64_t now)
{
	uint32_t count = io->backlog_count;
	unsigned sent = io->queue.ops->tx_burst(io->queue.queue, io->backlog, count);

	full_count(io, now);
	for (unsigned i = 0; i < sent; i++)
		io->stats->tx_bytes += io->backlog[i].len;
	io->stats->tx_packets += sent;
	io->backlog_count -= sent;
	if (likely(io->backlog_count == 0))
		return true;
	memmove(io->backlog, io->backlog + sent,
		io->backlog_count * sizeof(io->backlog[0]));
	if (count > io->backlog_refused) /* some were offered for the first time */
		io->stats->tx_stalled++;
	io->backlog_refused = io->backlog_count;
	if (sent != 0)
		io->backlog_ns = now;
	else if (now - io->backlog_ns >= io->stall_ns ||
		 !__atomic_load_n(io->link_up, __ATOMIC_RELAXED))
		port_io_drop(io);
	return io->backlog_count == 0;
}

bool
port_io_send(struct port_io *io, const struct pkt *frame, uint64_t now)
{
	if (!port_io_has_room(io, now)) {
		port_io_frame_put(io, frame);
		return false;
	}
	port_io_queue(io, frame, now);
	return true;
}

void
port_io_net_send(struct port_io *io, uint64_t now)
{
	struct pkt frame;

	while (port_io_has_room(io, now) && port_io_frame_get(io, &frame)) {
		if (net_tx(io->net, &frame, 1, now) == 0) {
			port_io_frame_put(io, &frame);
			return;
		}
		port_io_queue(io, &frame, now);
	}
}

void
port_io_net_rx(struct port_io *io, const struct pkt *frame, uint64_t now)
{
	enum drop_reason why;
	struct pkt reply;

	io->stats->rx_other++;
	/* The backlog is full, and a reply is not worth waiting for. */
	if (io->backlog_count == PORT_IO_BACKLOG) {
		io->stats->tx_no_buffer++;
		return;
	}
	if (!port_io_frame_get(io, &reply))
		return;
	if (net_rx(io->net, frame, &reply, &why, now))
		port_io_queue(io, &reply, now);
	else
		port_io_frame_put(io, &reply);
	io->stats->drop[why] += why != DROP_none;
}

bool
port_link_update(const struct port *port, struct net *net, bool *link_up)
{
	bool up = port->ops->link_up(port->drv);

	if (up == *link_up)
		return false;
	__atomic_store_n(link_up, up, __ATOMIC_RELAXED);
	if (up)
		net_announce(net);
	return true;
}
