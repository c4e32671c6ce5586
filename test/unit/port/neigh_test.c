/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "port_fixture.h"
#include "../rand.h"

#define LATE (WHEEL_TICK_NS + 1) /* a timer fires at most this much late */

static int
resolve(struct net *net, const char *dst, uint64_t now)
{
	uint8_t mac[6];

	return net_resolve(net, gid_of(dst), mac, now);
}

/* Whether net sends a frame now; asserts that it sends no second one. */
static bool
sends_one(struct net *net, uint64_t now)
{
	struct pkt first = net_send(net, now), second = net_send(net, now);

	assert_null(second.data);
	free(first.data);
	return first.data != NULL;
}

/* Two hosts: what a sends now is delivered to b, and b's reply to a. */
static unsigned
exchange(struct net *a, struct net *b, uint64_t now)
{
	unsigned n = 0;

	for (;;) {
		struct pkt out = net_send(a, now), back;

		if (out.data == NULL)
			return n;
		n++;
		back = net_ask(b, &out, now);
		if (back.data != NULL) {
			struct pkt none = net_ask(a, &back, now);

			assert_null(none.data);
		}
		free(back.data);
		free(out.data);
	}
}

TEST(hosts_find_each_other)
{
	static const char *const names[] = {
		"192.0.2.2", "2001:db8::2", "fe80::ff:fe00:2"};

	for (uint16_t vlan = 0; vlan <= 100; vlan += 100) {
		struct net *a = net_of(1, vlan), *b = net_of(2, vlan);

		for (size_t i = 0; i < RTE_DIM(names); i++) {
			uint32_t before = net_generation(a);
			uint8_t mac[6];

			assert_int_equal(resolve(a, names[i], T0), -EAGAIN);
			assert_int_equal(net_generation(a), before);
			assert_true(net_deadline(a) <= T0);
			assert_int_equal(exchange(a, b, T0), 1);
			assert_int_not_equal(net_generation(a), before);
			assert_int_equal(net_resolve(a, gid_of(names[i]), mac, T0), 0);
			assert_true(mac_is(mac, 2));
		}
		/* b learned a from its request: nothing is sent. */
		assert_int_equal(resolve(b, "192.0.2.1", T0), 0);
		assert_int_equal(exchange(b, a, T0), 0);
		net_destroy(a);
		net_destroy(b);
	}
}

TEST(destinations_without_resolution)
{
	struct net *net = net_of(1, 0);
	uint8_t mac[6];

	assert_int_equal(net_resolve(net, gid_of("192.0.2.1"), mac, T0), 0);
	assert_true(mac_is(mac, 1));
	assert_int_equal(net_resolve(net, gid_of("239.1.2.3"), mac, T0), 0);
	assert_memory_equal(mac, ((uint8_t[]){0x01, 0, 0x5e, 1, 2, 3}), 6);
	assert_int_equal(net_resolve(net, gid_of("ff0e::1"), mac, T0), 0);
	assert_memory_equal(mac, ((uint8_t[]){0x33, 0x33, 0, 0, 0, 1}), 6);
	assert_int_equal(resolve(net, "192.0.2.255", T0), -ENETUNREACH);
	assert_int_equal(resolve(net, "0.0.0.0", T0), -ENETUNREACH);
	assert_int_equal(net_deadline(net), TIME_NEVER);
	assert_int_equal(neigh_count(net, T0).all, 0);
	net_destroy(net);
}

TEST(other_networks_share_the_gateway)
{
	struct net_conf conf = conf_of(254, 0);
	struct net *net = net_of(1, 0), *gateway;
	uint8_t mac[6];

	memset(conf.gateway4, 0, 16);
	memset(conf.gateway6, 0, 16);
	gateway = net_of_conf(&conf);
	net_announcements_take(gateway);
	assert_int_equal(resolve(net, "8.8.8.8", T0), -EAGAIN);
	assert_int_equal(resolve(net, "9.9.9.9", T0), -EAGAIN);
	assert_int_equal(neigh_count(net, T0).all, 1);
	assert_int_equal(exchange(net, gateway, T0), 1);
	assert_int_equal(net_resolve(net, gid_of("8.8.8.8"), mac, T0), 0);
	assert_true(mac_is(mac, 254));
	net_destroy(net);
	net_destroy(gateway);
}

