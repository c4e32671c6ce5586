/* SPDX-License-Identifier: BSD-3-Clause */
/* A port that Rocade shares with the application: which frames it takes, what becomes of the
 * others, and how frames leave. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "case.h"
#include "shared_fixture.h"

/* Takes all from the engine's side, and checks the numbers of the frames. */
static void
expect_received(const struct port *port, const uint8_t *numbers, unsigned n)
{
	unsigned got = 0;

	for (unsigned pass = 0; pass < 4; pass++) {
		struct pkt pkts[PKT_BURST];
		unsigned some = port->ops->rx_burst(port->queues[0], pkts, PKT_BURST);

		for (unsigned i = 0; i < some; i++) {
			assert_true(got < n);
			assert_int_equal(pkts[i].len, 60);
			assert_int_equal(pkts[i].data[59], numbers[got++]);
		}
		port->ops->rx_release(port->queues[0], pkts, some);
	}
	assert_int_equal(got, n);
}

TEST(input_takes_what_is_rocades)
{
	static const uint8_t taken[] = {0, 2, 3, 5};
	static const uint8_t left[] = {1, 3, 4};
	struct shared_open_conf conf = shared_defaults();
	struct port port = shared_opened(&conf);
	struct rte_mbuf *frames[] = {frame_of(KIND_ROCE, 0), frame_of(KIND_TCP, 1),
		frame_of(KIND_ROCE, 2), frame_of(KIND_ARP_FOR_ALL, 3),
		frame_of(KIND_TCP, 4), frame_of(KIND_ROCE, 5)};

	assert_int_equal(frames_input(queue_of(&port, 0), frames, 6), 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(number_of(frames[i]), left[i]);
		rte_pktmbuf_free(frames[i]);
	}
	expect_received(&port, taken, sizeof(taken));
	assert_int_equal(pool_used(), 0);
	assert_true(input_queued);
	assert_int_equal(frames_input(queue_of(&port, 0), frames, 0), 0);
	/* The engine need not be woken for frames of the application. */
	frames[0] = frame_of(KIND_TCP, 1);
	assert_int_equal(frames_input(queue_of(&port, 0), frames, 1), 1);
	assert_false(input_queued);
	rte_pktmbuf_free(frames[0]);
	port.ops->close(port.drv);
}

/* More than a burst at once, with the others between them. */
TEST(long_input_keeps_the_order)
{
	struct shared_open_conf conf = shared_defaults();
	struct port port = shared_opened(&conf);
	struct rte_mbuf *frames[200];
	uint8_t taken[200];
	unsigned taken_count = 0, left = 0;

	for (unsigned i = 0; i < RTE_DIM(frames); i++) {
		bool roce = i % 3 != 0 && i < 150;

		frames[i] = frame_of(roce ? KIND_ROCE : KIND_TCP, i);
		if (roce)
			taken[taken_count++] = (uint8_t)i;
	}
	assert_int_equal(frames_input(queue_of(&port, 0), frames, RTE_DIM(frames)),
		RTE_DIM(frames) - taken_count);
	for (unsigned i = 0; i < RTE_DIM(frames); i++) {
		if (i % 3 != 0 && i < 150)
			continue;
		assert_int_equal(number_of(frames[left]), i);
		rte_pktmbuf_free(frames[left++]);
	}
	expect_received(&port, taken, taken_count);
	assert_int_equal(pool_used(), 0);
	port.ops->close(port.drv);
}

TEST(frames_that_find_no_room_are_counted)
{
	struct shared_open_conf conf = shared_defaults();
	struct shared_queue *q;
	struct port port;

	conf.input_room = 8;
	port = shared_opened(&conf);
	q = queue_of(&port, 0);
	for (unsigned i = 0; i < 10; i++) {
		struct rte_mbuf *m = frame_of(KIND_ROCE, i);

		assert_int_equal(frames_input(q, &m, 1), 0);
	}
	assert_int_equal(q->input_full, 2);
	assert_int_equal(pool_used(), 8);
	expect_received(&port, (const uint8_t[]){0, 1, 2, 3, 4, 5, 6, 7}, 8);
	/* Frames that wait when the device is closed are freed. */
	for (unsigned i = 0; i < 4; i++) {
		struct rte_mbuf *m = frame_of(KIND_ROCE, i);

		assert_int_equal(frames_input(q, &m, 1), 0);
	}
	port.ops->close(port.drv);
	assert_int_equal(pool_used(), 0);
}

