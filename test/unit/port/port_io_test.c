/* SPDX-License-Identifier: BSD-3-Clause */
/* Transmission on a queue of a port: frame cache, backlog, the port's own frames. */
#include <errno.h>

#include "port_fixture.h"

#include "port/port_io.h"
#include "../../lib/fake_port.h"

#define STALL_NS (100 * NS_PER_MS)
#define LEN 64 /* of the frames that the tests send */

struct io_fixture {
	struct fake_port port;
	struct fake_queue *queue;
	struct net *net, *peer;
	struct port_stats stats;
	struct port_io io;
	bool link_up;
};

static void
io_open(struct io_fixture *f)
{
	memset(f, 0, sizeof(*f));
	fake_init(&f->port, 1, 1);
	f->queue = &f->port.q[0];
	f->net = net_of(1, 0);
	f->peer = net_of(2, 0);
	f->link_up = true;
	port_io_init(&f->io, &(struct port_queue){f->port.port.ops, f->queue}, f->net,
		&f->stats, &f->link_up, STALL_NS);
}

/* fake_fini() checks that every frame was given back. */
static void
io_close(struct io_fixture *f)
{
	port_io_fini(&f->io);
	f->port.port.ops->close(&f->port);
	fake_fini(&f->port);
	net_destroy(f->net);
	net_destroy(f->peer);
}

static void
frame_fill(struct pkt *frame, uint8_t number)
{
	memset(frame->data, number, LEN);
	frame->len = LEN;
}

/* Fills n frames of the cache with numbers from first on, and sends them. */
static void
cache_send(struct io_fixture *f, unsigned n, uint8_t first, uint64_t now)
{
	assert_true(port_io_cache_fill(&f->io, n) >= n);
	for (unsigned i = 0; i < n; i++)
		frame_fill(&f->io.cache[f->io.cache_first + i], (uint8_t)(first + i));
	port_io_cache_send(&f->io, n, now);
}

static bool
queue_one(struct io_fixture *f, uint8_t number, uint64_t now)
{
	struct pkt frame;

	assert_true(port_io_frame_get(&f->io, &frame));
	assert_int_equal(frame.len, 0);
	assert_int_equal(frame.flags, 0);
	frame_fill(&frame, number);
	frame.flags = PKT_TX_IPV4_CKSUM;
	return port_io_send(&f->io, &frame, now);
}

/* Checks that exactly the frames with these numbers have left, in order. */
static void
expect_sent(struct io_fixture *f, uint8_t first, unsigned n)
{
	struct pkt frame;

	for (unsigned i = 0; i < n; i++) {
		assert_true(fake_sent(&f->port, &frame));
		assert_int_equal(frame.len, LEN);
		assert_int_equal(frame.data[0], (uint8_t)(first + i));
		free(frame.data);
	}
	assert_int_equal(fake_sent_count(&f->port), 0);
}

TEST(refused_frames_leave_first)
{
	struct io_fixture f;

	io_open(&f);
	f.queue->tx_take = 3;
	cache_send(&f, 8, 0, T0);
	expect_sent(&f, 0, 3);
	assert_int_equal(f.io.backlog_count, 5);
	assert_int_equal(f.stats.tx_packets, 3);
	assert_int_equal(f.stats.tx_stalled, 1);
	/* A further frame waits behind them. */
	assert_true(queue_one(&f, 8, T0));
	assert_false(port_io_flush(&f.io, T0 + 1));
	expect_sent(&f, 3, 3);
	assert_int_equal(f.stats.tx_stalled, 2);
	f.queue->tx_take = 1;
	assert_false(port_io_flush(&f.io, T0 + 2));
	expect_sent(&f, 6, 1);
	/* No frame was offered for the first time. */
	assert_int_equal(f.stats.tx_stalled, 2);
	f.queue->tx_take = UINT32_MAX;
	assert_true(port_io_flush(&f.io, T0 + 3));
	expect_sent(&f, 7, 2);
	assert_int_equal(f.stats.tx_packets, 9);
	assert_int_equal(f.stats.tx_bytes, 9 * LEN);
	assert_int_equal(f.stats.tx_given_up, 0);
	io_close(&f);
}

