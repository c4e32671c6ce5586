/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs of clients: what is left of one that ends, in each state; limits; and clients that dump
 * packets. */
#include "pair_fixture.h"

#include "switch/sw_dump.h"

#define MANY_QPNS 512
#define MANY_QPS 100 /* more than a pass frees */

/* ---- Clients that have a pair ---- */

/* The QP of another host has a QPN that a QP here has, too. */
TEST(remote_peer_has_no_pair)
{
	struct sw_request req = {.type = SW_PEER_SET};
	struct switch_fixture b;
	struct sw_reply reply;

	pair_fixture_open(&b);
	req.qpn = b.c[0].qpn;
	req.dest_qpn = b.c[1].qpn;
	memcpy(req.sgid, b.addr, 16);
	memcpy(req.dgid, b.other, 16);
	client_request(&b, &b.c[0], &req, &reply);
	assert_int_equal(reply.error, 0);
	assert_int_equal(reply.client_id, 0);
	reply = peer_register(&b, 1, b.c[1].qpn, b.c[0].qpn);
	assert_int_equal(reply.client_id, b.c[0].client->id);
	assert_int_equal(reply.qpn, 0);
	assert_int_equal(calls.created, 0);
	pair_fixture_close(&b);
}

TEST(pairs_of_a_client_are_limited)
{
	struct switch_fixture b;
	uint32_t second;

	pair_fixture_open(&b);
	b.sw->conf.limits.pairs = 1;
	clients_connect(&b, 0, 1);
	second = client_take_qpn(&b, &b.c[0]);
	(void)peer_register(&b, 2, b.c[2].qpn, second);
	assert_int_equal(b.c[0].client->stats.pairs_refused, 0);
	(void)peer_register(&b, 0, second, b.c[2].qpn);
	assert_int_equal(b.c[0].client->stats.pairs_refused, 1);
	assert_int_equal(b.c[0].client->pair_count, 1);
	assert_int_equal(b.c[2].client->pair_count, 0);
	/* The limit of the other one counts, too. */
	(void)peer_register(&b, 2, b.c[2].qpn, second);
	assert_int_equal(b.c[2].client->stats.pairs_refused, 1);
	assert_int_equal(calls.created, 1);
	/* A pair counts until the client has unmapped it. */
	assert_int_equal(event_next(&b, 0, 1, SW_PAIR_NONE), SW_PAIR_OWN);
	peer_clear(&b, 0, b.c[0].qpn);
	peer_clear(&b, 1, b.c[1].qpn);
	(void)peer_register(&b, 2, b.c[2].qpn, second);
	assert_int_equal(b.c[2].client->stats.pairs_refused, 2);
	assert_int_equal(event_next(&b, 0, 1, SW_PAIR_NONE), SW_PAIR_END);
	assert_int_equal(event_next(&b, 0, 1, SW_PAIR_END), SW_PAIR_NONE);
	assert_int_equal(b.c[0].client->pair_count, 0);
	(void)peer_register(&b, 2, b.c[2].qpn, second);
	assert_int_equal(calls.created, 2);
	assert_int_equal(event_next(&b, 0, 2, SW_PAIR_NONE), SW_PAIR_OWN);
	pair_fixture_close(&b);
}

/* ---- Events ---- */

/* It has nothing to unmap. */
TEST(client_told_of_nothing_is_not_told_of_the_end)
{
	for (unsigned told = 0; told < 2; told++) {
		struct switch_fixture b;

		pair_fixture_open(&b);
		clients_connect(&b, 0, 1);
		if (told != 0)
			assert_int_equal(event_next(&b, 0, 1, SW_PAIR_NONE), SW_PAIR_OWN);
		peer_clear(&b, 0, b.c[0].qpn);
		peer_clear(&b, 1, b.c[1].qpn);
		assert_int_equal(events_of(&b, 0), 1 + told);
		assert_int_equal(events_of(&b, 1), 1);
		assert_int_equal(event_next(&b, 1, 0, SW_PAIR_NONE), SW_PAIR_NONE);
		assert_int_equal(b.c[1].client->pair_count, 0);
		assert_int_equal(calls.destroyed, 1 - told);
		if (told != 0) {
			/* The client acknowledges an event of a pair that has ended. */
			assert_int_equal(event_next(&b, 0, 1, SW_PAIR_OWN), SW_PAIR_END);
			assert_int_equal(event_next(&b, 0, 1, SW_PAIR_END), SW_PAIR_NONE);
		}
		assert_int_equal(calls.destroyed, 1);
		pair_fixture_close(&b);
	}
}

