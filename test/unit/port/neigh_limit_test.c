/* SPDX-License-Identifier: BSD-3-Clause */
/* Users and hosts who fill the neighbour table: what the others notice, what is sent
 * for them, and for how long. */
#include <errno.h>

#include "port_fixture.h"

#define STEP (100 * NS_PER_MS)
#define MINUTE (60 * NS_PER_SEC)

static int
resolve(struct net *net, struct net_user *user, uint32_t n, uint64_t now)
{
	uint8_t mac[6];

	return net_resolve_for(net, user, host_gid(n), mac, now);
}

static int
answer(struct net *net, uint32_t n, uint64_t now)
{
	uint8_t mac[6];

	return net_resolve_answer(net, host_gid(n), mac, now);
}

/* Counts the frames that are sent now. */
static unsigned
sent_now(struct net *net, uint64_t now)
{
	unsigned n = 0;
	struct pkt out;

	for (; (out = net_send(net, now)).data != NULL; n++)
		free(out.data);
	return n;
}

/* Advances the time. Returns how many frames are sent. */
static unsigned
sent_until(struct net *net, uint64_t *now, uint64_t end)
{
	unsigned n = 0;

	for (; *now < end; *now += STEP)
		n += sent_now(net, *now);
	return n;
}

/* A client registers thousands of peers that do not exist, and ends. */
TEST(requests_end_with_their_user)
{
	struct net *net = net_of(1, 0);
	struct net_user user;
	uint64_t now = T0;

	net_user_init(&user, false);
	for (uint32_t i = 0; i < 4096; i++)
		assert_int_equal(resolve(net, &user, i, now),
			i < NET_USER_UNRESOLVED ? -EAGAIN : -EDQUOT);
	assert_int_equal(neigh_count(net, now).all, NET_USER_UNRESOLVED);
	assert_in_range(
		sent_until(net, &now, T0 + NS_PER_SEC / 2), 1, 3 * NET_USER_UNRESOLVED);
	net_user_fini(net, &user);
	sent_until(net, &now, T0 + 2 * NS_PER_SEC);
	assert_int_equal(sent_until(net, &now, T0 + MINUTE), 0);
	assert_int_equal(neigh_count(net, now).all, 0);
	assert_int_equal(net_deadline(net), TIME_NEVER);
	net_destroy(net);
}

/* It comes again and again, and registers others. */
TEST(users_that_end_leave_few_entries)
{
	struct net *net = net_of(1, 0);
	struct net_user user;

	net_user_init(&user, false);
	for (uint32_t i = 0; i < 32 * NET_USER_UNRESOLVED; i++) {
		assert_int_equal(resolve(net, &user, i, T0), -EAGAIN);
		if (i % NET_USER_UNRESOLVED == NET_USER_UNRESOLVED - 1)
			net_user_fini(net, &user);
	}
	assert_int_equal(neigh_count(net, T0).all, 2 * NET_USER_UNRESOLVED);
	assert_int_equal(net->abandoned.count, 2 * NET_USER_UNRESOLVED);
	/* The oldest are gone. */
	assert_null(neigh_find(net, host_gid(30 * NET_USER_UNRESOLVED - 1)));
	assert_non_null(neigh_find(net, host_gid(30 * NET_USER_UNRESOLVED)));
	assert_int_equal(resolve(net, NULL, 50000, T0), -EAGAIN);
	assert_int_equal(neigh_count(net, T0).all, 2 * NET_USER_UNRESOLVED - 1);
	net_destroy(net);
}

/* The table is full: entries of users that have ended make room before any other. */
TEST(entries_of_ended_users_are_replaced_first)
{
	struct net *net = net_of(1, 0);
	uint64_t now = T0;
	struct net_user user;
	uint32_t before;

	net_user_init(&user, false);
	assert_int_equal(resolve(net, &user, 50000, now), -EAGAIN);
	sent_until(net, &now, T0 + 3 * NS_PER_SEC);
	assert_int_equal(neigh_count(net, now).failed, 1);
	assert_int_equal(resolve(net, &user, 50001, now), -EAGAIN);
	neigh_seen(net, host_gid(50002), host_mac(2), true, now);
	for (uint32_t i = 0; i < NET_NEIGHS - 3; i++) {
		assert_int_equal(resolve(net, NULL, i, now), -EAGAIN);
		neigh_seen(net, host_gid(i), host_mac(i), false, now);
	}
	net_user_fini(net, &user);
	assert_int_equal(net->abandoned.count, 2);
	before = net_generation(net);
	assert_int_equal(resolve(net, NULL, 60000, now), -EAGAIN);
	assert_int_not_equal(net_generation(net), before);
	assert_int_equal(answer(net, 60001, now), -EAGAIN);
	assert_null(neigh_find(net, host_gid(50000)));
	assert_null(neigh_find(net, host_gid(50001)));
	assert_non_null(neigh_find(net, host_gid(50002)));
	assert_int_equal(net->abandoned.count, 0);
	net_destroy(net);
}

