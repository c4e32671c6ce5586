/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of netlink for RDMA: what is sent to one comes back as an answer. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "netlink_fixture.h"
#include "preload/netlink.h"
#include "preload/sysfs_session.h"

#define QUERIES 10000 /* more than a socket has room for answers to */
#define FORGED 3000   /* datagrams of others */
#define RACES 200

TEST_WITH(each_function_that_sends, rdma_socket, rdma_socket_close)
{
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);
	struct iovec parts[] = {{m.bytes, NLMSG_HDRLEN}, {NULL, 0},
		{m.bytes + NLMSG_HDRLEN, m.len - NLMSG_HDRLEN}};
	struct msghdr msg = {.msg_name = (void *)(uintptr_t)&netlink_kernel,
		.msg_namelen = sizeof(netlink_kernel),
		.msg_iov = parts,
		.msg_iovlen = 3};
	struct mmsghdr all[2] = {{.msg_len = 1}, {.msg_len = 1}};
	int fd = *(int *)*state;

	errno = EXDEV;
	assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
	expect_device_at(fd);
	assert_int_equal(
		sendto(fd, m.bytes, m.len, 0, (const struct sockaddr *)&netlink_kernel,
			sizeof(netlink_kernel)),
		m.len);
	expect_device_at(fd);
	assert_int_equal(sendmsg(fd, &msg, 0), m.len);
	expect_device_at(fd);
	assert_int_equal(writev(fd, parts, 3), m.len);
	expect_device_at(fd);
	all[0].msg_hdr = all[1].msg_hdr = msg;
	all[1].msg_hdr.msg_iovlen = 0;
	assert_int_equal(sendmmsg(fd, all, 2, 0), 2);
	assert_int_equal(all[0].msg_len, m.len);
	assert_int_equal(all[1].msg_len, 0);
	expect_device_at(fd);
	assert_int_equal(netlink_write(fd, m.bytes, m.len), m.len);
	expect_device_at(fd);
	assert_int_equal(errno, EXDEV);
}

TEST_WITH(a_bound_socket_keeps_its_port, rdma_socket, rdma_socket_close)
{
	struct sockaddr_nl own = {
		.nl_family = AF_NETLINK, .nl_pid = 0x7f000000u | getpid()};
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);
	int fd = *(int *)*state;

	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
	assert_int_equal(port_of(fd), own.nl_pid);
	expect_device_at(fd);
}

TEST_WITH(duplicates_are_such_sockets, rdma_socket, rdma_socket_close)
{
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);
	int fd = *(int *)*state, same = dup(fd);

	netlink_dup(fd, same);
	assert_int_equal(send(same, m.bytes, m.len, 0), m.len);
	expect_device_at(fd);
	close(same);
}

/* close() is not intercepted. */
TEST(a_number_that_is_used_again)
{
	int ends[2], fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	char got[4];

	assert_true(fd >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_int_equal(dup2(ends[0], fd), fd);
	assert_int_equal(netlink_write(fd, "text", 4), -2);
	assert_int_equal(send(fd, "text", 4, 0), 4);
	assert_int_equal(recv(ends[1], got, sizeof(got), 0), 4);
	assert_memory_equal(got, "text", 4);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

/* It shares the memory of its parent, but not the descriptors. */
TEST_WITH(a_child_of_vfork_uses_the_number_for_another, rdma_socket, rdma_socket_close)
{
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);
	int fd = *(int *)*state, ends[2], status;
	pid_t child;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	child = vfork();
	if (child == 0) {
		if (dup2(ends[0], fd) != fd || send(fd, "text", 4, 0) != 4)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
	expect_device_at(fd);
	close(ends[0]);
	close(ends[1]);
}

/* The error is the kernel's, not that it has no NETLINK_RDMA. */
TEST(no_descriptor_is_free)
{
	struct rlimit limit, least;
	int fd;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	least = limit;
	least.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &least), 0);
	fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(fd, -1);
	assert_int_equal(errno, EMFILE);
}

static void
expect_fault(long rc)
{
	assert_int_equal(rc, -1);
	assert_int_equal(errno, EFAULT);
}

TEST_WITH(bad_addresses, rdma_socket, rdma_socket_close)
{
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);
	struct sockaddr *volatile nowhere = (void *)8;
	struct iovec part = {m.bytes, m.len};
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
	int fd = *(int *)*state;

	expect_fault(send(fd, nowhere, NLMSG_HDRLEN, 0));
	expect_fault(netlink_write(fd, nowhere, NLMSG_HDRLEN));
	expect_fault(sendto(fd, m.bytes, m.len, 0, nowhere, sizeof(netlink_kernel)));
	expect_fault(sendmsg(fd, (void *)nowhere, 0));
	expect_fault(writev(fd, (void *)nowhere, 1));
	expect_fault(sendmmsg(fd, (void *)nowhere, 1, 0));
	msg.msg_iov = (void *)nowhere;
	expect_fault(sendmsg(fd, &msg, 0));
	msg.msg_iov = &part;
	part.iov_base = nowhere;
	expect_fault(sendmsg(fd, &msg, 0));
	expect_fault(bind(fd, nowhere, sizeof(netlink_kernel)));
	expect_fault(setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, nowhere, 4));
	assert_int_equal(ready(fd), 0);
	assert_int_equal(sendmmsg(fd, (void *)nowhere, 0, 0), 0);
	assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
	expect_device_at(fd);
}

