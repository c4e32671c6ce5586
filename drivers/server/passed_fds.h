/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that clients pass to the daemon over their sockets (SCM_RIGHTS). No request
 * needs one, and closing one may take as long as its owner likes: a TCP socket that
 * lingers, a file of a FUSE server. The kernel closes them in the thread that receives
 * their message, and in the thread that closes a socket with such messages queued.
 *
 * Linux 6.16 can refuse them at the sender (SO_PASSRIGHTS). With older kernels the daemon
 * receives the descriptors, also those that are queued in a socket that it is about to
 * close, and a thread of its own closes them.
 */
#ifndef ROCADE_SERVER_PASSED_FDS_H
#define ROCADE_SERVER_PASSED_FDS_H

#include <stdbool.h>
#include <sys/types.h>

/* Not yet in the headers of every C library. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

struct fd_closer;

struct passed_fds {
	struct fd_closer *closer; /* NULL: none was needed yet */
	bool refused;             /* the kernel refuses descriptors */
};

/* For the descriptors that come over the sockets accepted from this listener: has the
 * kernel refuse them if it can. */
void passed_fds_init(struct passed_fds *passed, int listener);
/* Ends the thread; if that waits in close(), as soon as close() returns. */
void passed_fds_fini(struct passed_fds *passed);

/* Receives a message; does not block. *came: descriptors came with it. Returns as recv()
 * with MSG_TRUNC. */
ssize_t passed_fds_recv(
	struct passed_fds *passed, int fd, void *to, size_t len, bool *came);

/* Closes a socket that clients can send to, without waiting for descriptors in its
 * queue. */
void passed_fds_close(struct passed_fds *passed, int fd);

/* Returns how many descriptors are not closed yet. */
unsigned passed_fds_pending(const struct passed_fds *passed);

#endif
