/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA-CM for the clients. */
#ifndef ROCADE_SERVER_RDMACM_H
#define ROCADE_SERVER_RDMACM_H

#include "base/json_out.h"
#include "server/server.h"

/* Of all clients, including those in time wait, unless the configuration has another number. */
#define RDMACM_CONNECTIONS 8192
#define RDMACM_CONNECTIONS_MIN 1024

/* For server.c. Returns 0 or -errno. */
int rdmacm_create(struct rocade_daemon *d);
/* No client may be left. */
void rdmacm_destroy(struct rocade_daemon *d);
/* The timer has expired. */
void rdmacm_timer(struct rocade_daemon *d);
/* The process has closed its end of the channel. */
void rdmacm_channel(const struct fd_source *source);

/* For server_conf.c: connects RDMA-CM to the new port; follows a change of addresses. */
void rdmacm_set_port(struct rocade_daemon *d);
void rdmacm_set_net(struct rocade_daemon *d);

/* For server_conn.c. Opens a channel for the process. forks: as for SW_CM_OPEN. fd: the descriptor for the
 * process. Returns 0 or -errno. */
int rdmacm_open(struct conn *conn, uint32_t forks, int *fd, uint32_t *number);
/* Serves a struct sw_cm_request. Returns false if the connection must be closed. */
bool rdmacm_serve(struct conn *conn, const void *request);
/* The client has taken its packets, as it was asked to for the upto-th time. */
void rdmacm_taken(struct conn *conn, uint32_t upto);
/* The connection ends. */
void rdmacm_forget(struct conn *conn);
/* Frees closed channels, to which events of the current batch may have referred. */
void rdmacm_reap(struct rocade_daemon *d);

/* For server_status.c: prints the "rdma_cm" member of the JSON status. */
void rdmacm_print(struct json_out *j, const struct rocade_daemon *d);
/* Returns the number of listeners of all clients. */
uint32_t rdmacm_listeners(const struct rocade_daemon *d);

#endif
