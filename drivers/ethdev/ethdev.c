/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing an ethdev port; the data path is burst.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <rte_lcore.h>
#include <rte_malloc.h>

#include "base/log.h"
#include "ethdev/internal.h"
#include "ethdev/ethdev.h"

#define DESC_DEFAULT 1024
#define POOL_CACHE 256
#define POOL_SPARE 2048 /* frames in hand-off rings, stages, engines' hands */
#define L2_MAX (14 + 4 + 4)
#define ROOM_MIN 2048 /* some PMDs receive into nothing smaller */

static int __rte_format_printf(4, 5)
refuse(char *err, size_t err_size, int rc, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(err, err_size, fmt, args);
	va_end(args);
	return rc;
}

/* Errors of a PMD that mean something to the caller stay; the others are I/O errors. */
static int
pmd_error(int rc)
{
	return rc == -EBUSY || rc == -ENOMEM ? rc : -EIO;
}

static int
pool_create(struct ethdev *eth, const struct ethdev_conf *conf, uint16_t rx_desc,
	uint16_t tx_desc)
{
	uint32_t frame = RTE_MAX(conf->mtu + L2_MAX, (uint32_t)ROOM_MIN);
	uint32_t room = RTE_PKTMBUF_HEADROOM + RTE_ALIGN_CEIL(frame, LINE_SIZE);
	uint32_t count = conf->queues * ((uint32_t)rx_desc + tx_desc + POOL_SPARE) +
			 rte_lcore_count() * POOL_CACHE * 2;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "rocade_%u", conf->port_id);
	eth->pool = rte_pktmbuf_pool_create(name, count, POOL_CACHE, 0, (uint16_t)room,
		rte_eth_dev_socket_id(conf->port_id));
	eth->max_frame = room - RTE_PKTMBUF_HEADROOM;
	return eth->pool != NULL ? 0 : -ENOMEM;
}

static void
offloads_choose(const struct rte_eth_dev_info *info, const struct ethdev_conf *conf,
	struct rte_eth_conf *dev)
{
	uint64_t tx = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;

	if (!conf->no_cksum_offload) {
		tx |= RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
		dev->rxmode.offloads =
			info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
	}
	dev->txmode.offloads = info->tx_offload_capa & tx;
	/* Any spread will do: a packet that comes to another engine is handed on. */
	if (conf->queues > 1) {
		uint64_t hash = info->flow_type_rss_offloads &
				(RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);

		dev->rx_adv_conf.rss_conf.rss_hf = hash;
		dev->rxmode.mq_mode = hash != 0 ? RTE_ETH_MQ_RX_RSS : RTE_ETH_MQ_RX_NONE;
	}
}

static int
queues_setup(struct ethdev *eth, const struct ethdev_conf *conf, uint16_t rx_desc,
	uint16_t tx_desc)
{
	unsigned socket = (unsigned)rte_eth_dev_socket_id(conf->port_id);

	for (uint16_t i = 0; i < conf->queues; i++) {
		int rc = rte_eth_rx_queue_setup(
			conf->port_id, i, rx_desc, socket, NULL, eth->pool);

		if (rc == 0)
			rc = rte_eth_tx_queue_setup(
				conf->port_id, i, tx_desc, socket, NULL);
		if (rc != 0)
			return rc;
		eth->queues[i] = (struct ethdev_queue){
			.port_id = conf->port_id, .queue_id = i, .pool = eth->pool};
		eth->handles[i] = &eth->queues[i];
	}
	return 0;
}

/*
 * A maximum that the PMD reports is not the last word: net_memif says 1500 and carries what
 * its buffers hold. So a refusal is only logged.
 */
static void
mtu_set(const struct ethdev_conf *conf)
{
	int rc;

	if (conf->mtu == 0)
		return;
	rc = rte_eth_dev_set_mtu(conf->port_id, (uint16_t)conf->mtu);
	if (rc != 0)
		log_warn("ethdev %u: the PMD does not take an MTU of %" PRIu32
			 " (%s); longer frames may be lost",
			conf->port_id, conf->mtu, strerror(-rc));
}

