/* SPDX-License-Identifier: BSD-3-Clause */
/* Receivers with a full ring: for how long their senders are blocked. */
#include "switch/sw_client.h"
#include "switch_fixture.h"

#define ALICE 1000
#define BOB 1001

TEST(full_ring_blocks_the_sender)
{
	struct switch_fixture b;
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	for (unsigned i = 0; i < CLIENT_SLOTS + 5; i++)
		client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_int_equal(b.c[1].client->stats.rx_packets, CLIENT_SLOTS);
	assert_int_equal(b.c[0].client->stats.tx_blocked, 5);
	assert_false(sw_sleep(b.sw)); /* packets are pending */
	/* The receiver empties half of its ring just before SW_BACKPRESSURE_NS is over,
	 * each time: no packet is lost. */
	for (unsigned turn = 0; turn < 20; turn++) {
		b.now += SW_BACKPRESSURE_NS - 1;
		for (unsigned i = 0; i < CLIENT_SLOTS / 2; i++)
			assert_true(client_received(&b.c[1], &f));
		sw_run(b.sw, b.now);
		for (unsigned i = 0; i < CLIENT_SLOTS / 2 && turn < 19; i++)
			client_send(&b, &b.c[0], b.c[0].qpn, &f);
	}
	while (client_received(&b.c[1], &f))
		sw_run(b.sw, b.now);
	assert_int_equal(b.c[1].client->stats.rx_full, 0);
	assert_int_equal(b.c[0].client->stats.tx_packets,
		CLIENT_SLOTS + 5 + 19 * CLIENT_SLOTS / 2);
	assert_int_equal(
		b.c[1].client->stats.rx_packets, b.c[0].client->stats.tx_packets);
	fixture_close(&b);
}

TEST(slow_receiver_loses_packets)
{
	struct switch_fixture b;
	struct frame_spec f, other;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	other = f;
	other.opcode = OPCODE_UD_SEND_ONLY;
	other.deth_qpn = b.c[0].qpn;
	other.dest_qpn = b.c[2].qpn;
	for (unsigned i = 0; i < CLIENT_SLOTS + 5; i++)
		client_send(&b, &b.c[0], b.c[0].qpn, &f);
	client_post(&b.c[0], 1, b.c[0].qpn,
		frame_spec_build(region_tx_buf(&b.c[0].region, 1), &other));
	sw_run(b.sw, b.now);
	assert_false(client_received(&b.c[2], NULL)); /* queued behind the blocked ones */
	assert_true(client_received(&b.c[1], &f));    /* one is less than half a ring */
	b.now += SW_BACKPRESSURE_NS;
	/* first the packets seen before, then the rest */
	for (unsigned turn = 0; turn < 2; turn++)
		sw_run(b.sw, b.now);
	assert_true(client_received(&b.c[2], &other));
	assert_int_equal(b.c[1].client->stats.rx_full, 4);
	assert_int_equal(b.c[0].client->stats.tx_packets, CLIENT_SLOTS + 6);
	client_send(&b, &b.c[0], b.c[0].qpn, &f); /* the sender is not blocked again */
	assert_int_equal(b.c[1].client->stats.rx_full, 5);
	while (client_received(&b.c[1], &f))
		;
	for (unsigned i = 0; i < CLIENT_SLOTS + 1; i++)
		client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_int_equal(b.c[1].client->stats.rx_full, 5); /* after a whole ring it is */
	fixture_close(&b);
}

TEST(final_flush_does_not_wait)
{
	struct switch_fixture b;
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	for (unsigned i = 0; i < CLIENT_SLOTS + 5; i++)
		client_send(&b, &b.c[0], b.c[0].qpn, &f);
	client_detach(&b.c[0]);
	assert_int_equal(b.c[1].client->stats.rx_full, 5);
	fixture_close(&b);
}

/* Client 0 sends whenever it may, for a time. Returns for how long it was blocked. */
static uint64_t
send_all_the_time(struct switch_fixture *b, const struct frame_spec *f, uint64_t time_ns,
	uint64_t step_ns, uint64_t take_every_ns, unsigned take)
{
	struct fixture_client *from = &b->c[0];
	uint64_t blocked = 0, end = b->now + time_ns, take_ns = b->now;
	uint16_t len = frame_spec_build(region_tx_buf(&from->region, 0), f);

	for (; b->now < end; b->now += step_ns) {
		uint64_t before = from->client->stats.tx_blocked;

		assert_true(ring_prod_refresh(&from->tx));
		while (ring_room(&from->tx) != 0) {
			struct ring_desc desc = {.qpn = from->qpn, .len = len};

			ring_put(&from->tx, &desc);
		}
		ring_publish(&from->tx);
		if (b->now >= take_ns) {
			take_ns += take_every_ns;
			for (unsigned i = 0; i < take && client_received(&b->c[1], NULL);
				i++)
				;
		}
		sw_run(b->sw, b->now);
		if (from->client->stats.tx_blocked != before)
			blocked += step_ns;
	}
	return blocked;
}

static void
users_open(struct switch_fixture *b, struct frame_spec *f)
{
	fixture_open_users(b, (const uint32_t[CLIENTS]){ALICE, BOB, BOB});
	b->now = NS_PER_SEC;
	*f = frame_spec_valid(b);
}

