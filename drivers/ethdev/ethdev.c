/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens and closes an ethdev port: configuration of the PMD, with substitutes for missing
 * features. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_lcore.h>

#include "base/base_log.h"
#include "ethdev/burst.h"
#include "ethdev/ethdev.h"
#include "ethdev/ethdev_fail.h"
#include "ethdev/ethdev_interrupt.h"
#include "ethdev/ethdev_mbufs.h"
#include "ethdev/ethdev_rss.h"
#include "ethdev/ethdev_mtu.h"
#include "ethdev/ethdev_offload.h"
#include "ethdev/ethdev_pool.h"
#include "ethdev/vlan_filter.h"
#include "port/net.h"

#define DESC_DEFAULT 1024
#define MTU_MIN 576 /* every IPv4 host accepts that (RFC 791) */
#define ETHDEV_MTU_MAX 9600
#define LINK_WAIT_MS 250
#define LINK_STEP_MS 10

struct ethdev {
	uint16_t port_id;
	uint16_t queue_count;
	uint16_t rx_desc;
	uint16_t tx_desc;
	uint32_t mtu;
	int socket;
	struct ethdev_offloads offloads;
	uint16_t vlan; /* that the filter admits; 0: there is no filter */
	bool all_multicast;
	bool promiscuous;      /* turned on here */
	bool keep_promiscuous; /* it stays on at close */
	bool rx_interrupts, rx_interrupts_wanted;
	struct rte_mempool *pool;
	bool pool_is_given;
	struct rte_eth_dev_info info;
	struct rss rss; /* of several queues */
	char name[RTE_ETH_NAME_MAX_LEN];
	void **queues;
	struct ethdev_queue queue[];
};

/* Keeps the errors that rocade_open_port() documents; other errors become -EIO. */
static int
pmd_error(int ret)
{
	return ret == -EBUSY || ret == -ENOMEM ? ret : -EIO;
}

static int
ethdev_conf_check(const struct ethdev_conf *conf, char *err, size_t err_size)
{
	unsigned ports = rte_eth_dev_count_avail();

	if (!rte_eth_dev_is_valid_port(conf->port_id))
		return ethdev_fail(err, err_size, -ENODEV,
			"there is no port %u: EAL has %u ports (-a and --vdev add some)",
			conf->port_id, ports);
	if (conf->mtu != 0 && (conf->mtu < MTU_MIN || conf->mtu > ETHDEV_MTU_MAX))
		return ethdev_fail(err, err_size, -EINVAL, "mtu: %u is not in %u..%u",
			conf->mtu, MTU_MIN, ETHDEV_MTU_MAX);
	return 0;
}

static int
mtu_check(const struct ethdev *dev, char *err, size_t err_size)
{
	if (!ethdev_mtu_is_strict(&dev->info) || dev->mtu <= ethdev_mtu_max(&dev->info))
		return 0;
	return ethdev_fail(err, err_size, -EINVAL,
		"mtu: %u is more than %s (%s) carries: expected at most %u", dev->mtu,
		dev->name, dev->info.driver_name, ethdev_mtu_max(&dev->info));
}

static int
ethdev_query(
	struct ethdev *dev, const struct ethdev_conf *conf, char *err, size_t err_size)
{
	uint16_t mtu = 0, most;
	int ret;

	if (rte_eth_dev_get_name_by_port(conf->port_id, dev->name) != 0)
		snprintf(dev->name, sizeof(dev->name), "port %u", conf->port_id);
	ret = rte_eth_dev_info_get(conf->port_id, &dev->info);
	if (ret != 0)
		return ethdev_fail(err, err_size, pmd_error(ret),
			"%s cannot be queried: %s", dev->name, strerror(-ret));
	most = RTE_MIN(dev->info.max_rx_queues, dev->info.max_tx_queues);
	if (conf->queues == 0 || conf->queues > most)
		return ethdev_fail(err, err_size, -EINVAL,
			"engines: %u is not in 1..%u, the queue pairs of %s",
			conf->queues, most, dev->name);
	dev->mtu = conf->mtu;
	if (dev->mtu == 0 && rte_eth_dev_get_mtu(conf->port_id, &mtu) == 0)
		dev->mtu = RTE_MIN((uint32_t)mtu, (uint32_t)ETHDEV_MTU_MAX);
	if (dev->mtu < MTU_MIN)
		dev->mtu = RTE_ETHER_MTU;
	ret = mtu_check(dev, err, err_size);
	if (ret != 0)
		return ret;
	return ethdev_socket_choose(
		conf->port_id, conf->numa, &dev->socket, err, err_size);
}