static void
app_sends(uint16_t queue, struct rte_mbuf *m)
{
	assert_int_equal(rte_eth_tx_burst(app_port, queue, &m, 1), 1);
}

/* Frames of the application that arrive at Rocade's queue. */
TEST(exceptions_come_back)
{
	struct shared_open_conf conf = shared_defaults();
	struct rte_mbuf *frames[8];
	struct shared_queue *q;
	struct port port;

	conf.shared.rx_queues = true;
	conf.shared.first_rx_queue = 2;
	port = shared_opened(&conf);
	q = queue_of(&port, 0);
	assert_in_range(port.caps.rx_ring, 1, 1024);
	app_sends(2, frame_of(KIND_TCP, 1));
	app_sends(2, frame_of(KIND_ROCE, 2));
	app_sends(2, frame_of(KIND_ARP_FOR_ALL, 3));
	app_sends(1, frame_of(KIND_ROCE, 4)); /* another queue: the application's */
	expect_received(&port, (const uint8_t[]){2, 3}, 2);
	assert_int_equal(shared_exceptions(q, frames, 1), 1);
	assert_int_equal(number_of(frames[0]), 1);
	assert_int_equal(shared_exceptions(q, frames + 1, 7), 1);
	assert_int_equal(number_of(frames[1]), 3);
	assert_int_equal(shared_exceptions(q, frames + 2, 6), 0);
	assert_int_equal(rte_eth_rx_burst(app_port, 1, frames + 2, 4), 1);
	assert_int_equal(number_of(frames[2]), 4);
	rte_pktmbuf_free_bulk(frames, 3);
	/* The application does not fetch them. */
	for (unsigned i = 0; i < 1030; i++) {
		app_sends(2, frame_of(KIND_TCP, i));
		expect_received(&port, NULL, 0);
	}
	assert_int_equal(q->exceptions_full, 6);
	port.ops->close(port.drv);
	assert_int_equal(pool_used(), 0);
}

/* Neither of the two sources keeps the other one waiting. */
TEST(queue_and_input_take_turns)
{
	struct shared_open_conf conf = shared_defaults();
	unsigned from_queue = 0, from_input = 0;
	struct pkt pkts[PKT_BURST];
	struct port port;

	conf.shared.rx_queues = true;
	port = shared_opened(&conf);
	for (unsigned i = 0; i < 100; i++) {
		struct rte_mbuf *m = frame_of(KIND_ROCE, 1);

		app_sends(0, frame_of(KIND_ROCE, 0));
		assert_int_equal(frames_input(queue_of(&port, 0), &m, 1), 0);
	}
	for (unsigned pass = 0; pass < 2; pass++) {
		unsigned n = port.ops->rx_burst(port.queues[0], pkts, PKT_BURST);

		assert_int_equal(n, PKT_BURST);
		for (unsigned i = 0; i < n; i++) {
			from_queue += pkts[i].data[59] == 0;
			from_input += pkts[i].data[59] == 1;
		}
		port.ops->rx_release(port.queues[0], pkts, n);
	}
	assert_int_equal(from_queue, PKT_BURST);
	assert_int_equal(from_input, PKT_BURST);
	while ((from_queue = port.ops->rx_burst(port.queues[0], pkts, PKT_BURST)) != 0)
		port.ops->rx_release(port.queues[0], pkts, from_queue);
	port.ops->close(port.drv);
	assert_int_equal(pool_used(), 0);
}

TEST(groups_are_for_both_once_joined)
{
	static const uint8_t macs[][6] = {
		{0x33, 0x33, 0, 0, 0, 1}, {0x01, 0x00, 0x5E, 1, 2, 3}};
	struct shared_open_conf conf = shared_defaults();
	struct port port = shared_opened(&conf);
	struct rte_mbuf *m = frame_of(KIND_GROUP, 1);

	assert_int_equal(frames_input(queue_of(&port, 0), &m, 1), 1);
	expect_received(&port, NULL, 0);
	port.ops->set_groups(port.drv, macs, 2);
	assert_int_equal(frames_input(queue_of(&port, 0), &m, 1), 1);
	expect_received(&port, (const uint8_t[]){1}, 1);
	port.ops->set_groups(port.drv, macs, 1);
	assert_int_equal(frames_input(queue_of(&port, 0), &m, 1), 1);
	expect_received(&port, NULL, 0);
	rte_pktmbuf_free(m);
	port.ops->close(port.drv);
}

