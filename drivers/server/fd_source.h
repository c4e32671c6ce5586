/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptors in the daemon's epoll set. The files that own such a descriptor add and
 * close it; server.c waits for events and hands each to the owner's file. */
#ifndef ROCADE_SERVER_FD_SOURCE_H
#define ROCADE_SERVER_FD_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

/* Kinds of epoll events: what the descriptor is. */
enum fd_source_kind {
	FD_SOURCE_LISTEN,     /* the daemon's listening socket */
	FD_SOURCE_OWN,        /* pipe of rocade_daemon_connect() */
	FD_SOURCE_STOP,       /* eventfd of rocade_daemon_stop() */
	FD_SOURCE_CLIENT,     /* conn->socket */
	FD_SOURCE_PROCESS,    /* conn->process */
	FD_SOURCE_WAKE,       /* conn->daemon_wake, in the set of FD_SOURCE_WAKES only */
	FD_SOURCE_WAKES,      /* epoll set of the wake-ups of all clients */
	FD_SOURCE_CM_TIMER,   /* timerfd for the next deadline of RDMA-CM */
	FD_SOURCE_CM_CHANNEL, /* the daemon's end of an RDMA-CM channel */
};

struct conn;
struct epoll_event;

struct fd_source {
	enum fd_source_kind kind;
	struct conn *conn; /* NULL: of the daemon, not of a connection */
	int fd;
};

/* Adds fd to the epoll set (wake-ups are edge-triggered; of a channel only its end is
 * reported) and fills source.
 * Returns 0 or -errno; on failure the caller still owns fd. */
int fd_source_add(int epoll, struct fd_source *source, int fd, enum fd_source_kind kind,
	struct conn *conn);
/* Stops or resumes events of a client's socket; its end is always reported. */
void fd_source_pause(int epoll, struct fd_source *source, bool pause);
/* Waits for events: as epoll_wait(), but timeout_ns is in nanoseconds; TIME_NEVER: until there are
 * some. */
int fd_source_wait(int epoll, struct epoll_event *events, int max, uint64_t timeout_ns);
/* Removes the descriptor from the epoll set and returns it; -1: there is none. */
int fd_source_remove(int epoll, struct fd_source *source);
/* Removes the descriptor from the epoll set and closes it, unless that was done. */
void fd_source_close(int epoll, struct fd_source *source);

#endif