/* The port takes nothing for the limit, counted from the last frame that it took. */
TEST(stalled_backlog_is_dropped)
{
	struct io_fixture f;

	io_open(&f);
	f.queue->tx_take = 0;
	cache_send(&f, 4, 0, T0);
	assert_false(port_io_flush(&f.io, T0 + STALL_NS - 1));
	f.queue->tx_take = 1;
	assert_false(port_io_flush(&f.io, T0 + STALL_NS));
	f.queue->tx_take = 0;
	assert_false(port_io_flush(&f.io, T0 + 2 * STALL_NS - 1));
	assert_int_equal(f.stats.tx_given_up, 0);
	assert_true(port_io_flush(&f.io, T0 + 2 * STALL_NS));
	assert_int_equal(f.stats.tx_given_up, 3);
	/* The next frame has its own time. */
	assert_true(queue_one(&f, 9, T0 + 5 * STALL_NS));
	assert_false(port_io_flush(&f.io, T0 + 6 * STALL_NS - 1));
	assert_int_equal(f.stats.tx_given_up, 3);
	expect_sent(&f, 0, 1);
	io_close(&f);
}

TEST(backlog_is_dropped_without_link)
{
	struct io_fixture f;

	io_open(&f);
	f.queue->tx_take = 0;
	cache_send(&f, 4, 0, T0);
	f.link_up = false;
	assert_true(port_io_flush(&f.io, T0));
	assert_int_equal(f.stats.tx_given_up, 4);
	assert_int_equal(f.stats.tx_packets, 0);
	/* Frames that the port takes are sent all the same. */
	f.queue->tx_take = UINT32_MAX;
	cache_send(&f, 1, 7, T0);
	expect_sent(&f, 7, 1);
	io_close(&f);
}

TEST(full_backlog_refuses_frames)
{
	struct io_fixture f;

	io_open(&f);
	f.queue->tx_take = 0;
	for (unsigned i = 0; i < PORT_IO_BACKLOG; i++)
		assert_true(queue_one(&f, (uint8_t)i, T0));
	assert_int_equal(f.queue->tx_calls, 0);
	assert_false(queue_one(&f, 200, T0));
	assert_int_equal(f.queue->tx_calls, 1);
	/* The frame is empty again when it is taken next: see queue_one(). */
	f.queue->tx_take = 1;
	assert_true(queue_one(&f, PORT_IO_BACKLOG, T0));
	f.queue->tx_take = UINT32_MAX;
	assert_true(port_io_flush(&f.io, T0));
	expect_sent(&f, 0, PORT_IO_BACKLOG + 1);
	io_close(&f);
}

TEST(frames_come_from_the_cache)
{
	struct pkt frames[PKT_BURST + 3], none;
	struct io_fixture f;

	io_open(&f);
	f.port.alloc_left = PKT_BURST + 3;
	for (unsigned i = 0; i < PKT_BURST + 3; i++)
		assert_true(port_io_frame_get(&f.io, &frames[i]));
	assert_int_equal(f.stats.tx_no_buffer, 0);
	assert_false(port_io_frame_get(&f.io, &none));
	assert_int_equal(f.stats.tx_no_buffer, 1);
	/* Frames that do not fit into the cache go back to the port. */
	for (unsigned i = 0; i < PKT_BURST + 3; i++)
		port_io_frame_put(&f.io, &frames[i]);
	assert_int_equal(f.io.cache_count, PKT_BURST);
	assert_int_equal(f.port.live, PKT_BURST);
	/* A refill keeps the frames that are left. */
	cache_send(&f, PKT_BURST - 2, 0, T0);
	assert_int_equal(f.io.cache_count, 2);
	f.port.alloc_left = 5;
	assert_int_equal(port_io_cache_fill(&f.io, PKT_BURST), 7);
	assert_int_equal(f.io.cache_first, 0);
	assert_int_equal(f.port.live, 7);
	expect_sent(&f, 0, PKT_BURST - 2);
	io_close(&f);
}

