/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>

#include "port_fixture.h"
#include "../rand.h"

/* All addresses are announced three times, a second apart; then nothing is sent. */
TEST(addresses_are_announced)
{
	struct net_conf conf = conf_of(1, 0);
	struct net *net = net_of_conf(&conf);
	uint64_t now = T0;

	assert_true(net_deadline(net) <= now);
	for (unsigned round = 0; round < NET_ANNOUNCEMENTS; round++) {
		unsigned arps = 0, adverts = 0;

		for (unsigned i = 0; i < 3; i++) {
			struct pkt out = net_send_no_report(net, now);

			assert_non_null(out.data);
			assert_true(mac_is(out.data + 6, 1));
			if (out.data[12] == 0x08) {
				arps++;
				assert_int_equal(out.data[0], 0xff);
				assert_memory_equal(
					out.data + 28, conf.addr[0].gid + 12, 4);
				assert_memory_equal(
					out.data + 38, conf.addr[0].gid + 12, 4);
			} else {
				adverts++;
				assert_int_equal(out.data[0], 0x33);
				assert_int_equal(out.data[54], 136);
				assert_int_equal(out.data[58], 0x20);
			}
			free(out.data);
		}
		assert_int_equal(arps, 1);
		assert_int_equal(adverts, 2);
		assert_null(net_send_no_report(net, now + NET_ANNOUNCE_NS - 1).data);
		now += NET_ANNOUNCE_NS + WHEEL_TICK_NS;
	}
	assert_null(net_send_no_report(net, now).data);
	assert_int_equal(net_deadline(net), TIME_NEVER);
	net_destroy(net);
}

/* An announcement updates our MAC at a neighbour that knows us, once it has found that
 * the old MAC is silent. */
TEST(new_mac_is_announced_to_neighbours)
{
	struct net_conf conf = conf_of(1, 0);
	struct net *us = net_of(1, 0), *them = net_of(2, 0);
	uint8_t mac[6];
	struct pkt out;

	neigh_seen(them, gid_of("192.0.2.1"), conf.mac, true, T0);
	assert_int_equal(net_resolve(them, gid_of("192.0.2.1"), mac, T0), 0);
	assert_true(mac_is(mac, 1));
	conf.mac[5] = 77;
	assert_int_equal(net_set_conf(us, &conf), 0);
	while ((out = net_send(us, T0)).data != NULL) {
		assert_null(net_ask(them, &out, T0).data);
		free(out.data);
	}
	for (unsigned i = 0; i <= NEIGH_CLAIM_TRIES; i++)
		free(net_send(them, T0 + i * (NEIGH_CLAIM_NS + WHEEL_TICK_NS)).data);
	assert_int_equal(net_resolve(them, gid_of("192.0.2.1"), mac, T0), 0);
	assert_true(mac_is(mac, 77));
	net_destroy(us);
	net_destroy(them);
}

static unsigned
count_sent(struct net *net, uint64_t now)
{
	unsigned n = 0;
	struct pkt out;

	for (; (out = net_send(net, now)).data != NULL; n++)
		free(out.data);
	return n;
}

TEST(addresses_change_while_running)
{
	struct net_conf conf = conf_of(1, 0), bad;
	struct net *net = net_of(1, 0);
	uint32_t before = net_generation(net);
	uint8_t mac[6];

	neigh_seen(net, gid_of("192.0.2.2"), (uint8_t[]){2, 0, 0, 0, 0, 2}, true, T0);
	neigh_seen(net, gid_of("2001:db8::2"), (uint8_t[]){2, 0, 0, 0, 0, 2}, true, T0);
	bad = conf;
	bad.addr[0].prefix_len = 99;
	assert_int_equal(net_set_conf(net, &bad), -EINVAL);
	assert_int_equal(net_set_conf(net, NULL), -EINVAL);
	assert_int_equal(net_generation(net), before);
	assert_memory_equal(net_conf(net), &conf, sizeof(conf));
	/* Only new addresses are announced; unreachable neighbours are removed. */
	memcpy(conf.addr[0].gid, gid_of("10.0.0.1"), 16);
	memset(conf.gateway4, 0, 16);
	assert_int_equal(net_set_conf(net, &conf), 0);
	assert_int_not_equal(net_generation(net), before);
	assert_int_equal(count_sent(net, T0), 1);
	assert_int_equal(net_resolve(net, gid_of("192.0.2.2"), mac, T0), -ENETUNREACH);
	assert_int_equal(net_resolve(net, gid_of("2001:db8::2"), mac, T0), 0);
	assert_int_equal(neigh_count(net, T0).all, 1);
	/* Another VLAN is another network. */
	conf.vlan = 5;
	assert_int_equal(net_set_conf(net, &conf), 0);
	assert_int_equal(neigh_count(net, T0).all, 0);
	assert_int_equal(net_resolve(net, gid_of("2001:db8::2"), mac, T0), -EAGAIN);
	/* Three addresses, a solicitation, and the solicited-node group that two of them
	 * share. */
	assert_int_equal(count_sent(net, T0), 5);
	net_destroy(net);
}

