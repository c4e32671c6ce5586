/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol between the daemon and the service manager that has started it, systemd(1) or
 * another one: sd_listen_fds(3), sd_notify(3), sd_watchdog_enabled(3). */
#ifndef ROCADED_SERVICE_H
#define ROCADED_SERVICE_H

#include <stdint.h>

/* Returns the listening socket that the manager has passed, or 0 if it has passed none. -1: it
 * has passed several. */
int service_listen_fd(void);

/* Connects to the manager, if there is one. Returns the time within which it expects each
 * keep-alive message, in microseconds; 0: it expects none. */
uint64_t service_connect(void);

/* Sends assignments like "READY=1", separated by newlines. Does not block. */
void service_notify(const char *assignments);

#endif
