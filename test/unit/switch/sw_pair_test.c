/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs: when they come and end, what clients are told, and who wakes whom. */
#include "switch/sw_dump.h"
#include "sw_pair_fixture.h"

/* Registers the peer of a QP of client c; returns the reply. */
static struct sw_reply
peer_register(struct switch_fixture *b, unsigned c, uint32_t qpn, uint32_t dest_qpn)
{
	struct sw_request req = {.type = SW_PEER_SET, .qpn = qpn, .dest_qpn = dest_qpn};
	struct sw_reply reply;

	memcpy(req.sgid, b->addr, 16);
	memcpy(req.dgid, b->addr, 16);
	client_request(b, &b->c[c], &req, &reply);
	assert_int_equal(reply.error, 0);
	return reply;
}

/* Connects the first QPs of clients 0 and 1 anew: now they can have a pair. */
static void
connect_first(struct switch_fixture *b)
{
	(void)peer_register(b, 0, b->c[0].qpn, b->c[1].qpn);
	(void)peer_register(b, 1, b->c[1].qpn, b->c[0].qpn);
}

static int
event_next(struct switch_fixture *b, unsigned c, uint32_t partner, uint32_t done,
	struct sw_reply *reply)
{
	struct sw_request req = {.type = SW_PAIR, .qpn = partner, .dest_qpn = done};

	client_request(b, &b->c[c], &req, reply);
	return reply->error;
}

/* The client acknowledges the event `done` of its pair with client `other`, and is told the next one
 * of that pair. */
static void
expect_event(struct switch_fixture *b, unsigned c, unsigned other, uint32_t done,
	uint32_t next)
{
	struct sw_reply reply;

	assert_int_equal(
		event_next(b, c, done != 0 ? b->c[other].client->id : 0, done, &reply),
		0);
	assert_int_equal(reply.qpn, next);
	if (next == SW_PAIR_NONE)
		return;
	assert_int_equal(reply.client_id, b->c[other].client->id);
	assert_int_equal(reply.pair.slots, CLIENT_SLOTS);
	assert_int_equal(reply.pair.buf_size, CLIENT_BUF_SIZE);
}

static uint32_t
events_of(const struct switch_fixture *b, unsigned c)
{
	return b->c[c].region.daemon->pair_events;
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

static void
events_come_in_order(void **state)
{
	struct switch_fixture b;
	uint32_t x, y, woken;
	struct sw_reply reply;

	pairs_open(&b);
	x = client_take_qpn(&b, &b.c[0]);
	y = client_take_qpn(&b, &b.c[1]);
	reply = peer_register(&b, 0, x, y);
	assert_int_equal(reply.client_id, b.c[1].client->id);
	assert_int_equal(reply.qpn, 0);
	assert_int_equal(memory.created, 0);
	woken = b.c[0].woken;
	reply = peer_register(&b, 1, y, x);
	assert_int_equal(reply.client_id, b.c[0].client->id);
	assert_int_equal(reply.qpn, 1);
	assert_int_equal(memory.created, 1);
	assert_int_equal(b.c[0].woken, woken + 1);
	assert_int_equal(events_of(&b, 0), 1);
	assert_int_equal(events_of(&b, 1), 1);
	/* A client that asks again is told the same. */
	expect_event(&b, 0, 1, 0, SW_PAIR_OWN);
	pair_up(&b);
	assert_int_equal(memory.sealed, 2);
	assert_int_equal(memory.settled, 1);
	assert_int_equal(events_of(&b, 0), 2);
	pairs_close(&b);
}

/* Further QPs use the same pair. It ends with the last one. */
static void
pair_ends_with_its_last_qp(void **state)
{
	struct switch_fixture b;
	uint32_t x, y;

	pairs_open(&b);
	connect_first(&b);
	pair_up(&b);
	x = client_take_qpn(&b, &b.c[0]);
	y = client_take_qpn(&b, &b.c[1]);
	(void)peer_register(&b, 0, x, y);
	(void)peer_register(&b, 1, y, x);
	assert_int_equal(memory.created, 1);
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
	assert_int_equal(memory.destroyed, 0);
	expect_event(&b, 1, 0, SW_PAIR_END, SW_PAIR_NONE);
	assert_int_equal(memory.destroyed, 1);
	assert_int_equal(b.c[0].client->pair_count, 0);
	pairs_close(&b);
}

/* However far it has come: the other client is told of the end if it was told of the pair. */
static void
client_that_ends_ends_its_pairs(void **state)
{
	for (unsigned steps = 0; steps < 4; steps++) {
		struct switch_fixture b;
		uint32_t id;

		pairs_open(&b);
		connect_first(&b);
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

			assert_int_equal(event_next(&b, 0, 0, 0, &reply), 0);
			assert_int_equal(reply.qpn, SW_PAIR_END);
			assert_int_equal(reply.client_id, id);
			assert_int_equal(event_next(&b, 0, id, SW_PAIR_END, &reply), 0);
			assert_int_equal(reply.qpn, SW_PAIR_NONE);
		}
		assert_int_equal(b.c[0].client->pair_count, 0);
		/* The QP of client 0 still has its peer. */
		assert_int_equal(memory.destroyed, 0);
		pairs_close(&b);
	}
}

