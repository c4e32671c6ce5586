/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. Opens and closes a shared port. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base_alloc.h"
#include "base/base_log.h"
#include "base/no_cancel.h"
#include "ethdev/ethdev_fail.h"
#include "ethdev/ethdev_mbufs.h"
#include "ethdev/shared_port.h"

#define INPUT_ROOM 1024
#define EXCEPTIONS_ROOM 1024

LIST_HEAD(shared_ports, shared_port);

/* Guards the list of all shared ports, and the calls of shared_pool.c. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared_ports ports = LIST_HEAD_INITIALIZER(ports);
static unsigned opened; /* numbers names */

static bool
is_gone(const struct shared_port *port)
{
	return __atomic_load_n(&port->gone, __ATOMIC_RELAXED);
}

/* ---- Checks ---- */

static int
queues_check(
	const struct shared_open_conf *conf, const char *name, char *err, size_t err_size)
{
	const struct rocade_shared_conf *s = &conf->shared;
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(conf->port_id, &info);

	if (ret != 0)
		return ethdev_fail(err, err_size, -EIO, "%s cannot be queried: %s", name,
			strerror(-ret));
	if (info.nb_tx_queues == 0)
		return ethdev_fail(err, err_size, -EINVAL,
			"%s has no queues: the application has to configure and start it "
			"first",
			name);
	if (s->steer && !s->rx_queues)
		return ethdev_fail(err, err_size, -EINVAL,
			"steer: it needs receive queues (rx_queues)");
	if (s->rx_queues && s->first_rx_queue + conf->queues > info.nb_rx_queues)
		return ethdev_fail(err, err_size, -EINVAL,
			"first_rx_queue: %u to %u are not among the %u receive queues of %s",
			s->first_rx_queue, s->first_rx_queue + conf->queues - 1u,
			info.nb_rx_queues, name);
	if (s->tx == NULL && s->first_tx_queue + conf->queues > info.nb_tx_queues)
		return ethdev_fail(err, err_size, -EINVAL,
			"first_tx_queue: %u to %u are not among the %u transmit queues of %s",
			s->first_tx_queue, s->first_tx_queue + conf->queues - 1u,
			info.nb_tx_queues, name);
	if (s->steer && !(info.dev_capa & RTE_ETH_DEV_CAPA_FLOW_RULE_KEEP))
		log_warn(
			"%s loses flow rules when it is stopped: open the device of Rocade "
			"again then",
			name);
	return 0;
}

static int
sizes_check(
	const struct shared_open_conf *conf, const char *name, char *err, size_t err_size)
{
	struct rte_mempool *pool = conf->shared.pool;
	uint32_t room = pool != NULL ? (uint32_t)rte_pktmbuf_data_room_size(pool) : 0;
	uint16_t mtu = 0;

	if (rte_eth_dev_get_mtu(conf->port_id, &mtu) == 0 && conf->mtu > mtu)
		return ethdev_fail(err, err_size, -EINVAL,
			"mtu: %u exceeds that of %s, %u", conf->mtu, name, mtu);
	if (pool != NULL && room < RTE_PKTMBUF_HEADROOM + conf->mtu + L2_BYTES)
		return ethdev_fail(err, err_size, -EINVAL,
			"pool: %s has buffers of %u bytes, an MTU of %u needs %u",
			pool->name, room, conf->mtu,
			RTE_PKTMBUF_HEADROOM + conf->mtu + L2_BYTES);
	return 0;
}

static bool
ranges_meet(uint16_t a, uint16_t a_count, uint16_t b, uint16_t b_count)
{
	return a < b + b_count && b < a + a_count;
}

/* With lock held. */
static int
overlap_check(
	const struct shared_port *port, const char *name, char *err, size_t err_size)
{
	const struct rocade_shared_conf *a = &port->conf;
	const struct shared_port *other;

	LIST_FOREACH(other, &ports, link)
	{
		const struct rocade_shared_conf *b = &other->conf;

		if (other->port_id != port->port_id || is_gone(other))
			continue;
		if (a->rx_queues && b->rx_queues &&
			ranges_meet(a->first_rx_queue, port->queue_count,
				b->first_rx_queue, other->queue_count))
			return ethdev_fail(err, err_size, -EBUSY,
				"first_rx_queue: another device of Rocade uses receive queues "
				"%u to %u of %s",
				b->first_rx_queue,
				b->first_rx_queue + other->queue_count - 1u, name);
		if (a->tx == NULL && b->tx == NULL &&
			ranges_meet(a->first_tx_queue, port->queue_count,
				b->first_tx_queue, other->queue_count))
			return ethdev_fail(err, err_size, -EBUSY,
				"first_tx_queue: another device of Rocade uses transmit "
				"queues %u to %u of %s",
				b->first_tx_queue,
				b->first_tx_queue + other->queue_count - 1u, name);
	}
	return 0;
}

