/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs: when they come and end, and what clients are told. */
#include "switch/sw_dump.h"
#include "pair_fixture.h"

/* The client acknowledges the event `done` of its pair with client `other`, and is told the next one
 * of that pair. */
static void
expect_event(struct switch_fixture *b, unsigned c, unsigned other, uint32_t done,
	uint32_t next)
{
	struct sw_reply reply;

	reply = event_reply(b, c, done != 0 ? b->c[other].client->id : 0, done);
	assert_int_equal(reply.error, 0);
	assert_int_equal(reply.qpn, next);
	if (next == SW_PAIR_NONE)
		return;
	assert_int_equal(reply.client_id, b->c[other].client->id);
	assert_int_equal(reply.pair.slots, CLIENT_SLOTS);
	assert_int_equal(reply.pair.buf_size, CLIENT_BUF_SIZE);
}

/* Clients 0 and 1 do all that is asked for, until they can use the pair. */
static void
pair_up(struct switch_fixture *b)
{
	expect_event(b, 0, 1, 0, SW_PAIR_OWN);
	expect_event(b, 0, 1, SW_PAIR_OWN, SW_PAIR_NONE);
	expect_event(b, 1, 0, 0, SW_PAIR_OWN);
	expect_event(b, 1, 0, SW_PAIR_OWN, SW_PAIR_PEER);
	expect_event(b, 1, 0, SW_PAIR_PEER, SW_PAIR_NONE);
	expect_event(b, 0, 1, 0, SW_PAIR_PEER);
	expect_event(b, 0, 1, SW_PAIR_PEER, SW_PAIR_NONE);
}

/* Asks without acknowledging the last event. */
static void
expect_already(struct switch_fixture *b, unsigned c)
{
	assert_int_equal(event_reply(b, c, 0, 0).error, EALREADY);
}

TEST(events_with_descriptors_come_once)
{
	struct switch_fixture b;

	pair_fixture_open(&b);
	clients_connect(&b, 0, 1);
	for (unsigned c = 0; c < 2; c++) {
		expect_event(&b, c, !c, 0, SW_PAIR_OWN);
		expect_already(&b, c);
		expect_event(&b, c, !c, SW_PAIR_OWN, c == 0 ? 0 : SW_PAIR_PEER);
	}
	expect_already(&b, 1);
	expect_event(&b, 0, 1, 0, SW_PAIR_PEER);
	expect_already(&b, 0);
	/* The end has none. */
	expect_event(&b, 0, 1, SW_PAIR_FAILED, SW_PAIR_END);
	for (unsigned i = 0; i < 2; i++)
		expect_event(&b, 1, 0, 0, SW_PAIR_END);
	pair_fixture_close(&b);
}

TEST(events_come_in_order)
{
	struct switch_fixture b;
	uint32_t x, y, woken;
	struct sw_reply reply;

	pair_fixture_open(&b);
	x = client_take_qpn(&b, &b.c[0]);
	y = client_take_qpn(&b, &b.c[1]);
	reply = peer_register(&b, 0, x, y);
	assert_int_equal(reply.client_id, b.c[1].client->id);
	assert_int_equal(reply.qpn, 0);
	assert_int_equal(calls.created, 0);
	woken = b.c[0].woken;
	reply = peer_register(&b, 1, y, x);
	assert_int_equal(reply.client_id, b.c[0].client->id);
	assert_int_equal(reply.qpn, 1);
	assert_int_equal(calls.created, 1);
	assert_int_equal(b.c[0].woken, woken + 1);
	assert_int_equal(events_of(&b, 0), 1);
	assert_int_equal(events_of(&b, 1), 1);
	pair_up(&b);
	assert_int_equal(calls.checked[0] + calls.checked[1], 2);
	assert_int_equal(calls.settled, 1);
	assert_int_equal(events_of(&b, 0), 2);
	pair_fixture_close(&b);
}

