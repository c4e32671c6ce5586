/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of libc by which programs use sockets of NETLINK_RDMA: what they send is a query, which is answered
 * here (netlink_socket.h). All other calls are the kernel's, also those that receive, poll() and close(). The kernel
 * copies what a program hands over, so that a bad address is an error (EFAULT), as with NETLINK_RDMA.
 */
#include <errno.h>
#include <limits.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/in_vain.h"
#include "base/no_cancel.h"
#include "base/off.h"
#include "preload/netlink.h"
#include "preload/netlink_socket.h"
#include "preload/next.h"
#include "preload/nldev.h"
#include "preload/paths.h"
#include "preload/served.h"
#include "verbs/export.h"
#include "verbs/forward.h"

#define QUERY_MAX 8192 /* octets of what is sent at once */
#define GROUPS 32      /* multicast groups of NETLINK_RDMA */

NEXT_FIND(socket)
NEXT_FIND(send)
NEXT_FIND(sendto)
NEXT_FIND(sendmsg)
NEXT_FIND(sendmmsg)
NEXT_FIND(writev)
NEXT_FIND(bind)
NEXT_FIND(setsockopt)

void
netlink_dup(int from, int to)
{
	if (from != to && netlink_socket_is(from))
		(void)netlink_socket_note(to);
}

EXPORT int
socket(int domain, int type, int protocol)
{
	int fd, err = errno;

	/* libibverbs and DPDK's drivers look for the devices of the kernel. */
	if (domain != AF_NETLINK || protocol != NETLINK_RDMA || forward_depth != 0 ||
		forward_caller(__builtin_return_address(0)))
		return next_socket()(domain, type, protocol);
	if (is_off(OFF_NETLINK) || !served_by.netlink()) {
		in_vain_note(IN_VAIN_NETLINK, "NETLINK_RDMA (as rdma(8) does)");
		errno = err;
		return next_socket()(domain, type, protocol);
	}
	fd = netlink_socket_open(type);
	errno = fd < 0 ? -fd : err;
	return fd < 0 ? -1 : fd;
}

/* ---- Memory of the program ---- */

/* Copies from or to an address of the program. Returns 0 or -EFAULT. */
static int
program_copy(void *own, const void *theirs, size_t len, bool to_them)
{
	struct iovec local = {.iov_base = own, .iov_len = len},
		     remote = {.iov_base = (void *)(uintptr_t)theirs, .iov_len = len};
	long rc =
		len == 0 ? 0
			 : syscall(to_them ? SYS_process_vm_writev : SYS_process_vm_readv,
				   getpid(), &local, 1, &remote, 1, 0);

	if (rc == (long)len)
		return 0;
	if (rc >= 0 || (errno != EPERM && errno != ENOSYS))
		return -EFAULT;
	/* A filter of system calls forbids it. */
	if (to_them)
		memcpy(remote.iov_base, own, len);
	else
		memcpy(own, theirs, len);
	return 0;
}

static int
program_read(void *to, const void *from, size_t len)
{
	return program_copy(to, from, len, false);
}

/* ---- Sending ---- */

struct rdma_socket {
	int fd;
	uint32_t port;
};

static int
answer_send(void *arg, const void *bytes, size_t len)
{
	const struct rdma_socket *s = arg;

	return netlink_socket_give(s->fd, s->port, bytes, len);
}

static int
query_send(int fd, const void *bytes, size_t len)
{
	struct rdma_socket s = {.fd = fd};
	struct nldev_socket asks = {.give = answer_send, .arg = &s};
	int rc = netlink_socket_port(fd, &s.port), capped = 0;
	socklen_t size = sizeof(capped);

	if (rc != 0)
		return rc;
	asks.port = s.port;
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
	if (program_read(&to, name, sizeof(to)) != 0)
		return -EFAULT;
	if (to.nl_family != AF_NETLINK)
		return -EINVAL;
	return to.nl_pid == 0 && to.nl_groups == 0 ? 0 : -ECONNREFUSED;
}

