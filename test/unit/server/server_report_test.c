/* SPDX-License-Identifier: BSD-3-Clause */
/* Stats snapshots of clients: requests and copies. The test plays the clients. */
#include "server_fixture.h"
#include "engine/clock.h"

static uint32_t
clients_missing(struct server_fixture *b, int fd, bool again)
{
	struct sw_request req = {.type = SW_REPORT_REQUEST, .qpn = !again};
	struct sw_reply answer;

	assert_true(client_call(b, fd, &req, &answer, NULL));
	assert_int_equal(answer.error, 0);
	return answer.qpn;
}

static void
client_answer(struct fixture_client *c)
{
	__atomic_store_n(&c->region.report->written_gen,
		c->region.daemon->report_requested, __ATOMIC_RELEASE);
}

static struct sw_data_reply reply;

/* Fetches a piece of the snapshot of the first client from id on. Returns its length, or
 * -1 with reply.error. */
static int
report_of(struct server_fixture *b, int fd, uint32_t id, uint32_t at)
{
	struct sw_request req = {.type = SW_REPORT, .qpn = id, .dest_qpn = at};

	return client_fetch(b, fd, &req, &reply) == 0 ? (int)reply.len : -1;
}

TEST(clients_are_missing_until_they_answer)
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
		assert_int_not_equal(c[i].region.daemon->report_requested, 0);
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

TEST(requests_are_rate_limited)
{
	struct fixture_client c, late;
	const struct conn *asker;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c), 0);
	asker = TAILQ_FIRST(&b.d->conns);
	report_request(asker);
	assert_int_equal(b.d->requested_gen, 1);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t begin = clock_now();
		uint32_t before = b.d->requested_gen;

		b.d->requested_ns = begin;
		report_request(asker);
		/* Unless this process was not scheduled for that time. */
		if (clock_now() - begin < 20 * NS_PER_MS)
			assert_int_equal(b.d->requested_gen, before);
	}
	/* A client that has just attached is asked at once. */
	assert_int_equal(client_attach(&b, &late), 0);
	report_request(asker);
	assert_int_equal(late.region.daemon->report_requested, b.d->requested_gen);
	client_detach(&b, &late);
	b.d->requested_ns = 0;
	report_request(asker);
	assert_int_equal(c.region.daemon->report_requested, b.d->requested_gen);
	client_detach(&b, &c);
	fixture_close(&b);
}

/* Reads a whole snapshot. Returns its length. */
static uint32_t
report_read(struct server_fixture *b, struct fixture_client *c, struct report *copy)
{
	uint32_t got = 0;
	int len;

	while ((len = report_of(b, c->fd, c->reply.client_id, got)) > 0) {
		assert_int_equal(reply.id, c->reply.client_id);
		assert_true(got + (uint32_t)len <= sizeof(*copy));
		memcpy((char *)copy + got, reply.bytes, (size_t)len);
		got += (uint32_t)len;
	}
	assert_int_equal(len, 0);
	return got;
}

TEST(snapshot_is_a_bounded_copy)
{
	struct sw_request take = {.type = SW_QPN_TAKE};
	static struct report copy;
	struct fixture_client c;
	struct sw_reply taken;
	struct server_fixture b;
	unsigned fds;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c), 0);
	fds = fds_count();
	for (unsigned i = 0; i < 300; i++)
		assert_true(client_call(&b, c.fd, &take, &taken, NULL));
	c.region.report->qp_count = 2;
	c.region.report->qps[1].qpn = 4711;
	/* The client's own number of the request does not count. */
	c.region.report->requested_gen = 4711;
	assert_int_equal(report_read(&b, &c, &copy),
		offsetof(struct report, qps) + 2 * sizeof(copy.qps[0]));
	assert_int_equal(copy.qps[1].qpn, 4711);
	assert_int_equal(copy.requested_gen, 0);
	/* At most a row for each QP that the daemon knows of. */
	c.region.report->qp_count = UINT32_MAX;
	assert_int_equal(report_read(&b, &c, &copy),
		offsetof(struct report, qps) + 300 * sizeof(copy.qps[0]));
	assert_int_equal(report_of(&b, c.fd, 0, UINT32_MAX), 0);
	assert_int_equal(report_of(&b, c.fd, c.reply.client_id + 1, 0), -1);
	assert_int_equal(reply.error, ENOENT);
	/* Nothing remains of a request: no memory, no descriptor. */
	assert_int_equal(fds_count(), fds);
	client_detach(&b, &c);
	fixture_close(&b);
}

