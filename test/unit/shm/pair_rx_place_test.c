/* SPDX-License-Identifier: BSD-3-Clause */
/* Long packets that come by a pair: the headers are copied, the payload is read in the slot, which the
 * partner gets back when the packet is released. */
#include "pair_long_fixture.h"

/* Sends n packets of this length to QP_1, with numbers from `number` on. */
static void
long_send(unsigned n, uint16_t len, uint8_t number)
{
	struct pkt pkts[SLOTS];
	const struct port_ops *ops = f.a.port.ops;
	unsigned got = ops->tx_alloc(f.a.shm, pkts, n), sent;

	for (unsigned i = 0; i < got; i++) {
		long_packet_fill(pkts[i].data, len, QP_1, (uint8_t)(number + i));
		pkts[i].len = len;
		pkts[i].flags = QP_1 << PKT_TX_QPN_SHIFT;
	}
	sent = ops->tx_burst(f.a.shm, pkts, got);
	assert_int_equal(sent, n);
}

static struct pair_slot *
slot_at(uint32_t index)
{
	return (struct pair_slot *)(side_pair(&f.a)->own->slots +
				    (index & (SLOTS - 1)) * f.a.shm->pairs.slot_size);
}

/* Returns how many packets the partner believes to be taken. */
static uint32_t
told(void)
{
	return side_pair(&f.b)->own->cons;
}

static void
take(struct pkt *pkts, unsigned n)
{
	assert_int_equal(side_take(&f.b, pkts, BURST), n);
}

static void
release(struct pkt *pkts, unsigned n)
{
	f.b.port.ops->rx_release(f.b.shm, pkts, n);
}

TEST_WITH(payload_is_read_in_the_slot, setup, teardown)
{
	uint32_t begin = told(), index = side_pair(&f.a)->prod;
	struct pkt pkt;

	for (uint8_t i = 0; i < 3 * SLOTS; i++) {
		uint16_t len = (uint16_t)(LONG + 4 * i);

		long_send(1, len, i);
		take(&pkt, 1);
		assert_true(is_number(&pkt, len, i));
		assert_int_equal(pkt.flags, PKT_RX_IPV4_CKSUM_OK | PKT_RX_HEADERS);
		assert_memory_equal(pkt.data, slot_at(index + i)->bytes, PARSE_HEADERS);
		slot_at(index + i)->bytes[len - 1]++;
		assert_false(is_number(&pkt, len, i));
		assert_int_equal(told(), begin + i);
		release(&pkt, 1);
		assert_int_equal(told(), begin + i + 1);
	}
	assert_int_equal(f.b.stats.pair_rx_placed, 3 * SLOTS);
	assert_int_equal(f.b.d.region.client->pair_packets, 3 * SLOTS);
	long_send(1, LONG - 1, 9);
	take(&pkt, 1);
	assert_int_equal(pkt.flags, PKT_RX_IPV4_CKSUM_OK);
	assert_true(is_number(&pkt, LONG - 1, 9));
	release(&pkt, 1);
	assert_int_equal(side_pair(&f.b)->lent, 0);
	assert_int_equal(f.b.stats.pair_rx_placed, 3 * SLOTS);
}

TEST_WITH(headers_are_a_copy, setup, teardown)
{
	uint32_t index = side_pair(&f.a)->prod;
	uint8_t headers[PARSE_HEADERS];
	struct pkt pkt;

	long_send(1, LONG, 1);
	memcpy(headers, slot_at(index)->bytes, sizeof(headers));
	take(&pkt, 1);
	memset(slot_at(index)->bytes, 0xff, sizeof(headers));
	slot_at(index)->len = 1;
	assert_memory_equal(pkt.data, headers, sizeof(headers));
	assert_int_equal(pkt.len, LONG);
	release(&pkt, 1);
}