/* Returns the MTU to set; 0: leave it unchanged. A port whose present MTU exceeds what it
 * reports as its maximum is not reduced (net_af_packet always reports 1500). */
static uint32_t
mtu_to_set(const struct ethdev *dev)
{
	uint32_t max = ethdev_mtu_max(&dev->info);
	uint16_t present = 0;

	if (dev->mtu <= max)
		return dev->mtu;
	log_warn("%s reports a maximum MTU of %u; continuing with %u", dev->name, max,
		dev->mtu);
	(void)rte_eth_dev_get_mtu(dev->port_id, &present);
	return present >= max ? 0 : max;
}

/* Without link interrupts: a device may have too few vectors for both, and then reports an old
 * link state for ever. */
static int
configure_with_interrupts(struct ethdev *dev, struct rte_eth_conf *eth)
{
	int ret;

	eth->intr_conf.rxq = 1;
	ret = rte_eth_dev_configure(
		dev->port_id, dev->queue_count, dev->queue_count, eth);
	eth->intr_conf.rxq = ret == 0;
	if (ret != 0 && ret != -EBUSY)
		log_info(
			"%s rejects receive interrupts (%s): a sleeping engine looks for "
			"packets every millisecond",
			dev->name, strerror(-ret));
	return ret;
}

static int
ethdev_configure(
	struct ethdev *dev, const struct ethdev_conf *conf, char *err, size_t err_size)
{
	struct rte_eth_conf eth = {.rxmode.mtu = mtu_to_set(dev)};
	int ret;

	offloads_choose(&dev->offloads, &dev->info, dev->queue_count,
		conf->no_cksum_offload, &eth);
	if (dev->queue_count > 1 && !dev->offloads.rss)
		log_info("%s has no RSS by IP or UDP: its own rules choose the receive "
			 "queue of a packet",
			dev->name);
	ret = dev->rx_interrupts ? configure_with_interrupts(dev, &eth) : -ENOTSUP;
	if (ret != 0 && ret != -EBUSY) {
		dev->rx_interrupts = false;
		/* With link interrupts the link state is known without asking the PMD. */
		eth.intr_conf.lsc = (*dev->info.dev_flags & RTE_ETH_DEV_INTR_LSC) != 0;
		ret = rte_eth_dev_configure(
			conf->port_id, dev->queue_count, dev->queue_count, &eth);
	}
	if (ret == -EBUSY)
		return ethdev_fail(err, err_size, ret,
			"%s is started already: stop it, Rocade starts it", dev->name);
	if (ret != 0)
		return ethdev_fail(err, err_size, pmd_error(ret),
			"%s rejects engines: %u with mtu: %u: %s", dev->name,
			dev->queue_count, dev->mtu, strerror(-ret));
	/* For PMDs that did not set the MTU when they were configured. */
	if (conf->mtu != 0 && eth.rxmode.mtu != 0) {
		ret = rte_eth_dev_set_mtu(conf->port_id, (uint16_t)eth.rxmode.mtu);
		if (ret != 0)
			log_warn("%s cannot set its MTU to %u (%s); continuing with %u",
				dev->name, eth.rxmode.mtu, strerror(-ret), dev->mtu);
	}
	dev->rx_desc = conf->rx_desc != 0 ? conf->rx_desc : DESC_DEFAULT;
	dev->tx_desc = conf->tx_desc != 0 ? conf->tx_desc : DESC_DEFAULT;
	ret = rte_eth_dev_adjust_nb_rx_tx_desc(
		conf->port_id, &dev->rx_desc, &dev->tx_desc);
	if (ret != 0)
		return ethdev_fail(err, err_size, pmd_error(ret),
			"%s rejects rx_desc: %u with tx_desc: %u: %s", dev->name,
			dev->rx_desc, dev->tx_desc, strerror(-ret));
	return 0;
}