/* Further QPs use the same pair. It ends with the last one. */
TEST(pair_ends_with_its_last_qp)
{
	struct switch_fixture b;
	uint32_t x, y;

	pair_fixture_open(&b);
	clients_connect(&b, 0, 1);
	pair_up(&b);
	x = client_take_qpn(&b, &b.c[0]);
	y = client_take_qpn(&b, &b.c[1]);
	(void)peer_register(&b, 0, x, y);
	(void)peer_register(&b, 1, y, x);
	assert_int_equal(calls.created, 1);
	assert_int_equal(b.c[0].client->pair_count, 1);
	(void)peer_register(&b, 0, x, x);
	(void)peer_register(&b, 1, y, y);
	expect_event(&b, 0, 1, 0, SW_PAIR_NONE);
	(void)peer_register(&b, 0, b.c[0].qpn, x);
	expect_event(&b, 0, 1, 0, SW_PAIR_NONE);
	(void)peer_register(&b, 1, b.c[1].qpn, y);
	expect_event(&b, 0, 1, 0, SW_PAIR_END);
	expect_event(&b, 1, 0, 0, SW_PAIR_END);
	expect_event(&b, 0, 1, SW_PAIR_END, SW_PAIR_NONE);
	assert_int_equal(calls.destroyed, 0);
	expect_event(&b, 1, 0, SW_PAIR_END, SW_PAIR_NONE);
	assert_int_equal(calls.destroyed, 1);
	assert_int_equal(b.c[0].client->pair_count, 0);
	pair_fixture_close(&b);
}

/* However far it has come: the other client is told of the end if it was told of the pair. */
TEST(client_that_ends_ends_its_pairs)
{
	for (unsigned steps = 0; steps < 4; steps++) {
		struct switch_fixture b;
		uint32_t id;

		pair_fixture_open(&b);
		clients_connect(&b, 0, 1);
		id = b.c[1].client->id;
		if (steps > 0)
			expect_event(&b, 0, 1, 0, SW_PAIR_OWN);
		if (steps > 1)
			expect_event(&b, 0, 1, SW_PAIR_OWN, SW_PAIR_NONE);
		if (steps > 2) {
			expect_event(&b, 1, 0, 0, SW_PAIR_OWN);
			expect_event(&b, 1, 0, SW_PAIR_OWN, SW_PAIR_PEER);
		}
		client_detach(&b.c[1]);
		if (steps > 0) {
			struct sw_reply reply;

			reply = event_reply(&b, 0, 0, 0);
			assert_int_equal(reply.error, 0);
			assert_int_equal(reply.qpn, SW_PAIR_END);
			assert_int_equal(reply.client_id, id);
			reply = event_reply(&b, 0, id, SW_PAIR_END);
			assert_int_equal(reply.error, 0);
			assert_int_equal(reply.qpn, SW_PAIR_NONE);
		}
		assert_int_equal(b.c[0].client->pair_count, 0);
		/* The QP of client 0 still has its peer. */
		assert_int_equal(calls.destroyed, 0);
		pair_fixture_close(&b);
	}
}

TEST(failed_pair_ends_and_another_one_can_come)
{
	struct switch_fixture b;

	pair_fixture_open(&b);
	clients_connect(&b, 0, 1);
	pair_up(&b);
	expect_event(&b, 0, 1, SW_PAIR_FAILED, SW_PAIR_END);
	expect_event(&b, 1, 0, 0, SW_PAIR_END);
	(void)peer_register(&b, 0, b.c[0].qpn, b.c[1].qpn);
	assert_int_equal(calls.created, 2);
	expect_event(&b, 0, 1, SW_PAIR_END, SW_PAIR_OWN);
	expect_event(&b, 1, 0, SW_PAIR_END, SW_PAIR_OWN);
	pair_fixture_close(&b);
}

TEST(memory_that_is_not_sealed_ends_the_pair)
{
	struct switch_fixture b;

	pair_fixture_open(&b);
	clients_connect(&b, 0, 1);
	calls.check_error = -ENOMEM;
	expect_event(&b, 0, 1, 0, SW_PAIR_OWN);
	expect_event(&b, 0, 1, SW_PAIR_OWN, SW_PAIR_END);
	expect_event(&b, 0, 1, SW_PAIR_END, SW_PAIR_NONE);
	/* Client 1 has been told nothing. */
	expect_event(&b, 1, 0, 0, SW_PAIR_NONE);
	pair_fixture_close(&b);
}

