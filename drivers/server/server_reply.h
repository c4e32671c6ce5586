/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies with descriptors (SCM_RIGHTS), and whether a client has read all replies. */
#ifndef ROCADE_SERVER_SERVER_REPLY_H
#define ROCADE_SERVER_SERVER_REPLY_H

#include <stdbool.h>

#include "switch/proto.h"

/*
 * Sends a reply and n descriptors; does not block. Returns false if the connection must be closed: the
 * client does not read its replies. Descriptors are sent only to a client that has read all its replies:
 * the kernel counts those in socket queues against the daemon's user, for all clients together, and
 * from RLIMIT_NOFILE on it refuses further ones (ETOOMANYREFS).
 */
bool reply_send(int socket, const struct sw_reply *reply, const int *fds, unsigned n);

/* Returns whether the client has received all that was sent to it, or has closed its end. */
bool replies_are_read(int socket);

#endif
