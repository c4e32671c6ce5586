/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process a connection belongs to. */
#include <poll.h>
#include <sys/wait.h>

#include "server_fixture.h"
#include "server/peer_process.h"
#include "server/server_query.h"
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

/* Writes the text into a new file. */
static void
file_write(char path[32], const char *text)
{
	int fd;

	snprintf(path, 32, "/tmp/rocade-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* In a namespace that has not all users, those without a number there have one uid. */
TEST(users_without_a_number_share_a_uid)
{
	static const struct {
		const char *map;
		uint32_t shared;
	} rows[] = {
		{"         0          0 4294967295\n", PEER_UID_NONE},
		{"         0          0 4294967294\n", 4711},
		{"         0       1000 4294967295\n", 4711},
		{"         1          0 4294967295\n", 4711},
		{"         0       1000          1\n         1     100000      65536\n",
			4711},
		{"", 4711}, /* it has no user yet */
	};
	char map[32], overflow[32];

	file_write(overflow, "4711\n");
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		file_write(map, rows[i].map);
		assert_int_equal(peer_shared_uid(map, overflow), rows[i].shared);
		if (rows[i].shared != PEER_UID_NONE)
			assert_int_equal(peer_shared_uid(map, "/nonexistent"), 65534);
		assert_int_equal(unlink(map), 0);
	}
	/* A kernel without user namespaces, and a process without /proc. */
	assert_int_equal(peer_shared_uid(map, overflow), PEER_UID_NONE);
	assert_int_equal(peer_shared_uid("/nonexistent/uid_map", overflow), 4711);
	assert_int_equal(unlink(overflow), 0);
}

/* Returns whether the connection that is made now shares its uid. */
static bool
next_shares(struct server_fixture *b, int *fd)
{
	*fd = client_connect(b);
	return TAILQ_LAST(&b->d->conns, conns)->shares_uid;
}

TEST(shared_uid_gives_no_right_to_what_others_have)
{
	struct server_fixture b;
	struct conn *conn;
	int fds[3];

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	b.d->shared_uid = PEER_UID_NONE;
	b.d->others = true;
	assert_false(next_shares(&b, &fds[0]));
	b.d->shared_uid = geteuid();
	assert_true(next_shares(&b, &fds[1]));
	conn = TAILQ_LAST(&b.d->conns, conns);
	/* The permissions of the socket let one user in. */
	b.d->others = false;
	assert_false(next_shares(&b, &fds[2]));
	conn->uid = 4711;
	assert_false(conn_may_see(conn, 4711));
	conn->shares_uid = false;
	assert_true(conn_may_see(conn, 4711));
	/* Nor is it the daemon's user. Root has a number. */
	conn->uid = geteuid();
	assert_true(conn_is_privileged(conn));
	conn->shares_uid = true;
	assert_int_equal(conn_is_privileged(conn), geteuid() == 0);
	for (unsigned i = 0; i < 3; i++)
		close(fds[i]);
	daemon_handle_all(&b);
	fixture_close(&b);
}
