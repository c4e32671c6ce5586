/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/account.h"
#include "base/no_cancel.h"
#include "shm/session.h"
#include "switch/socket.h"

/* a daemon that does not answer for this long counts as dead */
#define REPLY_TIMEOUT_MS 10000
/* of the next connections of a process to which it has not answered: a program asks for each path anew */
#define LATE_TIMEOUT_MS 1000

/* The last request that was waited for as long as that got no reply. */
static bool is_late;

static void
late_note(const struct session *s)
{
	if (s->wait_ms >= REPLY_TIMEOUT_MS)
		__atomic_store_n(&is_late, true, __ATOMIC_RELAXED);
}

bool
session_uid_accepted(uid_t uid, uid_t own, const char *told)
{
	unsigned long number;
	char *end;

	if (uid == 0 || uid == own)
		return true;
	if (told == NULL || told[0] < '0' || told[0] > '9')
		return false;
	errno = 0;
	number = strtoul(told, &end, 10);
	return errno == 0 && *end == '\0' && number == uid;
}

/* Connects and reads which user listens. Returns 0 or -errno. */
static int
daemon_connect(int fd, const struct sockaddr_un *addr, uid_t *uid)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) != 0) {
		if (errno == EPERM) /* of a security module */
			return -EACCES;
		/* The daemon's queue of connections stayed full. */
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	}
	/* of the process that called listen(2), at that time */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0)
		return -errno;
	*uid = who.uid;
	return session_uid_accepted(who.uid, geteuid(), getenv(SESSION_UID_ENV)) ? 0
										 : -EPERM;
}

static void
limit_set(int fd, unsigned ms)
{
	struct timeval timeout = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
}

/* Sets what session_error_text() reads, before anything can fail. */
static void
session_init(struct session *s)
{
	s->fd = -1;
	s->daemon_uid = 0;
	s->daemon_version = SW_PROTO_VERSION;
	s->timed_out = false;
	s->refused = 0;
	s->refusal = (struct sw_refusal){.kind = 0};
	s->wait_ms = REPLY_TIMEOUT_MS;
}

void
session_adopt(struct session *s, int fd)
{
	limit_set(fd, REPLY_TIMEOUT_MS);
	session_init(s);
	pthread_mutex_init(&s->lock, NULL);
	s->fd = fd;
}

int
session_open(struct session *s, const char *path)
{
	return session_open_within(s, path,
		__atomic_load_n(&is_late, __ATOMIC_RELAXED) ? LATE_TIMEOUT_MS
							    : REPLY_TIMEOUT_MS);
}

