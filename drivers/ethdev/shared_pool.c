/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. The pool of frames that a shared port sends, if that is Rocade's. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_lcore.h>

#include "ethdev/ethdev_fail.h"
#include "ethdev/ethdev_pool.h"
#include "ethdev/shared_port.h"

#define TX_DESC_ASSUMED 1024
#define POOL_WAIT_US 100000
#define POOL_STEP_US 1000

/* Pools of closed ports whose frames a transmit queue still holds. */
static struct rte_mempool *orphans[RTE_MAX_ETHPORTS];

/* Frees pools whose last frame has come back since. */
static void
orphans_free(void)
{
	for (unsigned i = 0; i < RTE_DIM(orphans); i++) {
		if (orphans[i] == NULL || !rte_mempool_full(orphans[i]))
			continue;
		rte_mempool_free(orphans[i]);
		orphans[i] = NULL;
	}
}

static uint32_t
tx_descriptors(const struct shared_port *port)
{
	struct rte_eth_txq_info info;

	if (port->conf.tx == NULL && rte_eth_tx_queue_info_get(port->port_id,
					     port->conf.first_tx_queue, &info) == 0)
		return info.nb_desc;
	return TX_DESC_ASSUMED;
}

int
shared_pool_create(struct shared_port *port, unsigned number, char *err, size_t err_size)
{
	/* Copies of frames for both wait in the input rings. */
	uint32_t each =
		tx_descriptors(port) + BURSTS_IN_FLIGHT * PKT_BURST + port->input_room;
	uint32_t count = port->queue_count * each + rte_lcore_count() * 2 * POOL_CACHE;
	uint32_t room = RTE_PKTMBUF_HEADROOM + port->mtu + L2_BYTES;
	char name[RTE_MEMPOOL_NAMESIZE];

	orphans_free();
	port->pool = port->conf.pool;
	if (port->pool != NULL)
		return 0;
	room = RTE_MAX(room, (uint32_t)RTE_MBUF_DEFAULT_BUF_SIZE);
	snprintf(name, sizeof(name), POOL_NAME "shared_%u", number);
	port->pool = rte_pktmbuf_pool_create(name, count, POOL_CACHE, 0, (uint16_t)room,
		rte_eth_dev_socket_id(port->port_id));
	if (port->pool == NULL)
		return ethdev_fail(err, err_size, -ENOMEM,
			"no memory for %u buffers of %u bytes: %s; give EAL more (-m, "
			"hugepages), or a pool of the application",
			count, room, rte_strerror(rte_errno));
	port->own_pool = true;
	return 0;
}

/* The application's transmit queues may hold frames of the pool, until it sends more or stops
 * the port. Such a pool is freed when a shared port is opened or closed later. */
void
shared_pool_release(struct shared_port *port)
{
	struct rte_mempool *pool = port->own_pool ? port->pool : NULL;

	for (unsigned us = 0;
		pool != NULL && us < POOL_WAIT_US && !rte_mempool_full(pool);
		us += POOL_STEP_US) {
		for (uint16_t i = 0;
			port->conf.tx == NULL && !port->gone && i < port->queue_count;
			i++)
			(void)rte_eth_tx_done_cleanup(
				port->port_id, port->queue[i].eth.queue_id, 0);
		usleep(POOL_STEP_US);
	}
	for (unsigned i = 0; pool != NULL && i < RTE_DIM(orphans); i++) {
		if (orphans[i] != NULL)
			continue;
		orphans[i] = pool;
		pool = NULL;
	}
	orphans_free();
}
