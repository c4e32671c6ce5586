/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptors that a thread of the daemon waits for, in two epoll sets. The files that own such a
 * descriptor add and close it; server.c hands each that is ready to the owner's file.
 *
 * - The set for serving tells which descriptors are ready, one at a time and in turn. The eventfds by
 *   which clients wake the daemon are not in it: however many of them are written, and however often,
 *   requests of others do not wait behind them.
 * - The set for sleeping has all descriptors, edge-triggered: it ends a sleep, with one system call.
 *
 * Neither set is in the other one. To add a descriptor to a set that is in another one, or a set to a
 * set, epoll_ctl(2) takes a lock of the whole machine, which any process can have the kernel keep for as
 * long as it likes.
 */
#ifndef ROCADE_SERVER_FD_SOURCE_H
#define ROCADE_SERVER_FD_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/account.h"

/* Kinds of descriptors. */
enum fd_source_kind {
	FD_SOURCE_LISTEN,     /* the daemon's listening socket */
	FD_SOURCE_OWN,        /* pipe of rocade_daemon_connect() */
	FD_SOURCE_STOP,       /* eventfd of rocade_daemon_stop() */
	FD_SOURCE_CLIENT,     /* conn->socket */
	FD_SOURCE_PROCESS,    /* conn->process */
	FD_SOURCE_WAKE,       /* conn->daemon_wake, in the set for sleeping only */
	FD_SOURCE_CM_TIMER,   /* timerfd for the next deadline of RDMA-CM */
	FD_SOURCE_CM_CHANNEL, /* the daemon's end of an RDMA-CM channel */
};

struct conn;

struct fd_sets {
	int sleep; /* -1: there is none */
	int serve; /* -1: only wake-ups are waited for */
	bool left; /* something may be ready that the set for sleeping has told of already */
};

struct fd_source {
	enum fd_source_kind kind;
	struct conn *conn; /* NULL: of the daemon, not of a connection */
	struct fd_sets *sets;
	int fd;
	/* server_control.h: */
	bool parked, resumed;         /* resumed: and not served since */
	struct account_waiter waiter; /* while it is parked */
	uint64_t round;               /* without a connection: in which it was served */
};

/* serves: not only for wake-ups. Returns 0 or -errno; fd_sets_close() in any case. */
int fd_sets_open(struct fd_sets *sets, bool serves);
/* No source may be left. Closed sets are closed again without effect. */
void fd_sets_close(struct fd_sets *sets);
/* Waits for an event. TIME_NEVER: until there is one; 0: not at all. Returns whether fd_sets_next() may
 * have one: not after wake-ups. */
bool fd_sets_wait(struct fd_sets *sets, uint64_t timeout_ns);
/* Returns the next source that is ready, NULL: there is none. */
struct fd_source *fd_sets_next(struct fd_sets *sets);

/* Adds fd to the sets (of a channel only its end is reported) and fills source.
 * Returns 0 or -errno; on failure the caller still owns fd. */
int fd_source_add(struct fd_sets *sets, struct fd_source *source, int fd,
	enum fd_source_kind kind, struct conn *conn);
/* Stops or resumes events. The end of the other side is reported once all the same. */
void fd_source_pause(struct fd_source *source, bool pause);
/* Removes the descriptor from the sets and returns it; -1: there is none. */
int fd_source_remove(struct fd_source *source);
/* Removes the descriptor from the sets and closes it, unless that was done. */
void fd_source_close(struct fd_source *source);

#endif