static int
port_setup(struct ethdev *eth, const struct ethdev_conf *conf,
	const struct rte_eth_dev_info *info, char *err, size_t err_size)
{
	uint16_t rx_desc = conf->rx_desc != 0 ? conf->rx_desc : DESC_DEFAULT;
	uint16_t tx_desc = conf->tx_desc != 0 ? conf->tx_desc : DESC_DEFAULT;
	struct rte_eth_conf dev = {.rxmode = {.mq_mode = RTE_ETH_MQ_RX_NONE}};
	int rc;

	offloads_choose(info, conf, &dev);
	rc = rte_eth_dev_configure(conf->port_id, conf->queues, conf->queues, &dev);
	if (rc != 0)
		return refuse(err, err_size, pmd_error(rc),
			"the PMD %s refused %u queues: %s", info->driver_name,
			conf->queues,
			rc == -EBUSY ? "it is started already" : strerror(-rc));
	rc = rte_eth_dev_adjust_nb_rx_tx_desc(conf->port_id, &rx_desc, &tx_desc);
	if (rc == 0)
		rc = pool_create(eth, conf, rx_desc, tx_desc);
	if (rc != 0)
		return refuse(err, err_size, pmd_error(rc),
			"no memory for the frames of %u queues of %u and %u descriptors; "
			"give EAL more (-m) or take smaller rings",
			conf->queues, rx_desc, tx_desc);
	mtu_set(conf);
	rc = queues_setup(eth, conf, rx_desc, tx_desc);
	if (rc == 0)
		rc = rte_eth_dev_start(conf->port_id);
	if (rc != 0)
		return refuse(err, err_size, pmd_error(rc),
			"the PMD %s refused %u queues with %u and %u descriptors: %s",
			info->driver_name, conf->queues, rx_desc, tx_desc, strerror(-rc));
	eth->rx_desc = rx_desc;
	eth->tx_cksum = (dev.txmode.offloads & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0;
	/* Neighbour solicitations come to multicast addresses; a PMD without filters may
	 * not know the call. */
	rte_eth_allmulticast_enable(conf->port_id);
	return 0;
}

static bool
ethdev_link_up(void *drv)
{
	struct ethdev *eth = drv;
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(eth->port_id, &link) == 0 && link.link_status != 0;
}

static void
ethdev_close(void *drv)
{
	struct ethdev *eth = drv;

	rte_eth_dev_stop(eth->port_id);
	rte_eth_dev_close(eth->port_id);
	rte_mempool_free(eth->pool);
	rte_free(eth);
}

static const struct port_ops ethdev_ops = {
	.rx_burst = ethdev_rx_burst,
	.rx_release = ethdev_release,
	.tx_alloc = ethdev_tx_alloc,
	.tx_release = ethdev_release,
	.tx_burst = ethdev_tx_burst,
	.wait_fd = ethdev_wait_fd,
	.link_up = ethdev_link_up,
	.close = ethdev_close,
};

static int
conf_check(const struct ethdev_conf *conf, const struct rte_eth_dev_info *info, char *err,
	size_t err_size)
{
	unsigned most = RTE_MIN(info->max_rx_queues, info->max_tx_queues);

	most = RTE_MIN(most, (unsigned)ETHDEV_QUEUES_MAX);
	if (conf->queues == 0 || conf->queues > most)
		return refuse(err, err_size, -EINVAL,
			"engines: %u, but the PMD %s has 1 to %u queue pairs",
			conf->queues, info->driver_name, most);
	return 0;
}

static void
port_fill(struct ethdev *eth, unsigned queues, struct port *port)
{
	struct rte_ether_addr mac = {{0}};

	rte_eth_macaddr_get(eth->port_id, &mac);
	*port = (struct port){
		.ops = &ethdev_ops,
		.drv = eth,
		.queues = eth->handles,
		.queue_count = queues,
		.caps = {.max_frame = eth->max_frame,
			.rx_ring = eth->rx_desc,
			.tx_ipv4_cksum = eth->tx_cksum},
	};
	memcpy(port->mac, mac.addr_bytes, sizeof(port->mac));
}

int
ethdev_open(const struct ethdev_conf *conf, struct port *port, char *err, size_t err_size)
{
	struct rte_eth_dev_info info;
	struct ethdev *eth;
	int rc;

	if (rte_eth_dev_info_get(conf->port_id, &info) != 0)
		return refuse(err, err_size, -ENODEV, "there is no such port");
	rc = conf_check(conf, &info, err, err_size);
	if (rc != 0)
		return rc;
	eth = rte_zmalloc("rocade ethdev", sizeof(*eth), LINE_SIZE);
	if (eth == NULL)
		return refuse(err, err_size, -ENOMEM, "EAL has no memory left");
	eth->port_id = conf->port_id;
	rc = port_setup(eth, conf, &info, err, err_size);
	if (rc != 0) {
		rte_mempool_free(eth->pool);
		rte_free(eth);
		return rc;
	}
	port_fill(eth, conf->queues, port);
	return 0;
}

static void *
mem_get(void *ctx, const char *name, size_t len)
{
	return rte_zmalloc_socket(name, len, LINE_SIZE, (int)(intptr_t)ctx);
}

static void
mem_put(void *ctx, void *mem, size_t len)
{
	(void)ctx;
	(void)len;
	rte_free(mem);
}

struct alloc
ethdev_alloc(int socket)
{
	return (struct alloc){mem_get, mem_put, (void *)(intptr_t)socket};
}