/* Requests at 0, 200 .. 800 ms. After 1 s the neighbour is unreachable, and is asked
 * after 1, 2, 4 .. 60 s for as long as it is wanted. Requests are never early, and at
 * most one tick late. */
TEST(retry_times_are_exact)
{
	struct net *net = net_of(1, 0);
	uint64_t now = T0;
	uint32_t before = net_generation(net);

	assert_int_equal(resolve(net, "192.0.2.9", now), -EAGAIN);
	for (unsigned i = 0; i < NEIGH_TRIES; i++) {
		assert_true(net_deadline(net) <= now);
		assert_true(sends_one(net, now));
		assert_true(net_deadline(net) > now);
		assert_false(sends_one(net, now + NEIGH_RETRY_NS - 1));
		assert_int_equal(resolve(net, "192.0.2.9", now), -EAGAIN);
		now += NEIGH_RETRY_NS + LATE;
	}
	assert_int_equal(net_generation(net), before);
	assert_false(sends_one(net, now));
	assert_int_not_equal(net_generation(net), before);
	assert_int_equal(neigh_count(net, now).failed, 1);
	before = net_generation(net);
	for (unsigned i = 0; i < 10; i++) {
		uint64_t wait = RTE_MIN(NS_PER_SEC << i, 60 * NS_PER_SEC),
			 due = now + wait;

		for (; now < due; now += RTE_MIN(due - now, 10 * NS_PER_SEC)) {
			assert_int_equal(resolve(net, "192.0.2.9", now), -EHOSTUNREACH);
			assert_false(sends_one(net, now));
		}
		assert_false(sends_one(net, due - 1));
		now = due + LATE;
		assert_true(sends_one(net, now));
	}
	assert_int_equal(net_generation(net), before);
	net_destroy(net);
}

TEST(unreachable_neighbour_recovers)
{
	struct net *a = net_of(1, 0), *b = net_of(2, 0);
	uint64_t now = T0;
	uint32_t before;

	(void)resolve(a, "2001:db8::2", now);
	for (unsigned i = 0; i <= NEIGH_TRIES; i++, now += NEIGH_RETRY_NS + LATE)
		(void)sends_one(a, now);
	assert_int_equal(resolve(a, "2001:db8::2", now), -EHOSTUNREACH);
	before = net_generation(a);
	now += NEIGH_FAILED_NS + LATE;
	assert_int_equal(exchange(a, b, now), 1);
	assert_int_not_equal(net_generation(a), before);
	assert_int_equal(resolve(a, "2001:db8::2", now), 0);
	net_destroy(a);
	net_destroy(b);
}

/* A known neighbour that was resolved since its last answer is confirmed after 30 s,
 * first by unicast. Its MAC is used meanwhile. When it does not answer, the generation
 * changes. */
TEST(used_neighbours_are_confirmed)
{
	struct net *a = net_of(1, 0), *b = net_of(2, 0);
	uint64_t now = T0;
	uint32_t before;

	(void)resolve(a, "192.0.2.2", now);
	assert_int_equal(exchange(a, b, now), 1);
	before = net_generation(a);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(resolve(a, "192.0.2.2", now + NS_PER_SEC), 0);
		assert_false(sends_one(a, now + NEIGH_REFRESH_NS - 1));
		now += NEIGH_REFRESH_NS + LATE;
		assert_int_equal(exchange(a, b, now), 1);
	}
	assert_int_equal(net_generation(a), before);
	assert_int_equal(resolve(a, "192.0.2.2", now + NS_PER_SEC), 0);
	now += NEIGH_REFRESH_NS + LATE;
	for (unsigned i = 0; i < NEIGH_TRIES; i++, now += NEIGH_RETRY_NS + LATE) {
		struct pkt out = net_send(a, now);

		assert_non_null(out.data);
		if (i < NEIGH_UNICAST_TRIES)
			assert_true(mac_is(out.data, 2));
		else
			assert_int_equal(out.data[0], 0xff);
		free(out.data);
		assert_int_equal(resolve(a, "192.0.2.2", now), 0);
	}
	assert_false(sends_one(a, now));
	assert_int_equal(resolve(a, "192.0.2.2", now), -EHOSTUNREACH);
	assert_int_not_equal(net_generation(a), before);
	net_destroy(a);
	net_destroy(b);
}

/* A user who has cached a MAC resolves again when the generation changes. So after 30 s without
 * a use the generation changes, once, to find out; only a use then has the neighbour
 * confirmed, even much later. */