int
session_open_within(struct session *s, const char *path, unsigned ms)
{
	struct sockaddr_un addr;
	int rc = sw_socket_path(path, true, &addr);
	int fd;

	session_init(s);
	if (rc != 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	session_adopt(s, fd);
	s->wait_ms = ms;
	limit_set(fd, ms); /* that of a send is that of connect(2), too */
	rc = daemon_connect(fd, &addr, &s->daemon_uid);
	if (rc == -ETIMEDOUT)
		late_note(s);
	if (rc != 0)
		session_close(s);
	return rc;
}

/* How to get more, by the kind of account. NULL: by no setting. */
static const char *
refusal_remedy(uint32_t kind)
{
	switch (kind - 1) {
	case ACCOUNT_connections:
	case ACCOUNT_clients:
		return "; to raise it: rocaded --max-clients, or max-clients in its "
		       "configuration file";
	case ACCOUNT_memory_kib:
		return "; to raise it: rocaded --max-clients, or a smaller --client-ring "
		       "(max-clients, client-ring in its configuration file)";
	case ACCOUNT_descriptors:
		return "; to raise it: more open files for the daemon (ulimit -n)";
	default:
		return "";
	}
}

static void
refusal_text(const struct session *s, const char *path, char *text, size_t size)
{
	const struct sw_refusal *r = &s->refusal;

	if (r->kind == 0 || r->kind > ACCOUNT_KINDS)
		snprintf(text, size, "the daemon at %s refuses this process: %s", path,
			strerror(s->refused));
	else
		snprintf(text, size,
			"the daemon at %s refuses this process: limit of %s: user %" PRIu32
			" has %" PRIu32 " of at most %" PRIu32 "%s%s",
			path, account_texts[r->kind - 1], r->uid, r->held, r->most,
			r->held < r->most ? ", and other users hold the rest" : "",
			refusal_remedy(r->kind));
}

void
session_error_text(
	const struct session *s, const char *path, int rc, char *text, size_t size)
{
	struct sockaddr_un addr;
	const char *told = getenv(SESSION_UID_ENV);

	if (sw_socket_path(path, true, &addr) != 0)
		snprintf(text, size, "socket: path too long");
	else if (rc == -EACCES)
		snprintf(text, size,
			"permission denied at %s: its permissions decide who may connect "
			"(socket-mode in rocaded(8))",
			addr.sun_path);
	else if (rc == -EPERM)
		snprintf(text, size,
			"the daemon at %s is of user %u, expected root (0), user %u, or "
			"the user in $" SESSION_UID_ENV " (%s)",
			addr.sun_path, (unsigned)s->daemon_uid, (unsigned)geteuid(),
			told != NULL ? told : "not set");
	else if (rc == -EPROTONOSUPPORT)
		snprintf(text, size,
			"the daemon at %s has version %" PRIu32
			" of the protocol, expected %d: start the daemon of the same "
			"version of Rocade as this program",
			addr.sun_path, s->daemon_version, SW_PROTO_VERSION);
	else if (s->refused != 0 && rc == -s->refused)
		refusal_text(s, addr.sun_path, text, size);
	else if (rc == -ETIMEDOUT || (rc == -ENODEV && s->timed_out))
		snprintf(text, size,
			"the daemon at %s has not answered for %u.%u s: it is there, but is "
			"stopped or hangs",
			addr.sun_path, s->wait_ms / 1000, s->wait_ms % 1000 / 100);
	else if (rc == -ENODEV)
		snprintf(text, size,
			"the daemon at %s has ended the connection without an answer",
			addr.sun_path);
	else
		snprintf(text, size, "no daemon answers at %s: %s", addr.sun_path,
			strerror(-rc));
}

void
session_close(struct session *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	pthread_mutex_destroy(&s->lock);
}

/* Takes the error of a reply of len bytes, and the limit if it tells one. Returns -errno. */
static int
refusal_take(struct session *s, const struct sw_reply *reply, size_t len)
{
	s->refused = reply->error;
	s->refusal =
		len >= SW_REFUSED_LEN ? reply->refusal : (struct sw_refusal){.kind = 0};
	return -reply->error;
}

/* The daemon has told why before it ended the connection. The kernel first reports that it has not read a
 * request. */
static int
refusal_read(struct session *s)
{
	struct sw_reply reply;
	ssize_t len;

	do {
		len = recv(s->fd, &reply, sizeof(reply), MSG_DONTWAIT);
	} while (len < 0 && (errno == EINTR || errno == ECONNRESET));
	if (len != (ssize_t)SW_REFUSED_LEN || reply.magic != SW_PROTO_MAGIC ||
		reply.version != SW_PROTO_VERSION || reply.type != 0 || reply.error <= 0)
		return -ENODEV;
	return refusal_take(s, &reply, SW_REFUSED_LEN);
}

int
session_lost(struct session *s)
{
	if (errno == EAGAIN) {
		__atomic_store_n(&s->timed_out, true, __ATOMIC_RELAXED);
		late_note(s);
	} else if (s->fd >= 0) {
		return refusal_read(s);
	}
	return -ENODEV;
}

/* Takes the descriptors of a reply; closes those that were not asked for. */
static void
fds_receive(struct msghdr *msg, int *fds, unsigned fd_count)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		unsigned n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (unsigned i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (i < fd_count)
				fds[i] = fd;
			else
				close(fd);
		}
	}
}

