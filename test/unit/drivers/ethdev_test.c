/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ethdev port over virtual PMDs: net_ring gives back the very mbufs that were sent,
 * so the test can be the NIC; net_memif joins two ports of this process; net_null is
 * bare. No root, no hugepages.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "base/log.h"
#include "ethdev/ethdev.h"

#include <cmocka.h>

static char warning[200];
static struct port ring; /* over net_ring0, open for all tests */

static void
keep_warning(enum log_level level, const char *line, void *arg)
{
	(void)arg;
	if (level <= LOG_LEVEL_WARN)
		snprintf(warning, sizeof(warning), "%s", line);
}

static uint16_t
port_of(const char *name)
{
	uint16_t id = RTE_MAX_ETHPORTS;

	assert_int_equal(rte_eth_dev_get_port_by_name(name, &id), 0);
	return id;
}

static struct port
open_port(const char *name, uint32_t mtu)
{
	struct ethdev_conf conf = {.port_id = port_of(name),
		.queues = 1,
		.rx_desc = 256,
		.tx_desc = 256,
		.mtu = mtu};
	char err[200] = "";
	struct port port = {0};

	if (ethdev_open(&conf, &port, err, sizeof(err)) != 0)
		fail_msg("%s", err);
	return port;
}

/* Buffers in use. */
static unsigned
pool_used(const char *name)
{
	char pool[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *mp;

	snprintf(pool, sizeof(pool), "rocade_%u", port_of(name));
	mp = rte_mempool_lookup(pool);
	return mp != NULL ? rte_mempool_in_use_count(mp) : 0;
}

static void
expect_refusal(struct ethdev_conf conf, int ret, const char *words)
{
	char err[200] = "";
	struct port port = {0};

	assert_int_equal(ethdev_open(&conf, &port, err, sizeof(err)), ret);
	if (strstr(err, words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err, words);
	assert_null(port.ops);
}

static void
impossible_options_are_named(void **state)
{
	uint16_t null = port_of("net_null0");
	struct ethdev_conf good = {.port_id = null, .queues = 1}, conf;
	const struct rte_eth_conf eth = {0};
	char one[64];

	(void)state;
	conf = good;
	conf.port_id = RTE_MAX_ETHPORTS - 1;
	expect_refusal(conf, -ENODEV, "there is no port");
	conf = good;
	conf.queues = 0;
	expect_refusal(conf, -EINVAL, "engines: 0 is not in 1..");
	conf.queues = 5000;
	expect_refusal(conf, -EINVAL, "engines: 5000 is not in 1..");
	conf = good;
	conf.mtu = 575;
	expect_refusal(conf, -EINVAL, "mtu: 575 is not in 576..");
	conf.mtu = 70000;
	expect_refusal(conf, -EINVAL, "mtu: 70000 is not in");
	conf = good;
	conf.rx_desc = 60000; /* more buffers than -m holds */
	conf.tx_desc = 60000;
	expect_refusal(conf, -ENOMEM, "no memory for");
	/* A sentence is cut, not written beyond its room. */
	memset(one, '!', sizeof(one));
	conf = good;
	conf.mtu = 575;
	assert_int_equal(ethdev_open(&conf, &(struct port){0}, one, 8), -EINVAL);
	assert_string_equal(one, "mtu: 57");
	assert_int_equal(one[8], '!');
	/* Somebody else's. */
	assert_int_equal(rte_eth_dev_configure(null, 0, 0, &eth), 0);
	assert_int_equal(rte_eth_dev_start(null), 0);
	expect_refusal(good, -EBUSY, "net_null0 is started already");
	assert_int_equal(rte_eth_dev_stop(null), 0);
}

static void
start_up_on_a_bare_pmd(void **state)
{
	struct ethdev_conf conf = {.port_id = port_of("net_null1"), .queues = 2};
	char err[200] = "";
	struct rte_ether_addr mac;
	struct pkt pkts[PKT_BURST];
	struct port port;

	(void)state;
	assert_int_equal(ethdev_open(&conf, &port, err, sizeof(err)), 0);
	assert_int_equal(port.queue_count, 2);
	assert_ptr_not_equal(port.queues[0], port.queues[1]);
	assert_int_equal(rte_eth_macaddr_get(conf.port_id, &mac), 0);
	assert_memory_equal(port.mac, mac.addr_bytes, 6);
	assert_int_equal(port.caps.max_frame, 1500 + 14 + 4);
	assert_int_equal(port.caps.rx_ring, 1024);
	assert_true(port.ops->link_up(port.drv));
	assert_int_equal(port.ops->wait_fd(port.queues[0]), -1);
	for (unsigned q = 0; q < 2; q++) {
		/* net_null makes frames out of nothing and sends them nowhere. */
		assert_int_equal(
			port.ops->rx_burst(port.queues[q], pkts, PKT_BURST), PKT_BURST);
		port.ops->rx_release(port.queues[q], pkts, PKT_BURST);
		assert_int_equal(
			port.ops->tx_alloc(port.queues[q], pkts, PKT_BURST), PKT_BURST);
		for (unsigned i = 0; i < PKT_BURST; i++)
			pkts[i].len = 60;
		assert_int_equal(
			port.ops->tx_burst(port.queues[q], pkts, PKT_BURST), PKT_BURST);
	}
	assert_int_equal(pool_used("net_null1"), 0);
	port.ops->close(port.drv);
	assert_false(rte_eth_dev_is_valid_port(conf.port_id));
	expect_refusal(conf, -ENODEV, "there is no port");
}

static void
link_is_set_where_it_can_be(void **state)
{
	(void)state;
	assert_true(ring.ops->link_up(ring.drv));
	assert_int_equal(ring.ops->set_link(ring.drv, false), 0);
	assert_false(ring.ops->link_up(ring.drv));
	assert_int_equal(ring.ops->set_link(ring.drv, true), 0);
	assert_true(ring.ops->link_up(ring.drv));
}

/* Where all multicast is received, no list is needed. */
static void
all_multicast_is_received(void **state)
{
	static const uint8_t macs[2][6] = {
		{0x01, 0, 0x5e, 0, 0, 1}, {0x33, 0x33, 0, 0, 0, 1}};
	uint16_t id = port_of("net_ring0");

	(void)state;
	assert_int_equal(rte_eth_allmulticast_get(id), 1);
	ring.ops->set_groups(ring.drv, macs, 2);
	assert_int_equal(rte_eth_allmulticast_get(id), 1);
	ring.ops->set_groups(ring.drv, macs, 1);
	assert_int_equal(rte_eth_allmulticast_get(id), 1);
}

static void
frame_fill(struct pkt *pkt, uint32_t number, uint16_t len)
{
	pkt->len = len;
	for (unsigned i = 0; i < len; i++)
		pkt->data[i] = (uint8_t)(number * 13 + i);
	pkt->data[12] = 0x08; /* EtherType: IPv4 */
	pkt->data[13] = 0x00;
}

static bool
frame_is(const struct pkt *pkt, uint32_t number, uint16_t len)
{
	if (pkt->len != len)
		return false;
	for (unsigned i = 0; i < len; i++)
		if (i != 12 && i != 13 && pkt->data[i] != (uint8_t)(number * 13 + i))
			return false;
	return true;
}

static void
frames_go_round(void **state)
{
	struct port port = ring;
	struct pkt pkts[3 * PKT_BURST];
	void *q = port.queues[0];

	(void)state;
	assert_int_equal(port.caps.max_frame, 4198);
	for (uint32_t round = 0; round < 300; round++) {
		uint16_t len = (uint16_t)(60 + round * 97 % (4198 - 60 + 1));

		assert_int_equal(port.ops->tx_alloc(q, pkts, PKT_BURST), PKT_BURST);
		for (unsigned i = 0; i < PKT_BURST; i++) {
			assert_int_equal(pkts[i].len, 0);
			assert_int_equal(pkts[i].flags, 0);
			assert_true(pkts[i].room >= 4198);
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
	assert_int_equal(pool_used("net_ring0"), 0);
	/* Long lists are taken in pieces; a full port refuses the rest. */
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
	assert_int_equal(pool_used("net_ring0"), 0);
}

/* The test at the NIC's end of net_ring. */
static struct rte_mbuf *
nic_take(const char *name)
{
	struct rte_mbuf *m = NULL;

	assert_int_equal(rte_eth_rx_burst(port_of(name), 0, &m, 1), 1);
	return m;
}

static void
nic_give(const char *name, struct rte_mbuf *m)
{
	assert_int_equal(rte_eth_tx_burst(port_of(name), 0, &m, 1), 1);
}

static struct rte_mbuf *
nic_frame(const char *name, uint16_t len)
{
	char pool[RTE_MEMPOOL_NAMESIZE];
	struct rte_mbuf *m;
	struct pkt pkt;

	snprintf(pool, sizeof(pool), "rocade_%u", port_of(name));
	m = rte_pktmbuf_alloc(rte_mempool_lookup(pool));
	assert_non_null(m);
	assert_non_null(rte_pktmbuf_append(m, len));
	pkt.data = rte_pktmbuf_mtod(m, uint8_t *);
	frame_fill(&pkt, 1, len);
	return m;
}

static void
checksum_verdicts_are_passed_on(void **state)
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

	(void)state;
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct rte_mbuf *m = nic_frame("net_ring0", 100);

		m->ol_flags = rows[i].ol_flags;
		nic_give("net_ring0", m);
		assert_int_equal(port->ops->rx_burst(port->queues[0], &pkt, 1), 1);
		assert_int_equal(pkt.flags, rows[i].flags);
		port->ops->rx_release(port->queues[0], &pkt, 1);
	}
	assert_int_equal(pool_used("net_ring0"), 0);
}

static void
checksum_is_left_to_the_nic_when_asked(void **state)
{
	struct port *port = &ring;
	void *q = port->queues[0];

	(void)state;
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
	assert_int_equal(pool_used("net_ring0"), 0);
}

/* A chain of segments becomes one frame; one that fits nowhere is dropped whole. */
static void
chains_become_one(void **state)
{
	static const uint16_t lens[] = {1000, 1, 700, 2000};
	struct port *port = &ring;
	struct rte_mbuf *head = NULL;
	struct pkt pkt, next = {.data = NULL};
	unsigned total = 0;

	(void)state;
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
	assert_int_equal(pool_used("net_ring0"), 1);
	port->ops->rx_release(port->queues[0], &pkt, 1);

	head = nic_frame("net_ring0", 4000);
	assert_int_equal(rte_pktmbuf_chain(head, nic_frame("net_ring0", 4000)), 0);
	nic_give("net_ring0", head);
	nic_give("net_ring0", nic_frame("net_ring0", 77));
	assert_int_equal(port->ops->rx_burst(port->queues[0], &next, 1), 0);
	assert_int_equal(port->ops->rx_burst(port->queues[0], &next, 1), 1);
	assert_int_equal(next.len, 77);
	port->ops->rx_release(port->queues[0], &next, 1);
	assert_int_equal(pool_used("net_ring0"), 0);
}

static void
stripped_tags_are_put_back(void **state)
{
	struct port *port = &ring;
	struct rte_mbuf *m = nic_frame("net_ring0", 100);
	uint8_t before[100];
	struct pkt pkt;

	(void)state;
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
	assert_int_equal(pool_used("net_ring0"), 0);
}

/* The last buffers are given out too, and then none. */
static void
pool_runs_dry_and_recovers(void **state)
{
	struct port *port = &ring;
	unsigned total = 0, n;
	struct pkt *pkts = calloc(20000, sizeof(*pkts));

	(void)state;
	assert_non_null(pkts);
	while ((n = port->ops->tx_alloc(port->queues[0], pkts + total, PKT_BURST - 1)) >
		0) {
		total += n;
		assert_true(total < 20000 - PKT_BURST);
	}
	assert_int_equal(pool_used("net_ring0"), total);
	port->ops->tx_release(port->queues[0], pkts, total);
	assert_int_equal(pool_used("net_ring0"), 0);
	free(pkts);
}

/* Frames of a 4096-byte path MTU over a PMD that says 1500: a warning, and they arrive.
 */
static void
memif_carries_more_than_it_says(void **state)
{
	struct port a, b;
	struct pkt pkts[PKT_BURST], out;
	unsigned got = 0;

	(void)state;
	warning[0] = '\0';
	a = open_port("net_memif0", 4180);
	assert_non_null(strstr(warning, "going on with 4180"));
	b = open_port("net_memif1", 4180);
	for (unsigned ms = 0;
		ms < 5000 && !(a.ops->link_up(a.drv) && b.ops->link_up(b.drv)); ms++)
		usleep(1000);
	assert_true(a.ops->link_up(a.drv));
	assert_true(b.ops->link_up(b.drv));
	for (uint32_t round = 0; round < 1000; round++) {
		uint16_t len = round % 2 ? 4198 : 60 + round;

		assert_int_equal(a.ops->tx_alloc(a.queues[0], &out, 1), 1);
		frame_fill(&out, round, len);
		/* The receiver's polling is what gives the sender room. */
		for (unsigned tries = 0; tries < 100000 && got == 0; tries++) {
			if (out.owner != NULL &&
				a.ops->tx_burst(a.queues[0], &out, 1) == 1)
				out.owner = NULL;
			got = b.ops->rx_burst(b.queues[0], pkts, PKT_BURST);
		}
		assert_int_equal(got, 1);
		assert_true(frame_is(&pkts[0], round, len));
		b.ops->rx_release(b.queues[0], pkts, got);
		got = 0;
	}
	assert_int_equal(pool_used("net_memif1"), 0);
	a.ops->close(a.drv);
	b.ops->close(b.drv);
}

static size_t
heap_used(void)
{
	struct rte_malloc_socket_stats stats;

	assert_int_equal(rte_malloc_get_socket_stats(0, &stats), 0);
	return stats.heap_allocsz_bytes;
}

static void
rings_come_from_eal_memory(void **state)
{
	struct alloc mem = ethdev_alloc(SOCKET_ID_ANY);
	size_t before = heap_used();
	uint8_t *first = alloc_get(&mem, "first", 100000), *second;

	(void)state;
	assert_non_null(first);
	assert_true(heap_used() >= before + 100000);
	assert_int_equal((uintptr_t)first % LINE_SIZE, 0);
	memset(first, 0xa5, 100000);
	alloc_put(&mem, first, 100000);
	second = alloc_get(&mem, "second", 100000);
	assert_non_null(second);
	for (unsigned i = 0; i < 100000; i++)
		assert_int_equal(second[i], 0);
	alloc_put(&mem, second, 100000);
	assert_int_equal(heap_used(), before);
	assert_null(alloc_get(&mem, "too much", SIZE_MAX / 2));
}

int
main(int argc, char **argv)
{
	char name[64], memif0[192], memif1[192];
	char *args[] = {argv[0], "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry",
		"-m", "128", "-l", "0", "--log-level=error", "--vdev=net_null0",
		"--vdev=net_null1", "--vdev=net_ring0", memif0, memif1};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(impossible_options_are_named),
		cmocka_unit_test(start_up_on_a_bare_pmd),
		cmocka_unit_test(link_is_set_where_it_can_be),
		cmocka_unit_test(all_multicast_is_received),
		cmocka_unit_test(frames_go_round),
		cmocka_unit_test(checksum_verdicts_are_passed_on),
		cmocka_unit_test(checksum_is_left_to_the_nic_when_asked),
		cmocka_unit_test(chains_become_one),
		cmocka_unit_test(stripped_tags_are_put_back),
		cmocka_unit_test(pool_runs_dry_and_recovers),
		cmocka_unit_test(memif_carries_more_than_it_says),
		cmocka_unit_test(rings_come_from_eal_memory),
	};

	(void)argc;
	snprintf(name, sizeof(name), "@rocade-ethdev-test-%d", (int)getpid());
	snprintf(memif0, sizeof(memif0),
		"--vdev=net_memif0,role=server,id=0,bsize=8192,socket-abstract=yes,"
		"socket=%s",
		name);
	snprintf(memif1, sizeof(memif1),
		"--vdev=net_memif1,role=client,id=0,bsize=8192,socket-abstract=yes,"
		"socket=%s",
		name);
	if (rte_eal_init(RTE_DIM(args), args) < 0) {
		fprintf(stderr, "EAL does not start\n");
		return 1;
	}
	log_set_sink(keep_warning, NULL);
	ring = open_port("net_ring0", 4180);
	return cmocka_run_group_tests_name("ethdev", tests, NULL, NULL);
}
