/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of packets for rocade-dump: which, for whom, and what becomes of those without room. */
#include "switch/sw_dump.h"
#include "switch_fixture.h"

#define WALL_NS UINT64_C(1000000)
#define BOTH (SW_DUMP_IN | SW_DUMP_OUT)

static const struct sw_dump_filter everything = {.directions = BOTH};

/* Client 2 has no QP and may dump. */
static void
dump_open(struct switch_fixture *b, const uint32_t uids[CLIENTS])
{
	struct sw_request req = {.type = SW_QPN_GIVE};
	struct sw_reply reply;

	fixture_open_users(b, uids);
	req.qpn = b->c[2].qpn;
	client_request(b, &b->c[2], &req, &reply);
	assert_int_equal(reply.error, 0);
}

/* Takes the next copy. Returns whether there was one. */
static bool
copy_take(struct fixture_client *c, struct sw_dump_head *head, uint8_t *frame,
	uint32_t *kept)
{
	struct ring_desc desc;

	assert_true(ring_cons_refresh(&c->rx));
	if (ring_count(&c->rx) == 0)
		return false;
	desc = ring_peek(&c->rx, 0);
	memcpy(head, region_rx_buf(&c->region, desc.buf), sizeof(*head));
	*kept = desc.len - (uint32_t)sizeof(*head);
	memcpy(frame, region_rx_buf(&c->region, desc.buf) + sizeof(*head), *kept);
	ring_release(&c->rx, 1);
	return true;
}

/* The next copy is of this frame, whole. */
static void
expect_copy(struct switch_fixture *b, const struct frame_spec *f, unsigned client,
	uint32_t direction)
{
	uint8_t frame[CLIENT_BUF_SIZE], want[CLIENT_BUF_SIZE];
	uint16_t len = frame_spec_build(want, f);
	struct sw_dump_head head;
	uint32_t kept;

	assert_true(copy_take(&b->c[2], &head, frame, &kept));
	assert_int_equal(head.client, b->c[client].client->id);
	assert_int_equal(head.qpn, b->c[client].qpn);
	assert_int_equal(head.direction, direction);
	assert_int_equal(head.wall_ns, b->now + WALL_NS);
	assert_int_equal(head.lost, 0);
	assert_int_equal(head.len, len);
	assert_int_equal(kept, len);
	assert_memory_equal(frame, b->sw->conf.net.mac, 6);
	assert_memory_equal(frame + 6, b->sw->conf.net.mac, 6);
	assert_memory_equal(frame + 12, want + 12, len - 12u);
}

static void
expect_no_copy(struct switch_fixture *b)
{
	assert_false(client_received(&b->c[2], NULL));
}

/* Sends a frame from client 0 to client 1, which gets it. */
static struct frame_spec
frame_pass(struct switch_fixture *b)
{
	struct frame_spec f = frame_spec_valid(b);

	b->now += 1000;
	client_send(b, &b->c[0], b->c[0].qpn, &f);
	assert_true(client_received(&b->c[1], &f));
	return f;
}

TEST(both_ends_are_copied)
{
	struct switch_fixture b;
	struct frame_spec f;

	dump_open(&b, (const uint32_t[CLIENTS]){0});
	f = frame_pass(&b);
	expect_no_copy(&b);
	assert_int_equal(sw_dump_set(b.c[2].client, &everything, true, WALL_NS), 0);
	f = frame_pass(&b);
	expect_copy(&b, &f, 0, SW_DUMP_OUT);
	expect_copy(&b, &f, 1, SW_DUMP_IN);
	expect_no_copy(&b);
	assert_true(b.c[2].woken != 0 || b.c[2].client->lagging);
	assert_int_equal(
		sw_dump_set(b.c[2].client, &(struct sw_dump_filter){0}, true, WALL_NS),
		0);
	(void)frame_pass(&b);
	expect_no_copy(&b);
	fixture_close(&b);
}

