/* SPDX-License-Identifier: BSD-3-Clause */
/* When a partner that says it sleeps is not woken, and when packets go through the daemon although
 * there is a pair. */
#include "pair_fixture.h"

static void
partner_sleeps(struct pair_fixture *f)
{
	asleep_set(&f->b.shm->region.client->rx_asleep);
	pairs_show_asleep(f->b.shm);
}

/* a sends a packet, and b answers after ns. */
static void
answered_after(struct pair_fixture *f, uint64_t ns)
{
	assert_int_equal(side_send(&f->a, QP_1, 1, 0), 1);
	side_expect(&f->b, 1, 0);
	assert_int_equal(side_send(&f->b, QP_1, 1, 0), 1);
	f->a.now += ns;
	side_expect(&f->a, 1, 0);
}

/* b takes a packet, and a sees that. */
static void
partner_takes(struct pair_fixture *f)
{
	side_expect(&f->b, 1, 0);
	f->a.now += PAIR_LAG_NS;
	side_expect(&f->a, 0, 0);
}

/* Its application polls, but has not said so. */
static void
partner_that_answers_at_once_is_not_woken(void **state)
{
	struct pair_fixture f;

	fixture_open(&f);
	f.a.now += PAIR_TRY_NS;
	for (unsigned i = 0; i < 3; i++) {
		partner_sleeps(&f);
		answered_after(&f, PAIR_AWAKE_NS - 1);
		assert_int_equal(daemon_finds(&f.a), 0);
		assert_true(side_pair(&f.a)->polls);
	}
	assert_int_equal(f.a.stats.pair_wakeups, 0);
	/* It does not: it is woken from then on, until the next try. */
	answered_after(&f, PAIR_AWAKE_NS);
	assert_false(side_pair(&f.a)->polls);
	answered_after(&f, 0);
	assert_int_equal(daemon_finds(&f.a), 1);
	partner_sleeps(&f);
	f.a.now += PAIR_TRY_NS - PAIR_AWAKE_NS;
	answered_after(&f, PAIR_AWAKE_NS);
	assert_int_equal(daemon_finds(&f.a), 2);
	partner_sleeps(&f);
	f.a.now += PAIR_TRY_NS;
	answered_after(&f, 0);
	assert_int_equal(daemon_finds(&f.a), 2);
	fixture_close(&f);
}

/* Tries in vain become rare. */
static void
partner_that_lags_is_tried_less_often(void **state)
{
	struct pair_fixture f;
	uint64_t after = PAIR_TRY_NS;

	fixture_open(&f);
	for (unsigned i = 0; i < 6; i++) {
		f.a.now += PAIR_TRY_LAST_NS;
		partner_sleeps(&f);
		assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
		assert_int_equal(daemon_finds(&f.a), i);
		f.a.now += PAIR_LAG_NS;
		side_expect(&f.a, 0, 0);
		assert_int_equal(daemon_finds(&f.a), i + 1);
		assert_int_equal(side_pair(&f.a)->try_ns, f.a.now + after);
		after = RTE_MIN(2 * after, PAIR_TRY_LAST_NS);
		partner_takes(&f);
	}
	fixture_close(&f);
}

/* It would not see that its partner does. */
static void
client_that_sleeps_wakes_its_partner_first(void **state)
{
	struct pair_fixture f;

	fixture_open(&f);
	f.a.now += PAIR_TRY_NS;
	partner_sleeps(&f);
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
	assert_int_equal(daemon_finds(&f.a), 0);
	asleep_set(&f.a.shm->region.client->rx_asleep);
	side_expect(&f.a, 0, 0);
	assert_int_equal(daemon_finds(&f.a), 1);
	/* Nor does it try while it sleeps. */
	partner_sleeps(&f);
	assert_int_equal(side_send(&f.a, QP_1, 1, 1), 1);
	assert_int_equal(daemon_finds(&f.a), 2);
	side_expect(&f.b, 2, 0);
	fixture_close(&f);
}