static int
mbuf_pool_get(
	struct ethdev *dev, const struct ethdev_conf *conf, char *err, size_t err_size)
{
	uint32_t each = dev->rx_desc + dev->tx_desc + BURSTS_IN_FLIGHT * PKT_BURST;
	const struct ethdev_pool_need need = {.port_id = dev->port_id,
		.count = dev->queue_count * each,
		.frame = dev->mtu + L2_BYTES,
		.socket = dev->socket};
	int ret;

	if (conf->pool == NULL)
		return ethdev_pool_create(&need, &dev->pool, err, err_size);
	ret = ethdev_pool_check(&need, conf->pool, err, err_size);
	dev->pool_is_given = true;
	dev->pool = conf->pool;
	return ret;
}

static int
ethdev_queues_setup(struct ethdev *dev, char *err, size_t err_size)
{
	unsigned socket = (unsigned)dev->socket;
	int ret = 0;

	for (uint16_t i = 0; i < dev->queue_count && ret == 0; i++) {
		struct ethdev_queue *q = &dev->queue[i];

		*q = (struct ethdev_queue){.port_id = dev->port_id,
			.queue_id = i,
			.wait_fd = -1,
			.pool = dev->pool};
		dev->queues[i] = q;
		ret = rte_eth_rx_queue_setup(
			dev->port_id, i, dev->rx_desc, socket, NULL, dev->pool);
		if (ret == 0)
			ret = rte_eth_tx_queue_setup(
				dev->port_id, i, dev->tx_desc, socket, NULL);
	}
	if (ret != 0)
		return ethdev_fail(err, err_size, pmd_error(ret),
			"%s rejects rx_desc: %u with tx_desc: %u and buffers for mtu: %u: %s",
			dev->name, dev->rx_desc, dev->tx_desc, dev->mtu, strerror(-ret));
	return 0;
}

static bool
ethdev_link_up(void *drv)
{
	struct ethdev *dev = drv;
	struct rte_eth_link link = {0};

	return rte_eth_link_get_nowait(dev->port_id, &link) == 0 &&
	       link.link_status == RTE_ETH_LINK_UP;
}

uint32_t
ethdev_mtu(const void *drv)
{
	return ((const struct ethdev *)drv)->mtu;
}

static int
ethdev_set_link(void *drv, bool up)
{
	struct ethdev *dev = drv;

	return up ? rte_eth_dev_set_link_up(dev->port_id)
		  : rte_eth_dev_set_link_down(dev->port_id);
}

/* If the PMD cannot receive all multicast, sets a list of addresses; if it rejects the
 * list, enables promiscuous mode. All multicast comes first, because net_tap accepts
 * every list but ignores it. */
static void
ethdev_set_groups(void *drv, const uint8_t (*macs)[6], unsigned n)
{
	struct ethdev *dev = drv;
	int ret;

	static_assert(sizeof(struct rte_ether_addr) == sizeof(macs[0]),
		"macs is an array of rte_ether_addr");
	if (dev->all_multicast)
		return;
	if (rte_eth_dev_set_mc_addr_list(
		    dev->port_id, (struct rte_ether_addr *)(uintptr_t)macs, n) == 0)
		return;
	ret = rte_eth_promiscuous_enable(dev->port_id);
	dev->promiscuous = ret == 0;
	/* A PMD that has none of these calls has no filter either (virtio without
	 * VIRTIO_NET_F_CTRL_RX). */
	if (ret != 0 && ret != -ENOTSUP)
		log_warn("%s receives neither all multicast nor all frames (%s): IPv6 "
			 "neighbours may not find it",
			dev->name, strerror(-ret));
	dev->all_multicast = true;
}

