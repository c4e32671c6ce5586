/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of the daemon's descriptors. Only server.c calls this. */
#ifndef ROCADE_SERVER_EVENTS_H
#define ROCADE_SERVER_EVENTS_H

#include "server/server.h"

/* Serves what is ready, for as long as server_control.h says. timeout_ns: TIME_NEVER sleeps until an
 * event, 0 does not sleep. After wake-ups only, the daemon looks for packets at once. */
void events_serve(struct rocade_daemon *d, uint64_t timeout_ns);

#endif
