/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel does not know Rocade's device, and many kernels have no NETLINK_RDMA at all. A program gets a socket
 * of another protocol of netlink in its place, NETLINK_USERSOCK, by which processes send each other messages. It
 * is connected with itself: Rocade's answers are sent by the socket to itself, at once, and no other process can
 * send to it. All calls but those that send are the kernel's, also poll(), close() and those on options and
 * addresses. Two things differ: the sender of an answer is the socket, not port ID 0, and a socket that a
 * program has got by execve() is not known.
 */
#include <errno.h>
#include <limits.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/in_vain.h"
#include "base/no_cancel.h"
#include "base/off.h"
#include "preload/fd_stat.h"
#include "preload/netlink.h"
#include "preload/next.h"
#include "preload/nldev.h"
#include "preload/paths.h"
#include "preload/served.h"
#include "verbs/export.h"
#include "verbs/forward.h"

#define QUERY_MAX 8192 /* octets of what is sent at once */
#define OLD_MAX 1024   /* datagrams of others that came before the socket was connected */

/* Inodes of the sockets; 0: none. */
static ino_t sockets[FD_NUMBERS];

/* Children of fork() and vfork() may call these before exec(), where the dynamic loader must not be
 * called. So the constructor below looks the functions up. */
#define FIND(name)                                                                       \
	static __typeof__(&name) next_##name(void)                                       \
	{                                                                                \
		return NEXT_FUNCTION(name);                                              \
	}
FIND(socket)
FIND(send)
FIND(sendto)
FIND(sendmsg)
#undef FIND

static __attribute__((constructor)) void
next_sends_find(void)
{
	(void)next_socket();
	(void)next_send();
	(void)next_sendto();
	(void)next_sendmsg();
}

