/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "ethdev/burst.h"
#include "ethdev/ethdev_fail.h"
#include "ethdev/ethdev_pool.h"

#define ROOM_STEP 1024 /* many NICs take receive buffers in units of this */

int
ethdev_pool_create(const struct ethdev_pool_need *need, struct rte_mempool **pool,
	char *err, size_t err_size)
{
	uint32_t count = need->count + rte_lcore_count() * 2 * POOL_CACHE;
	uint32_t room =
		RTE_PKTMBUF_HEADROOM + RTE_ALIGN_CEIL(need->frame, (uint32_t)ROOM_STEP);
	char name[RTE_MEMPOOL_NAMESIZE];

	room = RTE_MAX(room, (uint32_t)RTE_MBUF_DEFAULT_BUF_SIZE);
	snprintf(name, sizeof(name), POOL_NAME "%u", need->port_id);
	*pool = rte_pktmbuf_pool_create(
		name, count, POOL_CACHE, 0, (uint16_t)room, need->socket);
	if (*pool == NULL)
		return ethdev_fail(err, err_size, -ENOMEM,
			"no memory for %u buffers of %u bytes: %s; give EAL more (-m, "
			"hugepages) or use fewer engines or descriptors",
			count, room, rte_strerror(rte_errno));
	return 0;
}

int
ethdev_pool_check(const struct ethdev_pool_need *need, struct rte_mempool *pool,
	char *err, size_t err_size)
{
	uint32_t room, least = RTE_PKTMBUF_HEADROOM + need->frame;

	if (pool->private_data_size < sizeof(struct rte_pktmbuf_pool_private))
		return ethdev_fail(err, err_size, -EINVAL,
			"pool: %s is not one of rte_pktmbuf_pool_create()", pool->name);
	room = rte_pktmbuf_data_room_size(pool);
	if (room < least)
		return ethdev_fail(err, err_size, -EINVAL,
			"pool: %s has buffers of %u bytes, a frame of %u needs %u",
			pool->name, room, need->frame, least);
	if (pool->size < need->count)
		return ethdev_fail(err, err_size, -EINVAL,
			"pool: %s has %u buffers, the descriptors and bursts of the engines "
			"need %u",
			pool->name, pool->size, need->count);
	return 0;
}

int
ethdev_socket_choose(
	uint16_t port_id, uint32_t numa, int *socket, char *err, size_t err_size)
{
	*socket = rte_eth_dev_socket_id(port_id);
	if (numa == 0)
		return 0;
	for (unsigned i = 0; i < rte_socket_count(); i++) {
		if ((uint32_t)rte_socket_id_by_idx(i) == numa - 1) {
			*socket = (int)(numa - 1);
			return 0;
		}
	}
	return ethdev_fail(err, err_size, -EINVAL,
		"numa: %u stands for NUMA node %u, which EAL does not have", numa,
		numa - 1u);
}
