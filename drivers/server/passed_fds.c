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

/* A descriptor to close. */
struct queued_fd {
	STAILQ_ENTRY(queued_fd) link;
	int fd;
	bool charged;
};

STAILQ_HEAD(queued_fds, queued_fd);

/* A thread that closes the descriptors of a user. Freed by the last of its two holders: the daemon
 * and the thread, which the daemon does not wait for. */
struct fd_closer {
	struct own_thread thread;
	TAILQ_ENTRY(fd_closer) link;
	struct account *account; /* of the user; NULL: there is none */
	unsigned charged;        /* descriptors for which the user is charged */
	unsigned holders;
	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t changed;
	struct queued_fds waiting, closed;
	unsigned pending; /* descriptors that are not closed */
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
	pthread_cond_destroy(&closer->changed);
	pthread_mutex_destroy(&closer->lock);
	alloc_put(&alloc_plain, closer, sizeof(*closer));
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

static void
closer_put(struct passed_fds *passed, struct account *account, int fd)
{
	struct queued_fd *q = alloc_get(&alloc_plain, "queued descriptor", sizeof(*q));
	struct fd_closer *closer = q != NULL ? closer_of(passed, account) : NULL;

	if (closer == NULL) {
		if (q != NULL)
			alloc_put(&alloc_plain, q, sizeof(*q));
		/* Closing it here could stop the daemon. */
		log_warn("no memory: a descriptor of a client stays open");
		return;
	}
	q->fd = fd;
	q->charged = account_take(account, ACCOUNT_descriptors, 1);
	closer->charged += q->charged;
	pthread_mutex_lock(&closer->lock);
	STAILQ_INSERT_TAIL(&closer->waiting, q, link);
	closer->pending++;
	pthread_cond_signal(&closer->changed);
	pthread_mutex_unlock(&closer->lock);
}

/* Returns whether it has closed all that it has. */
static bool
closer_collect(struct fd_closer *closer)
{
	struct queued_fds closed = STAILQ_HEAD_INITIALIZER(closed);
	const struct queued_fd *q;
	unsigned charged = 0;
	bool idle;

	pthread_mutex_lock(&closer->lock);
	STAILQ_CONCAT(&closed, &closer->closed);
	idle = closer->pending == 0;
	pthread_mutex_unlock(&closer->lock);
	STAILQ_FOREACH (q, &closed, link)
		charged += q->charged;
	account_give(closer->account, ACCOUNT_descriptors, charged);
	closer->charged -= charged;
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

/* Looks at the first message of a queue, without its descriptors: they stay there. Returns as recv() with
 * MSG_TRUNC. *controls: it has descriptors, or credentials. */
static ssize_t
message_peek(int fd, bool *controls)
{
	uint8_t byte;
	struct iovec iov = {.iov_base = &byte, .iov_len = sizeof(byte)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t got = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_TRUNC | MSG_PEEK);

	*controls = got >= 0 && (msg.msg_flags & MSG_CTRUNC) != 0;
	return got;
}

ssize_t
passed_fds_recv(const struct passed_fds *passed, int fd, void *to, size_t len, bool *came)
{
	ssize_t got;

	*came = false;
	if (!passed->refused) {
		got = message_peek(fd, came);
		if (got < 0 || *came)
			return got;
	}
	return recv(fd, to, len, MSG_DONTWAIT | MSG_TRUNC);
}

/* The socket is shut down, so nothing is added to its queue. */
static bool
queue_is_empty(int fd)
{
	bool controls;
	ssize_t got;

	do
		got = message_peek(fd, &controls);
	/* ECONNRESET: the client has closed its end; the queue is still there. */
	while (got < 0 && errno == ECONNRESET);
	return got <= 0 && !controls;
}

void
passed_fds_close(struct passed_fds *passed, struct account *account, int fd)
{
	const int on = 1;

	if (passed->refused) {
		close(fd);
		return;
	}
	/* Now each message sets MSG_CTRUNC, also one of 0 bytes; the end of the queue does not. */
	(void)setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	(void)shutdown(fd, SHUT_RDWR);
	if (queue_is_empty(fd))
		close(fd);
	else
		closer_put(passed, account, fd);
}

void
passed_fds_close_given(struct passed_fds *passed, struct account *account, int fd)
{
	if (fd >= 0)
		closer_put(passed, account, fd);
}
