/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of the daemon's own process: rocade_daemon_connect(). Only server.c and
 * server_events.c call these. */
#ifndef ROCADE_SERVER_OWN_H
#define ROCADE_SERVER_OWN_H

#include "server/server.h"

/* Returns 0 or -errno. */
int own_open(struct rocade_daemon *d);
void own_close(struct rocade_daemon *d);
/* A thread of this process has connected. Returns as conn_accept(). */
struct account *own_accept(struct rocade_daemon *d);

#endif
