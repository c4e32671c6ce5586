/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's connection to the daemon: one request at a time, replies in order. */
#ifndef ROCADE_SHM_SESSION_H
#define ROCADE_SHM_SESSION_H

#include <pthread.h>

#include "switch/proto.h"

struct session {
	pthread_mutex_t lock; /* held from a request to its reply */
	int fd;               /* -1: closed */
};

/* Connects. Returns 0 or -errno: -ENOENT or -ECONNREFUSED if there is no daemon. */
int session_open(struct session *s, const char *path);
void session_close(struct session *s);

/* Sends a request and receives the reply. Returns 0, the daemon's error as -errno, or
 * -ENODEV if the connection has ended. The caller owns the descriptors that came with the
 * reply; missing ones are -1. fds may be NULL if fd_count is 0. */
int session_call(struct session *s, const struct sw_request *request,
	struct sw_reply *reply, int *fds, unsigned fd_count);

/* Asks for the description of the daemon's device. Returns 0, or -EPROTO if it is not
 * valid, or as session_call(). */
int session_device(struct session *s, struct sw_device *device);
/* Returns whether the description, which came from another process, is valid: terminated
 * name, and room for the link-local address. */
bool session_device_valid(const struct sw_device *device);

#endif