/* The QPs stay connected. They exchange their packets by the daemon. */
TEST(failed_pair_ends_for_both)
{
	struct switch_fixture b;
	struct frame_spec f;

	pair_fixture_open(&b);
	clients_connect(&b, 0, 1);
	assert_int_equal(event_next(&b, 0, 1, SW_PAIR_NONE), SW_PAIR_OWN);
	assert_int_equal(event_next(&b, 1, 0, SW_PAIR_NONE), SW_PAIR_OWN);
	assert_int_equal(event_next(&b, 1, 0, SW_PAIR_FAILED), SW_PAIR_END);
	assert_int_equal(events_of(&b, 0), 2);
	assert_int_equal(event_next(&b, 1, 0, SW_PAIR_FAILED), SW_PAIR_END); /* twice */
	assert_int_equal(events_of(&b, 0), 2);
	assert_int_equal(event_next(&b, 1, 0, SW_PAIR_END), SW_PAIR_NONE);
	assert_int_equal(event_next(&b, 0, 1, SW_PAIR_NONE), SW_PAIR_END);
	assert_int_equal(event_next(&b, 0, 1, SW_PAIR_END), SW_PAIR_NONE);
	assert_int_equal(calls.checked[0] + calls.checked[1], 0);
	f = frame_spec_valid(&b);
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_true(client_received(&b.c[1], &f));
	/* The QPs keep the ended pair, until they are connected anew. */
	assert_int_equal(calls.destroyed, 0);
	(void)peer_register(&b, 0, b.c[0].qpn, b.c[1].qpn);
	assert_int_equal(calls.created, 2);
	assert_int_equal(calls.destroyed, 1);
	assert_int_equal(event_next(&b, 1, 0, SW_PAIR_NONE), SW_PAIR_OWN);
	pair_fixture_close(&b);
}

/* A new pair of the two begins when the old one has ended, also before both know that. */
TEST(pair_follows_the_one_before)
{
	struct switch_fixture b;

	pair_fixture_open(&b);
	clients_connect(&b, 0, 1);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(event_next(&b, i, 1 - i, SW_PAIR_NONE), SW_PAIR_OWN);
		(void)event_next(&b, i, 1 - i, SW_PAIR_OWN);
	}
	peer_clear(&b, 0, b.c[0].qpn);
	peer_clear(&b, 1, b.c[1].qpn);
	clients_connect(&b, 0, 1);
	assert_int_equal(calls.created, 2);
	assert_int_equal(b.c[0].client->pair_count, 2);
	assert_int_equal(event_next(&b, 0, 1, SW_PAIR_NONE), SW_PAIR_END);
	assert_int_equal(event_next(&b, 0, 1, SW_PAIR_END), SW_PAIR_OWN);
	assert_int_equal(event_next(&b, 0, 1, SW_PAIR_OWN), SW_PAIR_NONE);
	assert_int_equal(calls.destroyed, 0);
	assert_int_equal(event_next(&b, 1, 0, SW_PAIR_PEER), SW_PAIR_END);
	assert_int_equal(event_next(&b, 1, 0, SW_PAIR_END), SW_PAIR_OWN);
	assert_int_equal(calls.destroyed, 1);
	assert_int_equal(event_next(&b, 1, 0, SW_PAIR_OWN), SW_PAIR_PEER);
	pair_fixture_close(&b);
}

/* ---- QPs ---- */

enum leaving {
	BY_DESTROY,
	BY_REMOTE_PEER,
	BY_OTHER_PEER,
	BY_ADDRESS,
	LEAVINGS,
};

static void
qp_leave(struct switch_fixture *b, unsigned client, enum leaving how)
{
	struct sw_request req = {.type = SW_QPN_GIVE, .qpn = b->c[client].qpn};
	struct net_conf net = b->sw->conf.net;
	struct sw_reply reply;

	switch (how) {
	case BY_DESTROY:
		client_request(b, &b->c[client], &req, &reply);
		assert_int_equal(reply.error, 0);
		break;
	case BY_REMOTE_PEER:
		assert_int_equal(client_set_peer(b, &b->c[client], b->c[client].qpn,
					 b->other, 5 + client),
			0);
		break;
	case BY_OTHER_PEER:
		(void)peer_register(b, client, b->c[client].qpn, b->c[2].qpn);
		break;
	default:
		memcpy(net.addr[0].gid, b->other, 16);
		sw_set_net(b->sw, &net);
		break;
	}
}