/* A neighbour whose user has ended is charged to the next one who wants it: two users cannot leave
 * entries to no account. */
TEST(abandoned_neighbours_are_charged_again)
{
	struct net *net = net_of(1, 0);
	struct net_user a, b, c;
	uint64_t now = T0;

	net_user_init(&a, false);
	net_user_init(&b, false);
	net_user_init(&c, false);
	assert_int_equal(resolve(net, &a, 1, now), -EAGAIN);
	assert_int_equal(resolve(net, &a, 2, now), -EAGAIN);
	for (uint32_t i = 0; i < NET_USER_UNRESOLVED; i++)
		assert_int_equal(resolve(net, &b, 1000 + i, now), -EAGAIN);
	net_user_fini(net, &a);
	assert_int_equal(resolve(net, &b, 1, now), -EDQUOT);
	assert_int_equal(resolve(net, &c, 1, now), -EAGAIN);
	assert_int_equal(c.unresolved.count, 1);
	assert_int_equal(net->abandoned.count, 1);
	/* An answer ends it. */
	neigh_seen(net, host_gid(2), host_mac(2), false, now);
	assert_int_equal(net->abandoned.count, 0);
	assert_int_equal(resolve(net, &b, 2, now), 0);
	net_user_fini(net, &b);
	sent_until(net, &now, T0 + 3 * NS_PER_SEC);
	assert_int_equal(net->abandoned.count, 0);
	/* One that has failed is asked at once, but once a second at most. */
	assert_int_equal(resolve(net, &c, 1, now), -EHOSTUNREACH);
	sent_until(net, &now, T0 + 6 * NS_PER_SEC);
	net_user_fini(net, &c);
	now = neigh_find(net, host_gid(1))->asked_ns + NS_PER_SEC / 2;
	assert_int_equal(resolve(net, &a, 1, now), -EHOSTUNREACH);
	assert_int_equal(sent_now(net, now), 0);
	assert_int_equal(a.unresolved.count, 0);
	now += NS_PER_SEC / 2;
	assert_int_equal(resolve(net, &a, 1, now), -EHOSTUNREACH);
	assert_int_equal(sent_now(net, now), 1);
	assert_int_equal(a.unresolved.count, 1);
	net_user_fini(net, &a);
	net_destroy(net);
}

/* The same client goes on, without another call: its neighbours are forgotten. */
TEST(unused_requests_end)
{
	struct net *net = net_of(1, 0);
	struct net_user user;
	uint64_t now = T0;

	net_user_init(&user, false);
	for (uint32_t i = 0; i < NET_USER_UNRESOLVED; i++)
		assert_int_equal(resolve(net, &user, i, now), -EAGAIN);
	/* 5 requests in the first second, and after 1, 2, 4, 8 s. */
	assert_in_range(sent_until(net, &now, T0 + MINUTE), 1, 9 * NET_USER_UNRESOLVED);
	assert_int_equal(neigh_count(net, now).all, 0);
	assert_int_equal(net_deadline(net), TIME_NEVER);
	assert_int_equal(user.unresolved.count, 0);
	assert_int_equal(resolve(net, &user, 0, now), -EAGAIN);
	net_user_fini(net, &user);
	net_destroy(net);
}

/* A client that tries unreachable peers for ever: less than one request in 60 s each. */
TEST(lasting_requests_become_rare)
{
	struct net *net = net_of(1, 0);
	struct net_user user;
	uint64_t now = T0;
	unsigned n;

	net_user_init(&user, false);
	for (unsigned i = 0; i < 40; i++) {
		for (uint32_t k = 0; k < 16; k++)
			(void)resolve(net, &user, k, now);
		n = sent_until(net, &now, now + 10 * NS_PER_SEC);
		if (i >= 12)
			assert_in_range(n, 0, 16);
	}
	assert_int_equal(neigh_count(net, now).failed, 16);
	net_user_fini(net, &user);
	net_destroy(net);
}