static void
failed_pair_ends_and_another_one_can_come(void **state)
{
	struct switch_fixture b;

	pairs_open(&b);
	connect_first(&b);
	pair_up(&b);
	expect_event(&b, 0, 1, SW_PAIR_FAILED, SW_PAIR_END);
	expect_event(&b, 1, 0, 0, SW_PAIR_END);
	(void)peer_register(&b, 0, b.c[0].qpn, b.c[1].qpn);
	assert_int_equal(memory.created, 2);
	expect_event(&b, 0, 1, SW_PAIR_END, SW_PAIR_OWN);
	expect_event(&b, 1, 0, SW_PAIR_END, SW_PAIR_OWN);
	pairs_close(&b);
}

static void
memory_that_cannot_be_sealed_ends_the_pair(void **state)
{
	struct switch_fixture b;

	pairs_open(&b);
	connect_first(&b);
	memory.seal_error = -ENOMEM;
	expect_event(&b, 0, 1, 0, SW_PAIR_OWN);
	expect_event(&b, 0, 1, SW_PAIR_OWN, SW_PAIR_END);
	expect_event(&b, 0, 1, SW_PAIR_END, SW_PAIR_NONE);
	/* Client 1 has been told nothing. */
	expect_event(&b, 1, 0, 0, SW_PAIR_NONE);
	pairs_close(&b);
}

static void
wrong_acknowledgements_are_refused(void **state)
{
	struct switch_fixture b;
	struct sw_reply reply;
	uint32_t id;

	pairs_open(&b);
	connect_first(&b);
	id = b.c[1].client->id;
	assert_int_equal(event_next(&b, 0, id, SW_PAIR_OWN, &reply), EINVAL);
	assert_int_equal(event_next(&b, 0, id, SW_PAIR_FAILED, &reply), EINVAL);
	expect_event(&b, 0, 1, 0, SW_PAIR_OWN);
	assert_int_equal(event_next(&b, 0, id, SW_PAIR_PEER, &reply), EINVAL);
	assert_int_equal(event_next(&b, 0, id, SW_PAIR_END, &reply), EINVAL);
	assert_int_equal(event_next(&b, 0, id, 99, &reply), EINVAL);
	assert_int_equal(
		event_next(&b, 0, b.c[2].client->id, SW_PAIR_OWN, &reply), EINVAL);
	assert_int_equal(event_next(&b, 2, id, SW_PAIR_OWN, &reply), EINVAL);
	expect_event(&b, 0, 1, SW_PAIR_OWN, SW_PAIR_NONE);
	assert_int_equal(event_next(&b, 0, id, SW_PAIR_OWN, &reply), EINVAL);
	assert_int_equal(memory.sealed, 1);
	pairs_close(&b);
}

static void
pairs_are_limited(void **state)
{
	struct switch_fixture b;
	struct sw_stats stats;
	uint32_t x;

	pairs_open(&b);
	b.sw->conf.limits.pairs = 1;
	connect_first(&b);
	x = client_take_qpn(&b, &b.c[0]);
	(void)peer_register(&b, 0, x, b.c[2].qpn);
	/* The QPs are connected all the same. */
	assert_int_equal(peer_register(&b, 2, b.c[2].qpn, x).qpn, 1);
	assert_int_equal(memory.created, 1);
	sw_client_stats_read(b.c[2].client, &stats);
	assert_int_equal(stats.pairs_refused, 1);
	b.sw->conf.limits.pairs = 2;
	memory.create_error = -ENOSPC;
	(void)peer_register(&b, 2, b.c[2].qpn, x);
	sw_client_stats_read(b.c[2].client, &stats);
	assert_int_equal(stats.pairs_refused, 2);
	assert_int_equal(b.c[2].client->pair_count, 0);
	pairs_close(&b);
}

