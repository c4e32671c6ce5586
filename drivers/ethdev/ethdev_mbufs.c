/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_mbuf.h>

#include "ethdev/ethdev_mbufs.h"
#include "ethdev/ethdev_pool.h"

static uint32_t
mbufs_room(const struct rte_mempool *pool)
{
	uint32_t room;

	if (pool->private_data_size < sizeof(struct rte_pktmbuf_pool_private))
		return 0;
	room = rte_pktmbuf_data_room_size((struct rte_mempool *)(uintptr_t)pool);
	return room > RTE_PKTMBUF_HEADROOM ? room - RTE_PKTMBUF_HEADROOM : 0;
}

static bool
mbufs_is_own(const struct rte_mempool *pool)
{
	return strncmp(pool->name, POOL_NAME, strlen(POOL_NAME)) == 0;
}

/* rte_mempool_avail_count() would read the caches of all lcores. */
static uint32_t
mbufs_available(const struct rte_mempool *pool)
{
	return rte_mempool_get_ops(pool->ops_index)->get_count(pool);
}

static struct rte_mbuf *
mbufs_copy(struct rte_mempool *pool, const uint8_t *data, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	if (m == NULL)
		return NULL;
	memcpy(rte_pktmbuf_mtod(m, void *), data, len);
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	return m;
}

static void
mbufs_release(struct rte_mbuf *m)
{
	rte_pktmbuf_free(m);
}

const struct mbuf_ops ethdev_mbufs = {
	.room = mbufs_room,
	.is_own = mbufs_is_own,
	.available = mbufs_available,
	.copy = mbufs_copy,
	.release = mbufs_release,
};