/* The tag is part of the header that Rocade writes and checks anyway, so the port neither inserts nor
 * strips it. */
static void
ethdev_set_addresses(void *drv, const struct net_conf *conf)
{
	struct ethdev *dev = drv;

	if (conf->vlan != dev->vlan)
		vlan_filter_set(dev->port_id, dev->name, dev->vlan, conf->vlan);
	dev->vlan = conf->vlan;
}

/* Waits for links that come up at once. Others may take seconds (autonegotiation), or
 * wait for their peer (net_memif): the port works once they are up. */
static void
ethdev_link_wait(struct ethdev *dev)
{
	for (unsigned ms = 0; ms < LINK_WAIT_MS && !ethdev_link_up(dev);
		ms += LINK_STEP_MS)
		usleep(LINK_STEP_MS * 1000);
}

static struct ethdev *
ethdev_struct_alloc(const struct ethdev_conf *conf)
{
	size_t size = sizeof(struct ethdev) + conf->queues * sizeof(struct ethdev_queue);
	struct ethdev *dev = alloc_get(&alloc_plain, "ethdev", size);

	if (dev == NULL)
		return NULL;
	dev->port_id = conf->port_id;
	dev->queue_count = conf->queues;
	dev->keep_promiscuous = conf->keep_promiscuous;
	dev->rx_interrupts = dev->rx_interrupts_wanted = conf->rx_interrupts;
	for (uint16_t i = 0; i < conf->queues; i++)
		dev->queue[i].wait_fd = -1;
	dev->queues = calloc(conf->queues, sizeof(dev->queues[0]));
	if (dev->queues == NULL) {
		alloc_put(&alloc_plain, dev, size);
		return NULL;
	}
	return dev;
}

static void
ethdev_struct_free(struct ethdev *dev)
{
	if (!dev->pool_is_given)
		rte_mempool_free(dev->pool);
	free(dev->queues);
	alloc_put(&alloc_plain, dev,
		sizeof(*dev) + dev->queue_count * sizeof(struct ethdev_queue));
}

static void
ethdev_close(void *drv)
{
	struct ethdev *dev = drv;

	ethdev_interrupts_close(dev->queue, dev->queue_count);
	/* An interface of the kernel outlives the port (net_af_xdp, net_af_packet). */
	if (dev->promiscuous && !dev->keep_promiscuous)
		(void)rte_eth_promiscuous_disable(dev->port_id);
	ethdev_port_close(dev->port_id, dev->info.driver_name);
	ethdev_struct_free(dev);
}

static int
ethdev_flow_queue(void *drv, const struct port_flow *flow)
{
	const struct ethdev *dev = drv;

	return rss_queue(&dev->rss, flow);
}

static const struct port_ops ethdev_ops = {
	.rx_burst = ethdev_rx_burst,
	.rx_release = ethdev_release,
	.tx_alloc = ethdev_tx_alloc,
	.tx_release = ethdev_release,
	.tx_burst = ethdev_tx_burst,
	.wait_fd = ethdev_wait_fd,
	.rx_arm = ethdev_rx_arm,
	.link_up = ethdev_link_up,
	.set_link = ethdev_set_link,
	.set_groups = ethdev_set_groups,
	.flow_queue = ethdev_flow_queue,
	.set_addresses = ethdev_set_addresses,
	.close = ethdev_close,
};

/* Ports of net_ring have the address 0, all of them. */
static void
mac_choose(const struct ethdev *dev, struct rte_ether_addr *mac)
{
	char text[RTE_ETHER_ADDR_FMT_SIZE];
	int ret;

	rte_eth_random_addr(mac->addr_bytes);
	ret = rte_eth_dev_default_mac_addr_set(dev->port_id, mac);
	/* A PMD that cannot be told an address does not filter by it. */
	if (ret != 0 && ret != -ENOTSUP)
		log_warn("%s rejects a MAC address (%s): it may receive nothing",
			dev->name, strerror(-ret));
	rte_ether_format_addr(text, sizeof(text), mac);
	log_info("%s has no MAC address: it gets %s", dev->name, text);
}