/* Also one of which only one client knows yet. */
static void
pairs_end_when_clients_may_have_none(void **state)
{
	struct switch_fixture b;

	pairs_open(&b);
	connect_first(&b);
	expect_event(&b, 0, 1, 0, SW_PAIR_OWN);
	sw_pair_limits_changed(b.sw);
	expect_event(&b, 0, 1, 0, SW_PAIR_OWN);
	b.sw->conf.limits.packets_per_s = 1000;
	sw_pair_limits_changed(b.sw);
	expect_event(&b, 0, 1, 0, SW_PAIR_END);
	expect_event(&b, 1, 0, 0, SW_PAIR_NONE);
	expect_event(&b, 0, 1, SW_PAIR_END, SW_PAIR_NONE);
	b.sw->conf.limits.packets_per_s = 0;
	b.sw->conf.limits.pairs = 0;
	sw_pair_limits_changed(b.sw);
	assert_int_equal(b.c[0].client->pair_count, 0);
	pairs_close(&b);
}

/* No pair, and the client is not told which client has the QP. */
static void
expect_no_pair(struct switch_fixture *b)
{
	assert_int_equal(peer_register(b, 0, b->c[0].qpn, b->c[1].qpn).client_id, 0);
	assert_int_equal(peer_register(b, 1, b->c[1].qpn, b->c[0].qpn).client_id, 0);
	assert_int_equal(memory.created, 0);
}

static void
some_clients_have_no_pairs(void **state)
{
	struct switch_fixture b;
	uint32_t x, y;

	pairs_open(&b);
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
	assert_int_equal(memory.created, 0);
	pairs_close(&b);
}

/* One could keep the other's memory when the pair has ended. */
static void
clients_of_two_users_have_no_pairs(void **state)
{
	struct switch_fixture b;

	fixture_open_users(&b, (const uint32_t[CLIENTS]){1, 2, 1});
	memset(&memory, 0, sizeof(memory));
	b.sw->pair_ops = &pair_ops;
	b.sw->conf.limits.pairs = 2;
	expect_no_pair(&b);
	pairs_close(&b);
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
static void
sent_packets_leave_the_ring_after_receivers_can_see_them(void **state)
{
	struct switch_fixture b;
	struct frame_spec f;

	pairs_open(&b);
	f = frame_spec_valid(&b);
	at_wake.index = &b.c[0].region.daemon->tx_cons;
	at_wake.seen = UINT32_MAX;
	b.sw->wake = wake_note;
	asleep_set(&b.c[1].region.client->rx_asleep);
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_int_equal(at_wake.seen, 0);
	assert_int_equal(*at_wake.index, 1);
	b.sw->wake = client_wake;
	pairs_close(&b);
}

static void
packets_go_through_the_daemon_while_someone_looks(void **state)
{
	const struct sw_dump_filter filter = {.directions = SW_DUMP_IN | SW_DUMP_OUT};
	struct sw_request give = {.type = SW_QPN_GIVE};
	struct switch_fixture b;
	struct sw_reply reply;

	pairs_open(&b);
	give.qpn = b.c[2].qpn;
	client_request(&b, &b.c[2], &give, &reply);
	assert_int_equal(reply.error, 0);
	assert_int_equal(sw_dump_set(b.c[2].client, &filter, false, 0), 0);
	assert_int_equal(b.c[0].region.daemon->pairs_off, 1);
	sw_dump_forget(b.c[2].client);
	assert_int_equal(b.c[0].region.daemon->pairs_off, 0);
	pairs_close(&b);
}

static void
clients_count_what_comes_by_pairs(void **state)
{
	struct switch_fixture b;
	struct sw_stats stats;

	pairs_open(&b);
	b.c[0].region.client->pair_packets = 7;
	b.c[0].region.client->pair_bytes = 700;
	sw_client_stats_read(b.c[0].client, &stats);
	assert_int_equal(stats.pair_packets, 7);
	assert_int_equal(stats.pair_bytes, 700);
	client_detach(&b.c[0]);
	assert_int_equal(b.sw->departed.pair_packets, 7);
	assert_int_equal(b.sw->departed.pair_bytes, 700);
	pairs_close(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_come_in_order),
		cmocka_unit_test(pair_ends_with_its_last_qp),
		cmocka_unit_test(client_that_ends_ends_its_pairs),
		cmocka_unit_test(failed_pair_ends_and_another_one_can_come),
		cmocka_unit_test(memory_that_cannot_be_sealed_ends_the_pair),
		cmocka_unit_test(wrong_acknowledgements_are_refused),
		cmocka_unit_test(pairs_are_limited),
		cmocka_unit_test(pairs_end_when_clients_may_have_none),
		cmocka_unit_test(some_clients_have_no_pairs),
		cmocka_unit_test(clients_of_two_users_have_no_pairs),
		cmocka_unit_test(
			sent_packets_leave_the_ring_after_receivers_can_see_them),
		cmocka_unit_test(packets_go_through_the_daemon_while_someone_looks),
		cmocka_unit_test(clients_count_what_comes_by_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