TEST(stopped_receiver_of_another_user_blocks_once)
{
	struct switch_fixture b;
	struct frame_spec f;
	uint64_t blocked;

	users_open(&b, &f);
	blocked = send_all_the_time(&b, &f, 10 * NS_PER_SEC, NS_PER_MS, TIME_NEVER, 0);
	assert_in_range(blocked, SW_BACKPRESSURE_OTHERS_NS - NS_PER_MS,
		SW_BACKPRESSURE_OTHERS_NS + NS_PER_MS);
	assert_true(b.c[1].client->stats.rx_unheld != 0);
	assert_int_equal(b.c[1].client->stats.rx_unheld, b.c[1].client->stats.rx_full);
	fixture_close(&b);
}

/* So it is where the two have one uid that several users may have. */
TEST(stopped_receiver_of_a_shared_uid_blocks_as_that_of_another_user)
{
	struct switch_fixture b;
	struct frame_spec f;
	uint64_t blocked;

	fixture_open_users(&b, (const uint32_t[CLIENTS]){BOB, BOB, BOB});
	b.c[1].client->shares_uid = true;
	b.now = NS_PER_SEC;
	f = frame_spec_valid(&b);
	blocked = send_all_the_time(&b, &f, 10 * NS_PER_SEC, NS_PER_MS, TIME_NEVER, 0);
	assert_in_range(blocked, SW_BACKPRESSURE_OTHERS_NS - NS_PER_MS,
		SW_BACKPRESSURE_OTHERS_NS + NS_PER_MS);
	fixture_close(&b);
}

/* A client is of its own user in any case. */
TEST(client_that_sends_to_itself_waits_as_for_its_user)
{
	struct switch_fixture b;

	fixture_open_users(&b, (const uint32_t[CLIENTS]){BOB, BOB, BOB});
	b.c[0].client->shares_uid = true;
	b.now = NS_PER_SEC;
	sw_run(b.sw, b.now);
	assert_true(ring_prod_refresh(&b.c[0].client->rx));
	while (ring_room(&b.c[0].client->rx) != 0)
		ring_put(&b.c[0].client->rx, &(struct ring_desc){.len = 0});
	ring_publish(&b.c[0].client->rx);
	(void)sw_client_ring_full(b.c[0].client, b.c[0].client);
	b.sw->threads[0]->now += SW_BACKPRESSURE_OTHERS_NS;
	assert_true(sw_client_ring_full(b.c[0].client, b.c[0].client));
	assert_int_equal(b.c[0].client->stats.rx_unheld, 0);
	fixture_close(&b);
}

/* A receiver that takes half of its ring just before the sender need not wait any more:
 * senders of another user wait for 1 % of the time. */
TEST(receiver_that_drains_slowly_is_charged)
{
	struct switch_fixture b;
	struct frame_spec f;
	uint64_t blocked;

	users_open(&b, &f);
	blocked = send_all_the_time(&b, &f, 60 * NS_PER_SEC, NS_PER_MS / 4,
		SW_BACKPRESSURE_OTHERS_NS - NS_PER_MS, CLIENT_SLOTS / 2);
	assert_in_range(blocked, 500 * NS_PER_MS, SW_HOLD_MAX_NS + 700 * NS_PER_MS);
	/* The user is charged, not the client: a new one finds the time used up. */
	client_detach(&b.c[1]);
	client_attach(&b, &b.c[1]);
	assert_int_equal(client_set_peer(&b, &b.c[0], b.c[0].qpn, b.addr, b.c[1].qpn), 0);
	assert_int_equal(client_set_peer(&b, &b.c[1], b.c[1].qpn, b.addr, b.c[0].qpn), 0);
	f = frame_spec_valid(&b);
	blocked = send_all_the_time(&b, &f, NS_PER_SEC, NS_PER_MS / 4,
		SW_BACKPRESSURE_OTHERS_NS - NS_PER_MS, CLIENT_SLOTS / 2);
	assert_in_range(blocked, 0, 20 * NS_PER_MS);
	fixture_close(&b);
}

/* It takes a packet every 2 us, always less than is sent. */
TEST(receiver_that_keeps_busy_is_not_charged)
{
	struct switch_fixture b;
	struct frame_spec f;
	uint64_t blocked;

	users_open(&b, &f);
	blocked = send_all_the_time(&b, &f, NS_PER_SEC, 8 * NS_PER_US, 16 * NS_PER_US, 8);
	assert_in_range(blocked, NS_PER_SEC / 4, NS_PER_SEC);
	assert_int_equal(b.c[1].client->stats.rx_full, 0);
	fixture_close(&b);
}

/* A member that never takes a packet loses them. The sender and the other member notice
 * nothing. */
TEST(group_loses_at_its_slow_member)
{
	struct switch_fixture b;
	struct frame_spec f;
	uint8_t gid[16];

	fixture_open(&b);
	assert_int_equal(gid_parse("239.1.2.3", gid, NULL), 0);
	f = frame_spec_valid(&b);
	f.opcode = OPCODE_UD_SEND_ONLY;
	f.deth_qpn = b.c[0].qpn;
	f.dest_qpn = 0xFFFFFF;
	memcpy(f.dgid, gid, 16);
	assert_int_equal(sw_group_join(b.sw, b.c[1].qpn, gid), 0);
	assert_int_equal(sw_group_join(b.sw, b.c[2].qpn, gid), 0);
	for (unsigned i = 0; i < CLIENT_SLOTS + 3; i++) {
		client_send(&b, &b.c[0], b.c[0].qpn, &f);
		assert_true(client_received(&b.c[1], &f));
	}
	assert_int_equal(b.c[0].client->stats.tx_blocked, 0);
	assert_int_equal(b.c[2].client->stats.rx_packets, CLIENT_SLOTS);
	assert_int_equal(b.c[2].client->stats.rx_full, 3);
	fixture_close(&b);
}
