/* SPDX-License-Identifier: BSD-3-Clause */
/* The time that requests may take, on a virtual clock; parked connections. */
#include <sys/epoll.h>
#include <sys/wait.h>

#include "server_fixture.h"
#include "engine/clock.h"
#include "server/server_control.h"
#include "server/server_events.h"

#define REQUEST_NS (10 * NS_PER_US)
#define START_NS (100 * NS_PER_SEC)

struct control_fixture {
	struct server_fixture b;
	struct account *user, *other;
};

static void
control_fixture_open(struct control_fixture *f)
{
	fixture_open(&f->b, (struct rocade_daemon_conf){.size = 0});
	f->user = account_open(&f->b.d->accounts, 4711, START_NS);
	f->other = account_open(&f->b.d->accounts, 4712, START_NS);
}

static void
control_fixture_close(struct control_fixture *f)
{
	account_close(f->user);
	account_close(f->other);
	fixture_close(&f->b);
}

/* The user has requests all the time. Returns how long they took of a second. moved:
 * packets move; every_ns: the other user has a request that often, 0: never. */
static uint64_t
second_run(struct control_fixture *f, bool moved, uint64_t every_ns)
{
	struct rocade_daemon *d = f->b.d;
	uint64_t now = START_NS, next = START_NS, served = 0;

	for (; now < START_NS + NS_PER_SEC; now += REQUEST_NS) {
		if (moved)
			control_packets_moved(d, now);
		if (every_ns != 0 && now >= next) {
			next += every_ns;
			assert_true(control_may(d, f->other, now));
			control_charge(d, f->other, now + REQUEST_NS, REQUEST_NS);
		} else if (control_may(d, f->user, now)) {
			control_charge(d, f->user, now + REQUEST_NS, REQUEST_NS);
			served += REQUEST_NS;
		}
	}
	return served;
}

TEST(alone_a_user_is_not_limited)
{
	struct control_fixture f;

	control_fixture_open(&f);
	assert_int_equal(second_run(&f, false, 0), NS_PER_SEC);
	assert_int_equal(f.user->control_total_ns, NS_PER_SEC);
	control_fixture_close(&f);
}

TEST(a_user_has_a_tenth_while_packets_move)
{
	struct control_fixture f;

	control_fixture_open(&f);
	assert_in_range(second_run(&f, true, 0), 99 * NS_PER_MS, 102 * NS_PER_MS);
	control_fixture_close(&f);
}

TEST(a_user_has_a_tenth_while_another_asks)
{
	struct control_fixture f;

	control_fixture_open(&f);
	assert_in_range(
		second_run(&f, false, NS_PER_MS / 2), 99 * NS_PER_MS, 102 * NS_PER_MS);
	/* A request now and then costs the user a millisecond only. */
	f.user->control_ns = f.other->control_ns = 0;
	assert_in_range(
		second_run(&f, false, NS_PER_SEC / 10), 970 * NS_PER_MS, 999 * NS_PER_MS);
	control_fixture_close(&f);
}

TEST(every_request_costs_something)
{
	struct control_fixture f;

	control_fixture_open(&f);
	f.user->control_ns = START_NS;
	control_charge(f.b.d, f.user, START_NS, 0);
	assert_true(f.user->control_ns > START_NS);
	control_fixture_close(&f);
}

TEST(no_request_makes_its_user_wait_for_long)
{
	struct control_fixture f;

	control_fixture_open(&f);
	f.user->control_ns = START_NS;
	control_packets_moved(f.b.d, START_NS);
	control_charge(f.b.d, f.user, START_NS, NS_PER_SEC);
	assert_false(control_may(f.b.d, f.user, START_NS));
	control_packets_moved(f.b.d, START_NS + 5 * NS_PER_MS);
	assert_true(control_may(f.b.d, f.user, START_NS + 5 * NS_PER_MS));
	assert_int_equal(f.user->control_total_ns, NS_PER_SEC);
	control_fixture_close(&f);
}

TEST(a_user_who_was_alone_owes_others_little)
{
	struct control_fixture f;

	control_fixture_open(&f);
	assert_int_equal(second_run(&f, false, 0), NS_PER_SEC);
	control_packets_moved(f.b.d, START_NS + NS_PER_SEC);
	assert_false(control_may(f.b.d, f.user, START_NS + NS_PER_SEC));
	control_packets_moved(f.b.d, START_NS + NS_PER_SEC + 6 * NS_PER_MS);
	assert_true(control_may(f.b.d, f.user, START_NS + NS_PER_SEC + 6 * NS_PER_MS));
	control_fixture_close(&f);
}