/* Copies of what other hosts send to all do not displace frames for Rocade. They are freed when
 * the device is closed. */
TEST(copies_leave_room)
{
	struct shared_open_conf conf = shared_defaults();
	struct rte_mbuf *all = frame_of(KIND_ARP_FOR_ALL, 1);
	char name[RTE_MEMPOOL_NAMESIZE];
	struct shared_queue *q;
	struct port port;

	conf.input_room = 64;
	port = shared_opened(&conf);
	q = queue_of(&port, 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(frames_input(q, &all, 1), 1);
	assert_int_equal(q->no_copy, 68);
	for (unsigned i = 0; i < 32; i++) {
		struct rte_mbuf *m = frame_of(KIND_ROCE, i);

		assert_int_equal(frames_input(q, &m, 1), 0);
	}
	assert_int_equal(q->input_full, 0);
	strcpy(name, q->eth.pool->name);
	port.ops->close(port.drv);
	assert_null(rte_mempool_lookup(name));
	rte_pktmbuf_free(all);
	assert_int_equal(pool_used(), 0);
}

/* Headers in a segment of their own, and a tag that the port has stripped. */
TEST(unusual_frames_are_understood)
{
	struct shared_open_conf conf = shared_defaults();
	struct port port = shared_opened(&conf);
	struct shared_queue *q = queue_of(&port, 0);
	struct rte_mbuf *m = frame_of(KIND_ROCE, 7), *tail = frame_of(KIND_ROCE, 7);
	struct pkt pkts[PKT_BURST];

	assert_int_equal(rte_pktmbuf_trim(m, 40), 0);
	assert_non_null(rte_pktmbuf_adj(tail, 20));
	assert_int_equal(rte_pktmbuf_chain(m, tail), 0);
	assert_int_equal(frames_input(q, &m, 1), 0);
	expect_received(&port, (const uint8_t[]){7}, 1);
	m = frame_of(KIND_ROCE, 8);
	m->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = 7;
	assert_int_equal(frames_input(q, &m, 1), 1); /* of another VLAN */
	m->vlan_tci = 0;
	assert_int_equal(frames_input(q, &m, 1), 0);
	assert_int_equal(port.ops->rx_burst(port.queues[0], pkts, PKT_BURST), 1);
	assert_int_equal(pkts[0].len, 64); /* the tag is back */
	port.ops->rx_release(port.queues[0], pkts, 1);
	/* The application keeps a reference: the tag is put into a copy. */
	m = frame_of(KIND_ROCE, 9);
	m->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
	rte_mbuf_refcnt_update(m, 1);
	tail = m;
	assert_int_equal(frames_input(q, &m, 1), 0);
	assert_int_equal(port.ops->rx_burst(port.queues[0], pkts, PKT_BURST), 1);
	assert_int_equal(pkts[0].len, 64);
	assert_int_equal(rte_pktmbuf_pkt_len(tail), 60);
	port.ops->rx_release(port.queues[0], pkts, 1);
	rte_pktmbuf_free(tail);
	m = frame_of(KIND_ROCE, 10);
	m->ol_flags |= RTE_MBUF_F_RX_QINQ_STRIPPED;
	assert_int_equal(frames_input(q, &m, 1), 1);
	rte_pktmbuf_free(m);
	assert_int_equal(pool_used(), 0);
	port.ops->close(port.drv);
}

static struct rte_mbuf *sent[PKT_BURST];
static unsigned sent_count, sent_engine;

static uint16_t
app_tx(void *arg, unsigned engine, struct rte_mbuf **frames, uint16_t n)
{
	assert_ptr_equal(arg, &sent_count);
	sent_engine = engine;
	n = RTE_MIN(n, 3);
	for (uint16_t i = 0; i < n; i++)
		sent[sent_count++] = frames[i];
	return n;
}

TEST(frames_leave_by_queue_or_function)
{
	struct shared_open_conf conf = shared_defaults();
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mbuf *got[8];
	struct pkt pkts[5];
	struct port port;

	conf.queues = 2;
	conf.shared.first_tx_queue = 2;
	port = shared_opened(&conf);
	assert_int_equal(port.ops->tx_alloc(port.queues[1], pkts, 5), 5);
	for (unsigned i = 0; i < 5; i++) {
		pkts[i].len = 60;
		pkts[i].data[59] = (uint8_t)i;
	}
	assert_int_equal(port.ops->tx_burst(port.queues[1], pkts, 5), 5);
	assert_int_equal(rte_eth_rx_burst(app_port, 3, got, 8), 5);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(number_of(got[i]), i);
	rte_pktmbuf_free_bulk(got, 5);
	port.ops->close(port.drv);

	conf.shared.tx = app_tx;
	conf.shared.tx_arg = &sent_count;
	conf.shared.first_tx_queue = 100; /* not used */
	port = shared_opened(&conf);
	assert_false(port.caps.tx_ipv4_cksum);
	assert_int_equal(port.ops->tx_alloc(port.queues[1], pkts, 5), 5);
	for (unsigned i = 0; i < 5; i++)
		pkts[i].len = 60;
	assert_int_equal(port.ops->tx_burst(port.queues[1], pkts, 5), 3);
	assert_int_equal(sent_count, 3);
	assert_int_equal(sent_engine, 1);
	port.ops->tx_release(port.queues[1], pkts + 3, 2);
	/* The application still has frames when the device is closed: their pool stays until
	 * they are back and another device is opened. */
	strcpy(name, queue_of(&port, 0)->eth.pool->name);
	port.ops->close(port.drv);
	assert_non_null(rte_mempool_lookup(name));
	rte_pktmbuf_free_bulk(sent, sent_count);
	sent_count = 0;
	port = shared_opened(&conf);
	assert_null(rte_mempool_lookup(name));
	port.ops->close(port.drv);
}

TEST(addresses_decide)
{
	struct net_conf net = {.addr_count = 1};
	struct shared_open_conf conf = shared_defaults();
	struct port port = shared_opened(&conf);
	struct rte_mbuf *m = frame_of(KIND_ROCE, 9);

	assert_int_equal(gid_parse("192.0.2.2", net.addr[0].gid, NULL), 0);
	port.ops->set_addresses(port.drv, &net);
	assert_int_equal(frames_input(queue_of(&port, 0), &m, 1), 1);
	assert_int_equal(gid_parse("192.0.2.1", net.addr[0].gid, NULL), 0);
	port.ops->set_addresses(port.drv, &net);
	assert_int_equal(frames_input(queue_of(&port, 0), &m, 1), 0);
	expect_received(&port, (const uint8_t[]){9}, 1);
	port.ops->close(port.drv);
}

static void *
addresses_change(void *arg)
{
	struct port *port = arg;
	struct net_conf net = {.addr_count = 2};

	/* 192.0.2.1 is always one of them, and in the same place only half of the time. */
	for (unsigned i = 0; i < 20000; i++) {
		assert_int_equal(gid_parse("192.0.2.1", net.addr[i % 2].gid, NULL), 0);
		assert_int_equal(
			gid_parse("192.0.2.3", net.addr[1 - i % 2].gid, NULL), 0);
		port->ops->set_addresses(port->drv, &net);
	}
	return NULL;
}

TEST(changes_of_addresses_are_seen_as_a_whole)
{
	struct shared_open_conf conf = shared_defaults();
	struct port port = shared_opened(&conf);
	unsigned lost = 0, taken = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, addresses_change, &port), 0);
	while (taken < 20000) {
		struct rte_mbuf *m = frame_of(KIND_ROCE, 1);
		struct pkt pkts[PKT_BURST];
		unsigned n;

		lost += frames_input(queue_of(&port, 0), &m, 1);
		taken++;
		n = port.ops->rx_burst(port.queues[0], pkts, PKT_BURST);
		port.ops->rx_release(port.queues[0], pkts, n);
	}
	pthread_join(thread, NULL);
	assert_int_equal(lost, 0);
	port.ops->close(port.drv);
	assert_int_equal(pool_used(), 0);
}

TEST_GROUP(shared_start, shared_end)