static bool
netlink_is(int fd)
{
	struct stat st;
	int err = errno;
	ino_t ino;
	bool same;

	if (fd < 0 || fd >= FD_NUMBERS)
		return false;
	ino = __atomic_load_n(&sockets[fd], __ATOMIC_RELAXED);
	if (ino == 0)
		return false;
	same = fd_stat(fd, &st) && S_ISSOCK(st.st_mode) && st.st_ino == ino;
	if (!same) /* unless another thread has just got the number */
		(void)__atomic_compare_exchange_n(
			&sockets[fd], &ino, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	errno = err;
	return same;
}

static bool
netlink_add(int fd)
{
	struct stat st;

	if (fd >= FD_NUMBERS || !fd_stat(fd, &st))
		return false;
	__atomic_store_n(&sockets[fd], st.st_ino, __ATOMIC_RELAXED);
	return true;
}

void
netlink_dup(int from, int to)
{
	int err = errno;

	if (from != to && netlink_is(from))
		(void)netlink_add(to);
	errno = err;
}

static int
socket_open(int type)
{
	int fd = next_socket()(AF_NETLINK, type, NETLINK_USERSOCK);

	if (fd < 0 || netlink_add(fd))
		return fd;
	close(fd);
	return -1;
}

EXPORT int
socket(int domain, int type, int protocol)
{
	int fd = -1, err = errno;

	/* libibverbs and DPDK's drivers look for the devices of the kernel. */
	if (domain != AF_NETLINK || protocol != NETLINK_RDMA || forward_depth != 0 ||
		forward_caller(__builtin_return_address(0)))
		return next_socket()(domain, type, protocol);
	if (!is_off(OFF_NETLINK) && served_by.netlink())
		fd = socket_open(type);
	if (fd >= 0)
		return fd;
	in_vain_note(IN_VAIN_NETLINK, "NETLINK_RDMA (as rdma(8) does)");
	errno = err;
	return next_socket()(domain, type, protocol);
}

/* ---- Sending ---- */

struct rdma_socket {
	int fd;
	struct sockaddr_nl own;
};

static int
address_read(struct rdma_socket *s)
{
	socklen_t len = sizeof(s->own);

	return getsockname(s->fd, (struct sockaddr *)&s->own, &len) == 0 ? 0 : -errno;
}

static bool
is_connected(const struct rdma_socket *s)
{
	struct sockaddr_nl peer;
	socklen_t len = sizeof(peer);

	return getpeername(s->fd, (struct sockaddr *)&peer, &len) == 0 &&
	       peer.nl_pid == s->own.nl_pid;
}

/* Binds the socket, if the program has not, and connects it with itself. Returns 0 or -errno. */
static int
socket_prepare(struct rdma_socket *s)
{
	struct sockaddr_nl any = {.nl_family = AF_NETLINK};
	int rc = address_read(s);
	char octet;

	if (rc == 0 && s->own.nl_pid == 0) {
		/* Another thread may bind it at the same time. */
		(void)bind(s->fd, (struct sockaddr *)&any, sizeof(any));
		rc = address_read(s);
	}
	if (rc != 0 || is_connected(s))
		return rc;
	any.nl_pid = s->own.nl_pid;
	if (connect(s->fd, (struct sockaddr *)&any, sizeof(any)) != 0)
		return -errno;
	for (unsigned i = 0;
		i < OLD_MAX && recv(s->fd, &octet, sizeof(octet), MSG_DONTWAIT) >= 0; i++)
		;
	return 0;
}

static int
answer_send(void *arg, const void *bytes, size_t len)
{
	const struct rdma_socket *s = arg;
	ssize_t rc = no_cancel_send(s->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (rc == (ssize_t)len)
		return 0;
	/* The program has not read earlier answers. */
	return rc >= 0 || errno == EAGAIN ? -ENOBUFS : -errno;
}

static int
query_send(int fd, const void *bytes, size_t len)
{
	struct rdma_socket s = {.fd = fd};
	struct nldev_socket asks = {.give = answer_send, .arg = &s};
	int rc = socket_prepare(&s), capped = 0;
	socklen_t size = sizeof(capped);

	if (rc != 0)
		return rc;
	asks.port = s.own.nl_pid;
	asks.capped = getsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &capped, &size) == 0 &&
		      capped != 0;
	return nldev_ask(&asks, bytes, len);
}

/* The address must be the kernel's. */
static int
address_check(const void *name, socklen_t len)
{
	struct sockaddr_nl to;

	if (name == NULL || len == 0)
		return 0;
	if (len < sizeof(to))
		return -EINVAL;
	memcpy(&to, name, sizeof(to));
	if (to.nl_family != AF_NETLINK)
		return -EINVAL;
	return to.nl_pid == 0 && to.nl_groups == 0 ? 0 : -ECONNREFUSED;
}

/* Copies the parts, which may change meanwhile. Returns their length or -EMSGSIZE. */
static ssize_t
parts_copy(const struct iovec *parts, size_t count, uint8_t bytes[QUERY_MAX])
{
	size_t len = 0;

	if (count > IOV_MAX)
		return -EMSGSIZE;
	for (size_t i = 0; i < count; i++) {
		if (parts[i].iov_len > QUERY_MAX - len)
			return -EMSGSIZE;
		if (parts[i].iov_len > 0)
			memcpy(bytes + len, parts[i].iov_base, parts[i].iov_len);
		len += parts[i].iov_len;
	}
	return (ssize_t)len;
}

/* As sendmsg(). The buffer is for few programs: see WITH_BUFFER. */
static WITH_BUFFER ssize_t
parts_send(int fd, const struct iovec *parts, size_t count, const void *name,
	socklen_t name_len)
{
	uint8_t bytes[QUERY_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
	int state = no_cancel_begin(), err = errno, rc;
	ssize_t len = 0;

	rc = address_check(name, name_len);
	if (rc == 0) {
		len = parts_copy(parts, count, bytes);
		rc = len < 0 ? (int)len : query_send(fd, bytes, (size_t)len);
	}
	no_cancel_end(state);
	errno = rc != 0 ? -rc : err;
	return rc != 0 ? -1 : len;
}

ssize_t
netlink_write(int fd, const void *bytes, size_t len)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};

	return netlink_is(fd) ? parts_send(fd, &part, 1, NULL, 0) : -2;
}

EXPORT ssize_t
send(int fd, const void *bytes, size_t len, int flags)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};

	return netlink_is(fd) ? parts_send(fd, &part, 1, NULL, 0)
			      : next_send()(fd, bytes, len, flags);
}

EXPORT ssize_t
sendto(int fd, const void *bytes, size_t len, int flags, const struct sockaddr *to,
	socklen_t to_len)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};

	return netlink_is(fd) ? parts_send(fd, &part, 1, to, to_len)
			      : next_sendto()(fd, bytes, len, flags, to, to_len);
}

EXPORT ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return netlink_is(fd) ? parts_send(fd, msg->msg_iov, msg->msg_iovlen,
					msg->msg_name, msg->msg_namelen)
			      : next_sendmsg()(fd, msg, flags);
}
