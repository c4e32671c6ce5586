/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon behind `rocaded`, as a library: it listens on a UNIX socket, gives each client a pair
 * of rings, and moves packets between them. One thread calls all of it, except
 * rocade_daemon_stop().
 *
 * Functions return 0 or a positive errno value; rocade_error() has a sentence.
 */
#ifndef ROCADE_DAEMON_H
#define ROCADE_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rocade_daemon;

struct rocade_daemon_conf {
	size_t size;		/* sizeof(struct rocade_daemon_conf) */
	const char *socket;	/* NULL: $ROCADE_SOCKET, else /run/rocade.sock for root,
				 * $XDG_RUNTIME_DIR/rocade.sock for others */
	uint32_t socket_mode;	/* permissions: who may attach. 0: 0600 */
	const char *name;	/* of the verbs device, NULL: rocade0 */
	const char *addresses;	/* as in struct rocade_port_conf */
	uint32_t mtu;		/* IP MTU; 0: 4180, for a path MTU of 4096 */
	uint32_t qpn_base;	/* 0: random */
	uint32_t max_clients;	/* 0: 256 */
	/* For each client; 0: the default. */
	uint32_t client_qps;	/* 16384 */
	uint32_t client_ring;	/* packets in each ring, a power of two: 1024 */
	uint32_t client_packets_per_s; /* 0: no limit */
};

/* Listens. EADDRINUSE: another daemon answers at this socket. */
int rocade_daemon_create(const struct rocade_daemon_conf *conf, struct rocade_daemon **daemon);

/* Serves until rocade_daemon_stop(). An idle daemon sleeps. */
int rocade_daemon_run(struct rocade_daemon *daemon);

/* Any thread, signal handlers too. */
void rocade_daemon_stop(struct rocade_daemon *daemon);

/* Hangs up on every client and removes the socket. */
void rocade_daemon_destroy(struct rocade_daemon *daemon);

const char *rocade_daemon_socket(const struct rocade_daemon *daemon);

#ifdef __cplusplus
}
#endif

#endif
