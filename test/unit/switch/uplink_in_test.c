/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames received by the daemon's port, and the clients that get them. */
#include "uplink_fixture.h"

static void
arrive(struct uplink_fixture *u, const struct frame_spec *f)
{
	uint8_t frame[CLIENT_BUF_SIZE];
	struct pkt in = {.data = frame, .len = frame_spec_build(frame, f)};

	assert_true(fake_arrive(&u->port, 0, &in));
	up_pass(u);
}

/* A frame from the peer to client 1. */
static struct frame_spec
from_peer(const struct uplink_fixture *u)
{
	struct frame_spec f = frame_spec_valid(&u->b);

	memcpy(f.sgid, u->b.other, 16);
	return f;
}

#define expect_rx_drop(u, f, reason)                                                     \
	do {                                                                             \
		uint64_t before_ = (u)->up->stats.drop[DROP_##reason];                   \
		arrive(u, f);                                                            \
		assert_int_equal((u)->up->stats.drop[DROP_##reason], before_ + 1);       \
		for (unsigned i_ = 0; i_ < CLIENTS; i_++)                                \
			assert_false(client_received(&(u)->b.c[i_], NULL));              \
	} while (0)

TEST(frames_are_delivered_by_qpn)
{
	struct uplink_fixture u;
	struct frame_spec f;

	up_open(&u);
	f = from_peer(&u);
	for (f.payload = 0; f.payload < 3 * CLIENT_SLOTS; f.payload++) {
		arrive(&u, &f);
		assert_true(client_received(&u.b.c[1], &f));
	}
	memcpy(f.sgid, u.other6, 16);
	memcpy(f.dgid, u.addr6, 16);
	f.dest_qpn = u.b.c[2].qpn;
	arrive(&u, &f);
	assert_true(client_received(&u.b.c[2], &f));
	assert_int_equal(u.up->stats.rx_roce, 3 * CLIENT_SLOTS + 1);
	/* A full ring drops frames, and blocks no other client. */
	for (unsigned i = 0; i < CLIENT_SLOTS + 5; i++)
		arrive(&u, &f);
	assert_int_equal(u.b.c[2].client->stats.rx_full, 5);
	up_close(&u);
}

TEST(frames_for_others_are_dropped)
{
	struct uplink_fixture u;
	struct frame_spec f;

	up_open(&u);
	f = from_peer(&u);
	f.dest_qpn = FIRST_QPN + QPN_COUNT - 1; /* a free QPN */
	expect_rx_drop(&u, &f, qpn);
	f.dest_qpn = 0;
	expect_rx_drop(&u, &f, qpn);
	f.dest_qpn = 1; /* takes datagrams only */
	expect_rx_drop(&u, &f, qp_type);
	f = from_peer(&u);
	f.dgid[15]++; /* another host's address */
	expect_rx_drop(&u, &f, address);
	f = from_peer(&u);
	memcpy(f.sgid, u.b.addr, 16); /* our address as source */
	expect_rx_drop(&u, &f, address);
	f = from_peer(&u);
	f.dest_qpn = 0xFFFFFF; /* not a group's address */
	f.opcode = OPCODE_UD_SEND_ONLY;
	expect_rx_drop(&u, &f, address);
	assert_int_equal(gid_parse("239.1.2.3", f.dgid, NULL), 0);
	expect_rx_drop(&u, &f, group);
	f.dest_qpn = u.b.c[1].qpn; /* a group's address with the QPN of one QP */
	expect_rx_drop(&u, &f, address);
	up_close(&u);
}

/* IPv6 packets that claim the IPv4 addresses of the daemon and of its peer. */
TEST(mapped_addresses_are_dropped)
{
	struct uplink_fixture u;
	struct frame_spec f;
	uint8_t frame[CLIENT_BUF_SIZE];
	struct pkt in = {.data = frame};

	up_open(&u);
	f = from_peer(&u);
	f.sgid[0] = f.dgid[0] = 0x20; /* so that an IPv6 packet is built */
	in.len = frame_spec_build(frame, &f);
	memcpy(frame + 14 + 8, u.b.other, 16);
	memcpy(frame + 14 + 24, u.b.addr, 16);
	assert_true(fake_arrive(&u.port, 0, &in));
	up_pass(&u);
	assert_int_equal(u.up->stats.drop[DROP_mapped_address], 1);
	assert_false(client_received(&u.b.c[1], NULL));
	up_close(&u);
}

TEST(random_header_bytes)
{
	uint64_t rng = 1;
	struct uplink_fixture u;
	struct frame_spec f;
	uint8_t frame[CLIENT_BUF_SIZE];

	up_open(&u);
	f = from_peer(&u);
	for (unsigned i = 0; i < 20000; i++) {
		struct pkt in = {.data = frame, .len = frame_spec_build(frame, &f)};

		for (uint64_t n = rand_below(&rng, 4); n > 0; n--)
			frame[rand_below(&rng, 90)] = (uint8_t)rand_below(&rng, 256);
		if (rand_below(&rng, 8) == 0)
			in.len = (uint16_t)rand_below(&rng, in.len + 1u);
		if (in.len == 0)
			continue;
		assert_true(fake_arrive(&u.port, 0, &in));
		up_pass(&u);
		while (client_received(&u.b.c[1], NULL))
			;
		assert_false(client_received(&u.b.c[2], NULL));
		(void)up_sent(&u);
	}
	assert_in_range(u.up->stats.rx_roce, 4000, 19000);
	up_close(&u);
}

TEST(group_traffic_in_both_directions)
{
	struct uplink_fixture u;
	struct frame_spec f;
	uint8_t gid[16];
	unsigned before;

	up_open(&u);
	up_pass(&u);
	assert_false(up_sent(&u));
	before = u.peer_rx_control;
	assert_int_equal(gid_parse("239.1.2.3", gid, NULL), 0);
	for (unsigned i = 1; i < CLIENTS; i++)
		assert_int_equal(sw_group_join(u.b.sw, u.b.c[i].qpn, gid), 0);
	up_pass(&u);
	assert_false(up_sent(&u));
	assert_int_equal(u.peer_rx_control, before + 1); /* one IGMP report */
	f = from_peer(&u);
	f.opcode = OPCODE_UD_SEND_ONLY;
	f.dest_qpn = 0xFFFFFF;
	memcpy(f.dgid, gid, 16);
	arrive(&u, &f);
	assert_true(client_received(&u.b.c[1], &f));
	assert_true(client_received(&u.b.c[2], &f));
	assert_false(client_received(&u.b.c[0], NULL));
	/* A client's datagram goes to the other members and to the link. */
	memcpy(f.sgid, u.b.addr, 16);
	f.deth_qpn = u.b.c[0].qpn;
	up_post(&u, &f);
	up_pass(&u);
	assert_true(client_received(&u.b.c[1], &f));
	assert_true(client_received(&u.b.c[2], &f));
	assert_true(up_sent(&u));
	assert_memory_equal(u.frame, "\x01\x00\x5e\x01\x02\x03", 6);
	assert_memory_equal(u.frame + 6, u.port.port.mac, 6);
	/* With its last member the switch leaves the group on the link. */
	assert_int_equal(sw_group_leave(u.b.sw, u.b.c[1].qpn, gid), 0);
	client_detach(&u.b.c[2]);
	assert_int_equal(net_leave(u.up->net, gid), -EINVAL);
	up_close(&u);
}
