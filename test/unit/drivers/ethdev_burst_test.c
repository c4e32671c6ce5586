/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of an ethdev port: net_ring returns the mbufs that were sent, so the test can
 * play the NIC. */
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "case.h"
#include "ethdev_fixture.h"

TEST(sent_frames_are_received_back)
{
	struct port port = ring;
	struct pkt pkts[3 * PKT_BURST];
	void *q = port.queues[0];

	assert_int_equal(port.caps.max_frame, 4202);
	for (uint32_t round = 0; round < 300; round++) {
		uint16_t len = (uint16_t)(60 + round * 97 % (4202 - 60 + 1));

		assert_int_equal(port.ops->tx_alloc(q, pkts, PKT_BURST), PKT_BURST);
		for (unsigned i = 0; i < PKT_BURST; i++) {
			assert_int_equal(pkts[i].len, 0);
			assert_int_equal(pkts[i].flags, 0);
			assert_true(pkts[i].room >= 4202);
			frame_fill(&pkts[i], round + i, len);
		}
		assert_int_equal(port.ops->tx_burst(q, pkts, PKT_BURST), PKT_BURST);
		memset(pkts, 0, sizeof(pkts));
		assert_int_equal(port.ops->rx_burst(q, pkts, PKT_BURST), PKT_BURST);
		for (unsigned i = 0; i < PKT_BURST; i++) {
			assert_true(frame_is(&pkts[i], round + i, len));
			assert_true(pkts[i].room >= pkts[i].len);
		}
		port.ops->rx_release(q, pkts, PKT_BURST);
	}
	assert_int_equal(ethdev_pool_used("net_ring0"), 0);
	/* A TX burst may be longer than PKT_BURST. An RX burst returns at most
	 * PKT_BURST. */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(port.ops->tx_alloc(q, pkts + i * PKT_BURST, PKT_BURST),
			PKT_BURST);
	for (unsigned i = 0; i < RTE_DIM(pkts); i++)
		frame_fill(&pkts[i], i, 60);
	assert_int_equal(port.ops->tx_burst(q, pkts, RTE_DIM(pkts)), RTE_DIM(pkts));
	assert_int_equal(port.ops->rx_burst(q, pkts, RTE_DIM(pkts)), PKT_BURST);
	port.ops->rx_release(q, pkts, PKT_BURST);
	assert_int_equal(port.ops->rx_burst(q, pkts, 64), PKT_BURST);
	assert_int_equal(port.ops->rx_burst(q, pkts + PKT_BURST, 64), PKT_BURST);
	assert_int_equal(port.ops->rx_burst(q, pkts, 1), 0);
	port.ops->rx_release(q, pkts, 2 * PKT_BURST);
	assert_int_equal(ethdev_pool_used("net_ring0"), 0);
}

/* The NIC's end of net_ring. */
static struct rte_mbuf *
nic_take(const char *name)
{
	struct rte_mbuf *m = NULL;

	assert_int_equal(rte_eth_rx_burst(ethdev_port_of(name), 0, &m, 1), 1);
	return m;
}

static void
nic_give(const char *name, struct rte_mbuf *m)
{
	assert_int_equal(rte_eth_tx_burst(ethdev_port_of(name), 0, &m, 1), 1);
}

static struct rte_mbuf *
nic_frame(const char *name, uint16_t len)
{
	char pool[RTE_MEMPOOL_NAMESIZE];
	struct rte_mbuf *m;
	struct pkt pkt;

	snprintf(pool, sizeof(pool), "rocade_%u", ethdev_port_of(name));
	m = rte_pktmbuf_alloc(rte_mempool_lookup(pool));
	assert_non_null(m);
	assert_non_null(rte_pktmbuf_append(m, len));
	pkt.data = rte_pktmbuf_mtod(m, uint8_t *);
	frame_fill(&pkt, 1, len);
	return m;
}

TEST(checksum_verdicts_are_passed_on)
{
	static const struct {
		uint64_t ol_flags;
		uint32_t flags;
	} rows[] = {
		{0, 0},
		{RTE_MBUF_F_RX_IP_CKSUM_GOOD, PKT_RX_IPV4_CKSUM_OK},
		{RTE_MBUF_F_RX_IP_CKSUM_BAD, PKT_RX_IPV4_CKSUM_BAD},
		{RTE_MBUF_F_RX_IP_CKSUM_NONE, PKT_RX_IPV4_CKSUM_OK},
		{RTE_MBUF_F_RX_L4_CKSUM_BAD | RTE_MBUF_F_RX_RSS_HASH, 0},
	};
	struct port *port = &ring;
	struct pkt pkt;

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct rte_mbuf *m = nic_frame("net_ring0", 100);

		m->ol_flags = rows[i].ol_flags;
		nic_give("net_ring0", m);
		assert_int_equal(port->ops->rx_burst(port->queues[0], &pkt, 1), 1);
		assert_int_equal(pkt.flags, rows[i].flags);
		port->ops->rx_release(port->queues[0], &pkt, 1);
	}
	assert_int_equal(ethdev_pool_used("net_ring0"), 0);
}

