/* SPDX-License-Identifier: BSD-3-Clause */
/* The order in which requests and ends of users are served, and which user pays. */
#include <sys/wait.h>

#include "server_fixture.h"
#include "engine/clock.h"
#include "server/server_control.h"
#include "server/server_events.h"

#define START_NS (100 * NS_PER_SEC)

/* Not 0: the time, which goes on by a microsecond with each look at the clock, and not while this thread has no
 * core. */
static uint64_t time_ns;

uint64_t __real_clock_now(void);
uint64_t __wrap_clock_now(void);

uint64_t
__wrap_clock_now(void)
{
	if (time_ns == 0)
		return __real_clock_now();
	time_ns += NS_PER_US;
	return time_ns;
}

static const struct sw_request status = {
	.magic = SW_PROTO_MAGIC, .version = SW_PROTO_VERSION, .type = SW_STATUS};

/* The daemon's loop handles what is ready. */
static void
daemon_turn(struct server_fixture *b)
{
	rocade_daemon_stop(b->d);
	assert_int_equal(rocade_daemon_run(b->d), 0);
}

/* Opens a daemon, and the account of this process's user. */
static struct account *
own_account_open(struct server_fixture *b)
{
	fixture_open(b, (struct rocade_daemon_conf){.size = 0});
	return account_open(&b->d->accounts, getuid(), START_NS);
}

/* Returns how many replies have come. */
static unsigned
replies_read(int fd)
{
	static struct sw_data_reply reply;
	unsigned n = 0;

	while (recv(fd, &reply, sizeof(reply), MSG_DONTWAIT) > 0)
		n++;
	return n;
}

/* 79 connections of this process's user, and then one of another user, have a request each. */
struct crowd {
	struct server_fixture b;
	struct account *own, *other;
	int fds[80];
};

static void
crowd_open(struct crowd *c)
{
	static const struct sw_request req = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.type = SW_DEVICE_INFO};
	struct conn *last;

	fixture_open(&c->b, (struct rocade_daemon_conf){.size = 0});
	c->other = account_open(&c->b.d->accounts, 4712, clock_now());
	for (unsigned i = 0; i < RTE_DIM(c->fds); i++) {
		c->fds[i] = client_connect(&c->b);
		assert_int_equal(send(c->fds[i], &req, sizeof(req), 0), sizeof(req));
	}
	last = TAILQ_LAST(&c->b.d->conns, conns);
	c->own = last->account;
	last->account = c->other;
}

static void
crowd_close(struct crowd *c)
{
	struct sw_reply reply;

	assert_true(client_recv(c->fds[RTE_DIM(c->fds) - 1], &reply, NULL));
	TAILQ_LAST(&c->b.d->conns, conns)->account = c->own;
	for (unsigned i = 0; i < RTE_DIM(c->fds); i++)
		close(c->fds[i]);
	daemon_handle_all(&c->b);
	account_close(c->other);
	fixture_close(&c->b);
}

/* Packets move. Returns how often the daemon had to look for events until the
 * request of the other user was served. */
static unsigned
crowd_passes(struct crowd *c)
{
	unsigned passes = 0;

	time_ns = clock_now();
	for (; c->other->requests == 0 && passes < RTE_DIM(c->fds); passes++) {
		control_packets_moved(c->b.d, clock_now());
		events_serve(c->b.d, 0);
	}
	time_ns = 0;
	return passes;
}

/* While packets move, four requests are served at a time. Connections that are parked do not count, so
 * that others wait for the time which parking takes, and not for a pass for each four. */
TEST(parked_connections_do_not_delay_others)
{
	struct crowd c;

	crowd_open(&c);
	c.own->control_ns = clock_now() + 1000 * NS_PER_SEC;
	assert_in_range(crowd_passes(&c), 1, RTE_DIM(c.fds) / 8);
	assert_int_equal(c.b.d->control.parks, RTE_DIM(c.fds) - 1);
	assert_int_equal(c.own->requests, 0);
	assert_true(c.own->control_total_ns > 0);
	crowd_close(&c);
}

/* A user who may send requests has one of them served before that of the other user. */
TEST(users_take_turns)
{
	struct crowd c;
	unsigned passes;

	crowd_open(&c);
	passes = crowd_passes(&c);
	assert_in_range(passes, 1, RTE_DIM(c.fds) / 8);
	assert_in_range(c.own->requests, 1, 3 * passes);
	crowd_close(&c);
}