TEST(pair_ends_with_its_last_qp)
{
	for (unsigned how = 0; how < LEAVINGS; how++) {
		struct switch_fixture b;

		pair_fixture_open(&b);
		clients_connect(&b, 0, 1);
		assert_int_equal(event_next(&b, 0, 1, SW_PAIR_NONE), SW_PAIR_OWN);
		qp_leave(&b, 0, how);
		if (how != BY_ADDRESS) /* it has not ended */
			assert_int_equal(event_reply(&b, 0, 0, 0).error, EALREADY);
		qp_leave(&b, 1, how);
		assert_int_equal(event_next(&b, 0, 1, SW_PAIR_NONE), SW_PAIR_END);
		assert_int_equal(event_next(&b, 0, 1, SW_PAIR_END), SW_PAIR_NONE);
		assert_int_equal(calls.created, 1);
		assert_int_equal(calls.destroyed, 1);
		pair_fixture_close(&b);
	}
}

/* A QP of its QPN is another one. */
TEST(next_qp_of_a_qpn_has_no_pair)
{
	struct sw_request give = {.type = SW_QPN_GIVE};
	struct switch_fixture b;
	struct sw_reply reply;
	uint32_t qpn;

	pair_fixture_open(&b);
	qpn = give.qpn = b.c[1].qpn;
	client_request(&b, &b.c[1], &give, &reply);
	assert_int_equal(reply.error, 0);
	b.sw->conf.limits.qps = QPN_COUNT;
	b.sw->qpns.qps[qpn & b.sw->qpns.mask].qpn = qpn - QPN_COUNT;
	while (client_take_qpn(&b, &b.c[2]) != qpn)
		continue;
	/* Client 0 has registered the one before. */
	reply = peer_register(&b, 2, qpn, b.c[0].qpn);
	assert_int_equal(reply.client_id, b.c[0].client->id);
	assert_int_equal(reply.qpn, 0);
	assert_int_equal(calls.created, 0);
	pair_fixture_close(&b);
}

/* ---- Clients ---- */

static void
event_step(struct switch_fixture *b, unsigned client, uint32_t done, uint32_t next)
{
	assert_int_equal(event_next(b, client, 1 - client, done), next);
}

/* The life of a pair of clients 0 and 1. */
static void
step_make(struct switch_fixture *b, unsigned step)
{
	static const struct {
		unsigned client;
		uint32_t done, next;
	} rows[] = {
		{0, SW_PAIR_NONE, SW_PAIR_OWN},
		{0, SW_PAIR_OWN, SW_PAIR_NONE},
		{1, SW_PAIR_NONE, SW_PAIR_OWN},
		{1, SW_PAIR_OWN, SW_PAIR_PEER},
		{0, SW_PAIR_NONE, SW_PAIR_PEER},
		{0, SW_PAIR_PEER, SW_PAIR_NONE},
		{1, SW_PAIR_PEER, SW_PAIR_NONE},
		{0, SW_PAIR_FAILED, SW_PAIR_END},
		{0, SW_PAIR_END, SW_PAIR_NONE},
		{1, SW_PAIR_NONE, SW_PAIR_END},
		{1, SW_PAIR_END, SW_PAIR_NONE},
	};

	event_step(b, rows[step].client, rows[step].done, rows[step].next);
}

#define STEPS 11
#define STEP_TOLD_1 2 /* client 1 has been told */
#define STEP_LEFT_0 8
#define STEP_LEFT_1 10

/* Returns whether the client knows the pair after this number of steps. */
static bool
knows_pair(unsigned client, unsigned steps)
{
	if (client == 0)
		return steps > 0 && steps <= STEP_LEFT_0;
	return steps > STEP_TOLD_1 && steps <= STEP_LEFT_1;
}

TEST(client_may_end_at_any_time)
{
	for (unsigned steps = 0; steps <= STEPS; steps++) {
		for (unsigned dead = 0; dead < 2; dead++) {
			struct switch_fixture b;
			struct sw_reply reply;
			unsigned alive = 1 - dead, woken;
			uint32_t id;
			bool knows = knows_pair(alive, steps);

			pair_fixture_open(&b);
			clients_connect(&b, 0, 1);
			for (unsigned i = 0; i < steps; i++)
				step_make(&b, i);
			id = b.c[dead].client->id;
			woken = b.c[dead].woken;
			client_detach(&b.c[dead]);
			assert_int_equal(b.c[dead].woken, woken);
			reply = event_reply(&b, alive, 0, SW_PAIR_NONE);
			assert_int_equal(reply.error, 0);
			assert_int_equal(reply.qpn, knows ? SW_PAIR_END : SW_PAIR_NONE);
			if (knows) {
				assert_int_equal(reply.client_id, id);
				reply = event_reply(&b, alive, id, SW_PAIR_END);
				assert_int_equal(reply.error, 0);
				assert_int_equal(reply.qpn, SW_PAIR_NONE);
			}
			assert_int_equal(b.c[alive].client->pair_count, 0);
			assert_int_equal(calls.left[0], 1);
			assert_int_equal(calls.left[1], 1);
			peer_clear(&b, alive, b.c[alive].qpn);
			assert_int_equal(calls.destroyed, 1);
			pair_fixture_close(&b);
		}
	}
}