TEST(filters_apply)
{
	struct switch_fixture b;
	struct frame_spec f;

	dump_open(&b, (const uint32_t[CLIENTS]){0});
	const struct {
		struct sw_dump_filter filter;
		bool out, in;
	} rows[] = {
		{{.directions = SW_DUMP_IN}, .in = true},
		{{.directions = SW_DUMP_OUT}, .out = true},
		{{.directions = BOTH, .client = b.c[0].client->id}, .out = true},
		{{.directions = BOTH, .client = b.c[1].client->id}, .in = true},
		{{.directions = SW_DUMP_OUT, .client = b.c[1].client->id}, .out = false},
		{{.directions = BOTH, .client = 77}, .out = false},
		{{.directions = BOTH, .qpn = b.c[0].qpn}, .out = true},
		{{.directions = BOTH, .qpn = b.c[1].qpn}, .in = true},
		{{.directions = BOTH, .qpn = 99}, .out = false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(
			sw_dump_set(b.c[2].client, &rows[i].filter, true, WALL_NS), 0);
		f = frame_pass(&b);
		if (rows[i].out)
			expect_copy(&b, &f, 0, SW_DUMP_OUT);
		if (rows[i].in)
			expect_copy(&b, &f, 1, SW_DUMP_IN);
		expect_no_copy(&b);
		sw_dump_forget(b.c[2].client);
	}
	fixture_close(&b);
}

/* No copy is longer than the snap length, or than the room of a buffer. */
TEST(copies_are_cut)
{
	static const uint32_t snaps[] = {1, 14, 20, 60, 109, 110, 111, 150};
	uint8_t frame[CLIENT_BUF_SIZE], want[CLIENT_BUF_SIZE];
	struct switch_fixture b;
	struct sw_dump_head head;
	struct frame_spec f;
	uint32_t kept;
	uint16_t len;

	dump_open(&b, (const uint32_t[CLIENTS]){0});
	for (size_t i = 0; i < sizeof(snaps) / sizeof(snaps[0]); i++) {
		assert_int_equal(
			sw_dump_set(b.c[2].client,
				&(struct sw_dump_filter){
					.directions = SW_DUMP_OUT, .snap = snaps[i]},
				true, WALL_NS),
			0);
		f = frame_pass(&b);
		len = frame_spec_build(want, &f);
		assert_true(copy_take(&b.c[2], &head, frame, &kept));
		assert_int_equal(kept, snaps[i]);
		assert_int_equal(head.len, len);
		if (kept > 12)
			assert_memory_equal(frame + 12, want + 12, kept - 12);
		sw_dump_forget(b.c[2].client);
	}
	assert_int_equal(sw_dump_set(b.c[2].client, &everything, true, WALL_NS), 0);
	f = frame_spec_valid(&b);
	f.payload = 452;
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_true(client_received(&b.c[1], &f));
	assert_true(copy_take(&b.c[2], &head, frame, &kept));
	assert_int_equal(head.len, frame_spec_build(want, &f));
	assert_true(head.len > CLIENT_BUF_SIZE - sizeof(head));
	assert_int_equal(kept, CLIENT_BUF_SIZE - sizeof(head));
	fixture_close(&b);
}

/* A full ring costs copies, which are counted, and nothing else. */
TEST(copies_without_room_are_lost)
{
	uint8_t frame[CLIENT_BUF_SIZE];
	struct sw_dump_head head;
	struct switch_fixture b;
	uint32_t kept;

	dump_open(&b, (const uint32_t[CLIENTS]){0, 0, 0});
	assert_int_equal(sw_dump_set(b.c[2].client, &everything, true, WALL_NS), 0);
	for (unsigned i = 0; i < CLIENT_SLOTS; i++)
		(void)frame_pass(&b);
	assert_int_equal(b.c[0].client->stats.tx_blocked, 0);
	assert_int_equal(b.c[2].client->stats.rx_full, CLIENT_SLOTS);
	for (unsigned i = 0; i < CLIENT_SLOTS; i++) {
		assert_true(copy_take(&b.c[2], &head, frame, &kept));
		assert_int_equal(head.lost, 0);
	}
	expect_no_copy(&b);
	(void)frame_pass(&b);
	assert_true(copy_take(&b.c[2], &head, frame, &kept));
	assert_int_equal(head.lost, CLIENT_SLOTS);
	fixture_close(&b);
}

/* A client that may not see all gets the packets of its own user's clients only. */
static void
expect_other_users_hidden(void)
{
	struct switch_fixture b;
	struct frame_spec f;

	dump_open(&b, (const uint32_t[CLIENTS]){1, 2, 2});
	assert_int_equal(sw_dump_set(b.c[2].client, &everything, false, WALL_NS), 0);
	f = frame_pass(&b);
	expect_copy(&b, &f, 1, SW_DUMP_IN);
	expect_no_copy(&b);
	sw_dump_forget(b.c[2].client);
	assert_int_equal(sw_dump_set(b.c[2].client,
				 &(struct sw_dump_filter){
					 .directions = BOTH, .client = b.c[0].client->id},
				 false, WALL_NS),
		0);
	(void)frame_pass(&b);
	expect_no_copy(&b);
	fixture_close(&b);
}

/* Also those of users for whom one pays. */
TEST(other_users_are_hidden)
{
	expect_other_users_hidden();
	fixture_payer = 2;
	expect_other_users_hidden();
	fixture_payer = 0;
}

/* Nor does a client see those of others that have its uid, where several users may have it. */
TEST(clients_of_a_shared_uid_are_hidden)
{
	struct switch_fixture b;

	dump_open(&b, (const uint32_t[CLIENTS]){2, 2, 2});
	for (unsigned i = 0; i < CLIENTS; i++)
		b.c[i].client->shares_uid = true;
	assert_int_equal(sw_dump_set(b.c[2].client, &everything, false, WALL_NS), 0);
	assert_int_equal(b.c[0].region.daemon->pairs_off, 0);
	assert_int_equal(b.c[2].region.daemon->pairs_off, 1);
	(void)frame_pass(&b);
	expect_no_copy(&b);
	fixture_close(&b);
}

/* Packets that are dropped, or that do not come from the client's QP, are not copied. */
TEST(dropped_packets_are_not_copied)
{
	struct switch_fixture b;
	struct frame_spec f;

	dump_open(&b, (const uint32_t[CLIENTS]){0});
	assert_int_equal(sw_dump_set(b.c[2].client, &everything, true, WALL_NS), 0);
	f = frame_spec_valid(&b);
	client_send(&b, &b.c[0], b.c[1].qpn, &f);
	f.dest_qpn = 1;
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_false(client_received(&b.c[1], NULL));
	expect_no_copy(&b);
	fixture_close(&b);
}

TEST(wrong_requests_are_refused)
{
	const struct sw_dump_filter wrong = {.directions = 4};
	struct switch_fixture b;
	struct sw_client *c[CLIENTS];

	dump_open(&b, (const uint32_t[CLIENTS]){1, 1, 1});
	for (unsigned i = 0; i < CLIENTS; i++)
		c[i] = b.c[i].client;
	assert_int_equal(sw_dump_set(c[2], &wrong, true, WALL_NS), -EINVAL);
	assert_int_equal(
		sw_dump_set(c[0], &everything, true, WALL_NS), -EINVAL); /* QPs */
	assert_int_equal(sw_dump_set(c[2], &everything, false, WALL_NS), 0);
	assert_int_equal(sw_dump_set(c[2], &everything, false, WALL_NS), -EBUSY);
	assert_int_equal(b.sw->dump_count, 1);
	/* The client ends: nothing is left of it. */
	client_detach(&b.c[2]);
	assert_int_equal(b.sw->dump_count, 0);
	(void)frame_pass(&b);
	/* One at a time of a user; root may run more. */
	client_attach(&b, &b.c[2]);
	c[2] = b.c[2].client;
	c[0]->qps = c[2]->qps = 0;
	assert_int_equal(sw_dump_set(c[0], &everything, false, WALL_NS), 0);
	assert_int_equal(sw_dump_set(c[2], &everything, false, WALL_NS), -EBUSY);
	assert_int_equal(sw_dump_set(c[2], &everything, true, WALL_NS), 0);
	c[0]->qps = c[2]->qps = 1;
	fixture_close(&b);
}

/* Half of the places are left for those who may see all. */
TEST(places_are_limited)
{
	struct sw_client others[SW_DUMPS];
	struct sw_user users[SW_DUMPS];
	struct switch_fixture b;

	dump_open(&b, (const uint32_t[CLIENTS]){0});
	for (unsigned i = 0; i < SW_DUMPS; i++) {
		others[i] = *b.c[2].client;
		others[i].user = &users[i];
		assert_int_equal(sw_dump_set(&others[i], &everything, false, WALL_NS),
			i < SW_DUMPS / 2 ? 0 : -EBUSY);
		if (i >= SW_DUMPS / 2)
			assert_int_equal(
				sw_dump_set(&others[i], &everything, true, WALL_NS), 0);
	}
	assert_int_equal(sw_dump_set(b.c[2].client, &everything, true, WALL_NS), -EBUSY);
	for (unsigned i = 0; i < SW_DUMPS; i++)
		sw_dump_forget(&others[i]);
	assert_int_equal(b.sw->dump_count, 0);
	fixture_close(&b);
}

/* The request needs a client; what it asks for is the server's to decide. */
TEST(request_needs_a_client)
{
	struct sw_request req = {.type = SW_DUMP};
	struct switch_fixture b;
	struct sw_reply reply;

	dump_open(&b, (const uint32_t[CLIENTS]){0});
	client_request(&b, NULL, &req, &reply);
	assert_int_equal(reply.error, ENOTCONN);
	client_request(&b, &b.c[2], &req, &reply);
	assert_int_equal(reply.error, 0);
	fixture_close(&b);
}