/* The limit of one user leaves others and the port itself alone. A neighbour that answers
 * no longer counts. */
TEST(each_user_has_its_own_limit)
{
	struct net *net = net_of(1, 0);
	struct net_user a, b;

	net_user_init(&a, false);
	net_user_init(&b, false);
	for (uint32_t i = 0; i < NET_USER_UNRESOLVED; i++)
		assert_int_equal(resolve(net, &a, i, T0), -EAGAIN);
	assert_int_equal(resolve(net, &a, 1000, T0), -EDQUOT);
	/* An entry that exists costs nothing. */
	assert_int_equal(resolve(net, &a, 7, T0), -EAGAIN);
	assert_int_equal(resolve(net, &b, 1000, T0), -EAGAIN);
	assert_int_equal(resolve(net, NULL, 1001, T0), -EAGAIN);
	assert_int_equal(a.unresolved.count, NET_USER_UNRESOLVED);
	neigh_seen(net, host_gid(7), host_mac(7), false, T0);
	assert_int_equal(resolve(net, &a, 2000, T0), -EAGAIN);
	assert_int_equal(resolve(net, &a, 2001, T0), -EDQUOT);
	/* A passive entry is not a way around the limit. */
	assert_int_equal(answer(net, 3000, T0), -EAGAIN);
	net_hint(net, host_gid(3001), host_mac(3001), T0);
	assert_int_equal(resolve(net, &a, 3000, T0), -EDQUOT);
	assert_int_equal(resolve(net, &a, 3001, T0), -EDQUOT);
	net_user_fini(net, &a);
	net_user_fini(net, &b);
	assert_int_equal(b.unresolved.count, 0);
	net_destroy(net);
}

TEST(recycling_user_drops_its_oldest)
{
	struct net *net = net_of(1, 0);
	struct net_user user;

	net_user_init(&user, true);
	for (uint32_t i = 0; i < 4096; i++)
		assert_int_equal(resolve(net, &user, i, T0), -EAGAIN);
	assert_int_equal(neigh_count(net, T0).all, NET_USER_UNRESOLVED);
	assert_null(neigh_find(net, host_gid(4096 - NET_USER_UNRESOLVED - 1)));
	assert_non_null(neigh_find(net, host_gid(4096 - NET_USER_UNRESOLVED)));
	net_user_fini(net, &user);
	net_destroy(net);
}

/* A user with an accomplice who answers for every address: it replaces its own
 * neighbours, and leaves a part of the table to others. */
TEST(resolved_neighbours_are_limited)
{
	struct net *net = net_of(1, 0);
	struct net_user a, b;
	uint64_t now = T0;

	net_user_init(&a, false);
	net_user_init(&b, false);
	for (uint32_t i = 0; i < NET_USER_NEIGHS(NET_NEIGHS); i++) {
		assert_int_equal(resolve(net, &a, i, now), -EAGAIN);
		neigh_seen(net, host_gid(i), host_mac(i), false, now);
	}
	assert_int_equal(resolve(net, &a, 10000, now), -EDQUOT);
	for (uint32_t i = 0; i < NET_NEIGHS - NET_USER_NEIGHS(NET_NEIGHS); i++) {
		assert_int_equal(resolve(net, &b, 20000 + i, now), -EAGAIN);
		neigh_seen(net, host_gid(20000 + i), host_mac(i), false, now);
	}
	/* The table is full, but only of entries that are in use. */
	assert_int_equal(resolve(net, NULL, 50000, now), -ENOSPC);
	now += NEIGH_IDLE_NS + NS_PER_SEC;
	for (uint32_t i = 1; i < NET_USER_NEIGHS(NET_NEIGHS); i++)
		assert_int_equal(resolve(net, &a, i, now), 0);
	assert_int_equal(resolve(net, &a, 10000, now), -EAGAIN);
	assert_null(neigh_find(net, host_gid(0)));
	assert_int_equal(resolve(net, &a, 10001, now), -EDQUOT);
	assert_int_equal(
		a.resolved.count + a.unresolved.count, NET_USER_NEIGHS(NET_NEIGHS));
	assert_int_equal(b.resolved.count, NET_NEIGHS - NET_USER_NEIGHS(NET_NEIGHS));
	net_user_fini(net, &a);
	net_user_fini(net, &b);
	net_destroy(net);
}

