/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* mbufs of the application, which receive payload (qp/mbuf_receive.h). lib/ links no DPDK library: a
 * driver whose frames are mbufs offers these calls. */
#ifndef ROCADE_MEM_MBUF_OPS_H
#define ROCADE_MEM_MBUF_OPS_H

#include <stdbool.h>
#include <stdint.h>

struct rte_mbuf;
struct rte_mempool;

struct mbuf_ops {
	/* Control path. Returns how many bytes fit a buffer of the mempool behind the headroom; 0: it
	 * is not one of rte_pktmbuf_pool_create(). */
	uint32_t (*room)(const struct rte_mempool *pool);
	/* Control path. Returns whether the mempool is one of Rocade, and may end with a port. */
	bool (*is_own)(const struct rte_mempool *pool);
	/* Returns how many buffers are free, but for those in caches of lcores. */
	uint32_t (*available)(const struct rte_mempool *pool);
	/* Returns an mbuf with a copy of these bytes, which fit; NULL: there is no buffer. */
	struct rte_mbuf *(*copy)(
		struct rte_mempool *pool, const uint8_t *data, uint32_t len);
	/* Frees all segments. */
	void (*release)(struct rte_mbuf *m);
};

#endif
