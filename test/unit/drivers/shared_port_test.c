/* SPDX-License-Identifier: BSD-3-Clause */
/* A port that Rocade shares with the application: opening, flow rules, the end. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "case.h"
#include "shared_fixture.h"

static void
expect_refusal(struct shared_open_conf conf, int ret, const char *words)
{
	char err[300] = "";
	struct port port = {0};

	assert_int_equal(shared_open(&conf, &port, err, sizeof(err)), ret);
	if (strstr(err, words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err, words);
	assert_null(port.ops);
}

TEST(invalid_options_are_named)
{
	struct rte_mempool *small = rte_pktmbuf_pool_create("small", 63, 0, 0, 1000, 0);
	struct shared_open_conf conf = shared_defaults();

	conf.shared.first_tx_queue = 4;
	expect_refusal(conf, -EINVAL,
		"first_tx_queue: 4 to 4 are not among the 4 transmit queues of net_ring0");
	conf.shared.first_tx_queue = 3;
	conf.queues = 2;
	expect_refusal(conf, -EINVAL, "first_tx_queue: 3 to 4 are not among");
	conf = shared_defaults();
	conf.shared.rx_queues = true;
	conf.shared.first_rx_queue = 65535;
	expect_refusal(
		conf, -EINVAL, "first_rx_queue: 65535 to 65535 are not among the 4");
	conf = shared_defaults();
	conf.shared.steer = true;
	expect_refusal(conf, -EINVAL, "steer: it needs receive queues");
	conf = shared_defaults();
	conf.mtu = 9000;
	expect_refusal(conf, -EINVAL, "mtu: 9000 exceeds that of net_ring0");
	conf = shared_defaults();
	conf.shared.pool = small;
	expect_refusal(conf, -EINVAL, "pool: small has buffers of 1000 bytes");
	rte_mempool_free(small);
}

TEST(no_queue_is_given_twice)
{
	struct shared_open_conf conf = shared_defaults();
	struct port first, second;

	conf.queues = 2;
	conf.shared.rx_queues = true;
	conf.shared.first_rx_queue = 1;
	first = shared_opened(&conf);
	conf.queues = 1;
	conf.shared.first_tx_queue = 2;
	conf.shared.first_rx_queue = 2;
	expect_refusal(conf, -EBUSY,
		"first_rx_queue: another device of Rocade uses receive queues 1 to 2");
	conf.shared.first_rx_queue = 3;
	conf.shared.first_tx_queue = 1;
	expect_refusal(conf, -EBUSY,
		"first_tx_queue: another device of Rocade uses transmit queues 0 to 1");
	conf.shared.first_tx_queue = 2;
	second = shared_opened(&conf);
	first.ops->close(first.drv);
	/* The queues of a closed device are free. */
	conf.shared.first_rx_queue = 1;
	conf.shared.first_tx_queue = 1;
	first = shared_opened(&conf);
	first.ops->close(first.drv);
	second.ops->close(second.drv);
}

static void
app_sends(uint16_t queue, struct rte_mbuf *m)
{
	assert_int_equal(rte_eth_tx_burst(app_port, queue, &m, 1), 1);
}

TEST(steering_rules_follow_the_addresses)
{
	struct net_conf net = {.addr_count = 2};
	struct shared_open_conf conf = shared_defaults();
	uint8_t gid6[16];
	struct port port;

	conf.shared.rx_queues = conf.shared.steer = true;
	conf.shared.first_rx_queue = 2;
	conf.queues = 2;
	port = shared_opened(&conf);
	assert_int_equal(rules_in_use(), 1);
	assert_memory_equal(rules[0].addr, ((const uint8_t[]){192, 0, 2, 1}), 4);
	assert_int_equal(rules[0].port, 4791);
	assert_int_equal(rules[0].queue, 2);
	assert_int_equal(rules[0].queues, 2);
	assert_int_equal(gid_parse("192.0.2.5", net.addr[0].gid, NULL), 0);
	assert_int_equal(gid_parse("2001:db8::5", net.addr[1].gid, NULL), 0);
	memcpy(gid6, net.addr[1].gid, 16);
	port.ops->set_addresses(port.drv, &net);
	assert_int_equal(rules_in_use(), 2);
	assert_false(rules[0].ipv6);
	assert_true(rules[1].ipv6);
	assert_memory_equal(rules[1].addr, gid6, 16);
	port.ops->close(port.drv);
	assert_int_equal(rules_in_use(), 0);
	/* A single queue, and a port that rejects rules: it is used nevertheless. */
	conf.queues = 1;
	port = shared_opened(&conf);
	assert_int_equal(rules[0].queues, 1);
	flows_fail = true;
	port.ops->set_addresses(port.drv, &net);
	flows_fail = false;
	assert_int_equal(rules_in_use(), 0);
	assert_non_null(strstr(warning, "rejects 2 of 2 flow rules"));
	assert_non_null(strstr(warning, "(not here)"));
	port.ops->close(port.drv);
}