TEST(wrong_acknowledgements_are_refused)
{
	struct switch_fixture b;
	uint32_t id;

	pair_fixture_open(&b);
	clients_connect(&b, 0, 1);
	id = b.c[1].client->id;
	assert_int_equal(event_reply(&b, 0, id, SW_PAIR_OWN).error, EINVAL);
	assert_int_equal(event_reply(&b, 0, id, SW_PAIR_FAILED).error, EINVAL);
	expect_event(&b, 0, 1, 0, SW_PAIR_OWN);
	assert_int_equal(event_reply(&b, 0, id, SW_PAIR_PEER).error, EINVAL);
	assert_int_equal(event_reply(&b, 0, id, SW_PAIR_END).error, EINVAL);
	assert_int_equal(event_reply(&b, 0, id, 99).error, EINVAL);
	assert_int_equal(
		event_reply(&b, 0, b.c[2].client->id, SW_PAIR_OWN).error, EINVAL);
	assert_int_equal(event_reply(&b, 2, id, SW_PAIR_OWN).error, EINVAL);
	expect_event(&b, 0, 1, SW_PAIR_OWN, SW_PAIR_NONE);
	assert_int_equal(event_reply(&b, 0, id, SW_PAIR_OWN).error, EINVAL);
	assert_int_equal(calls.checked[0] + calls.checked[1], 1);
	pair_fixture_close(&b);
}

TEST(pairs_are_limited)
{
	struct switch_fixture b;
	struct sw_stats stats;
	uint32_t x;

	pair_fixture_open(&b);
	b.sw->conf.limits.pairs = 1;
	clients_connect(&b, 0, 1);
	x = client_take_qpn(&b, &b.c[0]);
	(void)peer_register(&b, 0, x, b.c[2].qpn);
	/* The QPs are connected all the same. */
	assert_int_equal(peer_register(&b, 2, b.c[2].qpn, x).qpn, 1);
	assert_int_equal(calls.created, 1);
	sw_client_stats_read(b.c[2].client, &stats);
	assert_int_equal(stats.pairs_refused, 1);
	b.sw->conf.limits.pairs = 2;
	calls.create_error = -ENOSPC;
	(void)peer_register(&b, 2, b.c[2].qpn, x);
	sw_client_stats_read(b.c[2].client, &stats);
	assert_int_equal(stats.pairs_refused, 2);
	assert_int_equal(b.c[2].client->pair_count, 0);
	pair_fixture_close(&b);
}

/* Also one of which only one client knows yet. */
TEST(pairs_end_when_clients_may_have_none)
{
	struct switch_fixture b;

	pair_fixture_open(&b);
	clients_connect(&b, 0, 1);
	expect_event(&b, 0, 1, 0, SW_PAIR_OWN);
	sw_pair_limits_changed(b.sw);
	expect_already(&b, 0);
	b.sw->conf.limits.packets_per_s = 1000;
	sw_pair_limits_changed(b.sw);
	expect_event(&b, 0, 1, 0, SW_PAIR_END);
	expect_event(&b, 1, 0, 0, SW_PAIR_NONE);
	expect_event(&b, 0, 1, SW_PAIR_END, SW_PAIR_NONE);
	b.sw->conf.limits.packets_per_s = 0;
	b.sw->conf.limits.pairs = 0;
	sw_pair_limits_changed(b.sw);
	assert_int_equal(b.c[0].client->pair_count, 0);
	pair_fixture_close(&b);
}

/* No pair, and the client is not told which client has the QP. */
static void
expect_no_pair(struct switch_fixture *b)
{
	assert_int_equal(peer_register(b, 0, b->c[0].qpn, b->c[1].qpn).client_id, 0);
	assert_int_equal(peer_register(b, 1, b->c[1].qpn, b->c[0].qpn).client_id, 0);
	assert_int_equal(calls.created, 0);
}

TEST(some_clients_have_no_pairs)
{
	struct switch_fixture b;
	uint32_t x, y;

	pair_fixture_open(&b);
	b.sw->conf.limits.pairs = 0;
	expect_no_pair(&b);
	b.sw->conf.limits.pairs = 2;
	b.sw->conf.limits.packets_per_s = 1000;
	expect_no_pair(&b);
	b.sw->conf.limits.packets_per_s = 0;
	b.c[1].client->no_pairs = true;
	expect_no_pair(&b);
	b.c[1].client->no_pairs = false;
	/* QPs of one client. */
	x = client_take_qpn(&b, &b.c[0]);
	y = client_take_qpn(&b, &b.c[0]);
	assert_int_equal(peer_register(&b, 0, x, y).client_id, 0);
	assert_int_equal(peer_register(&b, 0, y, x).client_id, 0);
	assert_int_equal(calls.created, 0);
	pair_fixture_close(&b);
}

