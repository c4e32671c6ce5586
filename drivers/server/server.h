/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon around a switch: its socket, its clients' memory and descriptors, its sleep.
 */
#ifndef ROCADE_SERVER_H
#define ROCADE_SERVER_H

#include <stdio.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <rocade/daemon.h>

#include "switch/proto.h"
#include "switch/socket.h"
#include "switch/uplink.h"

/* What an epoll event is about. */
enum watch_kind {
	WATCH_LISTEN,
	WATCH_STOP,
	WATCH_CLIENT,
	WATCH_PROCESS,
	WATCH_BELL,
	WATCH_CM_TIMER,
	WATCH_CM_CHANNEL,
};

struct conn;

struct watch {
	enum watch_kind kind;
	struct conn *conn;
	int fd;
};

/* A client process, attached or not yet. */
struct conn {
	TAILQ_ENTRY(conn) link;
	struct rocade_daemon *daemon;
	struct watch socket;
	struct watch process; /* a pidfd: a forked child may keep the socket open */
	struct watch bell; /* an eventfd that the client writes when we sleep; never read:
			      the client could make that wait */
	int wake_fd;       /* our end of a socket whose other end wakes the client */
	struct sw_client *client; /* NULL: not attached */
	struct rdmacm_client *cm; /* NULL: it has not asked for RDMA-CM */
	void *mem;
	size_t size;
	pid_t pid;
	uid_t uid;
	char name[16];  /* printable, without quotes */
	uint32_t asked; /* for its report: which question, 0: none */
	bool closing;   /* freed at the end of the round */
};

TAILQ_HEAD(conns, conn);

struct rocade_daemon {
	struct sw *sw;
	struct uplink *up; /* NULL: between clients only */
	uint64_t sleep_us;
	struct sw_device device;
	struct sockaddr_un addr;
	int epoll;
	struct watch listen;
	struct watch stop;
	struct conns conns;
	struct conns closing;
	struct rdmacm *cm;
	uint32_t conn_count;
	uint32_t corrupt_seen; /* of the switch's corrupt_count */
	int spare_fd;          /* given up to turn somebody away when there is no other */
	uint32_t asked;        /* questions for reports so far */
	uint64_t asked_ns;
	bool bound;
	bool full; /* of descriptors, when somebody last came */
	bool stopping;
};

/* conn.c */
void
conn_accept(struct rocade_daemon *d);
/* A request, or the end. */
void
conn_ready(struct conn *conn);
/* Out of the switch at once, freed by conn_reap(): events of it may still be in hand. */
void
conn_close(struct conn *conn);
void
conn_reap(struct rocade_daemon *d);
/* Hangs up on those whose rings make no sense. */
void
conn_close_corrupt(struct rocade_daemon *d);
/* The switch's: owner is a conn. */
void
conn_wake(void *owner);

/* server.c: adds to the epoll set, a bell for each time that it is written; -errno. */
int
watch_add(struct rocade_daemon *d, struct watch *watch, int fd, enum watch_kind kind,
	struct conn *conn);
void
watch_close(struct rocade_daemon *d, struct watch *watch);

/* conf.c: with a sentence. */
int
switch_make(struct rocade_daemon *d, const struct rocade_daemon_conf *conf);
int
port_take(struct rocade_daemon *d, struct rocade_daemon_port *port);

/* rdmacm.c: programs' RDMA-CM. 0 or -errno. */
int
rdmacm_create(struct rocade_daemon *d);
/* No client left. */
void
rdmacm_destroy(struct rocade_daemon *d);
/* The switch's addresses are others now. */
void
rdmacm_port(struct rocade_daemon *d); /* there is one now */
void
rdmacm_set_net(struct rocade_daemon *d);
/* As a member of an object in JSON. */
void
rdmacm_print(FILE *to, const struct rocade_daemon *d);
/* A channel for the process; fd: its own end. */
int
rdmacm_open(struct conn *conn, int *fd, uint32_t *number);
/* A struct sw_cm_request; false: the conversation is over. */
bool
rdmacm_serve(struct conn *conn, const void *request);
void
rdmacm_forget(struct conn *conn);
void
rdmacm_timer(struct rocade_daemon *d);
/* The process has closed the channel. */
void
rdmacm_channel(const struct watch *watch);
/* Frees channels that were closed: events of them may still have been in hand. */
void
rdmacm_reap(struct rocade_daemon *d);
/* Listeners of all clients. */
uint32_t
rdmacm_listeners(const struct rocade_daemon *d);

/* status.c: a descriptor with the state as JSON, or -errno. */
int
status_fd(const struct rocade_daemon *d);

/* report.c: asks every client for its report, if that is not just under way. */
void
report_ask(struct rocade_daemon *d);
/* How many of those that were asked have not answered. */
uint32_t
report_missing(const struct rocade_daemon *d);
/* For conn, of the first client from this id on: its id, and a descriptor with what it
 * says. -ENOENT, -EPERM (the id is set), -errno. */
int
report_fd(const struct conn *conn, uint32_t from, uint32_t *id, int *fd);

#endif