/* The partner lags once. Returns whether the packet went by the pair. */
static bool
lags(struct pair_fixture *f)
{
	uint32_t before = side_pair(&f->a)->prod;

	assert_int_equal(side_send(&f->a, QP_1, 1, 0), 1);
	if (side_pair(&f->a)->prod == before)
		return false;
	f->a.now += PAIR_LAG_NS;
	side_expect(&f->a, 0, 0);
	partner_takes(f);
	return true;
}

static void
packets_for_a_partner_that_lags_often_go_through_the_daemon(void **state)
{
	struct pair_fixture f;
	uint32_t found;

	fixture_open(&f);
	f.a.now += NS_PER_SEC;
	/* Not if that was long ago. */
	for (unsigned i = 0; i < 2 * PAIR_LAGS_MAX; i++) {
		assert_true(lags(&f));
		ring_release(&f.a.d.tx, daemon_finds(&f.a));
		f.a.now += PAIR_LAGS_NS / (PAIR_LAGS_MAX - 1);
	}
	assert_int_equal(f.a.stats.pair_rests, 0);
	f.a.now += PAIR_LAGS_NS;
	for (unsigned i = 0; i < PAIR_LAGS_MAX; i++) {
		assert_true(lags(&f));
		ring_release(&f.a.d.tx, daemon_finds(&f.a));
	}
	assert_int_equal(f.a.stats.pair_rests, 1);
	found = daemon_finds(&f.a);
	assert_false(lags(&f));
	assert_int_equal(daemon_finds(&f.a), found + 1);
	ring_release(&f.a.d.tx, daemon_finds(&f.a));
	f.a.now += PAIR_REST_NS - NS_PER_MS;
	assert_false(lags(&f));
	ring_release(&f.a.d.tx, daemon_finds(&f.a));
	f.a.now += NS_PER_MS;
	assert_true(lags(&f));
	fixture_close(&f);
}

/* One that was not scheduled for some time would not be served sooner by the daemon. */
static void
long_lags_do_not_count(void **state)
{
	struct pair_fixture f;

	fixture_open(&f);
	f.a.now += NS_PER_SEC;
	for (unsigned i = 0; i < 2 * PAIR_LAGS_MAX; i++) {
		assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
		f.a.now += PAIR_LAG_NS;
		side_expect(&f.a, 0, 0);
		f.a.now += PAIR_LAG_SHORT_NS - 2 * PAIR_LAG_NS;
		partner_takes(&f);
		ring_release(&f.a.d.tx, daemon_finds(&f.a));
	}
	assert_int_equal(f.a.stats.pair_lags, 2 * PAIR_LAGS_MAX);
	assert_int_equal(f.a.stats.pair_rests, 0);
	fixture_close(&f);
}

/* A QP whose packets the daemon has not taken yet. */
static void
timers_wait_for_the_daemon(void **state)
{
	struct pair_fixture f;
	uint32_t slots;
	uint64_t sent;

	fixture_open(&f);
	f.a.now += NS_PER_SEC;
	side_pair(&f.a)->rest_ns = f.a.now + NS_PER_MS;
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
	side_pair(&f.a)->rest_ns = UINT64_MAX;
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
		cmocka_unit_test(partner_that_answers_at_once_is_not_woken),
		cmocka_unit_test(partner_that_lags_is_tried_less_often),
		cmocka_unit_test(client_that_sleeps_wakes_its_partner_first),
		cmocka_unit_test(
			packets_for_a_partner_that_lags_often_go_through_the_daemon),
		cmocka_unit_test(long_lags_do_not_count),
		cmocka_unit_test(timers_wait_for_the_daemon),
		cmocka_unit_test(timers_of_a_qp_without_a_peer_wait_for_the_daemon),
		cmocka_unit_test(
			timers_wait_for_a_partner_that_gets_packets_by_the_daemon),
		cmocka_unit_test(packets_of_a_burst_are_shown_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
