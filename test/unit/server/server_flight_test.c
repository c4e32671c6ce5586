/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of the flight recorders of clients: requests and copies. The test plays the clients. */
#include "server_fixture.h"

static struct sw_data_reply reply;

/* Asks for the record of a QP. Returns the generation, or 0 with *error. */
static uint32_t
flight_ask(struct server_fixture *b, int fd, uint32_t id, uint32_t qpn, int *error)
{
	struct sw_request req = {.type = SW_FLIGHT_REQUEST, .qpn = id, .dest_qpn = qpn};
	struct sw_reply answer;

	assert_true(client_call(b, fd, &req, &answer, NULL));
	*error = answer.error;
	return answer.error == 0 ? answer.qpn : 0;
}

/* Returns 0 or the error. */
static int
flight_take(struct server_fixture *b, int fd, uint32_t id, uint32_t gen)
{
	struct sw_request req = {.type = SW_FLIGHT, .qpn = id, .dest_qpn = gen};

	return client_fetch(b, fd, &req, &reply) == 0 ? 0 : reply.error;
}

static uint32_t
qpn_take(struct server_fixture *b, struct fixture_client *c)
{
	struct sw_request take = {.type = SW_QPN_TAKE};
	struct sw_reply taken;

	assert_true(client_call(b, c->fd, &take, &taken, NULL));
	assert_int_equal(taken.error, 0);
	return taken.qpn;
}

TEST(record_of_a_qp_is_asked_for_and_passed_on)
{
	struct report_flight got;
	struct fixture_client c[2];
	struct server_fixture b;
	uint32_t qpn, gen, id;
	char byte;
	int fd, error;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c[0]), 0);
	assert_int_equal(client_attach(&b, &c[1]), 0);
	id = c[0].reply.client_id;
	qpn = qpn_take(&b, &c[0]);
	fd = client_connect(&b);
	/* Nothing has been requested: generation 0 is of no request. */
	assert_int_equal(flight_take(&b, fd, id, 0), ECANCELED);
	/* The QP is not of the other client; there is no third one. */
	assert_int_equal(flight_ask(&b, fd, c[1].reply.client_id, qpn, &error), 0);
	assert_int_equal(error, ENOENT);
	assert_int_equal(flight_ask(&b, fd, 99, qpn, &error), 0);
	assert_int_equal(error, ENOENT);
	assert_int_equal(flight_ask(&b, fd, id, qpn + 1, &error), 0);
	assert_int_equal(error, ENOENT);
	assert_int_equal(c[1].region.daemon->flight_requested, 0);
	/* A client with a lower number than the one that was asked for is another. */
	assert_int_equal(flight_take(&b, fd, 0, 1), ENOENT);
	gen = flight_ask(&b, fd, id, qpn, &error);
	assert_int_not_equal(gen, 0);
	assert_int_equal(c[0].region.daemon->flight_requested, gen);
	assert_int_equal(c[0].region.daemon->flight_qpn, qpn);
	assert_int_equal(recv(c[0].fds[2], &byte, 1, MSG_DONTWAIT), 1);
	assert_int_equal(flight_take(&b, fd, id, gen), EAGAIN);
	c[0].region.report->flight.state = REPORT_FLIGHT_KEPT;
	c[0].region.report->flight.copy.qpn = qpn;
	c[0].region.report->flight.copy.flight.count = 4711;
	__atomic_store_n(&c[0].region.report->flight.written_gen, gen, __ATOMIC_RELEASE);
	assert_int_equal(flight_take(&b, fd, id, gen), 0);
	assert_int_equal(reply.len, sizeof(got));
	memcpy(&got, reply.bytes, sizeof(got));
	assert_int_equal(got.copy.qpn, qpn);
	assert_int_equal(got.copy.flight.count, 4711);
	assert_int_equal(flight_take(&b, fd, id, gen + 1), ECANCELED);
	/* Another program asks: the first one's answer is gone. */
	assert_int_equal(flight_ask(&b, fd, id, qpn, &error), gen + 1);
	assert_int_equal(flight_take(&b, fd, id, gen), ECANCELED);
	assert_int_equal(flight_take(&b, fd, id, gen + 1), EAGAIN);
	/* The number wraps around to 1: 0 is of no request. */
	b.d->flight_gen = UINT32_MAX;
	assert_int_equal(flight_ask(&b, fd, id, qpn, &error), 1);
	client_detach(&b, &c[0]);
	assert_int_equal(flight_take(&b, fd, id, 1), ENOENT);
	client_detach(&b, &c[1]);
	close(fd);
	fixture_close(&b);
}

TEST(records_are_for_their_user)
{
	struct fixture_client c[2];
	struct server_fixture b;
	uint32_t mine, theirs, gen;
	struct conn *other;
	int error;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c[0]), 0);
	assert_int_equal(client_attach(&b, &c[1]), 0);
	mine = qpn_take(&b, &c[0]);
	theirs = qpn_take(&b, &c[1]);
	other = TAILQ_NEXT(TAILQ_FIRST(&b.d->conns), link);
	other->uid = geteuid() + 1;
	assert_int_equal(flight_ask(&b, c[1].fd, c[0].reply.client_id, mine, &error), 0);
	assert_int_equal(error, ENOENT);
	assert_int_equal(c[0].region.daemon->flight_requested, 0);
	assert_int_not_equal(
		flight_ask(&b, c[1].fd, c[1].reply.client_id, theirs, &error), 0);
	/* The daemon's user sees those of all. */
	assert_int_not_equal(
		flight_ask(&b, c[0].fd, c[1].reply.client_id, theirs, &error), 0);
	gen = flight_ask(&b, c[0].fd, c[0].reply.client_id, mine, &error);
	c[0].region.report->flight.written_gen = gen;
	assert_int_equal(flight_take(&b, c[1].fd, c[0].reply.client_id, gen), ENOENT);
	assert_int_equal(flight_take(&b, c[0].fd, c[0].reply.client_id, gen), 0);
	other->uid = geteuid();
	client_detach(&b, &c[0]);
	client_detach(&b, &c[1]);
	fixture_close(&b);
}
