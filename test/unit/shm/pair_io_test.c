/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of a pair between two clients: which ones go by it, in which order, and which ones are
 * taken. */
#include "pair_fixture.h"

#define SLOTS 8 /* of the fixture's rings */

TEST(packets_go_by_the_pair)
{
	struct region_client *counters;
	struct pair_fixture f;

	fixture_open(&f);
	counters = f.b.d.region.client;
	/* Round the ring several times. */
	for (unsigned i = 0; i < 5 * SLOTS; i += 3) {
		assert_int_equal(side_send(&f.a, QP_1, 3, (uint8_t)i), 3);
		assert_int_equal(counters->pair_packets, i);
		side_expect(&f.b, 3, (uint8_t)i);
		assert_int_equal(counters->pair_packets, i + 3);
		assert_int_equal(counters->pair_bytes, 62 * (i + 3));
	}
	assert_int_equal(side_send(&f.b, QP_2, 1, 9), 1);
	side_expect(&f.a, 1, 9);
	assert_int_equal(daemon_finds(&f.a), 0);
	assert_int_equal(daemon_finds(&f.b), 0);
	assert_int_equal(f.b.stats.pair_tx, 1);
	assert_int_equal(f.b.stats.pair_not_connected + f.b.stats.pair_malformed, 0);
	fixture_close(&f);
}

TEST(received_packet_is_a_copy)
{
	struct pair_fixture f;
	struct pkt pkt;

	fixture_open(&f);
	assert_int_equal(side_send(&f.a, QP_1, 1, 7), 1);
	assert_int_equal(side_take(&f.b, &pkt, 1), 1);
	memset(side_pair(&f.a)->own->slots, 0xff,
		SLOTS * pair_slot_size(&f.a.shm->pairs.geom));
	assert_int_equal(((uint8_t *)pkt.data)[61], 7);
	assert_int_equal(pkt.room, 256);
	assert_int_equal(pkt.flags, PKT_RX_IPV4_CKSUM_OK);
	f.b.port.ops->rx_release(f.b.shm, &pkt, 1);
	fixture_close(&f);
}

/* The receiver has all that the QP has sent by the daemon before the QP sends by the pair. */
TEST(change_to_the_pair_keeps_the_order)
{
	struct pair_fixture f;
	struct pkt pkts[3];

	clients_open(&f);
	side_register(&f.a, QP_1, f.b.id, true);
	side_register(&f.b, QP_1, f.a.id, true);
	assert_int_equal(side_send(&f.a, QP_1, 2, 0), 2);
	pair_open(&f);
	assert_int_equal(side_send(&f.a, QP_1, 1, 2), 1);
	assert_int_equal(daemon_finds(&f.a), 3);
	daemon_forwards(&f.a, &f.b, 2);
	side_expect(&f.b, 2, 0);
	/* The third one is not there yet. */
	assert_int_equal(side_send(&f.a, QP_1, 1, 3), 1);
	assert_int_equal(daemon_finds(&f.a), 2);
	daemon_forwards(&f.a, &f.b, 1);
	assert_int_equal(side_take(&f.b, pkts, 1), 1);
	f.b.port.ops->rx_release(f.b.shm, pkts, 1);
	assert_int_equal(side_send(&f.a, QP_1, 1, 4), 1);
	assert_int_equal(daemon_finds(&f.a), 2);
	daemon_forwards(&f.a, &f.b, 2);
	assert_int_equal(side_send(&f.a, QP_1, 1, 5), 1);
	assert_int_equal(daemon_finds(&f.a), 0);
	side_expect(&f.b, 3, 3);
	fixture_close(&f);
}