static void
expect_refused(int fd, const struct msghdr *msg, int error)
{
	assert_int_equal(sendmsg(fd, msg, 0), -1);
	assert_int_equal(errno, error);
}

TEST_WITH(wrong_addresses_and_lengths, rdma_socket, rdma_socket_close)
{
	static uint8_t bytes[16384];
	struct sockaddr_nl to = netlink_kernel;
	struct iovec parts[2] = {{bytes, NLMSG_HDRLEN}, {bytes, SIZE_MAX}};
	struct msghdr msg = {.msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_iov = parts,
		.msg_iovlen = 1};
	volatile int count; /* the compiler knows writev() */
	int fd = *(int *)*state;

	msg.msg_namelen = sizeof(to) - 1;
	expect_refused(fd, &msg, EINVAL);
	msg.msg_namelen = sizeof(to);
	to.nl_family = AF_INET;
	expect_refused(fd, &msg, EINVAL);
	to.nl_family = AF_NETLINK;
	to.nl_pid = 1;
	expect_refused(fd, &msg, ECONNREFUSED);
	to.nl_pid = 0;
	to.nl_groups = 1;
	expect_refused(fd, &msg, ECONNREFUSED);
	to.nl_groups = 0;
	msg.msg_iovlen = 2;
	expect_refused(fd, &msg, EMSGSIZE);
	parts[1].iov_len = sizeof(bytes);
	expect_refused(fd, &msg, EMSGSIZE);
	msg.msg_iovlen = SIZE_MAX;
	expect_refused(fd, &msg, EMSGSIZE);
	count = IOV_MAX + 1;
	assert_int_equal(writev(fd, parts, count), -1);
	assert_int_equal(errno, EINVAL);
	count = -1;
	assert_int_equal(writev(fd, parts, count), -1);
	assert_int_equal(errno, EINVAL);
	msg.msg_iovlen = 0;
	assert_int_equal(sendmsg(fd, &msg, 0), 0);
	assert_int_equal(ready(fd), 0);
}

TEST_WITH(answers_that_are_not_read, rdma_socket, rdma_socket_close)
{
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);
	int fd = *(int *)*state;
	uint8_t octet;
	unsigned sent = 0;

	while (sent < QUERIES && send(fd, m.bytes, m.len, 0) == (ssize_t)m.len)
		sent++;
	assert_in_range(sent, 2, QUERIES - 1);
	assert_int_equal(errno, ENOBUFS);
	while (recv(fd, &octet, 1, MSG_DONTWAIT) >= 0)
		sent--;
	assert_int_equal(sent, 0);
	assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
	expect_device_at(fd);
}

TEST_WITH(errors_in_full_or_without_the_message, rdma_socket, rdma_socket_close)
{
	struct message m = message_make(RDMA_NLDEV_CMD_SET, 0);
	const ssize_t least = NLMSG_HDRLEN + sizeof(struct nlmsgerr);
	int fd = *(int *)*state, one = 1;

	message_add_u32(&m, RDMA_NLDEV_ATTR_DEV_INDEX, INDEX);
	assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
	assert_int_equal(recv(fd, NULL, 0, MSG_TRUNC), least + 8);
	assert_int_equal(
		setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one)), 0);
	assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
	assert_int_equal(recv(fd, NULL, 0, MSG_TRUNC), least);
}

/* Programs that run at the same time share none (own_trees.h). */
TEST(the_tree_is_of_this_program)
{
	assert_non_null(sysfs_session_root());
	assert_non_null(strstr(sysfs_session_root(), "/rocade-trees-"));
}

TEST(other_sockets_are_the_kernels)
{
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), protocol = 0;
	socklen_t len = sizeof(protocol);

	assert_true(fd >= 0);
	assert_int_equal(netlink_write(fd, "", 0), -2);
	close(fd);
	/* With this library, but without a device. */
	absent = true;
	fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	absent = false;
	if (fd >= 0) {
		assert_int_equal(
			getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len), 0);
		assert_int_equal(protocol, NETLINK_RDMA);
		close(fd);
	}
	assert_int_equal(socket(AF_NETLINK, SOCK_STREAM, NETLINK_RDMA), -1);
	assert_int_equal(errno, ESOCKTNOSUPPORT);
}
