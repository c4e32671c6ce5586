/* SPDX-License-Identifier: BSD-3-Clause */
/* The slowest requests of clients, as the clients say in their memory: what the daemon shows of them. The test plays the
 * clients. */
#include "engine/clock.h"
#include "server_fixture.h"

#define NOW (1000 * NS_PER_SEC) /* of the clients' clock */

static struct sw_data_reply reply;

/* Returns the row of the first client with at least this number, as the asker sees it; "" if there is none. */
static const char *
row_from(struct server_fixture *b, const struct fixture_client *asker, uint32_t id)
{
	struct sw_request req = {
		.type = SW_STATUS, .qpn = SW_STATUS_SLOWEST, .dest_qpn = id};
	int err = client_fetch(b, asker->fd, &req, &reply);

	assert_true(err == 0 || err == ENOENT);
	assert_true(reply.len < sizeof(reply.bytes));
	reply.bytes[reply.len] = '\0';
	if (err == 0)
		assert_true(reply.id >= id);
	return (const char *)reply.bytes;
}

/* A request that took so long has ended this long ago. */
static void
client_says(struct fixture_client *c, uint64_t took_ns, uint64_t age_ns)
{
	struct slowest *s = &c->region.client->slowest;
	struct slow_request r = {.ended_ns = NOW - age_ns, .bytes = 64};

	r.spent_ns[SLOW_answer] = took_ns;
	slowest_clock_set(s, NOW, clock_wall());
	slowest_add(&s->of[LATENCY_TYPE_RC][LATENCY_OP_read], &r);
}

static bool
has(const char *row, const char *part)
{
	return strstr(row, part) != NULL;
}

/* Clients of which nothing was measured, or not of late, are passed over. */
TEST(each_client_has_its_slowest)
{
	struct fixture_client c[3];
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(client_attach(&b, &c[i]), 0);
	client_says(&c[1], 5000, SLOWEST_PERIOD_NS);
	client_says(&c[2], 1000, NS_PER_SEC);
	client_says(&c[2], 3000, NS_PER_SEC);
	assert_true(has(row_from(&b, &c[0], 0),
		"{\"id\": 3, \"slowest\": [{\"type\": \"RC\", \"operation\": \"read\", "
		"\"requests\": [{\"ended_ns\": "));
	assert_true(strstr((const char *)reply.bytes, "\"took_ns\": 3000, ") <
		    strstr((const char *)reply.bytes, "\"took_ns\": 1000, "));
	assert_false(has((const char *)reply.bytes, "5000"));
	assert_string_equal(row_from(&b, &c[0], 4), "");
	for (unsigned i = 0; i < 3; i++)
		client_detach(&b, &c[i]);
	fixture_close(&b);
}

/* A client that writes the largest numbers, or is always writing. */
TEST(a_hostile_client_is_bounded)
{
	struct fixture_client c, honest;
	struct server_fixture b;
	struct slowest *s;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &honest), 0);
	assert_int_equal(client_attach(&b, &c), 0);
	client_says(&honest, 1000, NS_PER_SEC);
	s = &c.region.client->slowest;
	memset(s, 0xff, sizeof(*s));
	assert_string_equal(row_from(&b, &honest, c.reply.client_id), "");
	s->to_wall_ns = 0;
	for (unsigned i = 0; i < LATENCY_TYPES * LATENCY_OPS; i++)
		(&s->of[0][0])[i].writes = 2;
	assert_true(has(row_from(&b, &honest, c.reply.client_id),
		"\"took_ns\": 2533274790395904, "));
	assert_true(has((const char *)reply.bytes, "}]}]}"));
	/* Its own row is that of no other client. */
	assert_true(has(
		row_from(&b, &honest, honest.reply.client_id), "\"took_ns\": 1000, "));
	client_detach(&b, &c);
	client_detach(&b, &honest);
	fixture_close(&b);
}

TEST(users_see_their_own_requests)
{
	struct fixture_client c[2];
	struct server_fixture b;
	struct conn *other;

	fixture_open(&b, (struct rocade_daemon_conf){.socket_mode = 0666});
	assert_int_equal(client_attach(&b, &c[0]), 0);
	assert_int_equal(client_attach(&b, &c[1]), 0);
	client_says(&c[0], 1000, NS_PER_SEC);
	client_says(&c[1], 1000, NS_PER_SEC);
	other = TAILQ_NEXT(TAILQ_FIRST(&b.d->conns), link);
	other->uid = geteuid() + 1;
	assert_true(has(row_from(&b, &c[1], 1), "{\"id\": 2, "));
	assert_true(has(row_from(&b, &c[0], 1), "{\"id\": 1, "));
	other->uid = geteuid();
	client_detach(&b, &c[0]);
	client_detach(&b, &c[1]);
	fixture_close(&b);
}

/* The client of another user stands behind one of the asker's that says nothing. */
TEST(users_see_no_requests_behind_their_own)
{
	struct fixture_client c[2];
	struct server_fixture b;
	struct conn *asker;

	fixture_open(&b, (struct rocade_daemon_conf){.socket_mode = 0666});
	assert_int_equal(client_attach(&b, &c[0]), 0);
	assert_int_equal(client_attach(&b, &c[1]), 0);
	client_says(&c[1], 1000, NS_PER_SEC);
	asker = TAILQ_FIRST(&b.d->conns);
	asker->uid = geteuid() + 1;
	assert_string_equal(row_from(&b, &c[0], 1), "");
	asker->uid = geteuid();
	assert_true(has(row_from(&b, &c[0], 1), "{\"id\": 2, "));
	client_detach(&b, &c[0]);
	client_detach(&b, &c[1]);
	fixture_close(&b);
}