/* Copies the parts. Returns their length or -errno. */
static ssize_t
parts_copy(const struct iovec *parts, size_t count, uint8_t bytes[QUERY_MAX])
{
	size_t len = 0;

	if (count > IOV_MAX)
		return -EMSGSIZE;
	for (size_t i = 0; i < count; i++) {
		struct iovec part;

		if (program_read(&part, &parts[i], sizeof(part)) != 0)
			return -EFAULT;
		if (part.iov_len > QUERY_MAX - len)
			return -EMSGSIZE;
		if (program_read(bytes + len, part.iov_base, part.iov_len) != 0)
			return -EFAULT;
		len += part.iov_len;
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

static ssize_t
bytes_send(int fd, const void *bytes, size_t len, const void *name, socklen_t name_len)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};

	return parts_send(fd, &part, 1, name, name_len);
}

static ssize_t
query_message_send(int fd, const struct msghdr *from)
{
	struct msghdr msg;

	if (program_read(&msg, from, sizeof(msg)) != 0) {
		errno = EFAULT;
		return -1;
	}
	return parts_send(fd, msg.msg_iov, msg.msg_iovlen, msg.msg_name, msg.msg_namelen);
}

/* As sendmmsg(). */
static int
query_messages_send(int fd, struct mmsghdr *all, unsigned count)
{
	unsigned sent = 0;

	while (sent < count && sent < IOV_MAX) {
		ssize_t len = query_message_send(fd, &all[sent].msg_hdr);
		unsigned length = (unsigned)len;

		if (len < 0)
			break;
		if (program_copy(&length, &all[sent].msg_len, sizeof(length), true) !=
			0) {
			errno = EFAULT;
			break;
		}
		sent++;
	}
	return sent > 0 || count == 0 ? (int)sent : -1;
}

ssize_t
netlink_write(int fd, const void *bytes, size_t len)
{
	return netlink_socket_is(fd) ? bytes_send(fd, bytes, len, NULL, 0) : -2;
}

EXPORT ssize_t
writev(int fd, const struct iovec *parts, int count)
{
	if (!netlink_socket_is(fd))
		return next_writev()(fd, parts, count);
	if (count >= 0 && count <= IOV_MAX)
		return parts_send(fd, parts, (size_t)count, NULL, 0);
	errno = EINVAL;
	return -1;
}

EXPORT ssize_t
send(int fd, const void *bytes, size_t len, int flags)
{
	return netlink_socket_is(fd) ? bytes_send(fd, bytes, len, NULL, 0)
				     : next_send()(fd, bytes, len, flags);
}

EXPORT ssize_t
sendto(int fd, const void *bytes, size_t len, int flags, const struct sockaddr *to,
	socklen_t to_len)
{
	return netlink_socket_is(fd) ? bytes_send(fd, bytes, len, to, to_len)
				     : next_sendto()(fd, bytes, len, flags, to, to_len);
}

EXPORT ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return netlink_socket_is(fd) ? query_message_send(fd, msg)
				     : next_sendmsg()(fd, msg, flags);
}

EXPORT int
sendmmsg(int fd, struct mmsghdr *all, unsigned count, int flags)
{
	return netlink_socket_is(fd) ? query_messages_send(fd, all, count)
				     : next_sendmmsg()(fd, all, count, flags);
}

/* ---- Multicast groups ---- */

/* There are no notifications, so no group is joined: NETLINK_USERSOCK would allow it to root only, NETLINK_RDMA allows
 * it to every user. */

EXPORT int
bind(int fd, const struct sockaddr *address, socklen_t len)
{
	struct sockaddr_nl own;

	if (!netlink_socket_is(fd) || len < sizeof(own) ||
		len > sizeof(struct sockaddr_storage))
		return next_bind()(fd, address, len);
	if (program_read(&own, address, sizeof(own)) != 0) {
		errno = EFAULT;
		return -1;
	}
	own.nl_groups = 0;
	return next_bind()(fd, (struct sockaddr *)&own, sizeof(own));
}

/* Returns 0 or the error. */
static int
group_check(const void *value, socklen_t len)
{
	unsigned group;

	if (len < sizeof(group))
		return EINVAL;
	if (program_read(&group, value, sizeof(group)) != 0)
		return EFAULT;
	return group >= 1 && group <= GROUPS ? 0 : EINVAL;
}

EXPORT int
setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	int rc, err = errno;

	if (level != SOL_NETLINK ||
		(option != NETLINK_ADD_MEMBERSHIP && option != NETLINK_DROP_MEMBERSHIP) ||
		!netlink_socket_is(fd))
		return next_setsockopt()(fd, level, option, value, len);
	rc = group_check(value, len);
	errno = rc != 0 ? rc : err;
	return rc != 0 ? -1 : 0;
}
