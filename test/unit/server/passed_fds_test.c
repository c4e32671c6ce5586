/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that send descriptors whose last close waits: TCP sockets that linger. Each case
 * bounds the time that the daemon's thread takes. */
#include <time.h>

#include "lingering.h"

#define FDS_EACH 100 /* descriptors of a message */

/* Makes the daemon's sockets accept descriptors, as those of a kernel before 6.16. */
static void
fixture_open_old(struct server_fixture *b)
{
	const int on = 1;

	fixture_open(b, (struct rocade_daemon_conf){.size = 0});
	(void)setsockopt(b->d->listen.fd, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
	b->d->passed.refused = false;
	b->closers_wait = true;
}

static const struct sw_request request = {
	.magic = SW_PROTO_MAGIC, .version = SW_PROTO_VERSION, .type = SW_DEVICE_INFO};

TEST(kernel_refuses_descriptors)
{
	struct lingering l;
	struct server_fixture b;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	if (!b.d->passed.refused) {
		fixture_close(&b);
		skip();
	}
	fd = client_connect(&b);
	lingering_open(&l);
	assert_int_equal(lingering_send(&l, fd, &request, sizeof(request)), -1);
	assert_int_equal(errno, EPERM);
	close(l.end);
	close(fd);
	fixture_close(&b);
}

/* Connects a client that has sent a request with a descriptor. */
static int
lingering_client(struct server_fixture *b, struct lingering *l)
{
	int fd = client_connect(b);

	lingering_open(l);
	assert_int_equal(
		lingering_send(l, fd, &request, sizeof(request)), sizeof(request));
	return fd;
}

TEST(received_descriptor_does_not_stop_the_daemon)
{
	struct sw_reply reply;
	struct lingering l;
	struct server_fixture b;
	int fd;

	fixture_open_old(&b);
	fd = lingering_client(&b, &l);
	daemon_handle_all(&b);
	assert_int_equal(passed_fds_pending(&b.d->passed), 1);
	/* A client that sends descriptors is disconnected. */
	assert_false(client_recv(fd, &reply, NULL));
	close(fd);
	lingering_end(&b, &l);
	fixture_close(&b);
}

/* how: 0: the daemon closes the connection; 1: it rejects it; 2: it ends. */
static void
queued_descriptor_case(unsigned how)
{
	struct lingering l;
	struct server_fixture b;
	int fd;

	fixture_open_old(&b);
	fd = client_socket();
	assert_int_equal(
		connect(fd, (struct sockaddr *)&b.d->addr, sizeof(b.d->addr)), 0);
	lingering_open(&l);
	/* A malformed request, an empty one, and one with the descriptor. */
	assert_int_equal(send(fd, "x", 1, 0), 1);
	assert_int_equal(send(fd, "", 0, 0), 0);
	assert_int_equal(
		lingering_send(&l, fd, &request, sizeof(request)), sizeof(request));
	if (how == 1)
		b.d->sw->conf.max_clients = 0;
	if (how != 2)
		conn_accept(b.d);
	daemon_handle_all(&b);
	if (how == 2)
		conn_listen_end(b.d);
	assert_int_equal(conns_count(b.d), 0);
	assert_int_equal(passed_fds_pending(&b.d->passed), 1);
	close(fd);
	lingering_end(&b, &l);
	fixture_close(&b);
}

TEST(queued_descriptor_does_not_stop_the_daemon)
{
	for (unsigned how = 0; how < 3; how++)
		queued_descriptor_case(how);
}

TEST(queue_of_a_client_that_has_gone_is_emptied)
{
	struct lingering l;
	struct server_fixture b;
	int fd;

	fixture_open_old(&b);
	fd = client_connect(&b);
	lingering_open(&l);
	assert_int_equal(send(fd, "x", 1, 0), 1);
	assert_int_equal(
		lingering_send(&l, fd, &request, sizeof(request)), sizeof(request));
	/* The daemon has not read its replies: the queue ends with an error. */
	assert_int_equal(send(TAILQ_FIRST(&b.d->conns)->socket.fd, "y", 1, 0), 1);
	close(fd);
	conn_close(TAILQ_FIRST(&b.d->conns));
	assert_int_equal(passed_fds_pending(&b.d->passed), 1);
	lingering_end(&b, &l);
	fixture_close(&b);
}

/* Connects, sends n messages of FDS_EACH descriptors each, and has the daemon disconnect. */
static int
many_fds_send(struct server_fixture *b, unsigned n)
{
	int fd = client_connect(b), null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int fds[FDS_EACH];

	for (unsigned i = 0; i < FDS_EACH; i++)
		fds[i] = null;
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(fds_send(fd, fds, FDS_EACH, &request, sizeof(request)),
			sizeof(request));
	close(null);
	return fd;
}

/* Neither those of the message that the daemon looks at, nor those behind it. */
TEST(descriptors_do_not_fill_the_daemons_table)
{
	struct server_fixture b;
	unsigned fds;
	int fd;

	fixture_open_old(&b);
	fd = many_fds_send(&b, 4);
	fds = fds_count();
	daemon_handle_all(&b);
	assert_true(fds_count() <= fds);
	assert_int_equal(conns_count(b.d), 0);
	assert_true(fixture_closers_await(&b));
	close(fd);
	fixture_close(&b);
}

/* A user's sockets are charged until they are closed, and do not keep those of others waiting. */
TEST(user_waits_for_its_own_descriptors_only)
{
	struct account *own, *other;
	struct lingering l;
	struct server_fixture b;
	struct conn *conn;
	int fds[2];

	fixture_open_old(&b);
	own = account_open(&b.d->accounts, getuid(), 1);
	other = account_open(&b.d->accounts, getuid() + 1, 1);
	fds[0] = lingering_client(&b, &l);
	daemon_handle_all(&b);
	assert_int_equal(own->held[ACCOUNT_descriptors], 1);
	assert_int_equal(own->held[ACCOUNT_connections], 0);
	fds[1] = many_fds_send(&b, 1);
	conn = TAILQ_FIRST(&b.d->conns);
	account_give(own, ACCOUNT_connections, 1);
	account_give(own, ACCOUNT_descriptors, 2);
	account_close(own); /* of the connection */
	account_hold(other);
	conn->account = other;
	assert_true(account_take(other, ACCOUNT_connections, 1));
	assert_true(account_take(other, ACCOUNT_descriptors, 2));
	daemon_handle_all(&b);
	await(passed_fds_pending(&b.d->passed) == 1);
	passed_fds_collect(&b.d->passed);
	assert_int_equal(own->held[ACCOUNT_descriptors], 1);
	assert_int_equal(other->held[ACCOUNT_descriptors], 0);
	lingering_end(&b, &l);
	assert_int_equal(own->held[ACCOUNT_descriptors], 0);
	close(fds[0]);
	close(fds[1]);
	account_close(own);
	account_close(other);
	fixture_close(&b);
}

/* While the thread of the user waits, what the daemon has given to its clients stays open and charged: the
 * daemon's thread closes none of it. */
TEST(given_descriptors_are_closed_by_the_thread)
{
	struct sw_request open = {.type = SW_CM_OPEN};
	int given[SW_ATTACH_FDS];
	struct fixture_client c;
	struct lingering l;
	struct server_fixture b;
	struct sw_reply reply;
	struct account *own;
	int fd;

	fixture_open_old(&b);
	own = account_open(&b.d->accounts, getuid(), 1);
	fd = lingering_client(&b, &l);
	daemon_handle_all(&b);
	assert_int_equal(passed_fds_pending(&b.d->passed), 1);
	/* The socket that wakes the client. */
	assert_int_equal(client_attach(&b, &c), 0);
	assert_int_equal(passed_fds_pending(&b.d->passed), 2);
	assert_true(client_call(&b, c.fd, &open, &reply, given));
	assert_int_equal(passed_fds_pending(&b.d->passed), 3);
	close(given[0]);
	/* The eventfd that wakes the daemon, and two parts of memory. */
	client_detach(&b, &c);
	assert_int_equal(passed_fds_pending(&b.d->passed), 6);
	assert_int_equal(own->held[ACCOUNT_descriptors], 6);
	lingering_end(&b, &l);
	assert_int_equal(own->held[ACCOUNT_descriptors], 0);
	close(fd);
	account_close(own);
	fixture_close(&b);
}

static unsigned threads_at_begin;

static unsigned
threads_count(void)
{
	return entries_count("/proc/self/task");
}

/* The daemon ends although the thread still waits. */
TEST(daemon_ends_before_a_close)
{
	struct lingering l;
	struct server_fixture b;
	unsigned fds;
	int fd;

	await(threads_count() == threads_at_begin);
	fixture_open_old(&b);
	fd = lingering_client(&b, &l);
	close(fd);
	fds = b.fds;
	rocade_daemon_destroy(b.d);
	assert_int_equal(rmdir(b.dir), 0);
	assert_int_equal(threads_count(), threads_at_begin + 1);
	close(l.end);
	await(threads_count() == threads_at_begin);
	assert_int_equal(fds_count(), fds);
}

TEST(wake_sockets_carry_no_descriptors)
{
	struct sw_request req = {.type = SW_CM_OPEN};
	int fds[SW_ATTACH_FDS] = {-1, -1, -1, -1};
	struct fixture_client c;
	struct sw_reply reply;
	struct lingering l;
	struct server_fixture b;

	fixture_open_old(&b);
	assert_int_equal(client_attach(&b, &c), 0);
	lingering_open(&l);
	assert_int_equal(lingering_send(&l, c.fds[2], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	close(l.end);
	assert_true(client_call(&b, c.fd, &req, &reply, fds));
	assert_int_equal(reply.error, 0);
	lingering_open(&l);
	assert_int_equal(lingering_send(&l, fds[0], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	close(l.end);
	close(fds[0]);
	client_detach(&b, &c);
	fixture_close(&b);
}

static int
count_threads(void **state)
{
	threads_at_begin = threads_count();
	return 0;
}

TEST_GROUP(count_threads, NULL)
