/* SPDX-License-Identifier: BSD-3-Clause */
/* Stats snapshots of clients: requests and copies. The test plays the clients. */
#include "server_fixture.h"
#include "engine/clock.h"

static uint32_t
clients_missing(struct server_fixture *b, int fd, bool again)
{
	struct sw_request req = {.type = SW_REPORT_REQUEST, .qpn = !again};
	struct sw_reply reply;

	assert_true(client_call(b, fd, &req, &reply, NULL));
	assert_int_equal(reply.error, 0);
	return reply.qpn;
}

static void
client_answer(struct fixture_client *c)
{
	__atomic_store_n(&c->region.report->written_gen, c->region.report->requested_gen,
		__ATOMIC_RELEASE);
}

/* Fetches the snapshot of the first client from id on. Returns its descriptor, or -1 with
 * reply->error. */
static int
report_of(struct server_fixture *b, int fd, uint32_t id, struct sw_reply *reply)
{
	struct sw_request req = {.type = SW_REPORT, .qpn = id};
	int fds[SW_ATTACH_FDS];

	assert_true(client_call(b, fd, &req, reply, fds));
	return fds[0];
}

static void
clients_are_missing_until_they_answer(void **state)
{
	struct fixture_client c[2];
	struct server_fixture b;
	char byte;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c[0]), 0);
	assert_int_equal(client_attach(&b, &c[1]), 0);
	fd = client_connect(&b);
	/* no snapshot has been requested */
	assert_int_equal(clients_missing(&b, fd, false), 0);
	assert_int_equal(clients_missing(&b, fd, true), 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_not_equal(c[i].region.report->requested_gen, 0);
		assert_int_equal(recv(c[i].fds[2], &byte, 1, MSG_DONTWAIT), 1);
	}
	client_answer(&c[1]);
	assert_int_equal(clients_missing(&b, fd, false), 1);
	/* A client that changes the requested generation too has not answered. */
	c[0].region.report->requested_gen = c[0].region.report->written_gen = 99;
	assert_int_equal(clients_missing(&b, fd, false), 1);
	client_detach(&b, &c[0]);
	assert_int_equal(clients_missing(&b, fd, false), 0);
	client_detach(&b, &c[1]);
	close(fd);
	fixture_close(&b);
}

static void
requests_are_rate_limited(void **state)
{
	struct fixture_client c, late;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c), 0);
	report_request(b.d);
	assert_int_equal(b.d->requested_gen, 1);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t begin = clock_now();
		uint32_t before = b.d->requested_gen;

		b.d->requested_ns = begin;
		report_request(b.d);
		/* Unless this process was not scheduled for that time. */
		if (clock_now() - begin < 20 * NS_PER_MS)
			assert_int_equal(b.d->requested_gen, before);
	}
	/* A client that has just attached is asked at once. */
	assert_int_equal(client_attach(&b, &late), 0);
	report_request(b.d);
	assert_int_equal(late.region.report->requested_gen, b.d->requested_gen);
	client_detach(&b, &late);
	b.d->requested_ns = 0;
	report_request(b.d);
	assert_int_equal(c.region.report->requested_gen, b.d->requested_gen);
	client_detach(&b, &c);
	fixture_close(&b);
}

static void
snapshot_is_a_bounded_copy(void **state)
{
	static struct report copy;
	struct fixture_client c;
	struct sw_reply reply;
	struct server_fixture b;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c), 0);
	c.region.report->qp_count = 2;
	c.region.report->qps[1].qpn = 4711;
	fd = report_of(&b, c.fd, 0, &reply);
	assert_int_equal(reply.client_id, c.reply.client_id);
	assert_int_equal(read(fd, &copy, sizeof(copy)),
		offsetof(struct report, qps) + 2 * sizeof(copy.qps[0]));
	assert_int_equal(copy.qps[1].qpn, 4711);
	close(fd);
	c.region.report->qp_count = UINT32_MAX; /* bounded by the room for QPs */
	fd = report_of(&b, c.fd, c.reply.client_id, &reply);
	assert_int_equal(
		lseek(fd, 0, SEEK_END), offsetof(struct report, qps) + sizeof(copy.qps));
	close(fd);
	assert_int_equal(report_of(&b, c.fd, c.reply.client_id + 1, &reply), -1);
	assert_int_equal(reply.error, ENOENT);
	client_detach(&b, &c);
	fixture_close(&b);
}

static void
snapshots_in_order_of_client_ids(void **state)
{
	struct fixture_client c[3];
	struct sw_reply reply;
	uint32_t next = 0;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(client_attach(&b, &c[i]), 0);
	client_detach(&b, &c[1]);
	for (unsigned i = 0; i < 3; i += 2) {
		close(report_of(&b, c[0].fd, next, &reply));
		assert_int_equal(reply.client_id, c[i].reply.client_id);
		next = reply.client_id + 1;
	}
	client_detach(&b, &c[0]);
	client_detach(&b, &c[2]);
	fixture_close(&b);
}

static void
snapshot_is_refused_to_other_users(void **state)
{
	struct fixture_client c;
	struct conn *conn;
	uint32_t id = 0;
	struct server_fixture b;
	int fd = -1;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c), 0);
	conn = TAILQ_FIRST(&b.d->conns);
	assert_int_equal(report_fd(&(struct conn){.daemon = b.d, .uid = conn->uid + 1}, 0,
				 &id, &fd),
		-EPERM);
	assert_int_equal(id, c.reply.client_id);
	assert_int_equal(fd, -1);
	conn->uid += 2; /* of another user; the daemon's user asks */
	assert_int_equal(
		report_fd(&(struct conn){.daemon = b.d, .uid = geteuid()}, 0, &id, &fd),
		0);
	close(fd);
	client_detach(&b, &c);
	fixture_close(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clients_are_missing_until_they_answer),
		cmocka_unit_test(requests_are_rate_limited),
		cmocka_unit_test(snapshot_is_a_bounded_copy),
		cmocka_unit_test(snapshots_in_order_of_client_ids),
		cmocka_unit_test(snapshot_is_refused_to_other_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
