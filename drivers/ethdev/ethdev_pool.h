/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. The buffers of an ethdev port: a pool of the program or its own. */
#ifndef ROCADE_ETHDEV_ETHDEV_POOL_H
#define ROCADE_ETHDEV_ETHDEV_POOL_H

#include <rte_mempool.h>

#define POOL_NAME "rocade_" /* how the names of Rocade's mempools begin */

struct ethdev_pool_need {
	uint16_t port_id;
	uint32_t count; /* buffers */
	uint32_t frame; /* bytes of the longest frame */
	int socket;
};

/* Creates a pool. Returns 0, or -errno with its sentence in err. */
int ethdev_pool_create(const struct ethdev_pool_need *need, struct rte_mempool **pool,
	char *err, size_t err_size);
/* Returns 0 if the program's pool is what is needed, or -EINVAL with its sentence in err. */
int ethdev_pool_check(const struct ethdev_pool_need *need, struct rte_mempool *pool,
	char *err, size_t err_size);
/* Returns the socket of a NUMA node that the program has chosen (1 + its number), that of the port if it
 * is 0, or -EINVAL with its sentence in err. */
int ethdev_socket_choose(
	uint16_t port_id, uint32_t numa, int *socket, char *err, size_t err_size);

#endif