/* What the port does: docs/ports.md has it for each kind of port, and the tests compare. */
static void
ethdev_describe(const struct ethdev *dev)
{
	char offloads[OFFLOADS_TEXT];

	log_info(
		"%s (%s): MTU %u, queue pairs %u of %u, descriptors %u and %u, offloads: %s, "
		"receive interrupts: %s",
		dev->name, dev->info.driver_name, dev->mtu, dev->queue_count,
		RTE_MIN(dev->info.max_rx_queues, dev->info.max_tx_queues), dev->rx_desc,
		dev->tx_desc, offloads_text(&dev->offloads, offloads),
		!dev->rx_interrupts_wanted   ? "not requested"
		: dev->queue[0].wait_fd >= 0 ? "yes"
					     : "no");
}

static int
ethdev_start(struct ethdev *dev, struct port *port, char *err, size_t err_size)
{
	struct rte_ether_addr mac;
	int ret;

	ret = rte_eth_macaddr_get(dev->port_id, &mac);
	if (ret != 0)
		return ethdev_fail(err, err_size, pmd_error(ret),
			"%s has no MAC address: %s", dev->name, strerror(-ret));
	if (rte_is_zero_ether_addr(&mac))
		mac_choose(dev, &mac);
	ret = rte_eth_dev_start(dev->port_id);
	if (ret != 0)
		return ethdev_fail(err, err_size, pmd_error(ret), "%s does not start: %s",
			dev->name, strerror(-ret));
	dev->all_multicast = rte_eth_allmulticast_enable(dev->port_id) == 0;
	if (dev->queue_count > 1)
		ethdev_rss_read(dev->port_id, &dev->rss);
	if (dev->rx_interrupts)
		ethdev_interrupts_open(dev->queue, dev->queue_count, dev->name);
	ethdev_link_wait(dev);
	memset(port, 0, sizeof(*port));
	port->ops = &ethdev_ops;
	port->drv = dev;
	port->queues = dev->queues;
	port->queue_count = dev->queue_count;
	port->caps.max_frame = dev->mtu + L2_BYTES;
	port->caps.rx_ring = dev->rx_desc;
	port->caps.tx_ipv4_cksum = dev->offloads.tx_ipv4_cksum;
	port->mbufs = &ethdev_mbufs;
	port->tx_pool = dev->pool;
	/* Frames of net_ring come from the mempool of the port that sent them. */
	port->frame_pool = dev->pool;
	memcpy(port->mac, mac.addr_bytes, sizeof(port->mac));
	ethdev_describe(dev);
	return 0;
}

int
ethdev_open(const struct ethdev_conf *conf, struct port *port, char *err, size_t err_size)
{
	struct ethdev *dev;
	int ret;

	ret = ethdev_conf_check(conf, err, err_size);
	if (ret != 0)
		return ret;
	dev = ethdev_struct_alloc(conf);
	if (dev == NULL)
		return ethdev_fail(
			err, err_size, -ENOMEM, "no memory for %u queues", conf->queues);
	ret = ethdev_query(dev, conf, err, err_size);
	if (ret == 0)
		ret = ethdev_configure(dev, conf, err, err_size);
	if (ret == 0)
		ret = mbuf_pool_get(dev, conf, err, err_size);
	if (ret != 0) {
		ethdev_struct_free(dev);
		return ret;
	}
	ret = ethdev_queues_setup(dev, err, err_size);
	if (ret == 0)
		ret = ethdev_start(dev, port, err, err_size);
	/* Its queues may hold buffers of the pool. */
	if (ret != 0)
		ethdev_close(dev);
	return ret;
}
