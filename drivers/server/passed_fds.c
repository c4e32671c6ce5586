/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base_alloc.h"
#include "base/base_log.h"
#include "base/common.h"
#include "base/own_thread.h"
#include "server/passed_fds.h"
#include "server/server_reply.h"

/* Sockets with unread replies that are looked at for all users at a time: each takes a system call. */
#define UNREAD_LOOKS 4
/* Those of a user that are looked at before it is refused one more connection. The user is charged for that. */
#define UNREAD_LOOKS_OWN 64

/* A descriptor to close. */
struct queued_fd {
	STAILQ_ENTRY(queued_fd) link;
	struct account *account; /* of the user; NULL: none. Held in passed_fds.unread */
	int fd;
	bool charged; /* as one descriptor */
	bool unread; /* it is a connection whose replies are not read: the thread only empties its queue */
};

/* A thread that closes the descriptors of a user. Freed by the last of its two holders: the daemon
 * and the thread, which the daemon does not wait for. */
struct fd_closer {
	struct own_thread thread;
	TAILQ_ENTRY(fd_closer) link;
	struct account *account; /* of the user; NULL: there is none */
	unsigned charged;        /* descriptors for which the user is charged */
	unsigned connections;    /* the same of connections */
	unsigned holders;
	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t changed;
	struct queued_fds waiting, closed;
	unsigned pending; /* descriptors that are not closed */
	bool ended;       /* by the daemon */
};

static void
queued_free(struct queued_fd *q)
{
	alloc_put(&alloc_plain, q, sizeof(*q));
}

