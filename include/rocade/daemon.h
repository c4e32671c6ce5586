/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon behind `rocaded`, as a library: it listens on a UNIX socket, gives each client a pair
 * of rings, and moves packets between them and, where it has one, a port. One thread calls all of
 * it, except rocade_daemon_stop().
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
struct rocade_daemon_port;

/* A port of DPDK. */
struct rocade_daemon_ethdev {
	size_t size;		/* sizeof(struct rocade_daemon_ethdev) */
	uint16_t ethdev;	/* DPDK's port id */
	uint16_t rx_desc;	/* 0: 1024; both are adjusted to what the PMD takes */
	uint16_t tx_desc;
	uint32_t mtu;		/* IP MTU; 0: the one it has */
	bool no_cksum_offload;
};

/* Opens it for a daemon: EAL is initialised, the port is not started. In programs that link
 * DPDK. */
int rocade_daemon_open_ethdev(const struct rocade_daemon_ethdev *conf,
	struct rocade_daemon_port **port);
/* One that no daemon has taken over. */
void rocade_daemon_close_port(struct rocade_daemon_port *port);

struct rocade_daemon_conf {
	size_t size;		/* sizeof(struct rocade_daemon_conf) */
	const char *socket;	/* NULL: $ROCADE_SOCKET, else /run/rocade.sock for root,
				 * $XDG_RUNTIME_DIR/rocade.sock for others */
	uint32_t socket_mode;	/* permissions: who may attach. 0: 0600 */
	const char *name;	/* of the verbs device, NULL: rocade0 */
	const char *addresses;	/* as in struct rocade_port_conf */
	const char *gateway4;	/* NULL: none */
	const char *gateway6;
	uint16_t vlan;		/* 0: untagged */
	uint32_t mtu;		/* IP MTU; 0: the port's, without one 4180 for a path MTU of 4096 */
	uint32_t qpn_base;	/* 0: random */
	uint32_t max_clients;	/* 0: 256 */
	/* For each client; 0: the default. */
	uint32_t client_qps;	/* 16384 */
	uint32_t client_ring;	/* packets in each ring, a power of two: 1024 */
	uint32_t client_packets_per_s; /* 0: no limit */
	uint32_t client_mrs;	/* memory regions; 1048575, the most there can be */
	/* NULL: between clients only. Taken over by rocade_daemon_create() if it succeeds. */
	struct rocade_daemon_port *port;
	uint32_t sleep_us;	/* an idle port is looked at this often; 0: all the time */
};

/* Whether all of it is right, as far as that can be said without opening anything. */
int rocade_daemon_check(const struct rocade_daemon_conf *conf);

/* Listens. EADDRINUSE: another daemon answers at this socket. */
int rocade_daemon_create(const struct rocade_daemon_conf *conf, struct rocade_daemon **daemon);

/* Serves until rocade_daemon_stop(), and again when it is called again. An idle daemon sleeps
 * (with a port: as sleep_us says). */
int rocade_daemon_run(struct rocade_daemon *daemon);

/* Any thread, signal handlers too. */
void rocade_daemon_stop(struct rocade_daemon *daemon);

/* Between two runs: addresses, gateways, limits and sleep_us from now on. Clients that have more
 * than a new limit keep it; a ring's size is that of clients to come. Nothing else of conf is
 * looked at. */
int rocade_daemon_change(struct rocade_daemon *daemon, const struct rocade_daemon_conf *conf);

enum rocade_daemon_log { ROCADE_LOG_ERROR, ROCADE_LOG_WARNING, ROCADE_LOG_INFO, ROCADE_LOG_DEBUG };

/* What it says on standard error, from now on; with the priorities of sd-daemon(3) where that is
 * the journal. */
void rocade_daemon_log(enum rocade_daemon_log level);

/* Sends what clients have asked to be sent, hangs up on them and removes the socket. */
void rocade_daemon_destroy(struct rocade_daemon *daemon);

const char *rocade_daemon_socket(const struct rocade_daemon *daemon);

#ifdef __cplusplus
}
#endif

#endif