/* All connections of this process's user end at once. */
TEST(ends_take_turns_with_requests)
{
	struct crowd c;
	unsigned passes;

	crowd_open(&c);
	for (unsigned i = 0; i < RTE_DIM(c.fds) - 1; i++)
		assert_int_equal(shutdown(c.fds[i], SHUT_RDWR), 0);
	passes = crowd_passes(&c);
	assert_in_range(passes, 1, RTE_DIM(c.fds) / 8);
	assert_in_range(c.own->requests, 1, 3 * passes);
	crowd_close(&c);
}

/* The daemon looks for events less often than the user has requests. */
TEST(a_user_alone_has_all_turns)
{
	struct crowd c;
	struct conn *last;
	unsigned looks = 0;

	crowd_open(&c);
	last = TAILQ_LAST(&c.b.d->conns, conns);
	last->account = c.own;
	c.b.d->control.asker = c.own;
	for (; c.own->requests < RTE_DIM(c.fds) && looks < RTE_DIM(c.fds); looks++)
		events_serve(c.b.d, 0);
	assert_int_equal(c.own->requests, RTE_DIM(c.fds));
	assert_true(looks < RTE_DIM(c.fds) / 2);
	crowd_close(&c);
}

/* Packets move, so that a round has one request of a user, and a look four rounds, or fewer when its time is
 * over. */
TEST(a_look_that_ends_a_round_begins_the_next)
{
	struct crowd c;
	unsigned looks = 0;

	crowd_open(&c);
	TAILQ_LAST(&c.b.d->conns, conns)->account = c.own;
	control_packets_moved(c.b.d, TIME_NEVER);
	for (; c.own->requests < RTE_DIM(c.fds) && looks < 2 * RTE_DIM(c.fds); looks++) {
		c.own->control_ns = 0; /* it may ask as much as it likes */
		events_serve(c.b.d, 0);
	}
	assert_int_equal(c.own->requests, RTE_DIM(c.fds));
	assert_true(looks < RTE_DIM(c.fds));
	crowd_close(&c);
}

/* The other user asks after the round has begun. */
TEST(a_source_is_parked_once_until_it_may)
{
	struct crowd c;

	crowd_open(&c);
	c.own->control_ns = clock_now() + 1000 * NS_PER_SEC;
	while (c.other->requests == 0)
		events_serve(c.b.d, 0);
	assert_true(c.b.d->control.parks <= 2 * RTE_DIM(c.fds));
	crowd_close(&c);
}

/* The backlog is never empty while the request waits for a turn. */
TEST(connections_that_wait_do_not_keep_users_waiting)
{
	struct server_fixture b;
	struct account *own = own_account_open(&b);
	int fds[16], fd = client_connect(&b);
	unsigned replies = 0;

	for (unsigned i = 0; i < RTE_DIM(fds); i++) {
		fds[i] = client_socket();
		assert_int_equal(
			connect(fds[i], (struct sockaddr *)&b.d->addr, sizeof(b.d->addr)),
			0);
	}
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(send(fd, &status, sizeof(status), 0), sizeof(status));
	control_packets_moved(b.d, TIME_NEVER);
	while (replies < 3) {
		own->control_ns = 0;
		events_serve(b.d, 0);
		replies += replies_read(fd);
	}
	control_packets_moved(b.d, 0);
	assert_true(conns_count(b.d) < RTE_DIM(fds));
	close(fd);
	for (unsigned i = 0; i < RTE_DIM(fds); i++)
		close(fds[i]);
	daemon_turn(&b);
	daemon_handle_all(&b);
	account_close(own);
	fixture_close(&b);
}

/* Of more users than a round begins with, only the last one may have requests served. */
TEST(a_user_behind_many_has_its_turn)
{
	struct account *accounts[12], *own;
	int fds[RTE_DIM(accounts)];
	struct server_fixture b;
	struct conn *conn;
	unsigned i = 0;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	for (; i < RTE_DIM(fds); i++) {
		fds[i] = client_connect(&b);
		conn = TAILQ_LAST(&b.d->conns, conns);
		own = conn->account;
		accounts[i] = account_open(&b.d->accounts, 5000 + i, START_NS);
		accounts[i]->control_ns = START_NS + NS_PER_SEC;
		conn->account = accounts[i];
		control_park(b.d, &conn->socket);
	}
	accounts[i - 1]->control_ns = 0;
	control_packets_moved(b.d, START_NS);
	assert_true(control_round(b.d, START_NS));
	assert_false(conn->socket.parked);
	i = 0;
	TAILQ_FOREACH (conn, &b.d->conns, link) {
		control_forget(b.d, &conn->socket);
		fd_source_pause(&conn->socket, false);
		conn->account = own;
		account_close(accounts[i]);
		close(fds[i++]);
	}
	daemon_handle_all(&b);
	fixture_close(&b);
}