/* However many neighbours are wanted, requests leave at a limited rate. A neighbour that
 * is wanted for the first time does not wait behind the retries of others. */
TEST(requests_are_limited)
{
	struct net *net = net_of(1, 0);
	uint64_t now = T0;
	struct pkt out;

	for (uint32_t i = 0; i < 4000; i++)
		assert_int_equal(resolve(net, NULL, i, now), -EAGAIN);
	assert_int_equal(sent_now(net, now), NEIGH_RATE_BURST);
	/* There is nothing to do before the next one may leave. */
	assert_in_range(net_deadline(net), now + 1, now + NEIGH_RATE_NS);
	while (now < T0 + 10 * NS_PER_SEC)
		assert_in_range(sent_until(net, &now, now + NS_PER_SEC), 0,
			(NS_PER_SEC + STEP) / NEIGH_RATE_NS);
	assert_int_equal(resolve(net, NULL, 5000, now), -EAGAIN);
	now += NEIGH_RATE_NS;
	out = net_send(net, now);
	assert_memory_equal(out.data + 62, host_gid(5000), 16);
	free(out.data);
	net_destroy(net);
}

/* A host sends requests to connect in the names of thousands of others, and each is
 * answered. */
TEST(answers_cost_little)
{
	struct net *net = net_of(1, 0);
	uint64_t now = T0;

	for (uint32_t i = 0; i < 200; i++) {
		assert_int_equal(resolve(net, NULL, 60000 + i, now), -EAGAIN);
		neigh_seen(net, host_gid(60000 + i), host_mac(i), false, now);
	}
	sent_now(net, now);
	for (uint32_t i = 0; i < 4096; i++)
		assert_int_equal(answer(net, i, now), -EAGAIN);
	assert_int_equal(neigh_count(net, now).all, 200 + NET_MAX_PASSIVE);
	assert_int_equal(sent_now(net, now), NEIGH_PASSIVE_RATE_BURST);
	assert_in_range(net_deadline(net), now + 1, now + NEIGH_PASSIVE_RATE_NS);
	/* A user's request does not wait behind those. */
	assert_int_equal(resolve(net, NULL, 50000, now), -EAGAIN);
	assert_int_equal(sent_now(net, now), 1);
	neigh_seen(net, host_gid(50000), host_mac(0), false, now);
	assert_in_range(sent_until(net, &now, T0 + NS_PER_SEC), 1,
		NS_PER_SEC / NEIGH_PASSIVE_RATE_NS + 1);
	/* They are asked five times at most, and forgotten. */
	sent_until(net, &now, T0 + MINUTE);
	assert_int_equal(sent_until(net, &now, T0 + 2 * MINUTE), 0);
	assert_int_equal(neigh_count(net, now).all, 201);
	assert_int_equal(net_deadline(net), TIME_NEVER);
	net_destroy(net);
}

/* The table is full of neighbours in use: a host that only sends gets no place in it. */
TEST(passive_neighbours_replace_no_other)
{
	struct net *net = net_of(1, 0);

	for (uint32_t i = 0; i < NET_NEIGHS; i++) {
		assert_int_equal(resolve(net, NULL, i, T0), -EAGAIN);
		neigh_seen(net, host_gid(i), host_mac(i), false, T0);
	}
	assert_int_equal(answer(net, 50000, T0 + MINUTE), -ENOSPC);
	net_hint(net, host_gid(50001), host_mac(1), T0 + MINUTE);
	neigh_seen(net, host_gid(50002), host_mac(2), true, T0 + MINUTE);
	assert_int_equal(neigh_count(net, T0).reachable, NET_NEIGHS);
	assert_int_equal(answer(net, 5, T0), 0);
	net_destroy(net);
}

/* The MAC that a packet came from serves answers, without a request. It does not serve
 * users: the packet may come from a router, with a false source address. */
