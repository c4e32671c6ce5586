/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that go by the daemon although there is a pair. */
#include "pair_fixture.h"

/* A QP whose packets the daemon has not taken yet. */
static void
timers_wait_for_the_daemon(void **state)
{
	struct pair_fixture f;
	uint32_t slots;
	uint64_t sent;

	fixture_open(&f);
	f.a.now += NS_PER_SEC;
	f.a.d.region.daemon->pairs_off = 1;
	assert_int_equal(side_send(&f.a, QP_1, 2, 0), 2);
	sent = f.a.now;
	slots = side_pair(&f.a)->prod;
	assert_int_equal(daemon_finds(&f.a), 2);
	assert_true(f.a.port.ops->tx_waits(f.a.shm, QP_1, sent));
	ring_release(&f.a.d.tx, 1);
	assert_true(f.a.port.ops->tx_waits(f.a.shm, QP_1, sent + NS_PER_MS));
	assert_true(f.a.port.ops->tx_waits(
		f.a.shm, QP_1, sent + f.a.shm->pairs.wait_ns + NS_PER_MS - 1));
	ring_release(&f.a.d.tx, 1);
	assert_int_equal(side_pair(&f.a)->prod, slots);
	/* Now it depends on the partner. */
	assert_true(f.a.port.ops->tx_waits(f.a.shm, QP_1, sent));
	side_expect(&f.b, 0, 0);
	assert_false(f.a.port.ops->tx_waits(f.a.shm, QP_1, sent));
	fixture_close(&f);
}

/* Its peer has not registered it. */
static void
timers_of_a_qp_without_a_peer_wait_for_the_daemon(void **state)
{
	struct pair_fixture f;

	fixture_open(&f);
	f.a.shm->pairs.qps[QP_2 & f.a.shm->pairs.mask].state = PAIR_QP_DAEMON;
	assert_int_equal(side_send(&f.a, QP_2, 1, 0), 1);
	assert_int_equal(daemon_finds(&f.a), 1);
	assert_true(f.a.port.ops->tx_waits(f.a.shm, QP_2, f.a.now));
	ring_release(&f.a.d.tx, 1);
	assert_false(f.a.port.ops->tx_waits(f.a.shm, QP_2, f.a.now));
	fixture_close(&f);
}

/* The daemon has put the packets into the partner's ring. */
static void
timers_wait_for_a_partner_that_gets_packets_by_the_daemon(void **state)
{
	struct pair_fixture f;
	uint64_t sent;

	fixture_open(&f);
	f.a.now = sent = NS_PER_SEC;
	f.a.d.region.daemon->pairs_off = 1;
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
	daemon_forwards(&f.a, &f.b, 1);
	/* It stands still. */
	for (unsigned i = 0; i < 3; i++)
		assert_true(f.a.port.ops->tx_waits(f.a.shm, QP_1, sent + i * NS_PER_MS));
	assert_false(
		f.a.port.ops->tx_waits(f.a.shm, QP_1, sent + f.a.shm->pairs.wait_ns));
	/* It goes on: each second timer counts. */
	side_expect(&f.b, 1, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_false(f.a.port.ops->tx_waits(f.a.shm, QP_1, sent));
		assert_true(f.a.port.ops->tx_waits(f.a.shm, QP_1, sent));
		side_expect(&f.b, 0, 0);
	}
	assert_int_equal(f.b.stats.pair_not_connected, 0);
	fixture_close(&f);
}

/* Or the partner takes an acknowledgement, and goes away before the answer behind it comes. */
static void
packets_of_a_burst_are_shown_at_once(void **state)
{
	const struct pair_part *part;
	struct pair_fixture f;
	struct pkt pkts[2];
	struct shm_pair *pair;

	fixture_open(&f);
	pair = side_pair(&f.a);
	part = side_pair(&f.b)->peer;
	/* For the change of the QP to the pair. */
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
	side_expect(&f.b, 1, 0);
	assert_int_equal(f.a.port.ops->tx_alloc(f.a.shm, pkts, 2), 2);
	for (unsigned i = 0; i < 2; i++) {
		pkts[i].len = packet_fill(pkts[i].data, QP_1, (uint8_t)i);
		assert_true(pair_tx(f.a.shm, pair, QP_1, &pkts[i]));
		side_expect(&f.b, 0, 0);
	}
	pair_tx_done(f.a.shm, pair);
	assert_int_equal(
		((const struct pair_slot *)(part->slots + f.a.shm->pairs.slot_size))
			->stamp,
		2);
	side_expect(&f.b, 2, 0);
	f.a.port.ops->tx_release(f.a.shm, pkts, 2);
	fixture_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_wait_for_the_daemon),
		cmocka_unit_test(timers_of_a_qp_without_a_peer_wait_for_the_daemon),
		cmocka_unit_test(
			timers_wait_for_a_partner_that_gets_packets_by_the_daemon),
		cmocka_unit_test(packets_of_a_burst_are_shown_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
