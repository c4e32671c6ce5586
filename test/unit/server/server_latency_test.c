/* SPDX-License-Identifier: BSD-3-Clause */
/* How long the requests of clients took, as the clients say in their memory: what the daemon shows of it. The test
 * plays the clients. */
#include "server_fixture.h"

static struct sw_data_reply reply;

/* Returns the row of a client, or of departed ones (0), as the asker sees it; "" if there is none. */
static const char *
row_of(struct server_fixture *b, const struct fixture_client *asker, uint32_t id)
{
	struct sw_request req = {
		.type = SW_STATUS, .qpn = SW_STATUS_LATENCIES, .dest_qpn = id};
	int err = client_fetch(b, asker->fd, &req, &reply);

	assert_true(err == 0 || err == ENOENT);
	assert_true(reply.len < sizeof(reply.bytes));
	reply.bytes[reply.len] = '\0';
	if (err == 0)
		assert_true(reply.id >= id);
	return (const char *)reply.bytes;
}

static void
client_says(struct fixture_client *c, uint64_t ns, uint64_t count)
{
	struct latency_hist *hist =
		&c->region.client->latencies.of[LATENCY_TYPE_RC][LATENCY_OP_read];

	hist->sum_ns = ns * count;
	hist->count[latency_bucket(ns)] = count;
}

static bool
has(const char *row, const char *part)
{
	return strstr(row, part) != NULL;
}

TEST(each_client_has_its_row)
{
	struct fixture_client c[2];
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c[0]), 0);
	assert_int_equal(client_attach(&b, &c[1]), 0);
	client_says(&c[1], 1000, 7);
	assert_string_equal(row_of(&b, &c[0], 0), "{\"id\": 0, \"latencies\": []}");
	/* The first one has none: it is passed over. */
	assert_true(has(row_of(&b, &c[0], c[0].reply.client_id), "{\"id\": 2, "));
	assert_true(has(row_of(&b, &c[0], c[1].reply.client_id),
		"{\"id\": 2, \"latencies\": [{\"type\": \"RC\", \"operation\": \"read\", "
		"\"count\": 7, \"sum_ns\": 7000, \"buckets\": {\"512\": 0, \"1024\": 7, "));
	assert_string_equal(row_of(&b, &c[0], c[1].reply.client_id + 1), "");
	client_detach(&b, &c[0]);
	client_detach(&b, &c[1]);
	fixture_close(&b);
}

#define MANY 130

/* However many clients without latencies stand before one that has some, a request takes a bounded time: three find
 * this one. */
TEST(clients_without_latencies_take_few_requests)
{
	static struct fixture_client c[MANY];
	struct server_fixture b;
	unsigned requests = 0;
	uint32_t from = 1;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(client_attach(&b, &c[i]), 0);
	client_says(&c[MANY - 1], 1000, 7);
	while (requests++ < MANY && !has(row_of(&b, &c[0], from), "\"count\": 7, ")) {
		assert_true(has((const char *)reply.bytes, "\"latencies\": []}"));
		from = reply.id + 1;
	}
	assert_int_equal(requests, 3);
	assert_int_equal(reply.id, c[MANY - 1].reply.client_id);
	assert_string_equal(row_of(&b, &c[0], reply.id + 1), "");
	for (unsigned i = 0; i < MANY; i++)
		client_detach(&b, &c[i]);
	fixture_close(&b);
}

TEST(departed_clients_are_summed)
{
	struct fixture_client c;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(client_attach(&b, &c), 0);
		client_says(&c, 1000, 7);
		client_detach(&b, &c);
	}
	assert_int_equal(client_attach(&b, &c), 0);
	assert_true(has(row_of(&b, &c, 0), "\"count\": 21, \"sum_ns\": 21000, "));
	assert_string_equal(row_of(&b, &c, c.reply.client_id), "");
	client_detach(&b, &c);
	fixture_close(&b);
}

/* A client that writes the largest numbers: in its row and, however many such clients come and go, in the sum nothing
 * overflows, and the row fits a reply. */
TEST(a_hostile_client_is_bounded)
{
	struct fixture_client c, honest;
	struct server_fixture b;
	const char *row;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &honest), 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(client_attach(&b, &c), 0);
		memset(&c.region.client->latencies, 0xff, sizeof(struct latencies));
		row = row_of(&b, &honest, c.reply.client_id);
		assert_true(has(row, "\"count\": 6755399441055744, "
				     "\"sum_ns\": 4611686018427387904, "));
		assert_true(has(row, "\"XRC\", \"operation\": \"flush\""));
		client_detach(&b, &c);
		row = row_of(&b, &honest, 0);
		assert_true(has(row, "\"count\": 6755399441055744, "
				     "\"sum_ns\": 4611686018427387904, "));
	}
	/* Its own row is that of no other client. */
	client_says(&honest, 1000, 7);
	assert_true(has(row_of(&b, &honest, honest.reply.client_id),
		"\"count\": 7, \"sum_ns\": 7000, "));
	client_detach(&b, &honest);
	fixture_close(&b);
}

TEST(users_see_their_own_clients)
{
	struct fixture_client c[2];
	struct server_fixture b;
	struct conn *other;

	fixture_open(&b, (struct rocade_daemon_conf){.socket_mode = 0666});
	assert_int_equal(client_attach(&b, &c[0]), 0);
	assert_int_equal(client_attach(&b, &c[1]), 0);
	client_says(&c[0], 1000, 7);
	other = TAILQ_NEXT(TAILQ_FIRST(&b.d->conns), link);
	client_says(&c[1], 1000, 7);
	other->uid = geteuid() + 1;
	assert_true(has(row_of(&b, &c[1], 1), "{\"id\": 2, "));
	assert_true(has(row_of(&b, &c[0], 1), "{\"id\": 1, "));
	other->uid = geteuid();
	client_detach(&b, &c[0]);
	client_detach(&b, &c[1]);
	fixture_close(&b);
}
