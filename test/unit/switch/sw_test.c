/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that attach, detach, corrupt their rings, sleep, and exceed their limits. */
#include "switch_fixture.h"

TEST(removed_client_leaves_nothing)
{
	struct switch_fixture b;
	struct frame_spec f;
	uint8_t gid[16];

	fixture_open(&b);
	assert_int_equal(gid_parse("ff0e::1", gid, NULL), 0);
	assert_int_equal(sw_group_join(b.sw, b.c[1].qpn, gid), 0);
	f = frame_spec_valid(&b);
	/* in client 1's ring when it is removed */
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	client_detach(&b.c[1]);
	assert_null(sw_group_find(b.sw, gid));
	assert_int_equal(b.sw->departed.rx_packets, 1);
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_int_equal(b.c[0].client->stats.drop_no_qp, 1);
	sw_run(b.sw, NS_PER_SEC);
	fixture_close(&b);
}

TEST(removed_client_leaves_its_groups)
{
	uint8_t gid[2][16];
	uint32_t more[CLIENT_QPS - 1];
	struct switch_fixture b;

	fixture_open(&b);
	assert_int_equal(gid_parse("ff0e::1", gid[0], NULL), 0);
	assert_int_equal(gid_parse("239.1.2.3", gid[1], NULL), 0);
	for (unsigned i = 0; i < RTE_DIM(more); i++)
		more[i] = client_take_qpn(&b, &b.c[1]);
	/* Members of other clients before, between and behind. */
	for (unsigned g = 0; g < 2; g++) {
		assert_int_equal(sw_group_join(b.sw, b.c[g].qpn, gid[g]), 0);
		for (unsigned i = 0; i < RTE_DIM(more); i++)
			assert_int_equal(sw_group_join(b.sw, more[i], gid[g]), 0);
		assert_int_equal(sw_group_join(b.sw, b.c[2].qpn, gid[g]), 0);
	}
	client_detach(&b.c[1]);
	assert_int_equal(sw_group_find(b.sw, gid[0])->count, 2);
	assert_int_equal(sw_group_leave(b.sw, b.c[0].qpn, gid[0]), 0);
	for (unsigned g = 0; g < 2; g++) {
		assert_int_equal(sw_group_find(b.sw, gid[g])->count, 1);
		assert_int_equal(sw_group_leave(b.sw, b.c[2].qpn, gid[g]), 0);
		assert_null(sw_group_find(b.sw, gid[g]));
	}
	fixture_close(&b);
}

/* As many groups as there may be: several share a bucket. Each is found until its last member has left. */
TEST(groups_come_and_go_in_any_order)
{
	uint8_t gid[16];
	struct switch_fixture b;
	unsigned n = 0;

	fixture_open(&b);
	assert_int_equal(gid_parse("ff0e::", gid, NULL), 0);
	for (; n < SW_GROUPS; n++) {
		gid[15] = (uint8_t)n;
		if (sw_group_join(b.sw, b.c[0].qpn, gid) != 0)
			break;
	}
	assert_true(n >= SW_GROUPS / 4);
	for (unsigned step = 0; step < 3; step++) {
		/* Every third one, and so in no order of joining. */
		for (unsigned i = step; i < n; i += 3) {
			gid[15] = (uint8_t)i;
			assert_int_equal(sw_group_leave(b.sw, b.c[0].qpn, gid), 0);
		}
		for (unsigned i = 0; i < n; i++) {
			const struct sw_group *g;

			gid[15] = (uint8_t)i;
			g = sw_group_find(b.sw, gid);
			assert_int_equal(g != NULL, i % 3 > step);
			assert_true(g == NULL || memcmp(g->gid, gid, 16) == 0);
		}
	}
	fixture_close(&b);
}

TEST(final_flush_delivers)
{
	struct sw_request req = {.type = SW_QPN_GIVE};
	struct sw_reply reply;
	struct switch_fixture b;
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	for (unsigned i = 0; i < 3; i++)
		client_post(&b.c[0], 0, b.c[0].qpn,
			frame_spec_build(region_tx_buf(&b.c[0].region, 0), &f));
	req.qpn = b.c[0].qpn; /* the QP is destroyed while its packets are in the ring */
	client_request(&b, &b.c[0], &req, &reply);
	for (unsigned i = 0; i < 3; i++) /* shown before the reply */
		assert_true(client_received(&b.c[1], &f));
	b.c[0].qpn = client_take_qpn(&b, &b.c[0]);
	assert_int_equal(client_set_peer(&b, &b.c[0], b.c[0].qpn, b.addr, b.c[1].qpn), 0);
	assert_int_equal(client_set_peer(&b, &b.c[1], b.c[1].qpn, b.addr, b.c[0].qpn), 0);
	client_post(&b.c[0], 0, b.c[0].qpn,
		frame_spec_build(region_tx_buf(&b.c[0].region, 0), &f));
	client_detach(&b.c[0]); /* and so is the client */
	assert_false(sw_sleep(b.sw));
	sw_run(b.sw, 0);
	assert_true(client_received(&b.c[1], &f));
	assert_false(client_received(&b.c[1], NULL));
	fixture_close(&b);
}

