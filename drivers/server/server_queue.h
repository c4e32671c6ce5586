/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_daemon_run_queue(): a thread for each further queue of the port. */
#ifndef ROCADE_SERVER_QUEUE_H
#define ROCADE_SERVER_QUEUE_H

#include "server/server.h"

/* Creates an epoll set of wake-ups for each further queue, and the eventfds by which threads wake each
 * other. Returns 0, or an errno value with the error set. */
int queues_open(struct rocade_daemon *d);
/* No queue runs any more. */
void queues_close(struct rocade_daemon *d);

/* The client of the connection has been added: its wake-ups go to its thread. Returns 0 or
 * -errno. */
int queue_wakes_move(struct conn *conn);

/* A pass of each further queue, none of which runs. Returns the number of packets. */
unsigned queues_drain(struct rocade_daemon *d, uint64_t now);

#endif