/* A user's end, or request, that was parked is before one that comes later. */
TEST(parked_sources_are_before_later_ones)
{
	struct server_fixture b;
	struct account *own = own_account_open(&b);
	unsigned replies[2] = {0};
	int fds[2];

	for (unsigned i = 0; i < 2; i++) {
		fds[i] = client_connect(&b);
		assert_int_equal(
			send(fds[i], &status, sizeof(status), 0), sizeof(status));
	}
	control_park(b.d, &TAILQ_FIRST(&b.d->conns)->socket);
	control_packets_moved(b.d, TIME_NEVER);
	while (replies[1] == 0) {
		/* For one request. */
		own->control_ns = clock_now() - 1;
		events_serve(b.d, 0);
		for (unsigned i = 0; i < 2; i++)
			replies[i] += replies_read(fds[i]);
		assert_true(replies[0] >= replies[1]);
	}
	control_packets_moved(b.d, 0);
	close(fds[0]);
	close(fds[1]);
	daemon_handle_all(&b);
	account_close(own);
	fixture_close(&b);
}

TEST(the_end_of_a_process_is_charged)
{
	struct server_fixture b;
	struct account *own = own_account_open(&b);
	int fd = client_socket();
	uint64_t total;
	siginfo_t info;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(connect(fd, (struct sockaddr *)&b.d->addr, sizeof(b.d->addr)));
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_status, 0);
	conn_accept(b.d);
	assert_int_equal(conns_count(b.d), 1);
	/* The socket is still open here, so only the process reports the end. Its user has had its turn of this
	 * round. */
	total = own->control_total_ns;
	own->control_round = b.d->control.round;
	control_packets_moved(b.d, TIME_NEVER);
	for (unsigned looks = 0; conns_count(b.d) != 0 && looks < 100; looks++)
		events_serve(b.d, 0);
	assert_int_equal(conns_count(b.d), 0);
	assert_int_equal(b.d->control.parks, 1);
	assert_int_equal(own->requests, 1);
	assert_true(own->control_total_ns > total);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(fd);
	account_close(own);
	fixture_close(&b);
}

TEST(the_end_of_a_channel_is_charged)
{
	struct sw_request open = {.type = SW_CM_OPEN};
	int fd, ends[SW_ATTACH_FDS];
	struct server_fixture b;
	struct account *own = own_account_open(&b);
	struct sw_reply reply;

	fd = client_connect(&b);
	assert_true(client_call(&b, fd, &open, &reply, ends));
	assert_int_equal(own->held[ACCOUNT_descriptors], 3);
	close(ends[0]);
	daemon_turn(&b);
	assert_int_equal(own->held[ACCOUNT_descriptors], 2);
	assert_int_equal(own->requests, 1);
	close(fd);
	daemon_turn(&b);
	assert_int_equal(own->requests, 2);
	account_close(own);
	fixture_close(&b);
}

/* However long the requests take, and however often the daemon looks for packets meanwhile. */
TEST(connections_are_served_in_turn)
{
	struct server_fixture b;
	struct account *own = own_account_open(&b);
	unsigned served[45] = {0}, least = 0;
	int fds[RTE_DIM(served)];

	/* No other user asks: this one is not limited, however long its requests take. */
	b.d->control.asker = own;
	for (unsigned i = 0; i < RTE_DIM(fds); i++) {
		fds[i] = client_connect(&b);
		for (unsigned j = 0; j < 3; j++)
			assert_int_equal(
				send(fds[i], &status, sizeof(status), 0), sizeof(status));
	}
	while (least < 3) {
		unsigned most = 0;

		events_serve(b.d, 0);
		least = UINT_MAX;
		for (unsigned i = 0; i < RTE_DIM(fds); i++) {
			served[i] += replies_read(fds[i]);
			least = RTE_MIN(least, served[i]);
			most = RTE_MAX(most, served[i]);
		}
		assert_true(most - least <= 1);
	}
	for (unsigned i = 0; i < RTE_DIM(fds); i++)
		close(fds[i]);
	daemon_handle_all(&b);
	daemon_handle_all(&b);
	account_close(own);
	fixture_close(&b);
}

TEST(refused_connections_are_charged)
{
	struct server_fixture b;
	struct account *own = own_account_open(&b);
	int fd = client_socket();

	accounts_limit(&b.d->accounts, ACCOUNT_connections, 0, false);
	assert_int_equal(
		connect(fd, (struct sockaddr *)&b.d->addr, sizeof(b.d->addr)), 0);
	daemon_turn(&b);
	assert_int_equal(conns_count(b.d), 0);
	assert_int_equal(own->requests, 1);
	assert_int_equal(own->holders, 1);
	close(fd);
	account_close(own);
	fixture_close(&b);
}