/* ---- Port interface ---- */

static bool
shared_link_up(void *drv)
{
	struct shared_port *port = drv;
	struct rte_eth_link link = {0};
	uint16_t mtu;

	if (is_gone(port) || rte_eth_link_get_nowait(port->port_id, &link) != 0)
		return false;
	if (!port->mtu_warned && rte_eth_dev_get_mtu(port->port_id, &mtu) == 0 &&
		mtu < port->mtu) {
		port->mtu_warned = true;
		log_warn("the application has set the MTU of ethdev %u to %u, and Rocade "
			 "still sends packets of up to %u: open its device again",
			port->port_id, mtu, port->mtu);
	}
	return link.link_status == RTE_ETH_LINK_UP;
}

/* The addresses may be fewer than before: the frames of the others are the application's. */
static void
shared_set_addresses(void *drv, const struct net_conf *conf)
{
	struct shared_port *port = drv;
	struct frame_addrs addrs;

	frame_addrs_fill(&addrs, conf);
	if (memcmp(&addrs, &port->addrs, sizeof(addrs)) == 0)
		return;
	shared_addrs_set(port, &addrs);
	if (port->conf.steer && !is_gone(port))
		steer_set(&port->steer, conf);
}

static void
shared_set_groups(void *drv, const uint8_t (*macs)[6], unsigned n)
{
	shared_groups_set(drv, macs, n);
}

