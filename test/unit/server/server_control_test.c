/* SPDX-License-Identifier: BSD-3-Clause */
/* The time that requests may take, on a virtual clock; parked connections. */
#include <sys/epoll.h>

#include "server_fixture.h"
#include "server/server_conn.h"
#include "server/server_control.h"

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

/* The caller has read the time before another thread has noted that packets move. */
TEST(packets_that_move_after_the_time_was_read_count)
{
	struct control_fixture f;
	unsigned idle, busy;

	control_fixture_open(&f);
	idle = control_events(f.b.d, START_NS);
	control_packets_moved(f.b.d, START_NS);
	busy = control_events(f.b.d, START_NS);
	assert_true(busy < idle);
	assert_int_equal(control_events(f.b.d, START_NS - 1), busy);
	control_fixture_close(&f);
}
