/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors of clients. Closing one may take as long as its client likes. So the daemon's
 * thread, which serves all clients, closes none of these:
 *
 * - Those that clients pass to the daemon over their sockets (SCM_RIGHTS). No request needs
 *   one. It may be a TCP socket that lingers, or a file of a FUSE server. The kernel closes
 *   them in the thread that receives their message, and in the thread that closes a socket with
 *   such messages queued.
 * - Those that the daemon has given to a client. The last close(2) of a file that was given
 *   away removes the client's locks from it (F_OFD_SETLK) and takes it out of the client's epoll
 *   sets, for each of which it waits, and closes what the client has sent into a socket.
 *
 * Linux 6.16 can refuse them at the sender (SO_PASSRIGHTS). With older kernels the daemon looks
 * at a message before it receives it, and leaves one with descriptors where it is. A socket with
 * messages in its queue is closed by a thread, and with it what is queued. The same thread closes what
 * the daemon has given away. Each user has its own thread, and what that has to close is charged to the
 * user until it is closed.
 *
 * The daemon's thread keeps connections whose clients have not read all replies, and looks at a few of them
 * at a time, in turn: one whose replies are read is closed.
 */
#ifndef ROCADE_SERVER_PASSED_FDS_H
#define ROCADE_SERVER_PASSED_FDS_H

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/account.h"

/* Not yet in the headers of every C library. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

struct fd_closer;
struct queued_fd;

STAILQ_HEAD(queued_fds, queued_fd);

struct passed_fds {
	TAILQ_HEAD(, fd_closer) closers; /* of the users whose descriptors wait */
	struct queued_fds unread;        /* connections, the next to look at first */
	unsigned unread_count;
	bool refused; /* the kernel refuses descriptors */
};

/* Has the kernel refuse descriptors that are sent to this socket, or to those accepted from it. Returns
 * whether it can. */
bool passed_fds_refuse(int fd);

void passed_fds_init(struct passed_fds *passed);
/* For the descriptors that come over the sockets accepted from this listener: has the
 * kernel refuse them if it can. */
void passed_fds_listen(struct passed_fds *passed, int listener);
/* Charges nothing any more. A thread that waits in close() ends when that returns. */
void passed_fds_fini(struct passed_fds *passed);

/* Receives a message; does not block. *came: it has descriptors, and stays in the queue. Returns
 * as recv() with MSG_TRUNC. */
ssize_t passed_fds_recv(
	const struct passed_fds *passed, int fd, void *to, size_t len, bool *came);

/* Closes a socket that clients can send to, without waiting for descriptors in its queue. If it
 * has to wait, one descriptor is charged to the account, if that has room, or NULL. */
void passed_fds_close(struct passed_fds *passed, struct account *account, int fd);

/* Closes the socket of a connection whose client has not read all replies, once it has, or has closed its end.
 * The kernel keeps what is not read, and charges it to the daemon. So the connection, for which the caller has
 * charged one ACCOUNT_connections, stays charged until then, and descriptors as above. */
void passed_fds_close_unread(struct passed_fds *passed, struct account *account, int fd);

/* Closes a descriptor that was given to a client, without waiting for what that has done with it. It is
 * charged as above; the caller charges it no more. -1: none. */
void passed_fds_close_given(struct passed_fds *passed, struct account *account, int fd);

/* Gives back what was charged for descriptors that are closed now. */
void passed_fds_collect(struct passed_fds *passed);
/* Looks at the next few connections with unread replies, and gives back what is charged for those whose replies are
 * read now. Each look is a system call: the daemon's thread makes them when it serves requests anyway. */
void passed_fds_look(struct passed_fds *passed);
/* Gives back what is charged for connections of this user whose replies are read now, before the user is refused
 * one more. */
void passed_fds_collect_of(struct passed_fds *passed, const struct account *account);
/* Returns how many descriptors are not closed yet. */
unsigned passed_fds_pending(const struct passed_fds *passed);

#endif
