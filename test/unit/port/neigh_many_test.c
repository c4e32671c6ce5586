/* SPDX-License-Identifier: BSD-3-Clause */
/* The largest neighbour table, full. No step visits all its entries: the tests count those that
 * a call has changed. */
#include <errno.h>

#include "page.h"
#include "port_fixture.h"

#define MANY NET_NEIGHS_MAX
#define USER NET_USER_NEIGHS(MANY)
/* Of entries in a bucket, by a random function: a longer chain has a probability below 10^-8. */
#define LONGEST 14

static struct net *net;

static int
resolve(struct net_user *user, uint32_t n, uint64_t now)
{
	uint8_t mac[6];

	return net_resolve_for(net, user, host_gid(n), mac, now);
}

/* Neighbours from..to - 1 are asked for, and answer. */
static void
fill(struct net_user *user, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		assert_int_equal(resolve(user, i, T0), -EAGAIN);
		neigh_seen(net, host_gid(i), host_mac(i), false, T0);
	}
}

static void
open_many(void)
{
	struct net_conf conf = conf_of(1, 0);

	assert_int_equal(net_create_sized(&conf, MANY, &net), 0);
	net_announcements_take(net);
}

static unsigned
spare_count(void)
{
	const struct neigh *e;
	unsigned count = 0;

	TAILQ_FOREACH (e, &net->spare, link)
		count++;
	return count;
}

/* One call of net_tx(). */
static void
step(uint64_t now)
{
	struct pkt out = net_send(net, now);

	free(out.data);
}

TEST(size_is_a_power_of_two)
{
	static const uint32_t wrong[] = {1, 512, 1023, 4095, 5000, 65535, 131072};
	struct net_conf conf = conf_of(1, 0);

	for (unsigned i = 0; i < RTE_DIM(wrong); i++)
		assert_int_equal(net_create_sized(&conf, wrong[i], &net), -EINVAL);
	for (uint32_t size = NET_NEIGHS_MIN; size <= MANY; size *= 2) {
		assert_int_equal(net_create_sized(&conf, size, &net), 0);
		assert_int_equal(net_neighs(net), size);
		net_destroy(net);
	}
	assert_int_equal(net_create_sized(&conf, 0, &net), 0);
	assert_int_equal(net_neighs(net), NET_NEIGHS);
	net_destroy(net);
}

/* The table is full of neighbours in use. Another one is refused, and hosts that only send replace
 * none of them. */
TEST(full_table_keeps_what_is_in_use)
{
	unsigned longest = 0;

	open_many();
	fill(NULL, 0, MANY);
	assert_int_equal(resolve(NULL, MANY, T0), -ENOSPC);
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t n = MANY + 1 + i;

		neigh_seen(net, host_gid(n), host_mac(n), true, T0);
		net_hint(net, host_gid(n), host_mac(n), T0);
	}
	assert_int_equal(neigh_count(net, T0).reachable, MANY);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(resolve(NULL, i, T0), 0);
	/* A look-up visits the entries of one bucket. */
	for (uint32_t i = 0; i < net->neigh_size; i++) {
		unsigned length = 0;

		for (const struct neigh *e = net->buckets[i]; e != NULL; e = e->chain)
			length++;
		longest = RTE_MAX(longest, length);
	}
	assert_in_range(longest, 2, LONGEST);
	net_destroy(net);
}

/* All were resolved at once, and are used: each is confirmed when its time is over. */
TEST(timers_are_handled_in_steps)
{
	uint64_t now = T0 + NEIGH_REFRESH_NS + NS_PER_SEC;
	unsigned steps = 0;

	open_many();
	fill(NULL, 0, MANY);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(resolve(NULL, i, T0 + 1), 0);
	assert_int_equal(net->wheel.count, MANY);
	while (neigh_count(net, now).reachable != 0) {
		uint32_t before = net->wheel.count;

		step(now);
		assert_in_range(before - net->wheel.count + 1, 0, NEIGH_TIMERS_BATCH + 1);
		assert_true(++steps < MANY);
	}
	/* Each timer has moved within the wheel, and has fired. */
	assert_in_range(steps, MANY / NEIGH_TIMERS_BATCH,
		MANY / NEIGH_TIMERS_BATCH + MANY * WHEEL_LEVELS / NEIGH_TIMER_MOVES);
	net_destroy(net);
}

