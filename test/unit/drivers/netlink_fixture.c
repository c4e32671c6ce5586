/* SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netlink_fixture.h"

const struct sockaddr_nl netlink_kernel = {.nl_family = AF_NETLINK};

int
rdma_socket(void **state)
{
	static int fd;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	*state = &fd;
	return fd >= 0 ? 0 : -1;
}

int
rdma_socket_close(void **state)
{
	return close(*(int *)*state);
}

uint32_t
port_of(int fd)
{
	struct sockaddr_nl own;
	socklen_t len = sizeof(own);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &len), 0);
	assert_int_equal(own.nl_family, AF_NETLINK);
	return own.nl_pid;
}

short
ready(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) > 0 ? p.revents : 0;
}

void
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
