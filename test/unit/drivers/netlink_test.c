/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of netlink for RDMA: what is sent to one comes back as an answer. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "nldev_fixture.h"
#include "preload/netlink.h"

#define QUERIES 10000 /* more than a socket has room for answers to */

static const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

static int
rdma_socket(void **state)
{
	static int fd;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	*state = &fd;
	return fd >= 0 ? 0 : -1;
}

static int
rdma_socket_close(void **state)
{
	return close(*(int *)*state);
}

static uint32_t
port_of(int fd)
{
	struct sockaddr_nl own;
	socklen_t len = sizeof(own);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &len), 0);
	assert_int_equal(own.nl_family, AF_NETLINK);
	return own.nl_pid;
}

static short
ready(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) > 0 ? p.revents : 0;
}

/* The next datagram is the answer to device_message(RDMA_NLDEV_CMD_GET, 0), and the last one. */
static void
expect_device_at(int fd)
{
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);
	uint8_t bytes[NL_OUT_MAX];
	struct nlmsghdr hdr;
	struct sockaddr_nl from;
	socklen_t from_len = sizeof(from);
	ssize_t len;

	ask(&m); /* the same without a socket */
	assert_int_equal(ready(fd), POLLIN);
	assert_int_equal(recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC), answers.given[0].len);
	len = recvfrom(fd, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&from,
		&from_len);
	assert_int_equal(len, answers.given[0].len);
	memcpy(&hdr, bytes, sizeof(hdr));
	assert_int_equal(hdr.nlmsg_pid, port_of(fd));
	assert_memory_equal(bytes + NLMSG_HDRLEN, answers.given[0].bytes + NLMSG_HDRLEN,
		(size_t)len - NLMSG_HDRLEN);
	/* libmnl and libnl look at the length. */
	assert_int_equal(from_len, sizeof(from));
	assert_int_equal(from.nl_family, AF_NETLINK);
	assert_int_equal(ready(fd), 0);
}

TEST_WITH(each_function_that_sends, rdma_socket, rdma_socket_close)
{
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);
	struct iovec parts[] = {{m.bytes, NLMSG_HDRLEN}, {NULL, 0},
		{m.bytes + NLMSG_HDRLEN, m.len - NLMSG_HDRLEN}};
	struct msghdr msg = {.msg_name = (void *)(uintptr_t)&kernel,
		.msg_namelen = sizeof(kernel),
		.msg_iov = parts,
		.msg_iovlen = 3};
	int fd = *(int *)*state;

	errno = EXDEV;
	assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
	expect_device_at(fd);
	assert_int_equal(sendto(fd, m.bytes, m.len, 0, (const struct sockaddr *)&kernel,
				 sizeof(kernel)),
		m.len);
	expect_device_at(fd);
	assert_int_equal(sendmsg(fd, &msg, 0), m.len);
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

TEST_WITH(only_the_socket_itself_can_send_to_it, rdma_socket, rdma_socket_close)
{
	struct sockaddr_nl to = kernel;
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);
	int fd = *(int *)*state, other = socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK);

	assert_true(other >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&kernel, sizeof(kernel)), 0);
	to.nl_pid = port_of(fd);
	/* It comes before the first query, and is forgotten. */
	assert_int_equal(
		sendto(other, "false", 5, 0, (struct sockaddr *)&to, sizeof(to)), 5);
	assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
	assert_int_equal(
		sendto(other, "false", 5, 0, (struct sockaddr *)&to, sizeof(to)), -1);
	assert_int_equal(errno, ECONNREFUSED);
	expect_device_at(fd);
	close(other);
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

static void
expect_refused(int fd, const struct msghdr *msg, int error)
{
	assert_int_equal(sendmsg(fd, msg, 0), -1);
	assert_int_equal(errno, error);
}

TEST_WITH(wrong_addresses_and_lengths, rdma_socket, rdma_socket_close)
{
	static uint8_t bytes[16384];
	struct sockaddr_nl to = kernel;
	struct iovec parts[2] = {{bytes, NLMSG_HDRLEN}, {bytes, SIZE_MAX}};
	struct msghdr msg = {.msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_iov = parts,
		.msg_iovlen = 1};
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