/* The subnet of all neighbours is not the port's any more. */
TEST(addresses_change_in_steps)
{
	struct net_conf conf = conf_of(1, 0);
	uint8_t mac[6];

	open_many();
	fill(NULL, 0, MANY);
	conf.addr[1] = conf.addr[2];
	conf.addr_count = 2;
	memset(conf.gateway6, 0, 16);
	assert_int_equal(net_set_conf(net, &conf), 0);
	assert_int_equal(spare_count(), NEIGH_SWEEP_BATCH);
	/* Those that are left are not shown. */
	assert_int_equal(neigh_count(net, T0).all, 0);
	assert_int_equal(resolve(NULL, MANY - 1, T0), -ENETUNREACH);
	assert_true(net_deadline(net) <= T0);
	step(T0);
	assert_int_equal(spare_count(), 2 * NEIGH_SWEEP_BATCH);
	/* Again the port's, before they are all gone: they are not known any more by then. */
	conf = conf_of(1, 0);
	conf.vlan = 7;
	assert_int_equal(net_set_conf(net, &conf), 0);
	assert_int_equal(net_lookup(net, host_gid(MANY - 1), mac), -EHOSTUNREACH);
	for (unsigned i = 0; i < MANY / NEIGH_SWEEP_BATCH; i++)
		step(T0);
	assert_int_equal(spare_count(), MANY);
	assert_false(neigh_sweeps(net));
	net_destroy(net);
}

/* The link has come up: unreachable neighbours are asked again. */
TEST(link_comes_up_in_steps)
{
	struct net_conf conf = conf_of(1, 0);
	unsigned due = 0;
	const struct neigh *e;

	open_many();
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(resolve(NULL, i, T0), -EAGAIN);
	for (uint32_t i = 0; i < MANY; i++) {
		neigh_mark_idle(&net->entries[i]);
		neigh_state_set(net, &net->entries[i], NEIGH_FAILED);
	}
	assert_int_equal(net_set_conf(net, &conf), 0);
	net_announce(net);
	TAILQ_FOREACH (e, &net->due_again, link)
		due++;
	assert_int_equal(due, NEIGH_SWEEP_BATCH);
	for (unsigned i = 0; i < MANY / NEIGH_SWEEP_BATCH; i++)
		step(T0);
	assert_false(neigh_sweeps(net));
	for (uint32_t i = 0; i < MANY; i++)
		assert_true(net->entries[i].tries >= NEIGH_TRIES);
	net_destroy(net);
}

/* A user reaches its limit. When it ends, none of its entries is visited. They are no user's then:
 * another one may ask for them, and has its own limit. */
TEST(user_of_many_ends_in_one_step)
{
	size_t size = USER * sizeof(struct neigh);
	struct neigh *before = malloc(size);
	struct net_user a, b;

	open_many();
	net_user_init(&a, false);
	net_user_init(&b, false);
	fill(&a, 0, USER);
	assert_int_equal(net_user_neighs(&a), USER);
	assert_int_equal(resolve(&a, USER, T0), -EDQUOT);
	assert_int_equal(resolve(&b, USER, T0), -EAGAIN);
	assert_non_null(before);
	memcpy(before, net->entries, size);
	net_user_fini(net, &a);
	assert_memory_equal(net->entries, before, size);
	assert_int_equal(net_user_neighs(&a), 0);
	/* The user comes back. */
	for (uint32_t i = 0; i < USER; i++)
		assert_int_equal(resolve(&a, i, T0), 0);
	assert_int_equal(net_user_neighs(&a), 0);
	fill(&a, MANY, MANY + 10);
	assert_int_equal(net_user_neighs(&a), 10);
	assert_int_equal(net_user_neighs(&b), 1);
	net_user_fini(net, &a);
	net_user_fini(net, &b);
	net_destroy(net);
	free(before);
}

/* docs/running.md names the memory of a neighbour. */
TEST(memory_is_as_documented)
{
	page_names(RUNNING_PAGE, net_neigh_size(), "bytes for each neighbour");
}
