/* SPDX-License-Identifier: BSD-3-Clause */
/* Long packets of a pair are built in the slots of its ring: which frames point there, and what becomes
 * of those that do not leave by the pair. */
#include "pair_long_fixture.h"
#include "shm/line_time.h"

static void
frame_fill(struct pkt *pkt, uint16_t len, uint8_t number)
{
	long_packet_fill(pkt->data, len, QP_1, number);
	pkt->len = len;
	pkt->flags = QP_1 << PKT_TX_QPN_SHIFT;
}

/* Allocates n frames, of which some are placed. Returns how many. */
static unsigned
frames_place(struct pkt *pkts, unsigned n)
{
	const struct port_ops *ops = f.a.port.ops;

	assert_int_equal(ops->tx_alloc(f.a.shm, pkts, n), n);
	return ops->tx_place(f.a.shm, QP_1, pkts, n);
}

/* Fills the frames, with numbers from `number` on, and sends them. Returns how many the port took. */
static unsigned
frames_send(struct pkt *pkts, unsigned n, uint16_t len, uint8_t number)
{
	for (unsigned i = 0; i < n; i++)
		frame_fill(&pkts[i], len, (uint8_t)(number + i));
	return f.a.port.ops->tx_burst(f.a.shm, pkts, n);
}

static void
frames_release(struct pkt *pkts, unsigned n)
{
	f.a.port.ops->tx_unplace(f.a.shm, pkts, n);
	f.a.port.ops->tx_release(f.a.shm, pkts, n);
}

/* A long packet, which is copied. The next ones are placed. */
static void
first_long_send(void)
{
	struct pkt pkt;

	assert_int_equal(frames_place(&pkt, 1), 0);
	assert_int_equal(frames_send(&pkt, 1, LONG, 0), 1);
}

static void
expect_taken(unsigned n, uint16_t len, uint8_t number)
{
	struct pkt pkts[BURST];

	assert_int_equal(side_take(&f.b, pkts, BURST), n);
	for (unsigned i = 0; i < n; i++)
		assert_true(is_number(&pkts[i], len, (uint8_t)(number + i)));
	f.b.port.ops->rx_release(f.b.shm, pkts, n);
}

static bool
is_slot(const struct pkt *pkt, uint32_t index)
{
	const struct shm_pairs *p = &f.a.shm->pairs;

	return pkt->data == side_pair(&f.a)->own->slots +
				    (index & (SLOTS - 1)) * p->slot_size +
				    offsetof(struct pair_slot, bytes);
}

static bool
is_own(const struct pkt *pkt)
{
	return pkt->data ==
	       region_tx_buf(&f.a.shm->region, (uint32_t)(uintptr_t)pkt->owner);
}

TEST_WITH(long_packets_are_placed_behind_the_first_one, setup, teardown)
{
	struct pkt pkts[3];

	first_long_send();
	expect_taken(1, LONG, 0);
	/* Round the ring several times. */
	for (uint8_t i = 1; i < 30; i += 3) {
		uint32_t prod = side_pair(&f.a)->prod;

		assert_int_equal(frames_place(pkts, 3), 3);
		for (unsigned k = 0; k < 3; k++)
			assert_true(is_slot(&pkts[k], prod + k));
		assert_int_equal(frames_send(pkts, 3, LONG + 8 * i, i), 3);
		expect_taken(3, LONG + 8 * i, i);
		assert_int_equal(f.a.stats.pair_tx, i + 3);
		assert_int_equal(f.a.stats.pair_tx_placed, i + 2);
	}
	assert_int_equal(daemon_finds(&f.a), 0);
	/* A short one ends that. */
	assert_int_equal(frames_place(pkts, 1), 1);
	assert_int_equal(frames_send(pkts, 1, LONG - 1, 9), 1);
	expect_taken(1, LONG - 1, 9);
	assert_int_equal(frames_place(pkts, 1), 0);
	frames_release(pkts, 1);
}

/* The QP has built fewer packets. */
TEST_WITH(frames_without_a_packet_get_their_buffers_back, setup, teardown)
{
	struct pkt pkts[4];

	first_long_send();
	assert_int_equal(frames_place(pkts, 4), 4);
	f.a.port.ops->tx_unplace(f.a.shm, pkts + 1, 3);
	assert_int_equal(frames_send(pkts, 1, LONG, 1), 1);
	for (unsigned i = 1; i < 4; i++)
		assert_true(is_own(&pkts[i]));
	/* These are copied. */
	assert_int_equal(frames_send(pkts + 1, 3, LONG, 2), 3);
	assert_int_equal(f.a.stats.pair_tx_placed, 1);
	expect_taken(5, LONG, 0);
}

TEST_WITH(no_more_are_placed_than_the_ring_has_room_for, setup, teardown)
{
	struct pkt pkts[4];

	first_long_send();
	for (unsigned i = 1; i < SLOTS - 2; i++) {
		assert_int_equal(frames_place(pkts, 1), 1);
		assert_int_equal(frames_send(pkts, 1, LONG, (uint8_t)i), 1);
	}
	assert_int_equal(frames_place(pkts, 4), 2);
	assert_true(is_slot(&pkts[1], side_pair(&f.a)->prod + 1));
	assert_true(is_own(&pkts[2]));
	frames_release(pkts, 4);
	expect_taken(SLOTS - 2, LONG, 0);
	/* It sees that the partner has taken them. */
	assert_int_equal(frames_place(pkts, 4), 4);
	frames_release(pkts, 4);
}