/* One could keep the other's memory when the pair has ended. */
static void
expect_no_pairs_of_two_users(void)
{
	struct switch_fixture b;

	pair_fixture_open_users(&b, (const uint32_t[CLIENTS]){1, 2, 1});
	expect_no_pair(&b);
	pair_fixture_close(&b);
}

/* Nor have clients of users for whom one pays. */
TEST(clients_of_two_users_have_no_pairs)
{
	expect_no_pairs_of_two_users();
	fixture_payer = 2;
	expect_no_pairs_of_two_users();
	fixture_payer = 0;
}

/* In a user namespace processes of several users may have one uid. */
TEST(clients_that_share_a_uid_have_no_pairs)
{
	struct switch_fixture b;

	pair_fixture_open(&b);
	b.c[0].client->shares_uid = b.c[1].client->shares_uid = true;
	expect_no_pair(&b);
	pair_fixture_close(&b);
}

/* The sender's ring index when the receiver was woken. */
static struct {
	const uint32_t *index;
	uint32_t seen;
} at_wake;

static void
wake_note(void *owner, const uint32_t *futex)
{
	(void)owner;
	(void)futex;
	at_wake.seen = __atomic_load_n(at_wake.index, __ATOMIC_RELAXED);
}

/* A client whose ring is empty has its packets in the rings of the receivers. */
TEST(sent_packets_leave_the_ring_after_receivers_can_see_them)
{
	struct switch_fixture b;
	struct frame_spec f;

	pair_fixture_open(&b);
	f = frame_spec_valid(&b);
	at_wake.index = &b.c[0].region.daemon->tx_cons;
	at_wake.seen = UINT32_MAX;
	b.sw->wake = wake_note;
	asleep_set(&b.c[1].region.client->rx_asleep);
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_int_equal(at_wake.seen, 0);
	assert_int_equal(*at_wake.index, 1);
	b.sw->wake = client_wake;
	pair_fixture_close(&b);
}

TEST(packets_go_through_the_daemon_while_a_client_dumps)
{
	const struct sw_dump_filter filter = {.directions = SW_DUMP_IN | SW_DUMP_OUT};
	struct sw_request give = {.type = SW_QPN_GIVE};
	struct switch_fixture b;
	struct sw_reply reply;

	pair_fixture_open(&b);
	give.qpn = b.c[2].qpn;
	client_request(&b, &b.c[2], &give, &reply);
	assert_int_equal(reply.error, 0);
	assert_int_equal(sw_dump_set(b.c[2].client, &filter, false, 0), 0);
	assert_int_equal(b.c[0].region.daemon->pairs_off, 1);
	sw_dump_forget(b.c[2].client);
	assert_int_equal(b.c[0].region.daemon->pairs_off, 0);
	pair_fixture_close(&b);
}

TEST(clients_count_what_comes_by_pairs_and_what_they_impair)
{
	struct switch_fixture b;
	struct sw_stats stats;

	pair_fixture_open(&b);
	b.c[0].region.client->pair_packets = 7;
	b.c[0].region.client->pair_bytes = 700;
	b.c[0].region.client->impaired = (struct impair_stats){1, 2, 3, 4};
	sw_client_stats_read(b.c[0].client, &stats);
	assert_int_equal(stats.pair_packets, 7);
	assert_int_equal(stats.pair_bytes, 700);
	assert_int_equal(stats.impair_lost, 1);
	assert_int_equal(stats.impair_duplicated, 2);
	assert_int_equal(stats.impair_reordered, 3);
	assert_int_equal(stats.impair_corrupted, 4);
	client_detach(&b.c[0]);
	assert_int_equal(b.sw->departed.pair_packets, 7);
	assert_int_equal(b.sw->departed.pair_bytes, 700);
	assert_int_equal(b.sw->departed.impair_lost, 1);
	assert_int_equal(b.sw->departed.impair_corrupted, 4);
	pair_fixture_close(&b);
}