TEST(rows_are_bounded_by_their_room)
{
	static struct report copy;
	struct fixture_client c;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c), 0);
	TAILQ_FIRST(&b.d->conns)->client->qps = 2 * REPORT_QPS;
	c.region.report->qp_count = UINT32_MAX;
	assert_int_equal(report_read(&b, &c, &copy),
		offsetof(struct report, qps) + sizeof(copy.qps));
	TAILQ_FIRST(&b.d->conns)->client->qps = 0;
	client_detach(&b, &c);
	fixture_close(&b);
}

TEST(head_is_one_piece)
{
	const uint32_t head = offsetof(struct report, qps);
	struct fixture_client c;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c), 0);
	assert_int_equal(report_of(&b, c.fd, 0, 0), head);
	/* A piece without its begin would not be checked. */
	for (uint32_t at = 1; at < head; at += head - 2) {
		assert_int_equal(report_of(&b, c.fd, 0, at), -1);
		assert_int_equal(reply.error, EINVAL);
	}
	assert_int_equal(report_of(&b, c.fd, 0, head), 0);
	client_detach(&b, &c);
	fixture_close(&b);
}

TEST(peers_are_bounded_and_checked)
{
	struct sw_request take = {.type = SW_QPN_TAKE};
	static struct report copy;
	static const struct peer_info none;
	struct fixture_client c;
	struct sw_reply taken;
	struct server_fixture b;
	struct report *says;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c), 0);
	says = c.region.report;
	memset(&says->peer_count, 0xff, sizeof(says->peer_count));
	memset(says->peers, 0xff, sizeof(says->peers));
	/* A client without QPs has no peers. */
	report_read(&b, &c, &copy);
	assert_int_equal(copy.peer_count, 0);
	assert_memory_equal(&copy.peers[0], &none, sizeof(none));
	for (unsigned i = 0; i < 3; i++)
		assert_true(client_call(&b, c.fd, &take, &taken, NULL));
	/* Possible values are passed on. */
	says->peers[0] = (struct peer_info){
		.qps = 2,
		.cap = 512,
		.send = {.inflight = 7, .window = 9, .cc_window = 2304},
		.read = {.inflight = 6, .window = 8, .cc_window = 2303},
	};
	report_read(&b, &c, &copy);
	assert_int_equal(copy.peer_count, 3);
	assert_memory_equal(&copy.peers[0], &says->peers[0], sizeof(none));
	for (unsigned i = 1; i < 3; i++) {
		assert_int_equal(copy.peers[i].qps, 3);
		assert_int_equal(copy.peers[i].send.qps_blocked, 3);
		assert_int_equal(copy.peers[i].read.qps_blocked, 3);
		assert_int_equal(copy.peers[i].send.inflight, 3 * 0xFFFFFF);
		assert_int_equal(copy.peers[i].read.inflight, 3 * 0xFFFFFF);
	}
	/* Nothing is passed on that is not a peer. */
	for (unsigned i = 3; i < REPORT_PEERS; i++)
		assert_memory_equal(&copy.peers[i], &none, sizeof(none));
	/* There are more peers than rows. */
	TAILQ_FIRST(&b.d->conns)->client->qps = 1000;
	report_read(&b, &c, &copy);
	assert_int_equal(copy.peer_count, 1000);
	assert_int_equal(copy.peers[REPORT_PEERS - 1].qps, 1000);
	TAILQ_FIRST(&b.d->conns)->client->qps = 3;
	says->peer_count = 1;
	report_read(&b, &c, &copy);
	assert_int_equal(copy.peer_count, 1);
	assert_memory_equal(&copy.peers[1], &none, sizeof(none));
	client_detach(&b, &c);
	fixture_close(&b);
}

