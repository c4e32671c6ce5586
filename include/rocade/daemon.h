/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon behind `rocaded`. It listens on a UNIX socket, gives each client a pair of
 * rings in shared memory, and moves packets between clients and, if it has one, a port.
 * All functions must be called by one thread, except where their descriptions say "any
 * thread", and except rocade_daemon_run_queue(). They are part
 * of `rocaded`; no installed library contains them.
 *
 * Functions that return int return 0 or a positive errno value; rocade_error() then
 * describes the failure. Pointers must be valid, or NULL where a description allows that.
 */
#ifndef ROCADE_DAEMON_H
#define ROCADE_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rocade/rocade.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rocade_daemon;
struct rocade_daemon_port;

/* An rte_ethdev port. */
struct rocade_daemon_ethdev {
	size_t size;     /* sizeof(struct rocade_daemon_ethdev) */
	uint16_t ethdev; /* port id of rte_ethdev */
	/* descriptors; 0: 1024; both are adjusted to the limits of the PMD */
	uint16_t rx_desc;
	uint16_t tx_desc;
	uint32_t mtu; /* IP MTU in bytes, 576 to 9600; 0: the port's present MTU */
	bool no_cksum_offload;
	/* Pairs of a receive and a transmit queue, 1 to 16; 0: one. Each beyond the first
	 * needs a thread in rocade_daemon_run_queue(). */
	uint16_t queues;
};

/* Configures and starts an ethdev port for a daemon. EAL must be initialised and the port
 * not started. Only in programs that link DPDK. *port belongs to the caller until
 * rocade_daemon_create() takes it. EINVAL: a member of conf is wrong, or EAL is not
 * initialised. ENODEV: no such port. EBUSY: the port is started already. ENOMEM. EIO: the
 * PMD refused. A failure can leave the ethdev port closed, as after
 * rte_eth_dev_close(). */
int rocade_daemon_open_ethdev(
	const struct rocade_daemon_ethdev *conf, struct rocade_daemon_port **port);
/* Stops, closes and frees a port that no daemon has taken. */
void rocade_daemon_close_port(struct rocade_daemon_port *port);

struct rocade_daemon_conf {
	size_t size; /* sizeof(struct rocade_daemon_conf) */
	/* path; NULL: $ROCADE_SOCKET, else /run/rocade.sock for root and
	 * $XDG_RUNTIME_DIR/rocade.sock for other users */
	const char *socket;
	/* permissions of the socket: who may attach, up to 0777; 0: 0600 */
	uint32_t socket_mode;
	/* A listening AF_UNIX socket of type SOCK_SEQPACKET that a service manager has
	 * made; 0: the daemon makes its own. The daemon closes it; a failed
	 * rocade_daemon_create() may close it too. socket and socket_mode are not used
	 * then, and the socket's file stays when the daemon ends. */
	int listen_fd;
	/* name of the verbs device, at most 63 letters, digits, '_' and '-'; NULL:
	 * rocade0 */
	const char *name;
	const char *addresses; /* as in struct rocade_port_conf */
	const char *gateway4;  /* default gateway for IPv4, NULL: none */
	const char *gateway6;
	uint16_t vlan; /* 802.1Q VLAN ID, 1..4094; 0: untagged */
	/* IP MTU in bytes of the device, 576 to 9000; 0: that of the port, at most 9000,
	 * or 4184 without a port (path MTU 4096) */
	uint32_t mtu;
	/* Entries of the port's neighbour table, a power of two, 1024 to 65536; 0: 4096. */
	uint32_t neighbours;
	uint32_t qpn_base;    /* first QPN; 0: random */
	uint32_t max_clients; /* clients attached at a time, up to 65536; 0: 256 */
	/* RDMA-CM IDs and connections of all clients, in any state, a power of two, 1024 to
	 * 65536; 0: 8192. A client has at most half of them. */
	uint32_t rdmacm_connections;
	/* Limits of each client. 0: the default. */
	uint32_t client_qps; /* QPs, up to 65536; default 16384 */
	/* packets in each ring, a power of two, 64 to 65536; default 1024 */
	uint32_t client_ring;
	uint32_t client_packets_per_s; /* packets sent per second; default: no limit */
	/* other clients with which it exchanges packets without the daemon, by memory that only the
	 * two share, up to 64. 0, or with client_packets_per_s: none. */
	uint32_t client_pairs;
	/* memory regions; default 1048575, which is also the maximum */
	uint32_t client_mrs;
	/* NULL: clients reach only each other. rocade_daemon_create() takes the port if
	 * it succeeds. */
	struct rocade_daemon_port *port;
	/* Maximum interval between polls of an idle port, in microseconds, up to 1000000.
	 * 0: the daemon polls all the time. */
	uint32_t sleep_us;
	/* Loss and other faults on purpose, for tests: of what the port sends and receives, each frame
	 * on its own; without a port, of what clients send. */
	struct rocade_impair impair;
};

