/* SPDX-License-Identifier: BSD-3-Clause */
/* What an attached client shares with the daemon: memory, and a wake-up descriptor in
 * each direction. server_conn.c creates and destroys it; the switch and server_report.c
 * wake the client. */
#ifndef ROCADE_SERVER_SHARE_H
#define ROCADE_SERVER_SHARE_H

#include "server/server.h"

/* fds: the client's descriptors. The caller closes fds[2], which the daemon does not
 * need. Returns 0 or -errno, with nothing created. */
int share_create(
	struct conn *conn, const struct region_geom *geom, int fds[SW_ATTACH_FDS]);
/* Seals the memory, which the client has mapped: from now on it cannot be mapped for
 * writing, and no hole can be punched into it. Returns 0 or -errno. */
int share_seal(struct conn *conn);
/* No effect if nothing was created. */
void share_destroy(struct conn *conn);
/* The switch's wake callback; owner is a conn. */
void share_wake(void *owner);

#endif