static void
closer_release(struct fd_closer *closer)
{
	struct queued_fd *q;

	if (__atomic_sub_fetch(&closer->holders, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	while ((q = STAILQ_FIRST(&closer->closed)) != NULL) {
		STAILQ_REMOVE_HEAD(&closer->closed, link);
		if (q->unread)
			close(q->fd); /* the daemon has ended meanwhile */
		queued_free(q);
	}
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
		pthread_mutex_unlock(&closer->lock);
		/* The client's own end may be in the queue, and would stay open as long as it is there. */
		while (q->unread && message_is_there(q->fd, 0))
			continue;
		if (!q->unread)
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
closer_start(struct passed_fds *passed, struct account *account)
{
	struct fd_closer *closer = alloc_get(&alloc_plain, "closer", sizeof(*closer));

	if (closer == NULL)
		return NULL;
	pthread_mutex_init(&closer->lock, NULL);
	pthread_cond_init(&closer->changed, NULL);
	STAILQ_INIT(&closer->waiting);
	STAILQ_INIT(&closer->closed);
	closer->holders = 2;
	closer->thread = (struct own_thread){.name = "rocaded-close",
		.main = closer_main,
		.arg = closer,
		.detached = true};
	if (own_thread_start(&closer->thread) != 0) {
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
	pthread_cond_signal(&closer->changed);
	pthread_mutex_unlock(&closer->lock);
	closer_release(closer);
}

static struct fd_closer *
closer_of(struct passed_fds *passed, struct account *account)
{
	struct fd_closer *closer;

	TAILQ_FOREACH (closer, &passed->closers, link) {
		if (closer->account == account)
			return closer;
	}
	return closer_start(passed, account);
}

/* Returns NULL without memory. */
static struct queued_fd *
queued_make(struct account *account, int fd, bool unread)
{
	struct queued_fd *q = alloc_get(&alloc_plain, "queued descriptor", sizeof(*q));

	if (q == NULL)
		return NULL;
	q->account = account;
	q->fd = fd;
	q->unread = unread;
	return q;
}

/* Returns false if there is no thread for it. */
static bool
closer_put(struct passed_fds *passed, struct queued_fd *q)
{
	struct fd_closer *closer = closer_of(passed, q->account);

	if (closer == NULL)
		return false;
	q->charged = account_take(q->account, ACCOUNT_descriptors, 1);
	closer->charged += q->charged;
	closer->connections += q->unread;
	pthread_mutex_lock(&closer->lock);
	STAILQ_INSERT_TAIL(&closer->waiting, q, link);
	closer->pending++;
	pthread_cond_signal(&closer->changed);
	pthread_mutex_unlock(&closer->lock);
	return true;
}

static void
fd_close_later(struct passed_fds *passed, struct account *account, int fd)
{
	struct queued_fd *q = queued_make(account, fd, false);

	if (q != NULL && closer_put(passed, q))
		return;
	if (q != NULL)
		queued_free(q);
	/* Closing it here could stop the daemon. */
	log_warn("no memory: a descriptor of a client stays open");
}

/* Keeps a connection, with what is charged for it, until its replies are read. */
static void
unread_add(struct passed_fds *passed, struct queued_fd *q)
{
	if (q->account != NULL)
		account_hold(q->account);
	STAILQ_INSERT_TAIL(&passed->unread, q, link);
	passed->unread_count++;
}

static void
unread_end(struct passed_fds *passed, struct queued_fd *q)
{
	passed->unread_count--;
	account_give(q->account, ACCOUNT_connections, 1);
	account_give(q->account, ACCOUNT_descriptors, q->charged);
	passed_fds_close(passed, q->account, q->fd);
	if (q->account != NULL)
		account_close(q->account);
	queued_free(q);
}

/* Looks at the next connections whose replies were not read, of a user or (NULL) of all, and closes those whose
 * are. No thread waits for that: a client could wake it again and again. */
static void
unread_look(struct passed_fds *passed, const struct account *account, unsigned looks)
{
	for (unsigned n = passed->unread_count; n != 0 && looks != 0; n--) {
		struct queued_fd *q = STAILQ_FIRST(&passed->unread);
		bool is_looked_at = account == NULL || q->account == account;

		STAILQ_REMOVE_HEAD(&passed->unread, link);
		looks -= is_looked_at;
		if (is_looked_at && replies_are_read(q->fd))
			unread_end(passed, q);
		else
			STAILQ_INSERT_TAIL(&passed->unread, q, link);
	}
}

/* Returns whether it has closed all that it has. */
static bool
closer_collect(struct passed_fds *passed, struct fd_closer *closer)
{
	struct queued_fds closed = STAILQ_HEAD_INITIALIZER(closed);
	struct queued_fd *q;
	bool idle;

	pthread_mutex_lock(&closer->lock);
	STAILQ_CONCAT(&closed, &closer->closed);
	idle = closer->pending == 0;
	pthread_mutex_unlock(&closer->lock);
	while ((q = STAILQ_FIRST(&closed)) != NULL) {
		STAILQ_REMOVE_HEAD(&closed, link);
		closer->charged -= q->charged;
		closer->connections -= q->unread;
		if (q->unread) {
			unread_add(passed, q);
			continue;
		}
		account_give(closer->account, ACCOUNT_descriptors, q->charged);
		queued_free(q);
	}
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
	STAILQ_INIT(&passed->unread);
	passed->unread_count = 0;
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
		if (closer_collect(passed, closer))
			closer_end(passed, closer);
	}
}

void
passed_fds_look(struct passed_fds *passed)
{
	unread_look(passed, NULL, UNREAD_LOOKS);
}

void
passed_fds_collect_of(struct passed_fds *passed, const struct account *account)
{
	unread_look(passed, account, UNREAD_LOOKS_OWN);
}

void
passed_fds_fini(struct passed_fds *passed)
{
	struct queued_fd *q;

	while ((q = STAILQ_FIRST(&passed->unread)) != NULL) {
		STAILQ_REMOVE_HEAD(&passed->unread, link);
		unread_end(passed, q);
	}
	while (!TAILQ_EMPTY(&passed->closers))
		closer_end(passed, TAILQ_FIRST(&passed->closers));
}

unsigned
passed_fds_pending(const struct passed_fds *passed)
{
	struct fd_closer *closer;
	unsigned pending = passed->unread_count;

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
		fd_close_later(passed, account, fd);
	else
		close(fd);
}

void
passed_fds_close_unread(struct passed_fds *passed, struct account *account, int fd)
{
	struct queued_fd *q = queued_make(account, fd, true);

	if (q == NULL) {
		account_give(account, ACCOUNT_connections, 1);
		passed_fds_close(passed, account, fd);
		return;
	}
	queue_end(fd); /* the client finds the end behind the replies */
	if (!passed->refused && message_is_there(fd, MSG_PEEK) && closer_put(passed, q))
		return; /* comes back without what is queued */
	q->charged = account_take(account, ACCOUNT_descriptors, 1);
	unread_add(passed, q);
}

void
passed_fds_close_given(struct passed_fds *passed, struct account *account, int fd)
{
	if (fd >= 0)
		fd_close_later(passed, account, fd);
}