TEST(unused_neighbours_are_not_asked)
{
	struct net *a = net_of(1, 0), *b = net_of(2, 0);
	uint64_t now = T0;
	uint32_t before;

	(void)resolve(a, "192.0.2.2", now);
	assert_int_equal(exchange(a, b, now), 1);
	before = net_generation(a);
	assert_int_equal(exchange(a, b, now + NEIGH_REFRESH_NS - 1), 0);
	assert_int_equal(net_generation(a), before);
	for (unsigned i = 0; i < 100; i++) {
		now += NEIGH_REFRESH_NS + LATE;
		assert_int_equal(exchange(a, b, now), 0);
		assert_int_equal(net_generation(a), before + 1);
	}
	assert_int_equal(net_deadline(a), TIME_NEVER);
	assert_int_equal(resolve(a, "192.0.2.2", now), 0);
	assert_int_equal(exchange(a, b, now), 1);
	assert_int_equal(neigh_count(a, now).reachable, 1);
	assert_int_equal(net_generation(a), before + 1);
	net_destroy(a);
	net_destroy(b);
}

/* A sender that caches the MAC and sends at least every 30 s keeps its neighbour
 * confirmed. */
TEST(cached_neighbours_are_confirmed)
{
	struct net *a = net_of(1, 0), *b = net_of(2, 0);
	uint32_t generation;
	unsigned asked = 0;

	(void)resolve(a, "192.0.2.2", T0);
	assert_int_equal(exchange(a, b, T0), 1);
	generation = net_generation(a);
	for (uint64_t now = T0; now < T0 + 600 * NS_PER_SEC; now += NS_PER_SEC) {
		if (net_generation(a) != generation)
			assert_int_equal(resolve(a, "192.0.2.2", now), 0);
		generation = net_generation(a);
		asked += exchange(a, b, now);
	}
	assert_in_range(asked, 15, 20);
	net_destroy(a);
	net_destroy(b);
}

/* A neighbour that only sent to us is not confirmed before it is used; then it is, even
 * much later. */
TEST(learned_neighbours_are_not_confirmed)
{
	struct net *a = net_of(1, 0), *b = net_of(2, 0);
	uint64_t now = T0;

	(void)resolve(b, "192.0.2.1", now);
	assert_int_equal(exchange(b, a, now), 1);
	assert_int_equal(net_deadline(a), TIME_NEVER);
	now += 100 * NEIGH_REFRESH_NS;
	assert_false(sends_one(a, now));
	assert_int_equal(resolve(a, "192.0.2.2", now), 0);
	assert_true(net_deadline(a) <= now);
	assert_true(sends_one(a, now));
	net_destroy(a);
	net_destroy(b);
}

static void
gid_number(uint8_t gid[16], uint32_t number)
{
	memcpy(gid, gid_of("2001:db8::"), 16);
	gid[11] = 1;
	for (unsigned i = 0; i < 4; i++)
		gid[12 + i] = (uint8_t)(number >> (24 - 8 * i));
}

static int
resolve_number(struct net *net, uint32_t number, uint64_t now)
{
	uint8_t gid[16], mac[6];

	gid_number(gid, number);
	return net_resolve(net, gid, mac, now);
}

/* Learns number's MAC, as from a received frame. */
static void
number_learn(struct net *net, uint32_t number, uint64_t now)
{
	uint8_t gid[16], mac[6] = {0x02, 1};

	gid_number(gid, number);
	memcpy(mac + 2, gid + 12, 4);
	neigh_seen(net, gid, mac, true, now);
}

TEST(learned_neighbours_are_limited)
{
	struct net *net = net_of(1, 0);
	uint32_t before = net_generation(net);

	for (uint32_t i = 0; i < 100000; i++)
		number_learn(net, i, T0 + i);
	assert_int_equal(neigh_count(net, T0).all, NET_MAX_PASSIVE);
	assert_int_equal(net_generation(net), before);
	/* The oldest entries were replaced. */
	assert_int_equal(resolve_number(net, 99999, T0), 0);
	assert_int_equal(resolve_number(net, 100000 - NET_MAX_PASSIVE, T0), 0);
	assert_int_equal(resolve_number(net, 99999 - NET_MAX_PASSIVE, T0), -EAGAIN);
	net_destroy(net);
}

