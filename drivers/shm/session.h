/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's connection to the daemon: one request at a time, replies in order. */
#ifndef ROCADE_SHM_SESSION_H
#define ROCADE_SHM_SESSION_H

#include <pthread.h>
#include <sys/types.h>

#include "switch/proto.h"

/* Environment variable: the uid of a user whose daemon the client accepts, besides root
 * and the client's own user. */
#define SESSION_UID_ENV "ROCADE_DAEMON_UID"

#define SESSION_TEXT 400 /* bytes of an error text, with the path of the socket */

struct session {
	pthread_mutex_t lock;    /* held from a request to its reply */
	int fd;                  /* -1: closed */
	uid_t daemon_uid;        /* of the process that listens */
	uint32_t daemon_version; /* of the protocol, in the latest reply */
	/* The daemon has not replied in time, and counts as ended: for the other connections of the
	 * process to this daemon, too, which do not report it if it is only stopped. */
	bool timed_out;
	unsigned wait_ms; /* for a reply */
	/* The daemon has refused the connection, or the last request, with this errno value; else 0.
	 * For this limit, if it tells one. */
	int refused;
	struct sw_refusal refusal;
};

/*
 * Connects, and checks which user the daemon is. Returns 0 or -errno: -ENOENT or
 * -ECONNREFUSED if there is no daemon, -EPERM if it is of a user that
 * session_uid_accepted() refuses, -ETIMEDOUT if it accepts no connection. On failure
 * there is nothing to close.
 */
int session_open(struct session *s, const char *path);
/* As above, of a daemon that has to answer each request within this time. */
int session_open_within(struct session *s, const char *path, unsigned ms);
/* Takes a connected socket, which session_close() closes. */
void session_adopt(struct session *s, int fd);
/* Returns whether a client of user own accepts a daemon of user uid: root, own, or the
 * number in told (NULL: none). The daemon can read and change all that its clients send,
 * and in a directory that all may write to, any user can be the first to take a path. */
bool session_uid_accepted(uid_t uid, uid_t own, const char *told);
/* Writes one line that says why session_open(), or a request after it, failed with rc. */
void session_error_text(
	const struct session *s, const char *path, int rc, char *text, size_t size);
void session_close(struct session *s);
/* A send or receive has failed with errno: notes whether the time of a reply is over, or that the daemon has
 * refused the connection. Returns -errno of the refusal, or -ENODEV. */
int session_lost(struct session *s);

/* Sends a request and receives the reply. Returns 0, the daemon's error as -errno,
 * -EPROTONOSUPPORT if the daemon has another version of the protocol, or -ENODEV if the
 * connection has ended; if the daemon has refused it for a limit, its error and the limit are in the
 * session. The caller owns the descriptors that came with the reply; missing
 * ones are -1. fds may be NULL if fd_count is 0. */
int session_call(struct session *s, const struct sw_request *request,
	struct sw_reply *reply, int *fds, unsigned fd_count);

/* Sends a request that a struct sw_data_reply answers. Returns as session_call(); then
 * reply->len bytes are valid. */
int session_fetch(
	struct session *s, const struct sw_request *request, struct sw_data_reply *reply);

/* Asks for the description of the daemon's device. Returns 0, or -EPROTO if it is not
 * valid, or as session_call(). */
int session_device(struct session *s, struct sw_device *device);
/* Returns whether the description, which came from another process, is valid: terminated
 * name, and room for the link-local address. */
bool session_device_valid(const struct sw_device *device);

#endif