TEST_WITH(none_is_placed_where_packets_go_another_way, setup, teardown)
{
	struct pkt pkt;

	first_long_send();
	assert_int_equal(f.a.port.ops->tx_alloc(f.a.shm, &pkt, 1), 1);
	assert_int_equal(f.a.port.ops->tx_place(f.a.shm, QP_UD, &pkt, 1), 0);
	assert_int_equal(f.a.port.ops->tx_place(f.a.shm, QP_2, &pkt, 1), 0);
	side_pair(&f.a)->full = true;
	assert_int_equal(f.a.port.ops->tx_place(f.a.shm, QP_1, &pkt, 1), 0);
	side_pair(&f.a)->full = false;
	pairs_unregister(f.a.shm, QP_1);
	assert_int_equal(f.a.port.ops->tx_place(f.a.shm, QP_1, &pkt, 1), 0);
	frames_release(&pkt, 1);
	expect_taken(1, LONG, 0);
}

TEST_WITH(none_is_placed_where_the_partner_is_far, setup, teardown)
{
	struct pkt pkts[3];

	first_long_send();
	side_pair(&f.a)->line_ns = LINE_FAR_NS + 1;
	assert_int_equal(frames_place(pkts, 3), 0);
	assert_true(is_own(&pkts[0]));
	assert_int_equal(frames_send(pkts, 3, LONG, 1), 3);
	assert_int_equal(f.a.stats.pair_tx_far, 3);
	assert_int_equal(f.a.stats.pair_tx_placed, 0);
	side_pair(&f.a)->line_ns = LINE_FAR_NS;
	assert_int_equal(frames_place(pkts, 1), 1);
	assert_int_equal(frames_send(pkts, 1, LONG, 4), 1);
	assert_int_equal(f.a.stats.pair_tx_far, 3);
	expect_taken(5, LONG, 0);
}

/* The loads of the partner's index are timed, those that have got its cache line. */
TEST_WITH(distance_of_the_partner_is_measured, setup, teardown)
{
	const uint32_t far = 7000;

	side_pair(&f.a)->line_ns = far;
	first_long_send();
	f.a.now += PAIR_LAG_NS;
	side_expect(&f.a, 0, 0); /* it has taken nothing */
	assert_int_equal(side_pair(&f.a)->line_ns, far);
	expect_taken(1, LONG, 0);
	f.a.now += PAIR_LAG_NS;
	side_expect(&f.a, 0, 0);
	assert_in_range(side_pair(&f.a)->line_ns, far - far / LINE_SAMPLES,
		far - (far - LINE_MOST_NS) / LINE_SAMPLES);
	assert_int_equal(side_pair(&f.a)->cons_seen, side_pair(&f.a)->prod);
}

/* The partner's index is invalid. */
TEST_WITH(none_is_placed_in_a_spoiled_pair, setup, teardown)
{
	struct pkt pkts[SLOTS];

	first_long_send();
	expect_taken(1, LONG, 0);
	side_pair(&f.b)->own->cons += SLOTS;
	assert_int_equal(frames_place(pkts, SLOTS), 0);
	frames_release(pkts, SLOTS);
	side_pair(&f.b)->own->cons -= SLOTS;
}

/* A dump of the client's packets begins after they were placed: the daemon gets what they hold. */
TEST_WITH(placed_packets_may_leave_by_the_daemon, setup, teardown)
{
	struct pkt pkts[2], others[SLOTS];

	first_long_send();
	expect_taken(1, LONG, 0);
	assert_int_equal(frames_place(pkts, 2), 2);
	f.a.d.region.daemon->pairs_off = 1;
	/* Its ring is full: they wait, and no slot of the pair is needed for that. */
	assert_int_equal(side_send(&f.a, QP_UD, SLOTS, 0), SLOTS);
	assert_int_equal(frames_send(pkts, 2, LONG, 1), 0);
	assert_true(is_own(&pkts[0]) && is_own(&pkts[1]));
	assert_true(is_number(&pkts[0], LONG, 1) && is_number(&pkts[1], LONG, 2));
	assert_int_equal(daemon_finds(&f.a), SLOTS);
	ring_release(&f.a.d.tx, SLOTS);
	assert_int_equal(f.a.port.ops->tx_burst(f.a.shm, pkts, 2), 2);
	daemon_forwards(&f.a, &f.b, 2);
	expect_taken(2, LONG, 1);
	/* Now it has room at once. */
	f.a.d.region.daemon->pairs_off = 0;
	first_long_send();
	expect_taken(1, LONG, 0);
	assert_int_equal(frames_place(others, 1), 1);
	f.a.d.region.daemon->pairs_off = 1;
	assert_int_equal(frames_send(others, 1, LONG, 5), 1);
	daemon_forwards(&f.a, &f.b, 1);
	expect_taken(1, LONG, 5);
	f.a.d.region.daemon->pairs_off = 0;
}

TEST_WITH(environment_turns_it_off, setup, teardown)
{
	struct pkt pkt;

	fixture_close(&f);
	setenv("ROCADE_OFF", "pair-place", 1);
	fixture_open(&f);
	unsetenv("ROCADE_OFF");
	for (unsigned i = 0; i < 3; i++)
		first_long_send();
	assert_int_equal(f.a.stats.pair_tx_placed, 0);
	assert_int_equal(side_take(&f.b, &pkt, 1), 1);
	f.b.port.ops->rx_release(f.b.shm, &pkt, 1);
}

TEST_GROUP(longer_buffers, NULL)
