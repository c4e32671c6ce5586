/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of netlink about RDMA devices (RDMA_NL_NLDEV of rdma/rdma_netlink.h), as rdma(8), libibverbs,
 * librdmacm and UCX send them, and their answers about Rocade's devices. */
#ifndef ROCADE_PRELOAD_NLDEV_H
#define ROCADE_PRELOAD_NLDEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A socket that has sent something. */
struct nldev_socket {
	uint32_t port; /* its port ID */
	bool capped;   /* NETLINK_CAP_ACK */
	/* Gives it a datagram. Returns 0 or -errno. */
	int (*give)(void *arg, const void *bytes, size_t len);
	void *arg;
};

/* Answers the messages of a datagram. Returns 0 or what give() has returned. Control path. */
int nldev_ask(const struct nldev_socket *socket, const void *bytes, size_t len);

#endif