TEST(snapshots_in_order_of_client_ids)
{
	struct fixture_client c[3];
	uint32_t next = 0;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(client_attach(&b, &c[i]), 0);
	client_detach(&b, &c[1]);
	for (unsigned i = 0; i < 3; i += 2) {
		assert_true(report_of(&b, c[0].fd, next, 0) > 0);
		assert_int_equal(reply.id, c[i].reply.client_id);
		next = reply.id + 1;
	}
	client_detach(&b, &c[0]);
	client_detach(&b, &c[2]);
	fixture_close(&b);
}

/* A client of another user than the test's, which is the daemon's, between two of the
 * test's. */
struct users_fixture {
	struct server_fixture b;
	struct fixture_client c[3];
	struct conn *other;
	struct account *account;
};

static void
users_fixture_impaired(struct users_fixture *f, uint32_t loss_ppm)
{
	fixture_open(&f->b, (struct rocade_daemon_conf){
				    .socket_mode = 0666, .impair.loss_ppm = loss_ppm});
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(client_attach(&f->b, &f->c[i]), 0);
	f->other = TAILQ_NEXT(TAILQ_FIRST(&f->b.d->conns), link);
	f->account = f->other->account;
	f->other->uid = geteuid() + 1;
	f->other->account = account_open(&f->b.d->accounts, f->other->uid, 0);
	assert_true(account_take(f->other->account, ACCOUNT_clients, 1));
}

static void
users_fixture_open(struct users_fixture *f)
{
	users_fixture_impaired(f, 0);
}

static void
users_fixture_close(struct users_fixture *f)
{
	account_give(f->other->account, ACCOUNT_clients, 1);
	account_close(f->other->account);
	f->other->account = f->account;
	for (unsigned i = 0; i < 3; i++)
		client_detach(&f->b, &f->c[i]);
	fixture_close(&f->b);
}

/* Returns the text of a part of the status, "" if there is none. */
static const char *
status_of(struct users_fixture *f, unsigned asker, enum sw_status_part part)
{
	struct sw_request req = {.type = SW_STATUS, .qpn = part};
	int err = client_fetch(&f->b, f->c[asker].fd, &req, &reply);

	assert_true(err == 0 || err == ENOENT);
	reply.bytes[reply.len] = '\0';
	return (const char *)reply.bytes;
}

/* Returns how many rows of this id or uid there are in the text. */
static unsigned
rows_of(const char *text, const char *key, uint32_t id)
{
	char want[32];
	unsigned n = 0;

	snprintf(want, sizeof(want), "{\"%s\": %u,", key, id);
	while ((text = strstr(text, want)) != NULL) {
		text++;
		n++;
	}
	return n;
}

TEST(users_see_their_own_clients)
{
	struct users_fixture f;
	const char *text;

	users_fixture_open(&f);
	/* The daemon's user sees all. */
	text = status_of(&f, 0, SW_STATUS_CLIENT);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rows_of(text, "id", f.c[i].reply.client_id), 1);
	text = status_of(&f, 0, SW_STATUS_USER);
	assert_int_equal(rows_of(text, "uid", geteuid()), 1);
	assert_int_equal(rows_of(text, "uid", f.other->uid), 1);
	text = status_of(&f, 0, SW_STATUS_DEVICE);
	assert_non_null(strstr(text, "\"hidden\": {\"clients\": 0, \"users\": 0}"));
	/* The other user sees its own. */
	text = status_of(&f, 1, SW_STATUS_CLIENT);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rows_of(text, "id", f.c[i].reply.client_id), i == 1);
	text = status_of(&f, 1, SW_STATUS_USER);
	assert_int_equal(rows_of(text, "uid", geteuid()), 0);
	assert_int_equal(rows_of(text, "uid", f.other->uid), 1);
	text = status_of(&f, 1, SW_STATUS_DEVICE);
	assert_non_null(strstr(text, "\"hidden\": {\"clients\": 3, \"users\": 1}"));
	/* Totals are for everybody. */
	assert_non_null(strstr(text, "\"clients\": {\"all\": 256, "));
	/* A user with a lower number. */
	f.other->uid = f.other->account->uid = 1;
	TAILQ_FIRST(&f.b.d->conns)->uid = f.account->uid = 2;
	text = status_of(&f, 1, SW_STATUS_USER);
	assert_int_equal(rows_of(text, "uid", 1), 1);
	assert_int_equal(rows_of(text, "uid", 2), 0);
	/* Root sees all. */
	f.other->uid = 0;
	text = status_of(&f, 1, SW_STATUS_USER);
	assert_int_equal(rows_of(text, "uid", 2), 1);
	f.account->uid = geteuid();
	users_fixture_close(&f);
}

