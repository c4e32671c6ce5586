/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process a connection belongs to. */
#include <poll.h>
#include <sys/wait.h>

#include "server_fixture.h"
#include "server/peer_process.h"
#include "../../lib/emulated.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Connects a socket in a child, which then ends. Its number is free when this returns. */
static int
connect_and_end(struct server_fixture *b)
{
	int fd = client_socket(), status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(connect(fd, (struct sockaddr *)&b->d->addr, sizeof(b->d->addr)));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return fd;
}

TEST(process_of_a_connection_is_watched)
{
	struct server_fixture b;
	const struct conn *conn;
	struct pollfd process = {.events = POLLIN};
	int fd;

	SKIP_IF_EMULATED();
	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	fd = client_connect(&b);
	conn = TAILQ_FIRST(&b.d->conns);
	assert_int_equal(conn->pid, getpid());
	assert_memory_equal(conn->name, program_invocation_short_name, 15);
	process.fd = conn->process.fd;
	assert_true(process.fd >= 0);
	assert_int_equal(poll(&process, 1, 0), 0);
	close(fd);
	daemon_handle_all(&b);
	fixture_close(&b);
}

/* The process has ended before the daemon accepts its connection, and left the socket to
 * another one. Its number may be another process's by now: the connection has none, or a
 * pidfd that shows the end. */
TEST(ended_process_is_not_another_one)
{
	struct server_fixture b;
	const struct conn *conn;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	fd = connect_and_end(&b);
	conn_accept(b.d);
	conn = TAILQ_FIRST(&b.d->conns);
	assert_non_null(conn);
	if (conn->process.fd >= 0) {
		struct pollfd process = {.fd = conn->process.fd, .events = POLLIN};

		assert_int_equal(poll(&process, 1, 0), 1);
	} else {
		assert_int_equal(conn->pid, 0);
	}
	close(fd);
	daemon_handle_all(&b);
	fixture_close(&b);
}

/* As if the number of the ended process were already this process's. */
TEST(number_given_away_is_not_followed)
{
	struct pollfd process = {.events = POLLIN};
	socklen_t len = sizeof(process.fd);
	struct server_fixture b;
	int fd, end;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	fd = connect_and_end(&b);
	end = accept4(b.d->listen.fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(end >= 0);
	if (getsockopt(end, SOL_SOCKET, SO_PEERPIDFD, &process.fd, &len) != 0 &&
		errno == ENOPROTOOPT) {
		close(end);
		close(fd);
		fixture_close(&b);
		skip();
	}
	if (process.fd > 0)
		close(process.fd);
	process.fd = peer_process_open(end, getpid());
	if (process.fd >= 0) {
		assert_int_equal(poll(&process, 1, 0), 1);
		close(process.fd);
	}
	close(end);
	close(fd);
	fixture_close(&b);
}

TEST(process_without_a_number_is_unknown)
{
	char text[PEER_PROCESS_TEXT];

	assert_string_equal(peer_process_text(0, text, sizeof(text)), "unknown process");
	assert_string_equal(
		peer_process_text(2147483647, text, sizeof(text)), "process 2147483647");
}