TEST(corrupt_ring_ends_one_client)
{
	struct switch_fixture b;
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	/* claims more packets than the ring holds */
	b.c[2].region.client->tx_prod = CLIENT_SLOTS + 1;
	sw_run(b.sw, 0);
	assert_true(b.c[2].client->corrupt);
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_true(client_received(&b.c[1], &f));
	b.c[1].region.client->rx_cons = 777; /* claims packets that it did not get */
	for (unsigned i = 0; i < 2 * CLIENT_SLOTS; i++)
		client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_true(b.c[1].client->corrupt);
	assert_false(b.c[0].client->corrupt);
	assert_int_equal(b.sw->corrupt_count, 2);
	sw_run(b.sw, NS_PER_SEC);
	assert_true(sw_sleep(b.sw)); /* a corrupt client does not keep the daemon awake */
	b.c[0].region.client->tx_prod--;
	/* found just now: the owner has to disconnect the client before it sleeps */
	assert_false(sw_sleep(b.sw));
	assert_int_equal(b.sw->corrupt_count, 3);
	assert_false(asleep_is_set(&b.c[0].region.daemon->tx_asleep));
	fixture_close(&b);
}

TEST(qpns_and_clients_are_limited)
{
	struct sw_request req = {.type = SW_QPN_TAKE};
	struct sw_client *none;
	struct sw_reply reply;
	struct switch_fixture b;

	fixture_open(&b);
	for (unsigned i = 1; i < CLIENT_QPS; i++)
		client_take_qpn(&b, &b.c[0]);
	client_request(&b, &b.c[0], &req, &reply);
	assert_int_equal(reply.error, ENOMEM);
	assert_int_equal(b.c[0].client->stats.refused, 1);
	client_take_qpn(&b, &b.c[1]); /* the limit is per client */
	assert_int_equal(sw_client_add(b.sw, &b.c[0].region, 0, 0, NULL, &none), -ENOSPC);
	fixture_close(&b);
}

/* Returns how many packets a client sends in a second that always has some. */
static unsigned
sent_in_a_second(uint32_t packets_per_s)
{
	struct switch_fixture b;
	struct frame_spec f;
	unsigned sent = 0;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	b.sw->conf.limits.packets_per_s = packets_per_s;
	for (b.now = NS_PER_SEC; b.now < 2 * NS_PER_SEC; b.now += NS_PER_MS / 4) {
		assert_true(ring_prod_refresh(&b.c[0].tx));
		if (ring_room(&b.c[0].tx) != 0) {
			uint8_t *buf = region_tx_buf(&b.c[0].region, 0);

			client_post(&b.c[0], 0, b.c[0].qpn, frame_spec_build(buf, &f));
		}
		sw_run(b.sw, b.now);
		while (client_received(&b.c[1], NULL))
			sent++;
	}
	assert_true(b.c[0].client->stats.throttled != 0);
	b.sw->conf.limits.packets_per_s = 0;
	fixture_close(&b);
	return sent;
}

TEST(packet_rate_is_limited)
{
	assert_in_range(
		sent_in_a_second(1000), 1000, 1011); /* plus the credit of 10 ms */
	/* A packet takes longer than that. */
	assert_in_range(sent_in_a_second(50), 50, 51);
	assert_in_range(sent_in_a_second(1), 1, 2);
}

/* A client cannot evade the rate by destroying QPs. */
TEST(final_flush_counts_for_the_rate)
{
	struct sw_request req = {.type = SW_QPN_GIVE};
	struct sw_reply reply;
	struct switch_fixture b;
	struct frame_spec f;
	unsigned sent = 0;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	b.sw->conf.limits.packets_per_s = 1000;
	for (b.now = NS_PER_SEC; b.now < 2 * NS_PER_SEC; b.now += NS_PER_MS / 4) {
		sw_run(b.sw, b.now);
		assert_true(ring_prod_refresh(&b.c[0].tx));
		while (ring_room(&b.c[0].tx) != 0) {
			uint8_t *buf = region_tx_buf(&b.c[0].region, 0);

			client_post(&b.c[0], 0, b.c[0].qpn, frame_spec_build(buf, &f));
		}
		req.qpn = client_take_qpn(&b, &b.c[0]);
		client_request(&b, &b.c[0], &req, &reply);
		assert_int_equal(reply.error, 0);
		sw_run(b.sw, b.now);
		while (client_received(&b.c[1], NULL))
			sent++;
	}
	/* Plus the credit of 10 ms and of one ring. */
	assert_in_range(sent, 1000, 1011 + CLIENT_SLOTS);
	b.sw->conf.limits.packets_per_s = 0;
	fixture_close(&b);
}