static void
ring_drain(struct rte_ring *ring)
{
	void *m;

	while (ring != NULL && rte_ring_dequeue(ring, &m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(ring);
}

/* The application closes the port. */
static int
port_gone(uint16_t port_id, enum rte_eth_event_type type, void *arg, void *result)
{
	struct shared_port *port = arg;

	(void)port_id;
	(void)type;
	(void)result;
	__atomic_store_n(&port->gone, true, __ATOMIC_RELAXED);
	port->steer.rule_count = 0; /* ended with the port */
	return 0;
}

/* -EAGAIN: the application closes the port at the moment, in another thread. Only with RTE_ETH_ALL
 * does DPDK end the callbacks of a closed port; then it returns what it did for the last port. */
static void
callback_end(struct shared_port *port)
{
	while (rte_eth_dev_is_valid_port(port->port_id) &&
		rte_eth_dev_callback_unregister(
			port->port_id, RTE_ETH_EVENT_DESTROY, port_gone, port) == -EAGAIN)
		sched_yield();
	(void)rte_eth_dev_callback_unregister(
		RTE_ETH_ALL, RTE_ETH_EVENT_DESTROY, port_gone, port);
}

static void
queues_destroy(struct shared_port *port)
{
	for (uint16_t i = 0; i < port->queue_count; i++) {
		ring_drain(port->queue[i].input);
		ring_drain(port->queue[i].exceptions);
		if (port->queue[i].eth.wait_fd >= 0)
			close(port->queue[i].eth.wait_fd);
	}
}

/* With lock held, and the port not in the list. */
static void
parts_destroy(struct shared_port *port)
{
	callback_end(port);
	queues_destroy(port);
	shared_pool_release(port);
}

static void
shared_free(struct shared_port *port)
{
	free(port->queues);
	alloc_put(&alloc_plain, port,
		sizeof(*port) + port->queue_count * sizeof(port->queue[0]));
}

/* Another device of the port may need what this one has turned on. With lock held. */
static void
all_multicast_end(struct shared_port *port)
{
	struct shared_port *other;

	if (!port->set_all_multicast || is_gone(port))
		return;
	LIST_FOREACH(other, &ports, link)
	{
		if (other->port_id == port->port_id && !is_gone(other)) {
			other->set_all_multicast = true;
			return;
		}
	}
	(void)rte_eth_allmulticast_disable(port->port_id);
}

static void
shared_close(void *drv)
{
	struct shared_port *port = drv;
	int state;

	if (!is_gone(port))
		steer_clear(&port->steer);
	state = no_cancel_begin();
	pthread_mutex_lock(&lock);
	LIST_REMOVE(port, link);
	all_multicast_end(port);
	parts_destroy(port);
	pthread_mutex_unlock(&lock);
	no_cancel_end(state);
	shared_free(port);
}

static const struct port_ops shared_ops = {
	.rx_burst = shared_rx_burst,
	.rx_release = ethdev_release,
	.tx_alloc = ethdev_tx_alloc,
	.tx_release = ethdev_release,
	.tx_burst = shared_tx_burst,
	.wait_fd = ethdev_wait_fd,
	.link_up = shared_link_up,
	.set_addresses = shared_set_addresses,
	.set_groups = shared_set_groups,
	.close = shared_close,
};

struct shared_queue *
shared_queue_of(const struct port *port, unsigned index)
{
	return port->ops == &shared_ops && index < port->queue_count ? port->queues[index]
								     : NULL;
}

/* ---- Opening ---- */

static struct shared_port *
struct_alloc(const struct shared_open_conf *conf)
{
	size_t size =
		sizeof(struct shared_port) + conf->queues * sizeof(struct shared_queue);
	struct shared_port *port = alloc_get(&alloc_plain, "shared port", size);

	if (port == NULL)
		return NULL;
	port->port_id = conf->port_id;
	port->queue_count = conf->queues;
	port->conf = conf->shared;
	port->mtu = conf->mtu;
	port->input_room = conf->input_room != 0 ? conf->input_room : INPUT_ROOM;
	port->steer = (struct steer){.port_id = conf->port_id,
		.first_queue = conf->shared.first_rx_queue,
		.queues = conf->queues};
	for (uint16_t i = 0; i < conf->queues; i++)
		port->queue[i].eth.wait_fd = -1;
	port->queues = calloc(conf->queues, sizeof(port->queues[0]));
	if (port->queues != NULL)
		return port;
	alloc_put(&alloc_plain, port, size);
	return NULL;
}

static struct rte_ring *
ring_create(const struct shared_port *port, const char *kind, unsigned number,
	unsigned engine, unsigned room, unsigned flags)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "rocade_%s%u_%u", kind, number, engine);
	return rte_ring_create(name, room, rte_eth_dev_socket_id(port->port_id),
		flags | RING_F_EXACT_SZ);
}

/* Threads that share cores pass frames: with RTS one that has lost its core in the middle of an
 * enqueue keeps the others waiting only when many frames have come since. */
static int
queues_create(struct shared_port *port, unsigned number, char *err, size_t err_size)
{
	const struct rocade_shared_conf *conf = &port->conf;

	for (uint16_t i = 0; i < port->queue_count; i++) {
		struct shared_queue *q = &port->queue[i];

		q->eth = (struct ethdev_queue){.port_id = port->port_id,
			.queue_id = (uint16_t)(conf->first_tx_queue + i),
			/* Without a receive queue there is nothing to announce:
			 * rocade_engine_input() wakes the engine. */
			.wait_fd = conf->rx_queues ? -1 : eventfd(0, EFD_CLOEXEC),
			.pool = port->pool};
		q->port = port;
		q->index = i;
		q->rx_queue = (uint16_t)(conf->first_rx_queue + i);
		port->queues[i] = q;
		q->input = ring_create(port, "in", number, i, port->input_room,
			RING_F_MP_RTS_ENQ | RING_F_SC_DEQ);
		if (conf->rx_queues)
			q->exceptions = ring_create(port, "ex", number, i,
				EXCEPTIONS_ROOM, RING_F_SP_ENQ | RING_F_MC_RTS_DEQ);
		if (q->input == NULL || (conf->rx_queues && q->exceptions == NULL))
			return ethdev_fail(err, err_size, -ENOMEM,
				"no memory for rings of %u frames: give EAL more (-m, "
				"hugepages)",
				port->input_room);
	}
	return 0;
}