/* A port without addresses answers, asks and announces nothing. */
/* Another stack of this host has the addresses, too, and answers for them. */
TEST(net_beside_another_stack_only_asks)
{
	struct net_conf conf = conf_of(1, 0);
	struct net *net, *them = net_of(2, 0);
	struct pkt request, answer;
	uint8_t mac[6];

	conf.other_stack = true;
	net = net_of_conf(&conf);
	assert_int_equal(net_deadline(net), TIME_NEVER); /* no announcement, no report */
	assert_int_equal(net_join(net, gid_of("239.1.2.3")), 0);
	net_announce(net);
	conf.addr[0].gid[15] = 9;
	assert_int_equal(net_set_conf(net, &conf), 0);
	assert_int_equal(count_sent(net, T0), 0);
	/* It does not answer a request. */
	assert_int_equal(net_resolve(them, gid_of("192.0.2.9"), mac, T0), -EAGAIN);
	request = net_send(them, T0);
	assert_non_null(request.data);
	assert_null(net_ask(net, &request, T0).data);
	free(request.data);
	/* It asks, and learns from the answer. */
	assert_int_equal(net_resolve(net, gid_of("192.0.2.2"), mac, T0), 0);
	assert_true(mac_is(mac, 2)); /* from the request */
	assert_int_equal(net_resolve(net, gid_of("2001:db8::2"), mac, T0), -EAGAIN);
	request = net_send(net, T0);
	assert_non_null(request.data);
	answer = net_ask(them, &request, T0);
	assert_non_null(answer.data);
	assert_null(net_ask(net, &answer, T0).data);
	assert_int_equal(net_resolve(net, gid_of("2001:db8::2"), mac, T0), 0);
	free(request.data);
	free(answer.data);
	assert_int_equal(net_leave(net, gid_of("239.1.2.3")), 0);
	assert_int_equal(count_sent(net, T0), 0);
	net_destroy(net);
	net_destroy(them);
}

TEST(nothing_is_sent_without_address)
{
	struct net_conf conf = {.mac = {2, 0, 0, 0, 0, 1}};
	struct net *net = net_of_conf(&conf);
	uint8_t mac[6];

	assert_int_equal(net_deadline(net), TIME_NEVER);
	assert_int_equal(count_sent(net, T0), 0);
	assert_int_equal(net_resolve(net, gid_of("192.0.2.2"), mac, T0), -ENETUNREACH);
	assert_int_equal(net_resolve(net, gid_of("fe80::2"), mac, T0), -ENETUNREACH);
	net_destroy(net);
}

TEST(small_buffers_get_no_frame)
{
	struct net_conf conf = conf_of(1, 100);
	struct net *net = net_of_conf(&conf);

	for (unsigned room = 0; room <= NET_ROOM; room++) {
		struct pkt out = frame_empty(room);

		assert_int_equal(net_tx(net, &out, 1, T0), room == NET_ROOM);
		free(out.data);
	}
	assert_int_equal(net_tx(net, NULL, 0, T0), 0);
	net_destroy(net);
}

/* ---- Hostile frames ---- */

/* A frame similar to one for us: a neighbour's frame, truncated or extended, with changed
 * bytes and mostly with right checksums and lengths, so that it passes the first
 * checks. */