TEST(checksum_is_left_to_the_nic_when_asked)
{
	struct port *port = &ring;
	void *q = port->queues[0];

	for (unsigned tagged = 0; tagged < 2; tagged++)
		for (unsigned asked = 0; asked < 2; asked++) {
			struct rte_mbuf *m;
			struct pkt pkt;

			assert_int_equal(port->ops->tx_alloc(q, &pkt, 1), 1);
			frame_fill(&pkt, 5, 100);
			if (tagged)
				pkt.data[12] = 0x81;
			pkt.flags = asked ? PKT_TX_IPV4_CKSUM : 0;
			assert_int_equal(port->ops->tx_burst(q, &pkt, 1), 1);
			m = nic_take("net_ring0");
			assert_int_equal(m->pkt_len, 100);
			assert_int_equal(m->data_len, 100);
			assert_int_equal(m->ol_flags,
				asked ? RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM : 0);
			if (asked) {
				assert_int_equal(m->l2_len, tagged ? 18 : 14);
				assert_int_equal(m->l3_len, 20);
			}
			rte_pktmbuf_free(m);
		}
	assert_int_equal(ethdev_pool_used("net_ring0"), 0);
}

/* A chain of segments becomes one frame. A chain that fits no buffer is dropped whole. */
TEST(segment_chains_become_one_frame)
{
	static const uint16_t lens[] = {1000, 1, 700, 2000};
	struct port *port = &ring;
	struct rte_mbuf *head = NULL;
	struct pkt pkt, next = {.data = NULL};
	unsigned total = 0;

	for (size_t i = 0; i < RTE_DIM(lens); i++) {
		struct rte_mbuf *m = nic_frame("net_ring0", lens[i]);

		memset(rte_pktmbuf_mtod(m, void *), (int)i + 1, lens[i]);
		if (head == NULL)
			head = m;
		else
			assert_int_equal(rte_pktmbuf_chain(head, m), 0);
	}
	head->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD;
	nic_give("net_ring0", head);
	assert_int_equal(port->ops->rx_burst(port->queues[0], &pkt, 1), 1);
	assert_int_equal(pkt.flags, PKT_RX_IPV4_CKSUM_OK | PKT_RX_LINEARISED);
	for (size_t i = 0; i < RTE_DIM(lens); i++)
		for (unsigned at = 0; at < lens[i]; at++)
			assert_int_equal(pkt.data[total++], i + 1);
	assert_int_equal(pkt.len, total);
	assert_int_equal(ethdev_pool_used("net_ring0"), 1);
	port->ops->rx_release(port->queues[0], &pkt, 1);

	head = nic_frame("net_ring0", 4000);
	assert_int_equal(rte_pktmbuf_chain(head, nic_frame("net_ring0", 4000)), 0);
	nic_give("net_ring0", head);
	nic_give("net_ring0", nic_frame("net_ring0", 77));
	assert_int_equal(port->ops->rx_burst(port->queues[0], &next, 1), 0);
	assert_int_equal(port->ops->rx_burst(port->queues[0], &next, 1), 1);
	assert_int_equal(next.len, 77);
	port->ops->rx_release(port->queues[0], &next, 1);
	assert_int_equal(ethdev_pool_used("net_ring0"), 0);
}

TEST(stripped_tags_are_put_back)
{
	struct port *port = &ring;
	struct rte_mbuf *m = nic_frame("net_ring0", 100);
	uint8_t before[100];
	struct pkt pkt;

	memcpy(before, rte_pktmbuf_mtod(m, void *), sizeof(before));
	m->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = 0x2064; /* priority 1, VLAN 100 */
	nic_give("net_ring0", m);
	assert_int_equal(port->ops->rx_burst(port->queues[0], &pkt, 1), 1);
	assert_int_equal(pkt.len, 104);
	assert_memory_equal(pkt.data, before, 12);
	assert_int_equal(pkt.data[12] << 8 | pkt.data[13], 0x8100);
	assert_int_equal(pkt.data[14] << 8 | pkt.data[15], 0x2064);
	assert_memory_equal(pkt.data + 16, before + 12, 88);
	port->ops->rx_release(port->queues[0], &pkt, 1);
	assert_int_equal(ethdev_pool_used("net_ring0"), 0);
}

/* A clone shares the buffer of another mbuf, so the port copies it. The copy has a buffer of its own. */
TEST(copies_of_clones_are_no_clones)
{
	struct port *port = &ring;
	struct rte_mbuf *m, *clone;
	struct pkt pkt;

	for (unsigned stripped = 0; stripped < 2; stripped++) {
		m = nic_frame("net_ring0", 100);
		if (stripped == 0)
			assert_int_equal(
				rte_pktmbuf_chain(m, nic_frame("net_ring0", 60)), 0);
		clone = rte_pktmbuf_clone(m, m->pool);
		assert_non_null(clone);
		rte_pktmbuf_free(m);
		if (stripped != 0) {
			clone->ol_flags |=
				RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
			clone->vlan_tci = 0x2064;
		}
		nic_give("net_ring0", clone);
		assert_int_equal(port->ops->rx_burst(port->queues[0], &pkt, 1), 1);
		assert_int_equal(pkt.len, stripped != 0 ? 104 : 160);
		assert_int_equal(ethdev_pool_used("net_ring0"), 1);
		port->ops->rx_release(port->queues[0], &pkt, 1);
		assert_int_equal(ethdev_pool_used("net_ring0"), 0);
	}
}

/* The pool gives its last buffers, then none. */
TEST(pool_runs_dry_and_recovers)
{
	struct port *port = &ring;
	unsigned total = 0, n;
	struct pkt *pkts = calloc(20000, sizeof(*pkts));

	assert_non_null(pkts);
	while ((n = port->ops->tx_alloc(port->queues[0], pkts + total, PKT_BURST - 1)) >
		0) {
		total += n;
		assert_true(total < 20000 - PKT_BURST);
	}
	assert_int_equal(ethdev_pool_used("net_ring0"), total);
	port->ops->tx_release(port->queues[0], pkts, total);
	assert_int_equal(ethdev_pool_used("net_ring0"), 0);
	free(pkts);
}

TEST_GROUP(ethdev_start, NULL)
