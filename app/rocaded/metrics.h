/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics of `rocade-status --prometheus` over HTTP, by a thread of its own (http_server.h). It asks the
 * daemon as any other process does (own_status.h), so it takes of the daemon's time what its user may. */
#ifndef ROCADED_METRICS_H
#define ROCADED_METRICS_H

#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <common/options.h>

#define METRICS_VALID                                                                    \
	"off, PORT, ADDRESS:PORT, [IPV6-ADDRESS]:PORT or the path of a socket, with a /"

struct metrics_address {
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	};
	socklen_t size; /* 0: off */
	char text[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

/* Returns false if the text is not METRICS_VALID. A PORT alone is one of 127.0.0.1. */
bool metrics_address_read(const char *text, struct metrics_address *address);

/* Makes the listening socket of the address, if there is one: before the filter of system calls. Only
 * its user may connect to one with a path. Returns 0, or -1 with an error. */
int metrics_listen(const struct metrics_address *address, char err[ERR_MAX]);

/* Starts the thread, if there is a socket. cpus: those that it may use; NULL or none: those of the caller. Returns 0,
 * or -1 with an error. */
int metrics_start(const cpu_set_t *cpus, char err[ERR_MAX]);

/* Ends the thread and removes the socket. After own_status_stop() and the end of the daemon, for whose answer
 * the thread may wait. */
void metrics_stop(void);

#endif