TEST(events_leave_time_for_packets)
{
	struct control_fixture f;
	struct rocade_daemon *d;
	uint64_t now = START_NS;

	control_fixture_open(&f);
	d = f.b.d;
	assert_int_equal(control_events(d, now), 64);
	control_pause(d, now, 100 * NS_PER_US);
	assert_true(control_is_due(d, now));
	control_packets_moved(d, now);
	assert_int_equal(control_events(d, now), 4);
	assert_int_equal(control_events(d, now + 2 * NS_PER_MS), 64);
	control_pause(d, now, 100 * NS_PER_US);
	assert_false(control_is_due(d, now + 399 * NS_PER_US));
	assert_true(control_is_due(d, now + 400 * NS_PER_US));
	/* However long they took, the pause is short. */
	control_pause(d, now, NS_PER_SEC);
	assert_false(control_is_due(d, now + NS_PER_MS));
	assert_true(control_is_due(d, now + 2 * NS_PER_MS));
	control_fixture_close(&f);
}

TEST(events_end_after_half_a_millisecond)
{
	assert_false(control_events_end(START_NS, START_NS));
	assert_false(control_events_end(START_NS, START_NS + 499 * NS_PER_US));
	assert_true(control_events_end(START_NS, START_NS + 500 * NS_PER_US));
}

/* Returns whether the daemon would handle an event of the connection. */
static bool
is_reported(const struct server_fixture *b, const struct conn *conn)
{
	struct epoll_event events[16];
	int n = epoll_wait(b->d->sets[0].serve, events, 16, 0);

	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr == &conn->socket)
			return true;
	}
	return false;
}

TEST(a_parked_connection_waits_and_goes_on)
{
	static const struct sw_request req = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.type = SW_DEVICE_INFO};
	struct control_fixture f;
	struct rocade_daemon *d;
	struct sw_reply reply;
	struct conn *conn;
	int fd;

	control_fixture_open(&f);
	d = f.b.d;
	fd = client_connect(&f.b);
	conn = TAILQ_FIRST(&d->conns);
	assert_int_equal(control_sleep_ns(d), TIME_NEVER);
	assert_int_equal(send(fd, &req, sizeof(req), 0), sizeof(req));
	assert_true(is_reported(&f.b, conn));
	control_park(d, &conn->socket);
	control_park(d, &conn->socket);
	assert_int_equal(d->control.parks, 1);
	assert_false(is_reported(&f.b, conn));
	assert_true(control_sleep_ns(d) <= NS_PER_MS);
	/* The user may not yet. */
	conn->account->control_ns = START_NS + 1;
	control_packets_moved(d, START_NS);
	assert_false(control_round(d, START_NS));
	assert_false(is_reported(&f.b, conn));
	assert_true(control_round(d, START_NS + 1));
	assert_true(is_reported(&f.b, conn));
	assert_int_equal(control_sleep_ns(d), TIME_NEVER);
	daemon_handle_all(&f.b);
	assert_true(client_recv(fd, &reply, NULL));
	/* The end of a parked connection is reported. */
	control_park(d, &conn->socket);
	close(fd);
	assert_true(is_reported(&f.b, conn));
	conn_ready(conn);
	assert_true(TAILQ_EMPTY(&d->control.parked));
	conn_reap(d);
	control_fixture_close(&f);
}

