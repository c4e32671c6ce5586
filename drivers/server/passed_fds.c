/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base_alloc.h"
#include "base/base_log.h"
#include "base/common.h"
#include "base/own_thread.h"
#include "server/passed_fds.h"
#include "server/server_reply.h"

#define UNREAD_FDS 1 /* of a thread that waits until replies are read: its epoll set */

/* A descriptor to close. */
struct queued_fd {
	STAILQ_ENTRY(queued_fd) link;
	int fd;
	unsigned charged; /* descriptors */
};

STAILQ_HEAD(queued_fds, queued_fd);

/* A thread that closes the descriptors of a user. Freed by the last of its two holders: the daemon
 * and the thread, which the daemon does not wait for. With an epoll set it closes connections, each once its
 * client has read all replies. */
struct fd_closer {
	struct own_thread thread;
	TAILQ_ENTRY(fd_closer) link;
	struct account *account; /* of the user; NULL: there is none */
	unsigned charged;        /* descriptors for which the user is charged */
	unsigned connections;    /* the same of connections */
	int set;                 /* -1: none */
	unsigned holders;
	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t changed;
	struct queued_fds waiting, closed;
	unsigned pending; /* descriptors that are not closed */
	int unread_fd;    /* for which the thread waits, -1: none */
	bool ended;       /* by the daemon */
};

static void
queued_free(struct queued_fds *queued)
{
	struct queued_fd *q;

	while ((q = STAILQ_FIRST(queued)) != NULL) {
		STAILQ_REMOVE_HEAD(queued, link);
		alloc_put(&alloc_plain, q, sizeof(*q));
	}
}

static void
closer_release(struct fd_closer *closer)
{
	if (__atomic_sub_fetch(&closer->holders, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	queued_free(&closer->closed);
	if (closer->set >= 0)
		close(closer->set);
	pthread_cond_destroy(&closer->changed);
	pthread_mutex_destroy(&closer->lock);
	alloc_put(&alloc_plain, closer, sizeof(*closer));
}

/* Looks at the first message of a queue, or with flags 0 takes it, without its descriptors: they stay there, or are
 * closed. Returns as recv() with MSG_TRUNC. *controls: it has descriptors, or credentials. */
static ssize_t
message_read(int fd, int flags, bool *controls)
{
	uint8_t byte;
	struct iovec iov = {.iov_base = &byte, .iov_len = sizeof(byte)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t got = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_TRUNC | flags);

	*controls = got >= 0 && (msg.msg_flags & MSG_CTRUNC) != 0;
	return got;
}

/* The same of a socket that is shut down, so that nothing is added to its queue. Returns whether there was one. */
static bool
message_is_there(int fd, int flags)
{
	bool controls;
	ssize_t got;

	do
		got = message_read(fd, flags, &controls);
	/* ECONNRESET: the client has closed its end; the queue is still there. */
	while (got < 0 && (errno == ECONNRESET || errno == EINTR));
	return got > 0 || controls;
}

/* Shuts a socket down. Now each message in its queue sets MSG_CTRUNC, also one of 0 bytes; the end of the queue does
 * not. */
static void
queue_end(int fd)
{
	const int on = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	(void)shutdown(fd, SHUT_RDWR);
}

/* Waits until the client has read all, or the daemon has ended. With the lock, which it gives up to wait. The
 * client may have sent its own end, which would stay open as long as it is in the queue. */
static void
unread_await(struct fd_closer *closer, int fd)
{
	/* An edge for each message that is freed: a level would say that one more may be sent. */
	struct epoll_event event = {.events = EPOLLOUT | EPOLLET};

	pthread_mutex_unlock(&closer->lock);
	while (message_is_there(fd, 0))
		continue;
	pthread_mutex_lock(&closer->lock);
	if (epoll_ctl(closer->set, EPOLL_CTL_ADD, fd, &event) != 0)
		return;
	closer->unread_fd = fd;
	while (!closer->ended && !replies_are_read(fd)) {
		pthread_mutex_unlock(&closer->lock);
		(void)epoll_wait(closer->set, &event, 1, -1);
		pthread_mutex_lock(&closer->lock);
	}
	closer->unread_fd = -1;
}

static void *
closer_main(void *arg)
{
	struct fd_closer *closer = arg;
	struct queued_fd *q;

	pthread_mutex_lock(&closer->lock);
	while ((q = STAILQ_FIRST(&closer->waiting)) != NULL || !closer->ended) {
		if (q == NULL) {
			pthread_cond_wait(&closer->changed, &closer->lock);
			continue;
		}
		STAILQ_REMOVE_HEAD(&closer->waiting, link);
		if (closer->set >= 0)
			unread_await(closer, q->fd);
		pthread_mutex_unlock(&closer->lock);
		close(q->fd);
		pthread_mutex_lock(&closer->lock);
		STAILQ_INSERT_TAIL(&closer->closed, q, link);
		closer->pending--;
	}
	pthread_mutex_unlock(&closer->lock);
	closer_release(closer);
	return NULL;
}

static struct fd_closer *
closer_start(struct passed_fds *passed, struct account *account, bool unread)
{
	struct fd_closer *closer = alloc_get(&alloc_plain, "closer", sizeof(*closer));

	if (closer == NULL)
		return NULL;
	pthread_mutex_init(&closer->lock, NULL);
	pthread_cond_init(&closer->changed, NULL);
	STAILQ_INIT(&closer->waiting);
	STAILQ_INIT(&closer->closed);
	closer->unread_fd = -1;
	closer->set = unread ? epoll_create1(EPOLL_CLOEXEC) : -1;
	closer->holders = 2;
	closer->thread = (struct own_thread){.name = "rocaded-close",
		.main = closer_main,
		.arg = closer,
		.detached = true};
	if ((unread && closer->set < 0) || own_thread_start(&closer->thread) != 0) {
		closer->holders = 1;
		closer_release(closer);
		return NULL;
	}
	closer->account = account;
	if (account != NULL)
		account_hold(account);
	TAILQ_INSERT_TAIL(&passed->closers, closer, link);
	return closer;
}

/* Gives back what the user was charged, although the thread may still wait in a close. */
static void
closer_end(struct passed_fds *passed, struct fd_closer *closer)
{
	TAILQ_REMOVE(&passed->closers, closer, link);
	account_give(closer->account, ACCOUNT_descriptors, closer->charged);
	account_give(closer->account, ACCOUNT_connections, closer->connections);
	if (closer->account != NULL)
		account_close(closer->account);
	pthread_mutex_lock(&closer->lock);
	closer->ended = true;
	if (closer->unread_fd >= 0)
		(void)shutdown(closer->unread_fd, SHUT_RDWR); /* wakes it */
	pthread_cond_signal(&closer->changed);
	pthread_mutex_unlock(&closer->lock);
	closer_release(closer);
}

static struct fd_closer *
closer_of(struct passed_fds *passed, struct account *account, bool unread)
{
	struct fd_closer *closer;

	TAILQ_FOREACH (closer, &passed->closers, link) {
		if (closer->account == account && (closer->set >= 0) == unread)
			return closer;
	}
	return closer_start(passed, account, unread);
}

/* unread: the connection is charged already. Returns whether the thread has got the descriptor. */
static bool
closer_put(struct passed_fds *passed, struct account *account, int fd, bool unread)
{
	struct queued_fd *q = alloc_get(&alloc_plain, "queued descriptor", sizeof(*q));
	struct fd_closer *closer = q != NULL ? closer_of(passed, account, unread) : NULL;
	unsigned fds = 1 + unread * UNREAD_FDS;

	if (closer == NULL) {
		if (q != NULL)
			alloc_put(&alloc_plain, q, sizeof(*q));
		/* Closing it here could stop the daemon. */
		log_warn("no memory: a descriptor of a client stays open");
		return false;
	}
	q->fd = fd;
	q->charged = account_take(account, ACCOUNT_descriptors, fds) ? fds : 0;
	closer->charged += q->charged;
	closer->connections += unread;
	pthread_mutex_lock(&closer->lock);
	STAILQ_INSERT_TAIL(&closer->waiting, q, link);
	closer->pending++;
	pthread_cond_signal(&closer->changed);
	pthread_mutex_unlock(&closer->lock);
	return true;
}

/* Returns whether it has closed all that it has. */
static bool
closer_collect(struct fd_closer *closer)
{
	struct queued_fds closed = STAILQ_HEAD_INITIALIZER(closed);
	const struct queued_fd *q;
	unsigned charged = 0, connections = 0;
	bool idle;

	pthread_mutex_lock(&closer->lock);
	STAILQ_CONCAT(&closed, &closer->closed);
	idle = closer->pending == 0;
	pthread_mutex_unlock(&closer->lock);
	STAILQ_FOREACH (q, &closed, link) {
		charged += q->charged;
		connections += closer->set >= 0;
	}
	account_give(closer->account, ACCOUNT_descriptors, charged);
	account_give(closer->account, ACCOUNT_connections, connections);
	closer->charged -= charged;
	closer->connections -= connections;
	queued_free(&closed);
	return idle;
}

bool
passed_fds_refuse(int fd)
{
	const int off = 0;

	return setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)) == 0;
}