/* The partner cannot write over a slot whose packet is being read. */
TEST_WITH(slots_come_back_when_all_are_released, setup, teardown)
{
	struct pkt pkts[BURST], more[BURST], waits[2];
	const struct port_ops *ops = f.a.port.ops;
	uint32_t begin = told();

	long_send(2, LONG, 0);
	assert_int_equal(side_send(&f.a, QP_2, 1, 2), 1);
	long_send(1, LONG, 3);
	take(pkts, 4);
	long_send(2, LONG, 4);
	take(more, 2);
	release(&more[1], 1);
	release(&pkts[2], 2);
	release(&pkts[0], 1);
	assert_int_equal(told(), begin);
	/* There is room for what was sent before, and the two that the ring has left. */
	long_send(2, LONG, 6);
	assert_int_equal(ops->tx_alloc(f.a.shm, waits, 1), 1);
	long_packet_fill(waits[0].data, LONG, QP_1, 8);
	waits[0].len = LONG;
	waits[0].flags = QP_1 << PKT_TX_QPN_SHIFT;
	assert_int_equal(ops->tx_burst(f.a.shm, waits, 1), 0);
	assert_true(is_number(&pkts[1], LONG, 1) && is_number(&more[0], LONG, 4));
	release(&pkts[1], 1);
	assert_int_equal(told(), begin);
	release(&more[0], 1);
	assert_int_equal(told(), begin + 6);
	assert_int_equal(ops->tx_burst(f.a.shm, waits, 1), 1);
	take(pkts, 3);
	for (uint8_t i = 0; i < 3; i++)
		assert_true(is_number(&pkts[i], LONG, 6 + i));
	release(pkts, 3);
	assert_int_equal(told(), begin + 9);
}

/* As the engine builds no packet. */
TEST_WITH(packet_must_end_where_its_udp_length_says, setup, teardown)
{
	uint32_t begin = told(), index = side_pair(&f.a)->prod;
	struct pkt pkt;

	for (uint8_t i = 0; i < 2; i++) {
		long_send(1, LONG, i);
		slot_at(index + i)->bytes[38 + i] ^= 1;
		take(&pkt, 0);
		assert_int_equal(f.b.stats.pair_malformed, i + 1);
		assert_int_equal(told(), begin + i + 1);
	}
	long_send(1, LONG, 2);
	slot_at(index + 2)->len++;
	take(&pkt, 0);
	assert_int_equal(f.b.stats.pair_malformed, 3);
	assert_int_equal(f.b.stats.pair_rx_placed, 0);
}

/* IPv6 has longer headers. */
TEST_WITH(ipv6_has_its_udp_length_elsewhere, setup, teardown)
{
	uint32_t index = side_pair(&f.a)->prod;
	const unsigned udp_len = LONG - 54;
	uint8_t *bytes = slot_at(index)->bytes;
	struct pkt pkt;

	long_send(1, LONG, 5);
	memset(bytes, 0, 80);
	bytes[12] = 0x86;
	bytes[13] = 0xdd;
	bytes[20] = IPPROTO_UDP;
	bytes[56] = ROCE_UDP_PORT >> 8;
	bytes[57] = ROCE_UDP_PORT & 0xff;
	bytes[58] = (uint8_t)(udp_len >> 8);
	bytes[59] = (uint8_t)udp_len;
	bytes[69] = QP_2;
	take(&pkt, 1);
	assert_true(pkt.flags & PKT_RX_HEADERS);
	assert_ptr_equal(packet_frame(&pkt),
		side_pair(&f.b)->peer->slots +
			(index & (SLOTS - 1)) * f.b.shm->pairs.slot_size +
			offsetof(struct pair_slot, bytes));
	release(&pkt, 1);
}

TEST_WITH(others_are_dropped_or_wait, setup, teardown)
{
	uint32_t begin = told(), index = side_pair(&f.a)->prod;
	struct pkt pkt;

	long_send(1, LONG, 0);
	slot_at(index)->bytes[49] = QP_OTHER;
	take(&pkt, 0);
	assert_int_equal(f.b.stats.pair_not_connected, 1);
	assert_int_equal(told(), begin + 1);
	pairs_register_begin(f.b.shm, QP_1);
	long_send(1, LONG, 1);
	take(&pkt, 0);
	assert_int_equal(told(), begin + 1);
	pairs_register_end(f.b.shm, QP_1, QP_1, f.a.id, true);
	take(&pkt, 1);
	assert_true(is_number(&pkt, LONG, 1));
	release(&pkt, 1);
	assert_int_equal(told(), begin + 2);
}

TEST_WITH(environment_turns_it_off, setup, teardown)
{
	uint32_t index = side_pair(&f.a)->prod;
	struct pkt pkt;

	f.b.shm->pairs.place_off =
		true; /* ROCADE_OFF=pair-place: see pair_place_test.c */
	long_send(1, LONG, 3);
	take(&pkt, 1);
	assert_int_equal(pkt.flags, PKT_RX_IPV4_CKSUM_OK);
	memset(slot_at(index)->bytes, 0xff, LONG);
	assert_true(is_number(&pkt, LONG, 3));
	release(&pkt, 1);
	assert_int_equal(f.b.stats.pair_rx_placed, 0);
}

TEST_GROUP(longer_buffers, NULL)