TEST(connections_of_another_user_are_not_behind)
{
	struct control_fixture f;
	struct rocade_daemon *d;
	struct account *own;
	struct conn *conn;
	int fds[12];

	control_fixture_open(&f);
	d = f.b.d;
	for (unsigned i = 0; i < RTE_DIM(fds); i++)
		fds[i] = client_connect(&f.b);
	own = TAILQ_FIRST(&d->conns)->account;
	own->control_ns = START_NS + NS_PER_SEC;
	/* The last one is another user's, who may. */
	conn = TAILQ_LAST(&d->conns, conns);
	conn->account = f.other;
	TAILQ_FOREACH (conn, &d->conns, link)
		control_park(d, &conn->socket);
	control_packets_moved(d, START_NS);
	assert_true(control_round(d, START_NS));
	conn = TAILQ_LAST(&d->conns, conns);
	assert_false(conn->socket.parked);
	conn->account = own;
	TAILQ_FOREACH (conn, &d->conns, link)
		assert_int_equal(conn->socket.parked, TAILQ_NEXT(conn, link) != NULL);
	/* A turn resumes one connection of a user. */
	own->control_ns = 0;
	assert_true(control_round(d, START_NS));
	assert_false(TAILQ_FIRST(&d->conns)->socket.parked);
	assert_true(TAILQ_NEXT(TAILQ_FIRST(&d->conns), link)->socket.parked);
	for (unsigned i = 0; i < RTE_DIM(fds); i++)
		close(fds[i]);
	daemon_handle_all(&f.b);
	assert_true(TAILQ_EMPTY(&d->control.parked));
	control_fixture_close(&f);
}

/* 79 connections of this process's user, and then one of another user, have a request each. */
struct crowd {
	struct control_fixture f;
	struct account *own;
	int fds[80];
};

static void
crowd_open(struct crowd *c)
{
	static const struct sw_request req = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.type = SW_DEVICE_INFO};
	struct conn *last;

	control_fixture_open(&c->f);
	for (unsigned i = 0; i < RTE_DIM(c->fds); i++) {
		c->fds[i] = client_connect(&c->f.b);
		assert_int_equal(send(c->fds[i], &req, sizeof(req), 0), sizeof(req));
	}
	last = TAILQ_LAST(&c->f.b.d->conns, conns);
	c->own = last->account;
	last->account = c->f.other;
}

static void
crowd_close(struct crowd *c)
{
	struct sw_reply reply;

	assert_true(client_recv(c->fds[RTE_DIM(c->fds) - 1], &reply, NULL));
	TAILQ_LAST(&c->f.b.d->conns, conns)->account = c->own;
	for (unsigned i = 0; i < RTE_DIM(c->fds); i++)
		close(c->fds[i]);
	daemon_handle_all(&c->f.b);
	control_fixture_close(&c->f);
}

/* Packets move. Returns how often the daemon had to look for events until the request of the other user was
 * served. */
static unsigned
crowd_passes(struct crowd *c)
{
	unsigned passes = 0;

	for (; c->f.other->requests == 0 && passes < RTE_DIM(c->fds); passes++) {
		control_packets_moved(c->f.b.d, clock_now());
		events_serve(c->f.b.d, 0);
	}
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
	assert_int_equal(c.f.b.d->control.parks, RTE_DIM(c.fds) - 1);
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
	last = TAILQ_LAST(&c.f.b.d->conns, conns);
	last->account = c.own;
	c.f.b.d->control.asker = c.own;
	for (; c.own->requests < RTE_DIM(c.fds) && looks < RTE_DIM(c.fds); looks++)
		events_serve(c.f.b.d, 0);
	assert_int_equal(c.own->requests, RTE_DIM(c.fds));
	assert_true(looks < RTE_DIM(c.fds) / 2);
	crowd_close(&c);
}

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
	assert_int_equal(b.d->conn_count, 1);
	/* The socket is still open here, so only the process reports the end. */
	total = own->control_total_ns;
	daemon_turn(&b);
	assert_int_equal(b.d->conn_count, 0);
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

/* However long the requests take, and however often the daemon looks for packets meanwhile. */
TEST(connections_are_served_in_turn)
{
	static const struct sw_request req = {
		.magic = SW_PROTO_MAGIC, .version = SW_PROTO_VERSION, .type = SW_STATUS};
	struct server_fixture b;
	struct account *own = own_account_open(&b);
	unsigned served[45] = {0}, least = 0;
	int fds[RTE_DIM(served)];

	/* No other user asks: this one is not limited, however long its requests take. */
	b.d->control.asker = own;
	for (unsigned i = 0; i < RTE_DIM(fds); i++) {
		fds[i] = client_connect(&b);
		for (unsigned j = 0; j < 3; j++)
			assert_int_equal(send(fds[i], &req, sizeof(req), 0), sizeof(req));
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
	assert_int_equal(b.d->conn_count, 0);
	assert_int_equal(own->requests, 1);
	assert_int_equal(own->holders, 1);
	close(fd);
	account_close(own);
	fixture_close(&b);
}
