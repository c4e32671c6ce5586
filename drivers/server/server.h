/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon around a switch: its socket, its clients' memory and descriptors, its
 * sleep. */
#ifndef ROCADE_SERVER_H
#define ROCADE_SERVER_H

#include <stdio.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <rocade/daemon.h>

#include "switch/proto.h"
#include "switch/socket.h"
#include "switch/uplink.h"

/* Kinds of epoll events: what the descriptor is. */
enum fd_source_kind {
	FD_SOURCE_LISTEN,     /* the daemon's listening socket */
	FD_SOURCE_STOP,       /* eventfd of rocade_daemon_stop() */
	FD_SOURCE_CLIENT,     /* conn->socket */
	FD_SOURCE_PROCESS,    /* conn->process */
	FD_SOURCE_WAKE,       /* conn->daemon_wake */
	FD_SOURCE_CM_TIMER,   /* timerfd for the next deadline of RDMA-CM */
	FD_SOURCE_CM_CHANNEL, /* the daemon's end of an RDMA-CM channel */
};

struct conn;

struct fd_source {
	enum fd_source_kind kind;
	struct conn *conn; /* NULL: of the daemon, not of a connection */
	int fd;
};

/* A connection of a client process, attached or not. */
struct conn {
	TAILQ_ENTRY(conn) link;
	struct rocade_daemon *daemon;
	struct fd_source socket;
	/* a pidfd: reports the end of the process even if a forked child keeps the socket
	 * open */
	struct fd_source process;
	/* an eventfd that the client writes to wake the daemon; never read, because the
	 * client could make the read block */
	struct fd_source daemon_wake;
	int wake_fd; /* the daemon's end of a socket pair: a write wakes the client */
	struct sw_client *client; /* NULL: not attached */
	struct rdmacm_client *cm; /* NULL: RDMA-CM is not in use */
	void *mem;                /* shared with the client (struct region) */
	size_t size;              /* of mem, in bytes */
	pid_t pid;                /* 0: in another PID namespace */
	uid_t uid;
	char name[16]; /* of the process: printable, without quotes */
	/* generation of the statistics last requested from this client, 0: none */
	uint32_t requested_gen;
	bool closing; /* freed at the end of the pass over the events */
};

TAILQ_HEAD(conns, conn);

struct rocade_daemon {
	struct sw *sw;
	struct uplink *up; /* NULL: traffic between clients only */
	uint64_t sleep_us;
	struct sw_device device;
	struct sockaddr_un addr;
	int epoll;
	struct fd_source listen;
	struct fd_source stop;
	struct conns conns;
	struct conns closing;
	struct rdmacm *cm;
	uint32_t conn_count;
	uint32_t corrupt_seen; /* last handled value of the switch's corrupt_count */
	/* /dev/null: closed to accept and reject a connection when no descriptor is
	 * left */
	int spare_fd;
	uint32_t requested_gen; /* generation of the statistics last requested */
	uint64_t requested_ns;
	bool bound;
	bool full; /* accept() failed last time for want of a descriptor */
	bool stopping;
};

/* server_conn.c */
void conn_accept(struct rocade_daemon *d);
/* Handles a readable socket: a request, or the end of the connection. */
void conn_ready(struct conn *conn);
/* Removes the client from the switch at once. conn_reap() frees it later: the current
 * batch of events may still refer to it. */
void conn_close(struct conn *conn);
void conn_reap(struct rocade_daemon *d);
/* Disconnects clients whose rings have an invalid index. */
void conn_close_corrupt(struct rocade_daemon *d);
/* The switch's wake callback; owner is a conn. */
void conn_wake(void *owner);

/* server.c: adds the descriptor to the epoll set (the wake-up eventfd is edge-triggered).
 * Returns 0 or -errno. */
int fd_source_add(struct rocade_daemon *d, struct fd_source *source, int fd,
	enum fd_source_kind kind, struct conn *conn);
void fd_source_close(struct rocade_daemon *d, struct fd_source *source);

/* server_conf.c: these set the error text. */
int switch_create(struct rocade_daemon *d, const struct rocade_daemon_conf *conf);
int port_attach(struct rocade_daemon *d, struct rocade_daemon_port *port);

/* server_rdmacm.c: RDMA-CM for the clients. Returns 0 or -errno. */
int rdmacm_create(struct rocade_daemon *d);
/* No client may be left. */
void rdmacm_destroy(struct rocade_daemon *d);
/* Connects RDMA-CM to the new port. */
void rdmacm_set_port(struct rocade_daemon *d);
/* Follows a change of the switch's addresses. */
void rdmacm_set_net(struct rocade_daemon *d);
/* Prints the "rdma_cm" member of the JSON status. */
void rdmacm_print(FILE *to, const struct rocade_daemon *d);
/* Opens a channel for the process. fd: the descriptor for the process. */
int rdmacm_open(struct conn *conn, int *fd, uint32_t *number);
/* Serves a struct sw_cm_request. Returns false if the connection must be closed. */
bool rdmacm_serve(struct conn *conn, const void *request);
void rdmacm_forget(struct conn *conn);
void rdmacm_timer(struct rocade_daemon *d);
/* The channel's socket is readable: the process may have closed it. */
void rdmacm_channel(const struct fd_source *source);
/* Frees closed channels, to which events of the current batch may have referred. */
void rdmacm_reap(struct rocade_daemon *d);
/* Returns the number of listeners of all clients. */
uint32_t rdmacm_listeners(const struct rocade_daemon *d);

/* server_status.c: returns a descriptor with the state as JSON, or -errno. */
int status_fd(const struct rocade_daemon *d);

/* server_report.c: requests statistics from every client, unless that was just done. */
void report_request(struct rocade_daemon *d);
/* Returns how many of the clients asked have not written their statistics. */
uint32_t report_missing(const struct rocade_daemon *d);
/* Finds, for conn, the statistics of the first client with an id of at least `from`. Sets
 * *id to its id and *fd to a descriptor of the statistics. Returns 0, -ENOENT (no such
 * client), -EPERM (it belongs to another user; *id is set) or another -errno. */
int report_fd(const struct conn *conn, uint32_t from, uint32_t *id, int *fd);

#endif