/* The receiver knew of some packets of the daemon before others came, and then those of the pair. */
TEST(ring_of_the_daemon_is_emptied_first)
{
	struct pair_fixture f;
	struct pkt pkt;

	clients_open(&f);
	side_register(&f.a, QP_1, f.b.id, true);
	side_register(&f.b, QP_1, f.a.id, true);
	assert_int_equal(side_send(&f.a, QP_1, 2, 0), 2);
	daemon_forwards(&f.a, &f.b, 2);
	assert_int_equal(side_take(&f.b, &pkt, 1), 1);
	f.b.port.ops->rx_release(f.b.shm, &pkt, 1);
	assert_int_equal(side_send(&f.a, QP_1, 1, 2), 1);
	pair_open(&f);
	daemon_forwards(&f.a, &f.b, 1);
	assert_int_equal(side_send(&f.a, QP_1, 1, 3), 1);
	assert_int_equal(daemon_finds(&f.a), 0);
	side_expect(&f.b, 3, 1);
	fixture_close(&f);
}

/* Until the peer says that it accepts packets, or sends some. */
TEST(peer_has_to_accept)
{
	struct pair_fixture f;

	clients_open(&f);
	side_register(&f.a, QP_1, f.b.id, false);
	side_register(&f.a, QP_2, f.b.id, false);
	pair_open(&f);
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
	assert_int_equal(daemon_finds(&f.a), 1);
	daemon_forwards(&f.a, &f.b, 1);
	side_expect(&f.b, 1, 0);
	side_register(&f.b, QP_1, f.a.id, true);
	side_expect(&f.b, 0, 0); /* announces it */
	assert_int_equal(side_pair(&f.b)->prod, 1);
	side_expect(&f.a, 0, 0);
	assert_int_equal(f.a.stats.pair_not_connected, 0);
	assert_int_equal(side_send(&f.a, QP_1, 1, 1), 1);
	side_expect(&f.b, 1, 1);
	assert_int_equal(side_send(&f.a, QP_2, 1, 2), 1);
	assert_int_equal(daemon_finds(&f.a), 1);
	fixture_close(&f);
}

/* A partner writes a slot. */
static void
slot_write(struct pair_side *s, uint16_t len, uint16_t kind, uint32_t qpn,
	const uint8_t *bytes)
{
	struct shm_pair *pair = side_pair(s);
	struct pair_slot *slot =
		(struct pair_slot *)(pair->own->slots +
				     (pair->prod & (SLOTS - 1)) *
					     pair_slot_size(&s->shm->pairs.geom));

	slot->len = len;
	slot->kind = kind;
	slot->qpn = qpn;
	memcpy(slot->bytes, bytes, 256);
	__atomic_store_n(&slot->stamp, ++pair->prod, __ATOMIC_RELEASE);
}

struct fault {
	const char *name;
	uint32_t qpn; /* 0: QP_1 */
	uint8_t at, value;
	uint16_t len; /* 0: that of the packet */
	bool taken;
};

TEST(only_packets_of_connected_qps_are_taken)
{
	static const struct fault faults[] = {
		{.name = "none", .taken = true},
		{.name = "the shortest headers", .len = 54, .taken = true},
		{.name = "the longest packet", .len = 256, .taken = true},
		{.name = "short", .len = 53},
		{.name = "empty", .len = UINT16_MAX},
		{.name = "another partner's QP", .qpn = QP_OTHER},
		{.name = "QP without a peer", .qpn = QP_UD},
		{.name = "unknown QP", .qpn = 33},
		{.name = "same entry", .qpn = QP_1 + 64},
		{.name = "QP 1", .qpn = 1},
		{.name = "QP 0", .qpn = UINT32_MAX},
		{.name = "multicast", .qpn = 0xffffff},
		{.name = "VLAN tag", .at = 12, .value = 0x81},
		{.name = "IPv4 options", .at = 14, .value = 0x46},
		{.name = "IP version", .at = 14, .value = 0x65},
		{.name = "TCP", .at = 23, .value = 6},
		{.name = "UDP port", .at = 37, .value = 1},
		{.name = "UDP port, high byte", .at = 36, .value = 1},
	};
	struct pair_fixture f;

	fixture_open(&f);
	for (unsigned i = 0; i < RTE_DIM(faults); i++) {
		const struct fault *fault = &faults[i];
		uint8_t bytes[256] = {0};
		uint64_t dropped = f.b.stats.pair_not_connected;
		uint16_t len = packet_fill(bytes, fault->qpn == 0 ? QP_1 : fault->qpn, 0);
		struct pkt pkt;

		if (fault->qpn == UINT32_MAX)
			memset(bytes + 47, 0, 3);
		if (fault->at != 0)
			bytes[fault->at] = fault->value;
		if (fault->len != 0)
			len = fault->len == UINT16_MAX ? 0 : fault->len;
		slot_write(&f.a, len, PAIR_PACKET, 0, bytes);
		if (side_take(&f.b, &pkt, 1) != fault->taken)
			fail_msg("%s: taken: %d", fault->name, !fault->taken);
		if (fault->taken) {
			assert_int_equal(pkt.len, len);
			f.b.port.ops->rx_release(f.b.shm, &pkt, 1);
		}
		assert_int_equal(f.b.stats.pair_not_connected, dropped + !fault->taken);
		assert_int_equal(f.b.stats.pair_malformed, 0);
		assert_int_equal(f.b.shm->pairs.free_count, PAIR_RX_BUFFERS);
	}
	fixture_close(&f);
}