static struct pkt
hostile_frame(const struct net *neighbour, uint64_t *rand)
{
	const struct net_conf *conf = net_conf(neighbour);
	struct pkt out = frame_empty(FRAME_ROOM);
	uint8_t bytes[400];
	uint32_t len;

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rand_next(rand);
	len = rand_below(rand, 200);
	if (rand_below(rand, 8) != 0) {
		if (rand_below(rand, 2))
			arp_request(conf, gid_of("192.0.2.1"), NULL, &out);
		else
			nd_solicit(conf, gid_of("2001:db8::1"), NULL, &out);
		len = out.len;
		memcpy(bytes, out.data, len);
		if (rand_below(rand, 4) == 0)
			len = rand_below(rand, 2 * len);
	}
	free(out.data);
	for (unsigned n = rand_below(rand, 6); n > 0; n--)
		bytes[rand_below(rand, len + 1)] = (uint8_t)rand_next(rand);
	if (rand_below(rand, 4) != 0)
		memcpy(bytes, (uint8_t[]){2, 0, 0, 0, 0, 1}, 6);
	if (rand_below(rand, 3) == 0 && len > 54 && bytes[12] == 0x86) {
		uint16_t sum;

		bytes[18] = 0;
		bytes[19] = (uint8_t)(len - 54);
		bytes[20] = 58;
		if (rand_below(rand, 2))
			bytes[54] = (uint8_t)(128 + rand_below(rand, 10));
		memset(bytes + 56, 0, 2);
		sum = sum_fold(sum_add(sum_icmp6(bytes + 22, bytes + 38, len - 54),
			bytes + 54, len - 54));
		memcpy(bytes + 56, &sum, 2);
	}
	return frame_exact(bytes, len);
}

static void
hostile_sweep(uint64_t seed, unsigned *answers)
{
	uint16_t vlan = seed % 3 == 0 ? 100 : 0;
	struct net *net = net_of(1, vlan), *neighbour = net_of(2, vlan);
	uint64_t now = T0, rand = seed;

	for (unsigned step = 0; step < 1000; step++) {
		struct pkt in = hostile_frame(neighbour, &rand), out;
		enum drop_reason why;

		in.flags = (uint32_t)rand_below(&rand, 8);
		out = frame_empty(rand_below(&rand, 300));
		if (net_rx(net, &in, &out, &why, now)) {
			++*answers;
			if (out.len > out.room || out.len < 42)
				fail_msg("seed %lu step %u: answer of %u bytes", seed,
					step, out.len);
		}
		free(in.data);
		free(out.data);
		now += rand_magnitude(&rand, 31);
		free(net_send(net, now).data);
		if (neigh_count(net, now).all > NET_MAX_PASSIVE)
			fail_msg("seed %lu step %u: table", seed, step);
	}
	net_destroy(net);
	net_destroy(neighbour);
}

/* ROCADE_SEED runs one seed again. */
TEST(hostile_frames_do_no_harm)
{
	const char *one = getenv("ROCADE_SEED");
	unsigned answers = 0;

	if (one != NULL) {
		hostile_sweep(strtoull(one, NULL, 0), &answers);
		return;
	}
	for (uint64_t seed = 1; seed <= 100; seed++)
		hostile_sweep(seed, &answers);
	/* Enough frames pass the first checks. */
	assert_in_range(answers, 5000, 95000);
}

/* ---- Engines that share a net ---- */

struct engine_model {
	struct net *net, *peer;
	unsigned index;
	unsigned found;
};

static void *
engine_thread(void *arg)
{
	struct engine_model *e = arg;
	uint32_t generation = net_generation(e->net);
	uint8_t dst[16], mac[6];
	enum drop_reason why;

	memcpy(dst, gid_of(e->index ? "192.0.2.2" : "2001:db8::2"), 16);
	for (uint64_t now = T0; now < T0 + 2000 * NS_PER_MS; now += NS_PER_MS) {
		struct pkt out = frame_empty(FRAME_ROOM), back = frame_empty(FRAME_ROOM),
			   none;

		(void)net_deadline(e->net);
		if (net_generation(e->net) != generation || e->found == 0) {
			generation = net_generation(e->net);
			e->found += net_resolve(e->net, dst, mac, now) == 0;
		}
		none = (struct pkt){.data = NULL};
		if (net_tx(e->net, &out, 1, now) == 1 &&
			net_rx(e->peer, &out, &back, &why, now)) {
			none = frame_empty(FRAME_ROOM);
			(void)net_rx(e->net, &back, &none, &why, now);
		}
		free(out.data);
		free(back.data);
		free(none.data);
	}
	return NULL;
}

/* Also run under the thread sanitizer. */
TEST(engines_share_a_net)
{
	struct net *net = net_of(1, 0), *peer = net_of(2, 0);
	struct engine_model engines[2];
	pthread_t threads[2];

	for (unsigned i = 0; i < 2; i++) {
		engines[i] = (struct engine_model){.net = net, .peer = peer, .index = i};
		assert_int_equal(
			pthread_create(&threads[i], NULL, engine_thread, &engines[i]), 0);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_true(engines[0].found > 0);
	assert_true(engines[1].found > 0);
	net_destroy(net);
	net_destroy(peer);
}