TEST(hints_serve_answers_only)
{
	struct net *net = net_of(1, 0);
	uint8_t mac[6];
	uint32_t before;

	net_hint(net, host_gid(1), host_mac(1), T0);
	assert_int_equal(net_resolve_answer(net, host_gid(1), mac, T0), 0);
	assert_memory_equal(mac, host_mac(1), 6);
	assert_int_equal(net_deadline(net), TIME_NEVER);
	assert_int_equal(net_resolve(net, host_gid(1), mac, T0), -EAGAIN);
	assert_int_equal(sent_now(net, T0), 1);
	/* Nothing that ARP or ND has said is replaced by a hint. */
	neigh_seen(net, host_gid(1), host_mac(2), false, T0);
	net_hint(net, host_gid(1), host_mac(3), T0 + MINUTE);
	assert_int_equal(net_resolve(net, host_gid(1), mac, T0 + MINUTE), 0);
	assert_memory_equal(mac, host_mac(2), 6);
	neigh_seen(net, host_gid(4), host_mac(4), true, T0);
	net_hint(net, host_gid(4), host_mac(5), T0 + NS_PER_SEC);
	assert_int_equal(net_resolve_answer(net, host_gid(4), mac, T0), 0);
	assert_memory_equal(mac, host_mac(4), 6);
	/* Answers that wait for a request are sent. */
	assert_int_equal(answer(net, 6, T0), -EAGAIN);
	before = net_generation(net);
	net_hint(net, host_gid(6), host_mac(6), T0);
	assert_int_not_equal(net_generation(net), before);
	assert_int_equal(answer(net, 6, T0), 0);
	/* Of other networks, of this host, from a group's MAC. */
	before = neigh_count(net, T0).all;
	net_hint(net, gid_of("203.0.113.1"), host_mac(1), T0);
	net_hint(net, gid_of("2001:db8::1"), host_mac(1), T0);
	net_hint(net, gid_of("192.0.2.255"), host_mac(1), T0);
	net_hint(net, host_gid(9), (uint8_t[]){3, 0, 0, 0, 0, 1}, T0);
	net_hint(net, host_gid(9), net_conf(net)->mac, T0);
	assert_int_equal(neigh_count(net, T0).all, before);
	net_destroy(net);
}

/* A user who keeps an address unreachable, before its host is there, does not make others
 * wait for the next request. */
TEST(failed_neighbours_are_asked_for_another_user)
{
	struct net *net = net_of(1, 0);
	struct net_user a, b;
	uint64_t now = T0;

	net_user_init(&a, false);
	net_user_init(&b, false);
	for (unsigned i = 0; i < 30; i++) {
		(void)resolve(net, &a, 1, now);
		sent_until(net, &now, now + 10 * NS_PER_SEC);
	}
	assert_int_equal(resolve(net, &a, 1, now), -EHOSTUNREACH);
	assert_int_equal(sent_now(net, now), 0);
	assert_int_equal(resolve(net, &b, 1, now), -EHOSTUNREACH);
	assert_int_equal(sent_now(net, now), 1);
	/* Once a second at most. */
	assert_int_equal(resolve(net, &a, 1, now + NS_PER_SEC / 2), -EHOSTUNREACH);
	assert_int_equal(sent_now(net, now + NS_PER_SEC / 2), 0);
	net_user_fini(net, &a);
	net_user_fini(net, &b);
	net_destroy(net);
}

/* After the port's link was down, an unreachable neighbour is asked at once. */
TEST(failed_neighbours_are_asked_when_the_link_returns)
{
	struct net *net = net_of(1, 0);
	uint64_t now = T0;

	for (unsigned i = 0; i < 20; i++) {
		(void)resolve(net, NULL, 1, now);
		sent_until(net, &now, now + 10 * NS_PER_SEC);
	}
	assert_int_equal(sent_now(net, now), 0);
	net_announce(net);
	/* Three addresses, a solicited-node group, and the request. */
	assert_int_equal(sent_now(net, now), 5);
	net_destroy(net);
}

/* Nothing is requested by a lookup. */
TEST(lookup_requests_nothing)
{
	struct net *net = net_of(1, 0);
	uint8_t mac[6];

	assert_int_equal(net_lookup(net, host_gid(1), mac), -EHOSTUNREACH);
	assert_int_equal(neigh_count(net, T0).all, 0);
	assert_int_equal(net_deadline(net), TIME_NEVER);
	assert_int_equal(resolve(net, NULL, 1, T0), -EAGAIN);
	assert_int_equal(net_lookup(net, host_gid(1), mac), -EAGAIN);
	neigh_seen(net, host_gid(1), host_mac(1), false, T0);
	assert_int_equal(net_lookup(net, host_gid(1), mac), 0);
	assert_memory_equal(mac, host_mac(1), 6);
	assert_int_equal(net_lookup(net, gid_of("203.0.113.1"), mac), -EHOSTUNREACH);
	assert_int_equal(net_lookup(net, gid_of("192.0.2.1"), mac), 0);
	net_destroy(net);
}
