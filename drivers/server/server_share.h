/* SPDX-License-Identifier: BSD-3-Clause */
/* What an attached client shares with the daemon: memory, and a wake-up descriptor in
 * each direction. server_conn.c creates and destroys it; the switch and server_report.c
 * wake the client. */
#ifndef ROCADE_SERVER_SHARE_H
#define ROCADE_SERVER_SHARE_H

#include "server/server.h"

/* A wake-up descriptor in each direction, and the two parts of the memory. */
#define SHARE_FDS 4

/* For conn->geom, for which memory_kib and SHARE_FDS descriptors are charged. fds: the client's descriptors. The caller closes the one that wakes the
 * client, which the daemon does not need. Returns 0 or -errno, with nothing created. */
int share_create(struct conn *conn, int fds[SW_ATTACH_FDS]);
/* The client has mapped and sealed its memory: it cannot be mapped for writing again, and no
 * hole can be punched into it. Returns 0 with both parts in *region, or -errno: -EPERM if it is
 * not sealed, -ENOMEM if the client has not allocated all pages of both. */
int share_start(struct conn *conn, struct region *region);
/* Returns the size of both parts in KiB. */
uint32_t share_kib(const struct region_geom *geom);
/* Gives conn->memory_kib and SHARE_FDS descriptors back to the user, when the memory has been
 * unmapped and the descriptors are closed. No effect if nothing is charged. */
void share_destroy(struct conn *conn);
/* Creates memory of a fixed size without any page. Returns its descriptor or -errno. */
int share_memory_create(size_t size);
/* A client has mapped the memory for writing, sealed it and allocated its pages: no process can map it
 * for writing again, or add or remove pages. Returns 0 or -errno: -EPERM if it is not sealed, -ENOMEM if
 * pages are missing. */
int share_memory_check(int fd, size_t size);
/* The switch's wake callback; owner is a conn. */
void share_wake(void *owner, const uint32_t *futex);

#endif