/* Its QPs are freed some at a time. Its memory is unmapped. */
TEST(ended_client_has_no_new_pair)
{
	struct switch_fixture b;
	struct sw_conf conf;
	struct sw_reply reply;

	pair_fixture_open(&b);
	for (unsigned i = 0; i < CLIENTS; i++)
		client_detach(&b.c[i]);
	sw_ended_free(b.sw);
	conf = b.sw->conf;
	sw_destroy(b.sw);
	conf.qpn_count = MANY_QPNS;
	conf.limits.qps = MANY_QPNS;
	assert_int_equal(sw_create(&conf, client_wake, &b.sw), 0);
	b.sw->pair_ops = &counting_ops;
	client_attach(&b, &b.c[0]);
	client_attach(&b, &b.c[1]);
	for (unsigned i = 1; i < MANY_QPS; i++)
		client_take_qpn(&b, &b.c[0]);
	clients_connect(&b, 0, 1);
	assert_int_equal(calls.created, 1);
	b.c[0].woken = 0;
	client_detach(&b.c[0]);
	assert_true(qpns_free_count(&b.sw->qpns) < MANY_QPNS - 2);
	reply = peer_register(&b, 1, b.c[1].qpn, b.c[0].qpn);
	assert_int_equal(reply.client_id, 0);
	assert_int_equal(reply.qpn, 0);
	assert_int_equal(calls.created, 1);
	assert_int_equal(b.c[0].woken, 0);
	assert_int_equal(b.c[1].client->pair_count, 0);
	client_detach(&b.c[1]);
	sw_ended_free(b.sw);
	assert_int_equal(qpns_free_count(&b.sw->qpns), MANY_QPNS);
	assert_int_equal(calls.destroyed, 1);
	sw_destroy(b.sw);
}

/* Each pair has its own events. */
TEST(client_with_two_partners)
{
	struct switch_fixture b;
	uint32_t second;

	pair_fixture_open(&b);
	clients_connect(&b, 0, 1);
	second = client_take_qpn(&b, &b.c[0]);
	(void)peer_register(&b, 0, second, b.c[2].qpn);
	(void)peer_register(&b, 2, b.c[2].qpn, second);
	assert_int_equal(calls.created, 2);
	assert_int_equal(events_of(&b, 0), 2);
	assert_int_equal(event_next(&b, 0, 1, SW_PAIR_NONE), SW_PAIR_OWN);
	assert_int_equal(event_next(&b, 2, 0, SW_PAIR_NONE), SW_PAIR_OWN);
	assert_int_equal(event_next(&b, 2, 0, SW_PAIR_OWN), SW_PAIR_NONE);
	client_detach(&b.c[1]);
	assert_int_equal(event_reply(&b, 0, 0, SW_PAIR_NONE).qpn, SW_PAIR_END);
	peer_clear(&b, 0, b.c[0].qpn);
	assert_int_equal(b.c[0].client->pair_count, 2);
	client_detach(&b.c[2]);
	client_detach(&b.c[0]);
	pair_fixture_close(&b);
}

/* ---- Dumps ---- */

static bool
is_off(const struct switch_fixture *b, unsigned client)
{
	return b->c[client].region.daemon->pairs_off != 0;
}

/* Packets of a pair are not seen by the daemon, which copies packets for dumps. */
TEST(pairs_are_off_during_a_dump)
{
	const struct sw_dump_filter any = {.directions = SW_DUMP_IN | SW_DUMP_OUT};

	for (unsigned all = 0; all < 2; all++) {
		struct switch_fixture b;

		pair_fixture_open_users(&b, (const uint32_t[CLIENTS]){0, 7, 0});
		assert_false(is_off(&b, 0) || is_off(&b, 1) || is_off(&b, 2));
		qp_leave(&b, 2, BY_DESTROY); /* one with QPs cannot look */
		assert_int_equal(sw_dump_set(b.c[2].client, &any, all != 0, 0), 0);
		assert_true(is_off(&b, 0));
		assert_true(is_off(&b, 2));
		assert_int_equal(is_off(&b, 1), all != 0);
		/* One that comes later, too. */
		client_detach(&b.c[0]);
		client_detach(&b.c[1]);
		sw_ended_free(b.sw);
		client_attach(&b, &b.c[0]);
		client_attach(&b, &b.c[1]);
		assert_true(is_off(&b, 0));
		assert_int_equal(is_off(&b, 1), all != 0);
		client_detach(&b.c[2]);
		assert_false(is_off(&b, 0) || is_off(&b, 1));
		pair_fixture_close(&b);
	}
}