static void
fds_close(int *fds, unsigned fd_count)
{
	for (unsigned i = 0; i < fd_count; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* Checks the first two members of a reply of len bytes. They come first in every version,
 * all else may change. Returns 0 or -errno. */
static int
head_check(struct session *s, ssize_t len, uint32_t magic, uint32_t version)
{
	__atomic_store_n(&is_late, false, __ATOMIC_RELAXED);
	if (len < (ssize_t)(2 * sizeof(uint32_t)) || magic != SW_PROTO_MAGIC)
		return -ENODEV;
	s->daemon_version = version;
	return version == SW_PROTO_VERSION ? 0 : -EPROTONOSUPPORT;
}

static int
session_reply_read(struct session *s, struct sw_reply *reply, int *fds, unsigned fd_count)
{
	char control[CMSG_SPACE(SW_ATTACH_FDS * sizeof(int))] __attribute__((aligned(8)));
	struct iovec to = {.iov_base = reply, .iov_len = sizeof(*reply)};
	struct msghdr msg = {.msg_iov = &to,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t len;
	int rc;

	do {
		len = recvmsg(s->fd, &msg, MSG_CMSG_CLOEXEC);
	} while (len < 0 && errno == EINTR);
	if (len < 0)
		return session_lost(s);
	fds_receive(&msg, fds, fd_count);
	/* The process has no room for the descriptors: the kernel has discarded some. */
	if ((msg.msg_flags & MSG_CTRUNC) != 0) {
		fds_close(fds, fd_count);
		return -EMFILE;
	}
	rc = head_check(s, len, reply->magic, reply->version);
	if (rc != 0)
		return rc;
	if (len >= (ssize_t)SW_REFUSED_LEN && reply->error > 0)
		return refusal_take(s, reply, (size_t)len);
	return len == sizeof(*reply) ? 0 : -ENODEV;
}

static int
session_data_read(struct session *s, struct sw_data_reply *reply)
{
	const size_t head = offsetof(struct sw_data_reply, bytes);
	ssize_t len;
	int rc;

	do {
		len = recv(s->fd, reply, sizeof(*reply), 0);
	} while (len < 0 && errno == EINTR);
	if (len < 0)
		return session_lost(s);
	rc = head_check(s, len, reply->magic, reply->version);
	if (rc != 0)
		return rc;
	if (len < (ssize_t)head)
		return -ENODEV;
	/* A struct sw_reply, too, begins as this does. */
	if (reply->error > 0)
		return refusal_take(s, (const struct sw_reply *)reply,
			reply->type == 0 ? (size_t)len : 0);
	return (size_t)len == head + reply->len ? 0 : -ENODEV;
}

/* The caller holds locks of its own, too: no cancellation point. Returns the state for
 * call_end(). */
static int
call_begin(struct session *s)
{
	int state = no_cancel_begin();

	pthread_mutex_lock(&s->lock);
	return state;
}

static void
call_end(struct session *s, int state)
{
	pthread_mutex_unlock(&s->lock);
	no_cancel_end(state);
}

/* Sends a request. The caller holds the lock. */
static int
session_send(struct session *s, const struct sw_request *request)
{
	struct sw_request full = *request;
	ssize_t sent;

	full.magic = SW_PROTO_MAGIC;
	full.version = SW_PROTO_VERSION;
	s->refused = 0;
	if (s->fd < 0)
		return -ENODEV;
	do {
		sent = send(s->fd, &full, sizeof(full), MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent == sizeof(full) ? 0 : session_lost(s);
}

/* A late reply would be mistaken for the reply to the next request. The shutdown also
 * notifies threads that poll the socket. */
static void
session_end_if_lost(struct session *s, int rc)
{
	if (rc == -ENODEV && s->fd >= 0)
		(void)shutdown(s->fd, SHUT_RDWR);
}

int
session_call(struct session *s, const struct sw_request *request, struct sw_reply *reply,
	int *fds, unsigned fd_count)
{
	int rc, state;

	for (unsigned i = 0; i < fd_count; i++)
		fds[i] = -1;
	state = call_begin(s);
	rc = session_send(s, request);
	if (rc == 0)
		rc = session_reply_read(s, reply, fds, fd_count);
	session_end_if_lost(s, rc);
	call_end(s, state);
	return rc;
}

/* Returns the lowest number that the rows of a reply may have. */
static uint32_t
rows_from(const struct sw_request *request)
{
	if (request->type == SW_STATUS)
		return request->dest_qpn;
	return request->type == SW_REPORT ? request->qpn : 0;
}

int
session_fetch(
	struct session *s, const struct sw_request *request, struct sw_data_reply *reply)
{
	int rc, state = call_begin(s);

	rc = session_send(s, request);
	if (rc == 0)
		rc = session_data_read(s, reply);
	/* With rows that come again a list would have no end. */
	if (rc == 0 && reply->id < rows_from(request))
		rc = -ENODEV;
	session_end_if_lost(s, rc);
	call_end(s, state);
	return rc;
}

bool
session_device_valid(const struct sw_device *device)
{
	return memchr(device->name, '\0', sizeof(device->name)) != NULL &&
	       device->name[0] != '\0' && device->net.addr_count != 0 &&
	       device->net.addr_count < NET_MAX_ADDRS &&
	       (device->index & ~SW_DEVICE_INDEX_BITS) == SW_DEVICE_INDEX;
}

int
session_device(struct session *s, struct sw_device *device)
{
	struct sw_request req = {.type = SW_DEVICE_INFO};
	struct sw_reply reply;
	int rc = session_call(s, &req, &reply, NULL, 0);

	if (rc == 0 && !session_device_valid(&reply.device))
		rc = -EPROTO;
	if (rc == 0)
		*device = reply.device;
	return rc;
}
