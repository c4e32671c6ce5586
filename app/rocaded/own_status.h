/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's state, for other threads of its process. They ask the daemon over a connection, as
 * rocade-status(1) does. So no thread but the daemon's own accesses the state. The connection does
 * not need the socket's file, which may be of another user than the daemon. */
#ifndef ROCADED_OWN_STATUS_H
#define ROCADED_OWN_STATUS_H

#include <stdbool.h>

#include <rocade/daemon.h>

void own_status_start(struct rocade_daemon *daemon);
/* Before the daemon is destroyed: from now on there is no answer. */
void own_status_stop(void);

/* Returns the text of rocade_status_over(), which the caller frees, or NULL if the daemon does not
 * answer. Any thread but the daemon's. */
char *own_status_text(bool qps);

#endif
