/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of RDMA-CM: commands written, events read, duplicates, close. */
#include <sys/resource.h>

#include "preload_channel_fixture.h"

static short
events_of(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_true(poll(&p, 1, 0) >= 0);
	return p.revents;
}

/* The server counts as ended, and is only stopped. Duplicates are channels, too. */
TEST_WITH(channels_disconnect_without_the_server, setup, teardown)
{
	int fd = channel_open(O_RDWR), copy = channel_dup(fd, dup(fd)), other = dup(0);

	assert_true(fd >= 0 && copy >= 0 && other >= 0);
	channels_of_daemon_disconnect(6); /* of another connection */
	assert_int_equal(events_of(fd), 0);
	channels_of_daemon_disconnect(7);
	assert_true((events_of(fd) & POLLHUP) != 0);
	assert_true((events_of(copy) & POLLHUP) != 0);
	close(copy);
	/* Its number is another file's. */
	close(fd);
	assert_int_equal(dup2(other, fd), fd);
	channels_of_daemon_disconnect(7);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	close(fd);
	close(other);
}

TEST_WITH(open_depends_on_the_backend, setup, teardown)
{
	int fd;

	ucm_backend_set(NULL);
	assert_int_equal(channel_open(O_RDWR), -2);
	ucm_backend_set(&backend);
	server.rc = -ENOENT;
	assert_int_equal(channel_open(O_RDWR), -2);
	server.rc = -ECONNREFUSED;
	assert_int_equal(channel_open(O_RDWR), -2);
	server.rc = -ENOSPC;
	assert_int_equal(channel_open(O_RDWR), -1);
	assert_int_equal(errno, ENOSPC);
	server.rc = 0;
	fd = channel_open(O_RDWR | O_CLOEXEC);
	assert_true(channel_is(fd));
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	close(fd);
	close(server.far);
	fd = channel_open(O_RDWR | O_NONBLOCK);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	close(fd);
}

/* close() is not intercepted: the descriptor's number may belong to another file. */
TEST_WITH(reused_descriptor_is_no_channel, setup, teardown)
{
	int fd, other;

	fd = channel_open(O_RDWR);
	assert_true(channel_is(fd));
	close(fd);
	assert_false(channel_is(fd));
	for (unsigned i = 0; i < 2; i++) {
		/* Another socket is on the same device as the channel was. */
		other = i == 0 ? open("/dev/null", O_RDWR)
			       : socket(AF_UNIX, SOCK_SEQPACKET, 0);
		assert_int_equal(other, fd);
		errno = 77;
		assert_false(channel_is(other));
		assert_int_equal(channel_write(other, "abcdefgh", 8), -2);
		assert_int_equal(errno, 77);
		close(other);
	}
	assert_int_equal(channel_write(-1, "abcdefgh", 8), -2);
	assert_int_equal(channel_write(1 << 30, "abcdefgh", 8), -2);
}

/* A duplicate is a channel as well, and stays one when the original is closed. */
TEST_WITH(duplicate_is_a_channel, setup, teardown)
{
	struct rdma_ucm_listen cmd = {.id = 1};
	int fd = channel_open(O_RDWR), other;

	other = channel_dup(fd, dup(fd));
	assert_true(channel_is(other));
	close(fd);
	assert_true(command(other, RDMA_USER_CM_CMD_LISTEN, &cmd, sizeof(cmd), 0) > 0);
	assert_int_equal(server.token.number, 1);
	/* A duplicate of another file, or a failed dup(), is no channel. */
	fd = open("/dev/null", O_RDWR);
	assert_int_equal(channel_dup(fd, dup2(fd, other)), other);
	assert_false(channel_is(other));
	assert_int_equal(channel_dup(fd, -1), -1);
	close(fd);
	close(other);
}

TEST_WITH(reply_goes_to_the_callers_buffer, setup, teardown)
{
	struct rdma_ucm_create_id_resp resp[2] = {{1}, {2}};
	struct rdma_ucm_create_id cmd = {
		.uid = 5, .response = (uintptr_t)&resp[0], .ps = RDMA_PS_TCP};
	int fd = channel_open(O_RDWR);
	ssize_t len = sizeof(struct rdma_ucm_cmd_hdr) + sizeof(cmd);

	memset(server.out, 0x11, sizeof(server.out));
	server.out_len = sizeof(resp);
	errno = 77;
	assert_int_equal(
		command(fd, RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), 4), len);
	assert_int_equal(errno, 77);
	assert_int_equal(server.cmd, RDMA_USER_CM_CMD_CREATE_ID);
	assert_int_equal(server.token.number, 1);
	assert_int_equal(server.token.generation, 7);
	assert_memory_equal(server.in, &cmd, sizeof(cmd));
	/* The reply is cut to the caller's length. */
	assert_int_equal(resp[0].id, 0x11111111);
	assert_int_equal(resp[1].id, 2);
	server.rc = -EINVAL;
	resp[0].id = 1;
	assert_int_equal(
		command(fd, RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), 4), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(resp[0].id, 1);
	close(fd);
}

