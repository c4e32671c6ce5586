/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets of netlink that take only what this process sends to them. They stand for those of NETLINK_RDMA, which
 * many kernels do not have, and which does not know Rocade's device. Their protocol is NETLINK_USERSOCK, by which
 * processes of all users send each other messages: a filter of the socket drops all datagrams that do not end with
 * a secret number of this process, and cuts that off, so that the program does not read it. All functions may be
 * called in a child of fork() or vfork(), and by several threads for one socket.
 */
#ifndef ROCADE_PRELOAD_NETLINK_SOCKET_H
#define ROCADE_PRELOAD_NETLINK_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* type: as that of socket(). Returns the descriptor or -errno. */
int netlink_socket_open(int type);
/* Whether fd is such a socket, which costs one load if the number never was one's. */
bool netlink_socket_is(int fd);
/* Has netlink_socket_is() look at a duplicate of such a socket. Returns false if the number is too high. */
bool netlink_socket_note(int fd);
/* Stores the socket's port ID. It gets one, if it has none. Returns 0 or -errno. */
int netlink_socket_port(int fd, uint32_t *port);
/* Sends the socket, which has this port ID, a datagram by itself. Returns 0 or -errno; -ENOBUFS: the program has not
 * read earlier ones. */
int netlink_socket_give(int fd, uint32_t port, const void *bytes, size_t len);

#endif
