/* SPDX-License-Identifier: BSD-3-Clause */
/* A socket of netlink for RDMA, for TEST_WITH. */
#ifndef ROCADE_TEST_NETLINK_FIXTURE_H
#define ROCADE_TEST_NETLINK_FIXTURE_H

#include <linux/netlink.h>

#include "nldev_fixture.h"

extern const struct sockaddr_nl netlink_kernel;

/* *state: the address of the descriptor. */
int rdma_socket(void **state);
int rdma_socket_close(void **state);

/* Its port ID. */
uint32_t port_of(int fd);
/* The events of poll() that it has. */
short ready(int fd);
/* The next datagram is the answer to device_message(RDMA_NLDEV_CMD_GET, 0), and the last one. */
void expect_device_at(int fd);

#endif