/* Returns the error of a request for the rows of users from this uid on. */
static int
users_from(struct users_fixture *f, unsigned asker, uint32_t from)
{
	struct sw_request req = {
		.type = SW_STATUS, .qpn = SW_STATUS_USER, .dest_qpn = from};

	return client_fetch(&f->b, f->c[asker].fd, &req, &reply);
}

/* The owner of a subordinate uid pays for its processes. They have its account, but not its rights. */
TEST(subordinate_uid_sees_no_user)
{
	const uint32_t owner = geteuid() + 1, subordinate = owner + 100000;
	struct account *higher;
	struct users_fixture f;

	users_fixture_open(&f);
	higher = account_open(&f.b.d->accounts, subordinate + 1, 0);
	assert_int_equal(users_from(&f, 1, owner), 0);
	assert_int_equal(reply.id, owner);
	assert_int_equal(users_from(&f, 1, owner + 1), ENOENT);
	f.other->uid = subordinate;
	assert_int_equal(users_from(&f, 1, 0), ENOENT);
	assert_int_equal(users_from(&f, 1, owner), ENOENT);
	assert_int_equal(users_from(&f, 1, owner + 1), ENOENT);
	f.other->uid = owner;
	account_close(higher);
	users_fixture_close(&f);
}

TEST(users_see_their_own_statistics)
{
	struct users_fixture f;

	users_fixture_open(&f);
	/* No other client is woken, and none is waited for. */
	assert_int_equal(clients_missing(&f.b, f.c[1].fd, true), 1);
	assert_int_equal(f.c[0].region.daemon->report_requested, 0);
	assert_int_not_equal(f.c[1].region.daemon->report_requested, 0);
	assert_int_equal(clients_missing(&f.b, f.c[0].fd, true), 3);
	assert_int_equal(clients_missing(&f.b, f.c[1].fd, false), 1);
	/* The other user's first client is the second of all, and its last. */
	assert_true(report_of(&f.b, f.c[1].fd, 0, 0) > 0);
	assert_int_equal(reply.id, f.c[1].reply.client_id);
	assert_int_equal(report_of(&f.b, f.c[1].fd, reply.id + 1, 0), -1);
	assert_int_equal(reply.error, ENOENT);
	/* The daemon's user sees those of all. */
	assert_true(report_of(&f.b, f.c[0].fd, f.c[1].reply.client_id, 0) > 0);
	assert_int_equal(reply.id, f.c[1].reply.client_id);
	users_fixture_close(&f);
}

/* Returns what the daemon shows to an asker as lost on purpose. */
static unsigned long
lost_shown(struct users_fixture *f, unsigned asker)
{
	const char *text = strstr(status_of(f, asker, SW_STATUS_DEVICE), "\"impair\": {");

	assert_non_null(text);
	text = strstr(text, "\"lost\": ");
	assert_non_null(text);
	return strtoul(text + strlen("\"lost\": "), NULL, 10);
}

/* Those of the clients that the asker may see, as the rows of these have them, and of those that have ended. */
TEST(impaired_packets_of_other_users_are_not_shown)
{
	struct users_fixture f;

	users_fixture_impaired(&f, 1);
	for (unsigned i = 0; i < 3; i++)
		f.c[i].region.client->impaired.lost = i == 1 ? 10 : 1;
	assert_int_equal(lost_shown(&f, 0), 12);
	assert_int_equal(lost_shown(&f, 1), 10);
	f.b.d->sw->departed.impair_lost = 100;
	assert_int_equal(lost_shown(&f, 1), 110);
	users_fixture_close(&f);
}

/* Without --impair the counters of clients, which no one has told to impair anything, are not asked for. */
TEST(without_impairment_no_packets_are_shown_as_impaired)
{
	struct users_fixture f;

	users_fixture_open(&f);
	f.c[0].region.client->impaired.lost = 10;
	assert_int_equal(lost_shown(&f, 0), 0);
	users_fixture_close(&f);
}
