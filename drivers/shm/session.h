/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's conversation with the daemon: one request at a time, answered in turn. */
#ifndef ROCADE_SHM_SESSION_H
#define ROCADE_SHM_SESSION_H

#include <pthread.h>

#include "switch/proto.h"

struct session {
	pthread_mutex_t lock; /* a request and its reply */
	int fd;               /* -1: the conversation is over */
};

/* Connects. -errno: -ENOENT or -ECONNREFUSED when there is no daemon. */
int
session_open(struct session *s, const char *path);
void
session_close(struct session *s);

/* Sends a request and takes the reply: 0, the daemon's refusal as -errno, or -ENODEV when
 * it is not there any more. Descriptors that came with it are the caller's; those that
 * did not are -1. fds may be NULL when fd_count is 0. */
int
session_call(struct session *s, const struct sw_request *request, struct sw_reply *reply,
	int *fds, unsigned fd_count);

#endif