TEST(table_full_of_used_neighbours)
{
	struct net *net = net_of(1, 0);
	uint64_t now = T0;
	uint32_t before;

	for (uint32_t i = 0; i < NET_NEIGHS; i++) {
		number_learn(net, i, now);
		assert_int_equal(resolve_number(net, i, now), 0);
	}
	assert_int_equal(neigh_count(net, now).reachable, NET_NEIGHS);
	assert_int_equal(resolve_number(net, NET_NEIGHS, now), -ENOSPC);
	/* an unused neighbour gets no entry either */
	number_learn(net, NET_NEIGHS, now);
	assert_int_equal(neigh_count(net, now).all, NET_NEIGHS);
	/* An entry that was not used for long is replaced, and the generation changes. */
	now += NEIGH_IDLE_NS + NS_PER_SEC;
	for (uint32_t i = 0; i < NET_NEIGHS; i++)
		if (i != 77)
			assert_int_equal(resolve_number(net, i, now), 0);
	before = net_generation(net);
	assert_int_equal(resolve_number(net, NET_NEIGHS, now), -EAGAIN);
	assert_int_not_equal(net_generation(net), before);
	assert_int_equal(resolve_number(net, 77, now), -ENOSPC);
	net_destroy(net);
}

TEST(failed_neighbours_are_replaced)
{
	struct net *net = net_of(1, 0);
	uint64_t now = T0;

	for (uint32_t i = 0; i < NET_NEIGHS; i++) {
		if (i != 5 && i != 9)
			number_learn(net, i, now);
		(void)resolve_number(net, i, now + i);
	}
	for (unsigned i = 0; i <= NEIGH_TRIES; i++, now += NEIGH_RETRY_NS + LATE)
		while (net_deadline(net) <= now)
			free(net_send(net, now).data);
	assert_int_equal(neigh_count(net, now).failed, 2);
	assert_int_equal(resolve_number(net, NET_NEIGHS, now), -EAGAIN);
	assert_int_equal(neigh_count(net, now).failed, 1);
	/* 9 is left: 5 was replaced, being older */
	assert_int_equal(resolve_number(net, 9, now), -EHOSTUNREACH);
	net_destroy(net);
}

/* Random calls, compared with a model of the known neighbours. */
static void
sweep(uint64_t seed)
{
	struct net *net = net_of(1, 0);
	bool known[64][256] = {{false}}; /* by last byte of the MAC; [0]: any */
	uint64_t now = T0, rand = seed;

	for (unsigned step = 0; step < 500; step++) {
		uint32_t who = rand_below(&rand, RTE_DIM(known));
		uint8_t gid[16], mac[6] = {0x02};
		int ret;

		gid_number(gid, who);
		switch (rand_below(&rand, 4)) {
		case 0:
			mac[5] = (uint8_t)(1 + rand_below(&rand, 200));
			neigh_seen(net, gid, mac, true, now);
			known[who][mac[5]] = known[who][0] = true;
			break;
		case 1:
			now += rand_magnitude(&rand, 27); /* at most 134 ms */
			break;
		case 2:
			free(net_send(net, now).data);
			break;
		default:
			ret = net_resolve(net, gid, mac, now);
			if (ret == 0 && !(known[who][0] && known[who][mac[5]]))
				fail_msg("seed %lu step %u: host %u is at %u", seed, step,
					who, mac[5]);
		}
		if (neigh_count(net, now).all > RTE_DIM(known))
			fail_msg("seed %lu step %u: too many", seed, step);
	}
	net_destroy(net);
}

TEST(random_operations_match_a_model)
{
	for (uint64_t seed = 1; seed <= 100; seed++)
		sweep(seed);
}

static void
info_fn(const struct neigh_info *info, void *arg)
{
	*(struct neigh_info *)arg = *info;
}

TEST(entries_are_shown)
{
	struct net *a = net_of(1, 0), *b = net_of(2, 0);
	struct neigh_info info;

	(void)resolve(a, "192.0.2.2", T0);
	net_each(a, T0, info_fn, &info);
	assert_string_equal(info.state, "incomplete");
	assert_int_equal(info.age_ns, TIME_NEVER);
	exchange(a, b, T0);
	net_each(a, T0 + 5, info_fn, &info);
	assert_string_equal(info.state, "reachable");
	assert_int_equal(info.age_ns, 5);
	assert_memory_equal(info.gid, gid_of("192.0.2.2"), 16);
	assert_true(mac_is(info.mac, 2));
	net_destroy(a);
	net_destroy(b);
}