void
passed_fds_init(struct passed_fds *passed)
{
	TAILQ_INIT(&passed->closers);
}

void
passed_fds_listen(struct passed_fds *passed, int listener)
{
	passed->refused = passed_fds_refuse(listener);
}

void
passed_fds_collect(struct passed_fds *passed)
{
	struct fd_closer *closer, *next;

	for (closer = TAILQ_FIRST(&passed->closers); closer != NULL; closer = next) {
		next = TAILQ_NEXT(closer, link);
		if (closer_collect(closer))
			closer_end(passed, closer);
	}
}

void
passed_fds_fini(struct passed_fds *passed)
{
	while (!TAILQ_EMPTY(&passed->closers))
		closer_end(passed, TAILQ_FIRST(&passed->closers));
}

unsigned
passed_fds_pending(const struct passed_fds *passed)
{
	struct fd_closer *closer;
	unsigned pending = 0;

	TAILQ_FOREACH (closer, &passed->closers, link) {
		pthread_mutex_lock(&closer->lock);
		pending += closer->pending;
		pthread_mutex_unlock(&closer->lock);
	}
	return pending;
}

ssize_t
passed_fds_recv(const struct passed_fds *passed, int fd, void *to, size_t len, bool *came)
{
	ssize_t got;

	*came = false;
	if (!passed->refused) {
		got = message_read(fd, MSG_PEEK, came);
		if (got < 0 || *came)
			return got;
	}
	return recv(fd, to, len, MSG_DONTWAIT | MSG_TRUNC);
}

void
passed_fds_close(struct passed_fds *passed, struct account *account, int fd)
{
	if (passed->refused) {
		close(fd);
		return;
	}
	queue_end(fd);
	if (message_is_there(fd, MSG_PEEK))
		(void)closer_put(passed, account, fd, false);
	else
		close(fd);
}

void
passed_fds_close_unread(struct passed_fds *passed, struct account *account, int fd)
{
	queue_end(fd); /* the client finds the end behind the replies */
	if (!closer_put(passed, account, fd, true))
		account_give(account, ACCOUNT_connections, 1);
}

void
passed_fds_close_given(struct passed_fds *passed, struct account *account, int fd)
{
	if (fd >= 0)
		(void)closer_put(passed, account, fd, false);
}