/* Checks conf as far as that is possible without opening anything. EINVAL or ENOMEM. */
int rocade_daemon_check(const struct rocade_daemon_conf *conf);

/* Creates a daemon, which then listens on its socket. EINVAL: a member of conf is wrong.
 * EADDRINUSE: another daemon answers at the socket. ENOTSOCK: the path is another file.
 * ENOMEM, or an errno value of the system. On failure conf->port stays the caller's. */
int rocade_daemon_create(
	const struct rocade_daemon_conf *conf, struct rocade_daemon **daemon);

/* Serves clients until rocade_daemon_stop() is called; may be called again after that. An
 * idle daemon sleeps; with a port, for at most sleep_us. Returns 0. */
int rocade_daemon_run(struct rocade_daemon *daemon);

/* Runs a further queue of the daemon's port, and the clients that belong to it, in a thread
 * of its own: queue 1, 2 and so on. Returns after rocade_daemon_stop_queues(). A client
 * belongs to the running queue that had the fewest when it attached; queue 0 is that of
 * rocade_daemon_run(). Before a queue runs, the port receives nothing on it. EINVAL: there
 * is no such queue, or it runs already. */
int rocade_daemon_run_queue(struct rocade_daemon *daemon, unsigned queue);
/* Makes all calls of rocade_daemon_run_queue() return, for good. They must have returned
 * before rocade_daemon_destroy(). Any thread. */
void rocade_daemon_stop_queues(struct rocade_daemon *daemon);

/* Makes rocade_daemon_run() return. Any thread, also from a signal handler. */
void rocade_daemon_stop(struct rocade_daemon *daemon);

/* Changes addresses, gateways, limits and sleep_us, while rocade_daemon_run() is not
 * running. Other members of conf must be valid, and are ignored. Clients that exceed a
 * new limit keep what they have. A new ring size is that of future clients. EINVAL or
 * ENOMEM. */
int rocade_daemon_change(
	struct rocade_daemon *daemon, const struct rocade_daemon_conf *conf);

enum rocade_daemon_log {
	ROCADE_LOG_ERROR,
	ROCADE_LOG_WARNING,
	ROCADE_LOG_INFO,
	ROCADE_LOG_DEBUG
};

/* Sets the most detailed level that daemons of this process log to standard error; the
 * default is ROCADE_LOG_WARNING. Lines have the priorities of sd-daemon(3) if standard
 * error is the journal. Logging does not block: what standard error does not take at once
 * is lost, and the next line that it takes says how many lines were. */
void rocade_daemon_log(enum rocade_daemon_log level);

/* Logs a line, without the newline, whatever the level is. Any thread, after the first
 * rocade_daemon_log(). */
void rocade_daemon_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Sends the packets that clients have posted (for up to 100 ms), disconnects all clients,
 * removes the socket and frees the daemon and its port. */
void rocade_daemon_destroy(struct rocade_daemon *daemon);

/* Connects this process with the daemon, as connect(2) to its socket would, but whatever the
 * permissions of the socket are. The daemon serves *fd, which the caller closes, while
 * rocade_daemon_run() runs. Any thread, until rocade_daemon_destroy(). Returns 0 or a positive
 * errno value. */
int rocade_daemon_connect(struct rocade_daemon *daemon, int *fd);

/* Returns the path of the socket, which is valid until rocade_daemon_destroy(). */
const char *rocade_daemon_socket(const struct rocade_daemon *daemon);

#ifdef __cplusplus
}
#endif

#endif
