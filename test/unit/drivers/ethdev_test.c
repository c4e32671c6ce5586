/* SPDX-License-Identifier: BSD-3-Clause */
/* The ethdev port over virtual PMDs: its options, its link and groups, its memory. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "await.h"
#include "case.h"
#include "ethdev/ethdev_rss.h"
#include "ethdev/ethdev_offload.h"
#include "ethdev_fixture.h"
#include "mem/mbuf_ops.h"

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

TEST(invalid_options_are_named)
{
	uint16_t null = ethdev_port_of("net_null0");
	struct ethdev_conf good = {.port_id = null, .queues = 1}, conf;
	const struct rte_eth_conf eth = {0};
	char one[64];

	conf = good;
	conf.port_id = RTE_MAX_ETHPORTS - 1;
	expect_refusal(conf, -ENODEV, "there is no port");
	conf = good;
	conf.queues = 0;
	expect_refusal(conf, -EINVAL, "engines: 0 is not in 1..");
	conf.queues = 5000;
	expect_refusal(conf, -EINVAL, "engines: 5000 is not in 1..");
	conf.queues = 1;
	conf.numa = 1 + RTE_MAX_NUMA_NODES;
	expect_refusal(conf, -EINVAL, "stands for NUMA node");
	conf = good;
	conf.mtu = 575;
	expect_refusal(conf, -EINVAL, "mtu: 575 is not in 576..");
	conf.mtu = 70000;
	expect_refusal(conf, -EINVAL, "mtu: 70000 is not in");
	conf = good;
	conf.rx_desc = 60000; /* more buffers than -m holds */
	conf.tx_desc = 60000;
	expect_refusal(conf, -ENOMEM, "no memory for");
	/* A message is cut to the size of its buffer. */
	memset(one, '!', sizeof(one));
	conf = good;
	conf.mtu = 575;
	assert_int_equal(ethdev_open(&conf, &(struct port){0}, one, 8), -EINVAL);
	assert_string_equal(one, "mtu: 57");
	assert_int_equal(one[8], '!');
	/* Another user has started the port. */
	assert_int_equal(rte_eth_dev_configure(null, 0, 0, &eth), 0);
	assert_int_equal(rte_eth_dev_start(null), 0);
	expect_refusal(good, -EBUSY, "net_null0 is started already");
	assert_int_equal(rte_eth_dev_stop(null), 0);
}

/* net_null keeps a key, fields and a table, as NICs with RSS do. */
TEST(rss_of_a_port_is_read)
{
	uint16_t id = ethdev_port_of("net_null0");
	const struct rte_eth_conf eth = {.rxmode = {.mq_mode = RTE_ETH_MQ_RX_RSS}};
	struct rte_eth_rss_reta_entry64 table[2] = {
		{.mask = UINT64_MAX}, {.mask = UINT64_MAX}};
	uint8_t key[40];
	struct rte_eth_rss_conf hash = {.rss_key = key,
		.rss_key_len = sizeof(key),
		.rss_hf = RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_IPV6};
	struct rss rss;

	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 7);
	for (unsigned i = 0; i < 128; i++)
		table[i / 64].reta[i % 64] = (uint16_t)(i % 2);
	assert_int_equal(rte_eth_dev_configure(id, 2, 2, &eth), 0);
	assert_int_equal(rte_eth_dev_rss_hash_update(id, &hash), 0);
	assert_int_equal(rte_eth_dev_rss_reta_update(id, table, 128), 0);
	ethdev_rss_read(id, &rss);
	assert_int_equal(rss.key_bytes, sizeof(key));
	assert_memory_equal(rss.key, key, sizeof(key));
	assert_true(rss.ipv4_udp && !rss.ipv6_udp);
	assert_int_equal(rss.table_size, 128);
	for (unsigned i = 0; i < 128; i++)
		assert_int_equal(rss.table[i], i % 2);
	/* net_ring has none. */
	ethdev_rss_read(ethdev_port_of("net_ring0"), &rss);
	assert_int_equal(rss.table_size, 0);
}

TEST(start_up_on_a_bare_pmd)
{
	struct ethdev_conf conf = {
		.port_id = ethdev_port_of("net_null1"), .queues = 2, .numa = 1};
	char err[200] = "";
	struct rte_ether_addr mac;
	struct pkt pkts[PKT_BURST];
	struct port port;

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
		/* net_null receives frames without end, and discards those sent. */
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
	assert_int_equal(ethdev_pool_used("net_null1"), 0);
	port.ops->close(port.drv);
	assert_false(rte_eth_dev_is_valid_port(conf.port_id));
	expect_refusal(conf, -ENODEV, "there is no port");
}