/* The link is the application's port's, and closing leaves that started. */
TEST(port_stays_the_applications)
{
	struct shared_open_conf conf = shared_defaults();
	struct port port, second;
	struct rte_mbuf *m;

	assert_int_equal(rte_eth_allmulticast_disable(app_port), 0);
	port = shared_opened(&conf);
	assert_null(port.ops->set_link);
	assert_true(port.ops->link_up(port.drv));
	assert_int_equal(rte_eth_dev_stop(app_port), 0);
	assert_false(port.ops->link_up(port.drv));
	assert_int_equal(rte_eth_dev_start(app_port), 0);
	assert_true(port.ops->link_up(port.drv));
	/* The last device that needs all multicast turns it off. */
	assert_int_equal(rte_eth_allmulticast_get(app_port), 1);
	conf.shared.first_tx_queue = 1;
	second = shared_opened(&conf);
	port.ops->close(port.drv);
	assert_int_equal(rte_eth_allmulticast_get(app_port), 1);
	second.ops->close(second.drv);
	assert_int_equal(rte_eth_allmulticast_get(app_port), 0);
	/* It stays on if the application needs it. */
	assert_int_equal(rte_eth_allmulticast_enable(app_port), 0);
	second = shared_opened(&conf);
	second.ops->close(second.drv);
	assert_int_equal(rte_eth_allmulticast_get(app_port), 1);
	assert_int_equal(rte_eth_allmulticast_disable(app_port), 0);
	app_sends(0, frame_of(KIND_TCP, 1));
	assert_int_equal(rte_eth_rx_burst(app_port, 0, &m, 1), 1);
	rte_pktmbuf_free(m);
}

TEST(application_closes_its_port_first)
{
	const struct rte_eth_conf eth = {0};
	struct shared_open_conf conf = shared_defaults();
	struct rte_mbuf *m = frame_of(KIND_ROCE, 1);
	struct pkt pkts[PKT_BURST];
	struct port port;

	assert_int_equal(rte_eth_dev_get_port_by_name("net_null0", &conf.port_id), 0);
	assert_int_equal(rte_eth_dev_configure(conf.port_id, 1, 1, &eth), 0);
	assert_int_equal(rte_eth_rx_queue_setup(conf.port_id, 0, 256, 0, NULL, pool), 0);
	assert_int_equal(rte_eth_tx_queue_setup(conf.port_id, 0, 256, 0, NULL), 0);
	assert_int_equal(rte_eth_dev_start(conf.port_id), 0);
	conf.shared.rx_queues = true;
	port = shared_opened(&conf);
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), port.mac, 6);
	assert_int_equal(frames_input(queue_of(&port, 0), &m, 1), 0);
	assert_int_equal(port.ops->rx_burst(port.queues[0], pkts, PKT_BURST), 1);
	m = pkts[0].owner;
	assert_int_equal(rte_eth_dev_stop(conf.port_id), 0);
	assert_int_equal(rte_eth_dev_close(conf.port_id), 0);
	assert_false(port.ops->link_up(port.drv));
	assert_int_equal(frames_input(queue_of(&port, 0), &m, 1), 1);
	rte_pktmbuf_free(m);
	assert_int_equal(port.ops->rx_burst(port.queues[0], pkts, PKT_BURST), 0);
	assert_int_equal(port.ops->tx_alloc(port.queues[0], pkts, 1), 1);
	pkts[0].len = 60;
	assert_int_equal(port.ops->tx_burst(port.queues[0], pkts, 1), 0);
	port.ops->tx_release(port.queues[0], pkts, 1);
	port.ops->close(port.drv);
	assert_int_equal(pool_used(), 0);
}

TEST(smaller_mtu_is_reported)
{
	struct shared_open_conf conf = shared_defaults();
	struct port port = shared_opened(&conf);
	uint16_t before;

	assert_int_equal(rte_eth_dev_get_mtu(app_port, &before), 0);
	warning[0] = '\0';
	assert_true(port.ops->link_up(port.drv));
	assert_string_equal(warning, "");
	/* net_ring sets none: the device believes that its own is larger. */
	((struct shared_port *)port.drv)->mtu = before + 1u;
	assert_true(port.ops->link_up(port.drv));
	assert_non_null(strstr(warning, "the application has set the MTU of ethdev"));
	warning[0] = '\0';
	assert_true(port.ops->link_up(port.drv));
	assert_string_equal(warning, "");
	port.ops->close(port.drv);
}

TEST_GROUP(shared_start, shared_end)
