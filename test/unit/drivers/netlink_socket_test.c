/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of netlink for RDMA receive answers, and nothing else. */
#include <errno.h>
#include <linux/filter.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "netlink_fixture.h"

#define FORGED 3000 /* datagrams of others */
#define RACES 200

/* Others send to the socket, and to a group, from a socket of theirs. */
static void
forge(int other, int fd)
{
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);
	struct sockaddr_nl to = netlink_kernel;

	to.nl_pid = port_of(fd);
	assert_int_not_equal(to.nl_pid, 0);
	for (unsigned i = 0; i < FORGED; i++)
		(void)sendto(
			other, m.bytes, m.len, 0, (struct sockaddr *)&to, sizeof(to));
	(void)sendto(other, "short", 5, 0, (struct sockaddr *)&to, sizeof(to));
	(void)sendto(other, "", 0, 0, (struct sockaddr *)&to, sizeof(to));
	to.nl_pid = 0;
	to.nl_groups = 1;
	(void)sendto(other, m.bytes, m.len, 0, (struct sockaddr *)&to, sizeof(to));
}

TEST_WITH(nothing_of_others_arrives, rdma_socket, rdma_socket_close)
{
	struct sockaddr_nl own = {.nl_family = AF_NETLINK, .nl_groups = 1};
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);
	int fd = *(int *)*state, other = socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK);
	int room = 50 << 20, one = 1;

	assert_true(other >= 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(
		setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &one, sizeof(one)),
		0);
	forge(other, fd);
	assert_int_equal(ready(fd), 0);
	assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
	forge(other, fd);
	expect_device_at(fd);
	close(other);
}

/* Also not what the program sends by a function that is not overridden. */
TEST_WITH(own_queries_are_no_answers, rdma_socket, rdma_socket_close)
{
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);
	int fd = *(int *)*state;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(syscall(SYS_write, fd, m.bytes, m.len), -1);
		assert_int_equal(errno, ECONNREFUSED);
		assert_int_equal(ready(fd), 0);
		assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
		expect_device_at(fd);
	}
}

TEST_WITH(the_filter_stays, rdma_socket, rdma_socket_close)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	struct sock_fprog program = {.len = 1, .filter = &all};
	int fd = *(int *)*state, none = 0;

	assert_int_equal(
		setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)),
		-1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(
		setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)), -1);
	assert_int_equal(errno, EPERM);
}

static void
expect_group(int fd, int option, unsigned group, int error)
{
	assert_int_equal(setsockopt(fd, SOL_NETLINK, option, &group, sizeof(group)),
		error == 0 ? 0 : -1);
	if (error != 0)
		assert_int_equal(errno, error);
}

TEST_WITH(every_user_may_name_groups, rdma_socket, rdma_socket_close)
{
	struct sockaddr_nl own = {.nl_family = AF_NETLINK, .nl_groups = 8}, got;
	socklen_t len = sizeof(got);
	int fd = *(int *)*state;
	uid_t user = geteuid();

	assert_int_equal(seteuid(user == 0 ? 65534 : user), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	expect_group(fd, NETLINK_ADD_MEMBERSHIP, 4, 0);
	expect_group(fd, NETLINK_DROP_MEMBERSHIP, 4, 0);
	assert_int_equal(seteuid(user), 0);
	expect_group(fd, NETLINK_ADD_MEMBERSHIP, 0, EINVAL);
	expect_group(fd, NETLINK_ADD_MEMBERSHIP, 33, EINVAL);
	assert_int_equal(
		setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &own, 2), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&got, &len), 0);
	assert_int_equal(got.nl_groups, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own) - 1), -1);
	assert_int_equal(errno, EINVAL);
}

TEST_WITH(a_failed_bind, rdma_socket, rdma_socket_close)
{
	struct sockaddr_nl own = {
		.nl_family = AF_NETLINK, .nl_pid = 0x7e000000u | getpid()};
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);
	int fd = *(int *)*state, other = socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK);

	assert_int_equal(bind(other, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), -1);
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
	assert_int_equal(ready(other), 0);
	assert_int_not_equal(port_of(fd), own.nl_pid);
	expect_device_at(fd);
	close(other);
}

TEST_WITH(connected_with_the_kernel, rdma_socket, rdma_socket_close)
{
	struct message m = device_message(RDMA_NLDEV_CMD_GET, 0);
	int fd = *(int *)*state;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(connect(fd, (const struct sockaddr *)&netlink_kernel,
					 sizeof(netlink_kernel)),
			0);
		assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
		expect_device_at(fd);
	}
}

struct race {
	pthread_barrier_t start;
	struct message m;
	int fd;
	ssize_t sent;
};

static void *
race_run(void *arg)
{
	struct race *race = arg;

	pthread_barrier_wait(&race->start);
	race->sent = send(race->fd, race->m.bytes, race->m.len, 0);
	return NULL;
}

TEST(two_threads_use_a_new_socket)
{
	struct race race = {.m = device_message(RDMA_NLDEV_CMD_SYS_GET, 0)};
	uint8_t octet;

	assert_int_equal(pthread_barrier_init(&race.start, NULL, 2), 0);
	for (unsigned i = 0; i < RACES; i++) {
		pthread_t other;

		race.fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
		assert_int_equal(pthread_create(&other, NULL, race_run, &race), 0);
		pthread_barrier_wait(&race.start);
		assert_int_equal(send(race.fd, race.m.bytes, race.m.len, 0), race.m.len);
		pthread_join(other, NULL);
		assert_int_equal(race.sent, race.m.len);
		assert_int_equal(recv(race.fd, &octet, 1, MSG_DONTWAIT), 1);
		assert_int_equal(recv(race.fd, &octet, 1, MSG_DONTWAIT), 1);
		assert_int_equal(ready(race.fd), 0);
		close(race.fd);
	}
	pthread_barrier_destroy(&race.start);
}

static unsigned asked; /* system calls that ask what a descriptor is */

int
getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
	asked++;
	return (int)syscall(SYS_getsockopt, fd, level, option, value, len);
}

/* Each send() of a program's own socket would ask. */
TEST(another_file_with_the_number_asks_once)
{
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA), ends[2];

	assert_true(fd >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_int_equal(dup2(ends[0], fd), fd);
	asked = 0;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(send(fd, "text", 4, 0), 4);
	assert_int_equal(asked, 1);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}
