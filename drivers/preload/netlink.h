/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of netlink for RDMA (NETLINK_RDMA): what a program sends to one, Rocade answers (nldev.h). */
#ifndef ROCADE_PRELOAD_NETLINK_H
#define ROCADE_PRELOAD_NETLINK_H

#include <stddef.h>
#include <sys/types.h>

/* As write(). Returns -2 if fd is no such socket, which costs one load if fd never was one. */
ssize_t netlink_write(int fd, const void *bytes, size_t len);
/* Called after `to` became a duplicate of `from`. */
void netlink_dup(int from, int to);

#endif