TEST(ipv6_packets_are_taken)
{
	uint8_t bytes[256] = {0};
	struct pair_fixture f;
	struct pkt pkt;

	fixture_open(&f);
	bytes[12] = 0x86;
	bytes[13] = 0xdd;
	bytes[20] = IPPROTO_UDP;
	bytes[56] = ROCE_UDP_PORT >> 8;
	bytes[57] = ROCE_UDP_PORT & 0xff;
	bytes[69] = QP_2;
	slot_write(&f.a, 74, PAIR_PACKET, 0, bytes);
	assert_int_equal(side_take(&f.b, &pkt, 1), 1);
	f.b.port.ops->rx_release(f.b.shm, &pkt, 1);
	slot_write(&f.a, 73, PAIR_PACKET, 0, bytes); /* the BTH is cut off */
	bytes[20] = 6;
	slot_write(&f.a, 74, PAIR_PACKET, 0, bytes);
	assert_int_equal(side_take(&f.b, &pkt, 1), 0);
	assert_int_equal(f.b.stats.pair_not_connected, 2);
	fixture_close(&f);
}

TEST(malformed_slots_are_dropped)
{
	uint8_t bytes[256] = {0};
	struct pair_fixture f;

	fixture_open(&f);
	(void)packet_fill(bytes, QP_1, 5);
	slot_write(&f.a, 257, PAIR_PACKET, 0, bytes);
	slot_write(&f.a, 62, 0, 0, bytes);
	slot_write(&f.a, 62, PAIR_CONNECTED + 1, QP_1, bytes);
	slot_write(&f.a, 62, PAIR_PACKET, 0, bytes);
	side_expect(&f.b, 1, 5);
	assert_int_equal(f.b.stats.pair_malformed, 3);
	slot_write(&f.a, 0, PAIR_CONNECTED, QP_OTHER, bytes);
	slot_write(&f.a, 0, PAIR_CONNECTED, 1, bytes);
	side_expect(&f.b, 0, 0);
	assert_int_equal(f.b.stats.pair_not_connected, 2);
	fixture_close(&f);
}

/* While the daemon's answer is under way, it is not known whether the packet is accepted. */
TEST(packet_waits_for_the_answer_of_the_daemon)
{
	struct pair_fixture f;

	fixture_open(&f);
	pairs_register_begin(f.b.shm, QP_1);
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
	assert_int_equal(side_send(&f.a, QP_2, 1, 1), 1);
	side_expect(&f.b, 0, 0);
	assert_int_equal(f.b.stats.pair_not_connected, 0);
	pairs_register_end(f.b.shm, QP_1, QP_1, f.a.id, true);
	side_expect(&f.b, 2, 0);
	pairs_register_begin(f.b.shm, QP_1);
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
	pairs_register_end(f.b.shm, QP_1, QP_1, 0, false); /* it failed */
	side_expect(&f.b, 0, 0);
	assert_int_equal(f.b.stats.pair_not_connected, 1);
	fixture_close(&f);
}