TEST_WITH(malformed_commands_are_refused, setup, teardown)
{
	struct rdma_ucm_cmd_hdr hdr = {.cmd = RDMA_USER_CM_CMD_LISTEN, .in = 8};
	struct rdma_ucm_listen cmd = {.id = 1};
	int fd = channel_open(O_RDWR);

	assert_int_equal(channel_write(fd, &hdr, 4), -1);
	assert_int_equal(errno, EINVAL);
	/* The header names more bytes than were written. */
	assert_int_equal(channel_write(fd, &hdr, sizeof(hdr)), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(command(fd, RDMA_USER_CM_CMD_LISTEN, &cmd, 4, 0), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(command(fd, RDMA_USER_CM_CMD_GET_OPTION, &cmd, 8, 0), -1);
	assert_int_equal(errno, ENOSYS);
	assert_int_equal(command(fd, 99, &cmd, 8, 0), -1);
	assert_int_equal(errno, ENOSYS);
	assert_int_equal(server.commands, 0);
	close(fd);
}

TEST_WITH(pointers_and_descriptors_are_translated, setup, teardown)
{
	uint8_t tos = 0x28;
	struct rdma_ucm_set_option option = {.optval = (uintptr_t)&tos,
		.id = 3,
		.optname = RDMA_OPTION_ID_TOS,
		.optlen = 1};
	int first = channel_open(O_RDWR), far = server.far, second = channel_open(O_RDWR);
	struct rdma_ucm_migrate_id migrate = {.id = 9, .fd = (uint32_t)first};
	struct rdma_ucm_migrate_resp resp;

	assert_true(command(first, RDMA_USER_CM_CMD_SET_OPTION, &option, sizeof(option),
			    0) > 0);
	assert_int_equal(server.in_len, sizeof(option) + 1);
	assert_int_equal(server.in[sizeof(option)], 0x28);
	option.optlen = UCM_OPTION_MAX + 1;
	assert_int_equal(
		command(first, RDMA_USER_CM_CMD_SET_OPTION, &option, sizeof(option), 0),
		-1);
	assert_int_equal(errno, EINVAL);
	migrate.response = (uintptr_t)&resp;
	assert_true(command(second, RDMA_USER_CM_CMD_MIGRATE_ID, &migrate,
			    sizeof(migrate), sizeof(resp)) > 0);
	assert_int_equal(((struct rdma_ucm_migrate_id *)server.in)->fd, 1);
	assert_int_equal(server.token.number, 2);
	assert_int_equal(server.settled, 1);
	assert_int_equal(server.settled_fd, first);
	server.settled = 0;
	server.rc = -ENOENT;
	assert_int_equal(command(second, RDMA_USER_CM_CMD_MIGRATE_ID, &migrate,
				 sizeof(migrate), sizeof(resp)),
		-1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(server.settled, 0);
	migrate.fd = 0;
	assert_int_equal(command(second, RDMA_USER_CM_CMD_MIGRATE_ID, &migrate,
				 sizeof(migrate), sizeof(resp)),
		-1);
	assert_int_equal(errno, EBADF);
	close(first);
	close(second);
	close(far);
}

TEST_WITH(get_event_waits, setup, teardown)
{
	struct rdma_ucm_event_resp resp;
	struct rdma_ucm_get_event cmd = {.response = (uintptr_t)&resp};
	int fd = channel_open(O_RDWR);
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 0), 0);
	server.empty = 2;
	server.out_len = sizeof(resp);
	assert_true(command(fd, RDMA_USER_CM_CMD_GET_EVENT, &cmd, sizeof(cmd),
			    sizeof(resp)) > 0);
	assert_int_equal(server.commands, 3);
	assert_int_equal(poll(&p, 1, 0), 1);
	/* A non-blocking channel does not wait. */
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	server.empty = 1;
	assert_int_equal(
		command(fd, RDMA_USER_CM_CMD_GET_EVENT, &cmd, sizeof(cmd), sizeof(resp)),
		-1);
	assert_int_equal(errno, EAGAIN);
	close(fd);
}

/* The number of a closed channel may belong to another file at once. */
TEST_WITH(close_during_get_event, setup, teardown)
{
	struct rdma_ucm_event_resp resp;
	struct rdma_ucm_get_event cmd = {.response = (uintptr_t)&resp};
	int fd = channel_open(O_RDWR), before = dup(0), after;

	close(before);
	server.empty = 2;
	server.closed = fd;
	server.out_len = sizeof(resp);
	assert_true(command(fd, RDMA_USER_CM_CMD_GET_EVENT, &cmd, sizeof(cmd),
			    sizeof(resp)) > 0);
	assert_int_equal(server.commands, 3);
	assert_int_equal(server.token.number, 1);
	assert_false(channel_is(fd));
	/* No descriptor is left open. */
	after = dup(0);
	assert_int_equal(after, RTE_MIN(fd, before));
	close(after);
}

/* A program without free descriptors can read its events. */
TEST_WITH(get_event_without_free_descriptors, setup, teardown)
{
	struct rdma_ucm_event_resp resp;
	struct rdma_ucm_get_event cmd = {.response = (uintptr_t)&resp};
	int fd = channel_open(O_RDWR);
	struct rlimit before, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = 1, .rlim_max = before.rlim_max};
	server.out_len = sizeof(resp);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(dup(0), -1);
	assert_true(command(fd, RDMA_USER_CM_CMD_GET_EVENT, &cmd, sizeof(cmd),
			    sizeof(resp)) > 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	close(fd);
}
