/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client may send, and where it arrives. */
#include "switch_fixture.h"

#include <rte_ether.h>
#include <rte_ip.h>

/* Sends the frame, and expects it to arrive nowhere and to count under this reason. */
#define expect_tx_drop(b, frame, qpn_, reason)                                           \
	do {                                                                             \
		struct fixture_client *from_ = &(b)->c[0];                               \
		uint64_t before_ = from_->client->stats.drop_##reason;                   \
		client_send(b, from_, qpn_, frame);                                      \
		assert_int_equal(from_->client->stats.drop_##reason, before_ + 1);       \
		for (unsigned i_ = 0; i_ < CLIENTS; i_++)                                \
			assert_false(client_received(&(b)->c[i_], NULL));                \
	} while (0)

TEST(packets_reach_the_peer)
{
	struct switch_fixture b;
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	for (uint32_t i = 0; i < 3 * CLIENT_SLOTS; i++) {
		f.payload = i % 300;
		client_send(&b, &b.c[0], b.c[0].qpn, &f);
		assert_true(client_received(&b.c[1], &f));
		assert_false(client_received(&b.c[2], NULL));
	}
	assert_int_equal(b.c[0].client->stats.tx_packets, 3 * CLIENT_SLOTS);
	assert_int_equal(b.c[1].client->stats.rx_packets, 3 * CLIENT_SLOTS);
	assert_int_equal(b.c[1].client->stats.rx_bytes, b.c[0].client->stats.tx_bytes);
	fixture_close(&b);
}

/* A READ response names no source QP: the descriptor does. */
TEST(responses_reach_the_peer)
{
	struct switch_fixture b;
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	f.opcode = OPCODE_RC_READ_RESPONSE_MIDDLE;
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_true(client_received(&b.c[1], &f));
	f.opcode = OPCODE_RC_ACKNOWLEDGE;
	f.payload = 0;
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_true(client_received(&b.c[1], &f));
	fixture_close(&b);
}

TEST(qpn_of_another_client_sends_nothing)
{
	struct switch_fixture b;
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	expect_tx_drop(&b, &f, b.c[1].qpn, not_owner);
	expect_tx_drop(&b, &f, FIRST_QPN + QPN_COUNT - 1, not_owner); /* a free QPN */
	expect_tx_drop(&b, &f, 0, not_owner);
	expect_tx_drop(&b, &f, UINT32_MAX, not_owner);
	fixture_close(&b);
}

TEST(other_destinations_are_dropped)
{
	struct switch_fixture b;
	struct frame_spec f;
	uint32_t fresh;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	f.dest_qpn = b.c[2].qpn;
	expect_tx_drop(&b, &f, b.c[0].qpn, peer);
	f = frame_spec_valid(&b);
	memcpy(f.dgid, b.other, 16);
	expect_tx_drop(&b, &f, b.c[0].qpn, peer);
	f = frame_spec_valid(&b);
	fresh = client_take_qpn(&b, &b.c[0]);
	expect_tx_drop(&b, &f, fresh, peer); /* no peer registered */
	fixture_close(&b);
}

TEST(both_ends_must_register_the_peer)
{
	struct switch_fixture b;
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	/* A client may name any QP its peer. The peer has to name it in turn. */
	assert_int_equal(client_set_peer(&b, &b.c[2], b.c[2].qpn, b.addr, b.c[1].qpn), 0);
	client_send(&b, &b.c[2], b.c[2].qpn, &f);
	assert_int_equal(b.c[2].client->stats.drop_not_connected, 1);
	assert_false(client_received(&b.c[1], NULL));
	assert_int_equal(client_set_peer(&b, &b.c[1], b.c[1].qpn, b.addr, b.c[2].qpn), 0);
	client_send(&b, &b.c[2], b.c[2].qpn, &f);
	assert_true(client_received(&b.c[1], &f));
	/* A QP whose peer is on another host has no peer here. */
	assert_int_equal(
		client_set_peer(&b, &b.c[1], b.c[1].qpn, b.other, b.c[2].qpn), 0);
	client_send(&b, &b.c[2], b.c[2].qpn, &f);
	assert_int_equal(b.c[2].client->stats.drop_not_connected, 2);
	fixture_close(&b);
}

/* Makes a free QPN the next one of the client, as if all others of its entry had been in
 * use meanwhile. */
static void
client_reuse_qpn(struct switch_fixture *b, struct fixture_client *c, uint32_t qpn)
{
	b->sw->conf.limits.qps = QPN_COUNT;
	b->sw->qpns.qps[qpn & b->sw->qpns.mask].qpn = qpn - QPN_COUNT;
	while ((c->qpn = client_take_qpn(b, c)) != qpn)
		;
}

/* Client 1 destroys its QP. Client 2 gets the QPN, and names client 0 as its peer. That
 * does not make it the peer of client 0. */
TEST(next_owner_of_a_qpn_has_no_connection)
{
	struct sw_request give = {.type = SW_QPN_GIVE};
	struct switch_fixture b;
	struct frame_spec f, back;
	struct sw_reply reply;
	uint32_t qpn;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	back = f;
	back.dest_qpn = b.c[0].qpn;
	give.qpn = qpn = b.c[1].qpn;
	client_request(&b, &b.c[1], &give, &reply);
	assert_int_equal(reply.error, 0);
	expect_tx_drop(&b, &f, b.c[0].qpn, no_qp);
	client_reuse_qpn(&b, &b.c[2], qpn);
	assert_int_equal(client_set_peer(&b, &b.c[2], qpn, b.addr, b.c[0].qpn), 0);
	expect_tx_drop(&b, &f, b.c[0].qpn, not_connected);
	client_send(&b, &b.c[2], qpn, &back);
	assert_int_equal(b.c[2].client->stats.drop_not_connected, 1);
	assert_false(client_received(&b.c[0], NULL));
	/* It is the peer once client 0 has named it. */
	assert_int_equal(client_set_peer(&b, &b.c[0], b.c[0].qpn, b.addr, qpn), 0);
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_true(client_received(&b.c[2], &f));
	client_send(&b, &b.c[2], qpn, &back);
	assert_true(client_received(&b.c[0], &back));
	fixture_close(&b);
}

/* A QP that registers a QPN which is not in use is not connected to the later owner of the
 * QPN. */
TEST(unused_qpn_is_no_peer)
{
	struct switch_fixture b;
	struct frame_spec f;
	uint32_t qpn = FIRST_QPN + CLIENTS;

	fixture_open(&b);
	assert_int_equal(client_set_peer(&b, &b.c[0], b.c[0].qpn, b.addr, qpn), 0);
	assert_int_equal(client_take_qpn(&b, &b.c[2]), qpn);
	assert_int_equal(client_set_peer(&b, &b.c[2], qpn, b.addr, b.c[0].qpn), 0);
	f = frame_spec_valid(&b);
	f.dest_qpn = qpn;
	expect_tx_drop(&b, &f, b.c[0].qpn, not_connected);
	fixture_close(&b);
}

TEST(other_source_addresses_are_dropped)
{
	struct switch_fixture b;
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	memcpy(f.sgid, b.other, 16);
	expect_tx_drop(&b, &f, b.c[0].qpn, source_address);
	f.opcode = OPCODE_UD_SEND_ONLY;
	f.deth_qpn = b.c[0].qpn;
	expect_tx_drop(&b, &f, b.c[0].qpn, source_address);
	fixture_close(&b);
}

TEST(management_qps_are_unreachable)
{
	struct switch_fixture b;
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	f.opcode = OPCODE_UD_SEND_ONLY;
	f.deth_qpn = b.c[0].qpn;
	for (f.dest_qpn = 0; f.dest_qpn < 2; f.dest_qpn++) {
		f.opcode = OPCODE_UD_SEND_ONLY;
		expect_tx_drop(&b, &f, b.c[0].qpn, special_qpn);
		f.opcode = OPCODE_RC_SEND_ONLY;
		expect_tx_drop(&b, &f, b.c[0].qpn, special_qpn);
	}
	fixture_close(&b);
}

TEST(deth_must_name_the_sender)
{
	struct switch_fixture b;
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	f.opcode = OPCODE_UD_SEND_ONLY;
	f.deth_qpn = b.c[1].qpn;
	f.dest_qpn = b.c[2].qpn;
	expect_tx_drop(&b, &f, b.c[0].qpn, deth);
	f.deth_qpn = b.c[0].qpn;
	client_send(&b, &b.c[0], b.c[0].qpn, &f); /* a UD QP may send to any QP */
	assert_true(client_received(&b.c[2], &f));
	f.dest_qpn = FIRST_QPN + QPN_COUNT - 1;
	expect_tx_drop(&b, &f, b.c[0].qpn, no_qp);
	memcpy(f.dgid, b.other, 16);
	expect_tx_drop(&b, &f, b.c[0].qpn, no_route); /* the switch has no port */
	fixture_close(&b);
}

TEST(descriptors_out_of_bounds_are_dropped)
{
	struct switch_fixture b;
	struct fixture_client *c = &b.c[0];

	fixture_open(&b);
	client_post(c, CLIENT_BUFS, c->qpn, 100);
	client_post(c, UINT32_MAX, c->qpn, 100);
	client_post(c, 0, c->qpn, CLIENT_BUF_SIZE + 1);
	client_post(c, 0, c->qpn, UINT16_MAX);
	sw_run(b.sw, 0);
	assert_int_equal(c->client->stats.drop_descriptor, 4);
	assert_int_equal(c->client->stats.tx_packets, 0);
	fixture_close(&b);
}

/* Frames cut short at each length are dropped. */
TEST(malformed_frames_are_dropped)
{
	struct switch_fixture b;
	struct fixture_client *c = &b.c[0];
	struct frame_spec f;
	uint8_t *buf;
	uint16_t len;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	buf = region_tx_buf(&c->region, 0);
	len = frame_spec_build(buf, &f);
	for (uint16_t cut = 0; cut < len; cut++) {
		client_post(c, 0, c->qpn, cut);
		sw_run(b.sw, 0);
	}
	assert_int_equal(c->client->stats.drop_malformed, len);
	/* Bytes behind the packet make it malformed, too. */
	client_post(c, 0, c->qpn, len + 4);
	sw_run(b.sw, 0);
	assert_int_equal(c->client->stats.drop_malformed, len + 1);
	assert_false(client_received(&b.c[1], NULL));
	fixture_close(&b);
}

TEST(random_header_bytes)
{
	uint64_t seed = getenv("ROCADE_TEST_SEED") != NULL
				? strtoull(getenv("ROCADE_TEST_SEED"), NULL, 0)
				: 1;
	uint64_t rng = seed;
	struct switch_fixture b;
	struct fixture_client *c = &b.c[0];
	struct frame_spec f;
	uint64_t sum = 0;

	print_message("# ROCADE_TEST_SEED=%llu\n", (unsigned long long)seed);
	fixture_open(&b);
	f = frame_spec_valid(&b);
	for (unsigned i = 0; i < 20000; i++) {
		uint8_t *buf = region_tx_buf(&c->region, i % CLIENT_BUFS);
		uint16_t len = frame_spec_build(buf, &f);

		for (uint64_t n = rand_below(&rng, 4); n > 0; n--)
			buf[rand_below(&rng, 90)] = (uint8_t)rand_below(&rng, 256);
		client_post(c, i % CLIENT_BUFS, c->qpn, len);
		sw_run(b.sw, i);
		while (client_received(&b.c[1], NULL))
			sum++;
		assert_false(client_received(&b.c[2], NULL));
	}
	/* Some changes hit fields that the switch does not check (the PSN, the Q_Key
	 * ...). */
	assert_int_equal(c->client->stats.tx_packets, sum);
	assert_in_range(sum, 5000, 19000);
	fixture_close(&b);
}

/* A client may change its buffer after the post. The headers that arrive are those that
 * were checked. Here the client changes the source after the copy. */
TEST(checked_copy_is_delivered)
{
	struct switch_fixture b;
	struct fixture_client *c = &b.c[0];
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	client_send(&b, c, c->qpn, &f);
	memset(region_tx_buf(&c->region, 0), 0xFF, CLIENT_BUF_SIZE);
	assert_true(client_received(&b.c[1], &f));
	fixture_close(&b);
}

TEST(group_members_get_copies)
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
	expect_tx_drop(&b, &f, b.c[0].qpn, no_group);
	for (unsigned i = 0; i < CLIENTS; i++)
		assert_int_equal(sw_group_join(b.sw, b.c[i].qpn, gid), 0);
	assert_int_equal(sw_group_join(b.sw, client_take_qpn(&b, &b.c[1]), gid), 0);
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_false(client_received(&b.c[0], NULL)); /* not to the sender */
	assert_true(client_received(&b.c[1], &f));    /* one copy for both of its QPs */
	assert_false(client_received(&b.c[1], NULL));
	assert_true(client_received(&b.c[2], &f));
	f.dest_qpn = b.c[1].qpn;
	expect_tx_drop(&b, &f, b.c[0].qpn, special_qpn);
	fixture_close(&b);
}