static uint32_t
rx_ring_room(const struct shared_port *port)
{
	struct rte_eth_rxq_info info;

	if (port->conf.rx_queues && rte_eth_rx_queue_info_get(port->port_id,
					    port->conf.first_rx_queue, &info) == 0)
		return RTE_MIN((uint32_t)info.nb_desc, port->input_room);
	return port->input_room;
}

/* Some PMDs do not tell: then checksums are computed in software. */
static bool
has_tx_cksum(const struct shared_open_conf *conf)
{
	const struct rocade_shared_conf *shared = &conf->shared;
	struct rte_eth_txq_info info;

	return shared->tx == NULL && !conf->no_cksum_offload &&
	       rte_eth_tx_queue_info_get(conf->port_id, shared->first_tx_queue, &info) ==
		       0 &&
	       (info.conf.offloads & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0;
}

/* IPv6 neighbours and multicast groups need it. With lock held. */
static void
all_multicast_set(struct shared_port *port, const char *name)
{
	int ret;

	if (rte_eth_allmulticast_get(port->port_id) == 1)
		return;
	ret = rte_eth_allmulticast_enable(port->port_id);
	port->set_all_multicast = ret == 0;
	if (ret != 0)
		log_warn(
			"%s does not receive all multicast (%s): IPv6 neighbours may not "
			"find this host",
			name, strerror(-ret));
}

static void
port_fill(const struct shared_port *s, const struct shared_open_conf *conf,
	const struct rte_ether_addr *mac, uint32_t rx_ring, struct port *port)
{
	memset(port, 0, sizeof(*port));
	port->ops = &shared_ops;
	port->drv = (void *)(uintptr_t)s;
	port->queues = s->queues;
	port->queue_count = s->queue_count;
	port->caps.max_frame = s->mtu + L2_BYTES;
	port->caps.rx_ring = rx_ring;
	port->caps.tx_ipv4_cksum = has_tx_cksum(conf);
	port->mbufs = &ethdev_mbufs;
	port->tx_pool = s->pool;
	memcpy(port->mac, mac->addr_bytes, sizeof(port->mac));
}

/* With lock held. */
static int
shared_parts_create(
	struct shared_port *port, const char *name, char *err, size_t err_size)
{
	unsigned number = opened++;
	int ret = overlap_check(port, name, err, err_size);

	if (ret == 0)
		ret = shared_pool_create(port, number, err, err_size);
	if (ret == 0)
		ret = queues_create(port, number, err, err_size);
	if (ret == 0 && rte_eth_dev_callback_register(port->port_id,
				RTE_ETH_EVENT_DESTROY, port_gone, port) != 0)
		ret = ethdev_fail(err, err_size, -ENOMEM, "no memory for a callback");
	return ret;
}

int
shared_open(
	const struct shared_open_conf *conf, struct port *out, char *err, size_t err_size)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	struct rte_ether_addr mac;
	struct shared_port *port;
	int ret, state;

	if (rte_eth_dev_get_name_by_port(conf->port_id, name) != 0)
		snprintf(name, sizeof(name), "port %u", conf->port_id);
	ret = queues_check(conf, name, err, err_size);
	if (ret == 0)
		ret = sizes_check(conf, name, err, err_size);
	if (ret == 0 && rte_eth_macaddr_get(conf->port_id, &mac) != 0)
		ret = ethdev_fail(err, err_size, -EIO, "%s has no MAC address", name);
	if (ret != 0)
		return ret;
	if (rte_is_zero_ether_addr(&mac))
		log_warn(
			"%s has the MAC address 0: give it another one if it is not alone",
			name);
	port = struct_alloc(conf);
	if (port == NULL)
		return ethdev_fail(
			err, err_size, -ENOMEM, "no memory for %u queues", conf->queues);
	state = no_cancel_begin();
	pthread_mutex_lock(&lock);
	ret = shared_parts_create(port, name, err, err_size);
	if (ret == 0) {
		LIST_INSERT_HEAD(&ports, port, link);
		all_multicast_set(port, name);
	} else {
		parts_destroy(port);
	}
	pthread_mutex_unlock(&lock);
	no_cancel_end(state);
	if (ret != 0) {
		shared_free(port);
		return ret;
	}
	port_fill(port, conf, &mac, rx_ring_room(port), out);
	return 0;
}
