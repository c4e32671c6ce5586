/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base_alloc.h"
#include "base/base_log.h"
#include "base/common.h"
#include "server/passed_fds.h"

#define PASSED_MAX 253 /* SCM_MAX_FD: in one message */

/* Freed by the last of its two holders: the daemon and the thread, which the daemon does
 * not wait for. */
struct fd_closer {
	int to;   /* the daemon's end of a pipe of descriptors to close */
	int from; /* the thread's end */
	unsigned holders;
	unsigned pending;
};

static void
closer_release(struct fd_closer *closer)
{
	if (__atomic_sub_fetch(&closer->holders, 1, __ATOMIC_ACQ_REL) == 0)
		alloc_put(&alloc_plain, closer, sizeof(*closer));
}

static void *
closer_main(void *arg)
{
	struct fd_closer *closer = arg;
	int fd;

	while (read(closer->from, &fd, sizeof(fd)) == (ssize_t)sizeof(fd)) {
		close(fd);
		__atomic_sub_fetch(&closer->pending, 1, __ATOMIC_RELAXED);
	}
	close(closer->from);
	closer_release(closer);
	return NULL;
}

static int
closer_thread_start(struct fd_closer *closer)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	/* Signals are for the daemon's thread. */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, &attr, closer_main, closer);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

static struct fd_closer *
closer_start(void)
{
	struct fd_closer *closer = alloc_get(&alloc_plain, "closer", sizeof(*closer));
	int ends[2];

	if (closer == NULL)
		return NULL;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		alloc_put(&alloc_plain, closer, sizeof(*closer));
		return NULL;
	}
	(void)fcntl(ends[1], F_SETFL, O_NONBLOCK); /* the thread's end blocks */
	closer->from = ends[0];
	closer->to = ends[1];
	closer->holders = 2;
	if (closer_thread_start(closer) == 0)
		return closer;
	close(ends[0]);
	close(ends[1]);
	alloc_put(&alloc_plain, closer, sizeof(*closer));
	return NULL;
}

static void
closer_put(struct passed_fds *passed, int fd)
{
	struct fd_closer *closer = passed->closer;

	if (closer == NULL)
		closer = passed->closer = closer_start();
	if (closer != NULL) {
		__atomic_add_fetch(&closer->pending, 1, __ATOMIC_RELAXED);
		if (write(closer->to, &fd, sizeof(fd)) == (ssize_t)sizeof(fd))
			return;
		__atomic_sub_fetch(&closer->pending, 1, __ATOMIC_RELAXED);
	}
	/* It stays open: closing it here could stop the daemon. */
	log_warn("a descriptor that a client has sent stays open");
}

void
passed_fds_init(struct passed_fds *passed, int listener)
{
	const int off = 0;

	passed->closer = NULL;
	passed->refused =
		setsockopt(listener, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)) == 0;
}

void
passed_fds_fini(struct passed_fds *passed)
{
	if (passed->closer == NULL)
		return;
	close(passed->closer->to);
	closer_release(passed->closer);
	passed->closer = NULL;
}

unsigned
passed_fds_pending(const struct passed_fds *passed)
{
	return passed->closer == NULL
		       ? 0
		       : __atomic_load_n(&passed->closer->pending, __ATOMIC_RELAXED);
}

static bool
controls_take(struct passed_fds *passed, struct msghdr *msg)
{
	bool came = false;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		came = true;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			closer_put(passed, fd);
		}
	}
	return came;
}

/* *came: as for passed_fds_recv(). *controls: the message has control messages, of any
 * type. */
static ssize_t
message_recv(struct passed_fds *passed, int fd, void *to, size_t len, bool *came,
	bool *controls)
{
	char control[CMSG_SPACE(PASSED_MAX * sizeof(int)) +
		     CMSG_SPACE(sizeof(struct ucred))] __attribute__((aligned(8)));
	struct iovec iov = {.iov_base = to, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);

	*controls = got >= 0 && msg.msg_controllen != 0;
	*came = *controls && controls_take(passed, &msg);
	return got;
}

ssize_t
passed_fds_recv(struct passed_fds *passed, int fd, void *to, size_t len, bool *came)
{
	bool controls;

	return message_recv(passed, fd, to, len, came, &controls);
}

/* Empties the queue of a socket that will be closed. */
static void
queue_drain(struct passed_fds *passed, int fd)
{
	const int on = 1;
	bool came, controls;
	uint8_t byte;
	ssize_t got;

	/* Every message now comes with credentials, which tells an empty message from the
	 * end of the queue. After the shutdown none is added. */
	(void)setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	(void)shutdown(fd, SHUT_RDWR);
	do {
		got = message_recv(passed, fd, &byte, sizeof(byte), &came, &controls);
		/* ECONNRESET: the client has closed its end; the queue is still there. */
	} while (controls || (got < 0 && errno == ECONNRESET));
}

void
passed_fds_close(struct passed_fds *passed, int fd)
{
	if (!passed->refused)
		queue_drain(passed, fd);
	close(fd);
}