/* An address resolution in both directions: the request of one port is answered by the
 * other. */
TEST(own_frames_leave_behind_the_backlog)
{
	struct io_fixture f;
	struct pkt frame, reply;
	uint8_t mac[6];

	io_open(&f);
	assert_int_equal(net_resolve(f.net, gid_of("192.0.2.2"), mac, T0), -EAGAIN);
	f.queue->tx_take = 0;
	cache_send(&f, 1, 7, T0);
	port_io_net_tx(&f.io, T0);
	assert_int_equal(f.io.backlog_count, 2);
	port_io_net_tx(&f.io, T0); /* nothing more is due */
	assert_int_equal(f.io.backlog_count, 2);
	f.queue->tx_take = UINT32_MAX;
	assert_true(port_io_flush(&f.io, T0));
	assert_true(fake_sent(&f.port, &frame));
	assert_int_equal(frame.data[0], 7);
	free(frame.data);
	assert_true(fake_sent(&f.port, &frame));
	reply = net_ask(f.peer, &frame, T0);
	free(frame.data);
	assert_non_null(reply.data);
	port_io_net_rx(&f.io, &reply, T0);
	free(reply.data);
	assert_int_equal(f.stats.rx_other, 1);
	assert_int_equal(f.io.backlog_count, 0); /* a reply needs no answer */
	assert_int_equal(net_resolve(f.net, gid_of("192.0.2.2"), mac, T0), 0);
	assert_true(mac_is(mac, 2));
	io_close(&f);
}

TEST(requests_are_answered_while_there_is_room)
{
	struct pkt request = frame_empty(FRAME_ROOM), answer;
	struct io_fixture f;
	uint8_t mac[6];

	io_open(&f);
	assert_int_equal(net_resolve(f.peer, gid_of("192.0.2.1"), mac, T0), -EAGAIN);
	assert_int_equal(net_tx(f.peer, &request, 1, T0), 1);
	/* No frame, and a full backlog. */
	f.port.alloc_left = 0;
	port_io_net_rx(&f.io, &request, T0);
	assert_int_equal(f.stats.tx_no_buffer, 1);
	f.port.alloc_left = 1000;
	f.queue->tx_take = 0;
	for (unsigned i = 0; i < PORT_IO_BACKLOG; i++)
		assert_true(queue_one(&f, 0, T0));
	port_io_net_rx(&f.io, &request, T0);
	assert_int_equal(f.stats.tx_no_buffer, 2);
	f.queue->tx_take = UINT32_MAX;
	assert_true(port_io_flush(&f.io, T0));
	assert_int_equal(f.stats.tx_packets, PORT_IO_BACKLOG);
	/* With room the request is answered. */
	port_io_net_rx(&f.io, &request, T0);
	assert_int_equal(f.stats.rx_other, 3);
	assert_true(port_io_flush(&f.io, T0));
	while (fake_sent(&f.port, &answer)) {
		struct pkt more = net_ask(f.peer, &answer, T0);

		assert_null(more.data);
		free(answer.data);
	}
	assert_int_equal(net_resolve(f.peer, gid_of("192.0.2.1"), mac, T0), 0);
	io_close(&f);
	free(request.data);
}

TEST(link_is_polled_and_announced)
{
	struct io_fixture f;

	io_open(&f);
	assert_true(port_io_link_due(&f.io, T0));
	assert_false(port_io_link_due(&f.io, T0 + PORT_IO_LINK_POLL_NS - 1));
	assert_true(port_io_link_due(&f.io, T0 + PORT_IO_LINK_POLL_NS));
	assert_false(port_link_update(&f.port.port, f.net, &f.link_up));
	f.port.link_down = true;
	assert_true(port_link_update(&f.port.port, f.net, &f.link_up));
	assert_false(f.link_up);
	assert_int_equal(net_deadline(f.net), TIME_NEVER);
	f.port.link_down = false;
	assert_true(port_link_update(&f.port.port, f.net, &f.link_up));
	assert_true(f.link_up);
	assert_int_equal(net_deadline(f.net), 0);
	io_close(&f);
}