/* The pool of the program: it is checked, used, and left to the program. */
TEST(frames_come_from_a_given_pool)
{
	struct ethdev_conf conf = {.port_id = ethdev_port_of("net_null2"),
		.queues = 1,
		.rx_desc = 256,
		.tx_desc = 256};
	unsigned least = 256 + 256 + 2048;
	struct rte_mempool *small = rte_pktmbuf_pool_create("small", 64, 0, 0, 2048, 0);
	struct rte_mempool *few =
		rte_pktmbuf_pool_create("few", least - 1, 0, 0, 2048, 0);
	struct rte_mempool *narrow = rte_pktmbuf_pool_create(
		"narrow", least, 0, 0, RTE_PKTMBUF_HEADROOM + 1517, 0);
	struct rte_mempool *raw =
		rte_mempool_create("raw", 4096, 2048, 0, 0, NULL, NULL, NULL, NULL, 0, 0);
	struct rte_mempool *good = rte_pktmbuf_pool_create(
		"good", least, 0, 0, RTE_PKTMBUF_HEADROOM + 1518, 0);
	char err[200] = "";
	struct pkt pkts[PKT_BURST];
	struct port port;

	assert_true(small != NULL && few != NULL && narrow != NULL && raw != NULL &&
		    good != NULL);
	conf.pool = small;
	expect_refusal(conf, -EINVAL, "small has 64 buffers");
	conf.pool = few;
	expect_refusal(conf, -EINVAL, "need 2560");
	conf.pool = narrow;
	expect_refusal(conf, -EINVAL, "narrow has buffers of 1645 bytes");
	conf.pool = raw;
	expect_refusal(conf, -EINVAL, "raw is not one of rte_pktmbuf_pool_create()");
	conf.pool = good;
	assert_int_equal(ethdev_open(&conf, &port, err, sizeof(err)), 0);
	/* Only its buffers are given away, and not those of a pool of Rocade. */
	assert_non_null(port.mbufs);
	assert_ptr_equal(port.tx_pool, good);
	assert_ptr_equal(port.frame_pool, good);
	assert_false(port.mbufs->is_own(good));
	assert_ptr_equal(ring.tx_pool, ring.frame_pool);
	assert_true(port.mbufs->is_own(ring.tx_pool));
	assert_int_equal(port.ops->tx_alloc(port.queues[0], pkts, PKT_BURST), PKT_BURST);
	assert_int_equal(rte_mempool_in_use_count(good), PKT_BURST);
	for (unsigned i = 0; i < PKT_BURST; i++)
		pkts[i].len = 60;
	assert_int_equal(port.ops->tx_burst(port.queues[0], pkts, PKT_BURST), PKT_BURST);
	port.ops->close(port.drv);
	assert_ptr_equal(rte_mempool_lookup("good"), good);
	assert_true(rte_mempool_full(good));
	rte_mempool_free(small);
	rte_mempool_free(few);
	rte_mempool_free(narrow);
	rte_mempool_free(raw);
	rte_mempool_free(good);
}

TEST(link_can_be_set)
{
	assert_true(ring.ops->link_up(ring.drv));
	assert_int_equal(ring.ops->set_link(ring.drv, false), 0);
	assert_false(ring.ops->link_up(ring.drv));
	assert_int_equal(ring.ops->set_link(ring.drv, true), 0);
	assert_true(ring.ops->link_up(ring.drv));
}

/* A device that receives all multicast needs no group list. */
TEST(all_multicast_is_received)
{
	static const uint8_t macs[2][6] = {
		{0x01, 0, 0x5e, 0, 0, 1}, {0x33, 0x33, 0, 0, 0, 1}};
	uint16_t id = ethdev_port_of("net_ring0");

	assert_int_equal(rte_eth_allmulticast_get(id), 1);
	ring.ops->set_groups(ring.drv, macs, 2);
	assert_int_equal(rte_eth_allmulticast_get(id), 1);
	ring.ops->set_groups(ring.drv, macs, 1);
	assert_int_equal(rte_eth_allmulticast_get(id), 1);
}

static int
close_seen(uint16_t port_id, enum rte_eth_event_type event, void *closed, void *ret)
{
	(void)port_id;
	(void)event;
	(void)ret;
	*(int *)closed += rte_thread_is_intr() != 0 ? 1 : 100;
	return 0;
}

/* net_memif must not be closed beside EAL's interrupt thread, which may be in its handler. */
static unsigned
memif_close(struct port *port, const char *name)
{
	uint16_t id = ethdev_port_of(name);
	int closed = 0;

	assert_int_equal(rte_eth_dev_callback_register(
				 id, RTE_ETH_EVENT_DESTROY, close_seen, &closed),
		0);
	port->ops->close(port->drv);
	return (unsigned)closed;
}

/* Frames of path MTU 4096 over a PMD that reports 1500: a warning, and the frames
 * arrive. */
TEST(memif_carries_more_than_its_mtu)
{
	struct port a, b;
	struct pkt pkts[PKT_BURST], out;
	unsigned got = 0;

	warning[0] = '\0';
	a = ethdev_open_port("net_memif0", 4184);
	assert_non_null(strstr(warning, "continuing with 4184"));
	b = ethdev_open_port("net_memif1", 4184);
	await(a.ops->link_up(a.drv) && b.ops->link_up(b.drv));
	for (uint32_t round = 0; round < 1000; round++) {
		uint16_t len = round % 2 ? 4202 : 60 + round;

		assert_int_equal(a.ops->tx_alloc(a.queues[0], &out, 1), 1);
		frame_fill(&out, round, len);
		/* The sender gets room when the receiver polls. */
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
	assert_int_equal(ethdev_pool_used("net_memif1"), 0);
	assert_int_equal(memif_close(&a, "net_memif0"), 1);
	assert_int_equal(memif_close(&b, "net_memif1"), 1);
}

static size_t
heap_used(void)
{
	struct rte_malloc_socket_stats stats;

	assert_int_equal(rte_malloc_get_socket_stats(0, &stats), 0);
	return stats.heap_allocsz_bytes;
}

TEST(rings_come_from_eal_memory)
{
	struct alloc mem = ethdev_alloc(SOCKET_ID_ANY);
	size_t before = heap_used();
	uint8_t *first = alloc_get(&mem, "first", 100000), *second;

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

TEST_GROUP(ethdev_start, NULL)