TEST(sleeping_client_is_woken)
{
	struct switch_fixture b;
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	asleep_set(&b.c[1].region.client->rx_asleep);
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_int_equal(b.c[1].woken, 1);
	client_send(&b, &b.c[0], b.c[0].qpn, &f); /* the client is awake now */
	assert_int_equal(b.c[1].woken, 1);
	while (client_received(&b.c[1], NULL))
		;
	fixture_close(&b);
}

/* A thread of the client sleeps until the index changes. It is woken once, and the progress
 * thread only if it takes nothing in time. */
TEST(waiting_client_is_woken_by_futex)
{
	struct switch_fixture b;
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	b.now = NS_PER_SEC;
	asleep_set_how(&b.c[1].region.client->rx_asleep, ASLEEP_FUTEX);
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_int_equal(b.c[1].woken, 0);
	assert_int_equal(b.c[1].client->stats.wakeups, 1);
	assert_true(sw_sleep(b.sw));
	sw_awake(b.sw);
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_int_equal(b.c[1].client->stats.wakeups, 1);
	for (unsigned i = 0; i < 20; i++) {
		b.now += SW_LAG_NS;
		sw_run(b.sw, b.now);
	}
	assert_int_equal(b.c[1].woken, 1);
	while (client_received(&b.c[1], NULL))
		;
	fixture_close(&b);
}

/* A client that polls is not woken. When it stops polling its thread is woken, once. */
TEST(client_that_stops_polling_is_woken)
{
	struct switch_fixture b;
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	b.now = NS_PER_SEC;
	for (unsigned i = 0; i < 20; i++) {
		client_send(&b, &b.c[0], b.c[0].qpn, &f);
		b.now += SW_LAG_NS - 10 * NS_PER_US;
		assert_true(client_received(&b.c[1], &f));
		sw_run(b.sw, b.now);
	}
	assert_int_equal(b.c[1].woken, 0);
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_false(sw_sleep(b.sw)); /* the client has to be checked */
	for (unsigned i = 0; i < 20; i++) {
		b.now += SW_LAG_NS;
		sw_run(b.sw, b.now);
	}
	assert_int_equal(b.c[1].woken, 1);
	assert_true(sw_sleep(b.sw));
	sw_awake(b.sw);
	fixture_close(&b);
}

/* Returns whether the client would wake the daemon for a packet. */
static bool
daemon_sleeps(struct fixture_client *c)
{
	return asleep_wake_wanted(&c->region.daemon->tx_asleep, &c->daemon_woken);
}

TEST(the_daemon_sleeps_only_on_empty_rings)
{
	struct switch_fixture b;
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	assert_true(sw_sleep(b.sw));
	assert_true(daemon_sleeps(&b.c[0]));
	sw_awake(b.sw);
	assert_false(daemon_sleeps(&b.c[1]));
	assert_true(sw_sleep(b.sw));
	assert_true(daemon_sleeps(&b.c[0]));
	assert_false(daemon_sleeps(&b.c[0]));
	sw_awake(b.sw);
	client_post(&b.c[0], 0, b.c[0].qpn,
		frame_spec_build(region_tx_buf(&b.c[0].region, 0), &f));
	assert_false(sw_sleep(b.sw));
	assert_false(daemon_sleeps(&b.c[0]));
	sw_run(b.sw, 0);
	assert_true(client_received(&b.c[1], &f));
	fixture_close(&b);
}

TEST(invalid_configuration_is_refused)
{
	struct sw_conf conf;
	struct switch_fixture b;
	struct sw *sw;

	fixture_open(&b);
	conf = b.sw->conf;
	conf.net.addr_count = 0;
	assert_int_equal(sw_create(&conf, client_wake, &sw), -EINVAL);
	conf = b.sw->conf;
	conf.qpn_base = 1;
	assert_int_equal(sw_create(&conf, client_wake, &sw), -EINVAL);
	conf = b.sw->conf;
	conf.limits.geom.rx_slots = 3;
	assert_int_equal(sw_create(&conf, client_wake, &sw), -EINVAL);
	fixture_close(&b);
}
