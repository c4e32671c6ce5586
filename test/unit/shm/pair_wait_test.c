/* SPDX-License-Identifier: BSD-3-Clause */
/* Partners that are slow, asleep, stopped, or faulty, and what a client does about them. */
#include "pair_question.h"

#define SLOTS 8 /* of the fixture's rings */
#define LAGS_MAX (PAIR_LAG_LAST_NS / PAIR_LAG_NS)

TEST(full_ring_waits_then_drops)
{
	struct pair_fixture f;
	struct pkt pkts[BURST];

	fixture_open(&f);
	assert_int_equal(side_send(&f.a, QP_1, SLOTS + 2, 0), SLOTS);
	f.a.now += PAIR_FULL_NS - 1;
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 0);
	assert_int_equal(f.a.stats.pair_full, 0);
	/* A packet now and then does not start the time anew. */
	assert_int_equal(side_take(&f.b, pkts, 1), 1);
	f.b.port.ops->rx_release(f.b.shm, pkts, 1);
	assert_int_equal(side_send(&f.a, QP_1, 2, SLOTS), 1);
	f.a.now++;
	assert_int_equal(side_send(&f.a, QP_1, 3, 0), 3);
	assert_int_equal(f.a.stats.pair_full, 3);
	/* Until it has taken half a ring. */
	assert_int_equal(side_take(&f.b, pkts, SLOTS / 2 - 1), SLOTS / 2 - 1);
	f.b.port.ops->rx_release(f.b.shm, pkts, SLOTS / 2 - 1);
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
	assert_int_equal(f.a.stats.pair_full, 4);
	assert_int_equal(side_take(&f.b, pkts, 1), 1);
	f.b.port.ops->rx_release(f.b.shm, pkts, 1);
	assert_int_equal(side_send(&f.a, QP_1, SLOTS / 2, 9), SLOTS / 2);
	assert_int_equal(f.a.stats.pair_full, 4);
	side_expect(&f.b, SLOTS, 5);
	/* The next time the whole time is waited again. */
	assert_int_equal(side_send(&f.a, QP_1, SLOTS + 1, 0), SLOTS);
	assert_int_equal(f.a.stats.pair_full, 4);
	fixture_close(&f);
}

/* A partner claims to have taken what was not sent, or to have given packets back. */
TEST(invalid_index_spoils_the_pair)
{
	static const int off[] = {1, 100, -1};

	for (unsigned i = 0; i < RTE_DIM(off); i++) {
		struct answer_wait wait = {.on = true};
		struct pair_fixture f;
		uint64_t wakes;

		fixture_open(&f);
		f.a.shm->engine_thread.wake = progress_thread_wake;
		f.a.shm->engine_thread.arg = &f.a.shm->progress_thread;
		assert_int_equal(side_send(&f.a, QP_1, 2, 0), 2);
		side_expect(&f.b, 2, 0);
		assert_int_equal(side_send(&f.a, QP_1, 1, 2), 1);
		f.a.now += PAIR_LAG_NS;
		side_expect(&f.a, 0, 0); /* knows that two were taken */
		assert_int_equal(side_pair(&f.a)->cons_seen, 2);
		side_pair(&f.b)->own->cons =
			off[i] < 0 ? 1 : side_pair(&f.a)->prod + (uint32_t)off[i];
		assert_true(side_waits(&f.a, QP_1, &wait)); /* asks the daemon */
		assert_true(side_pair(&f.a)->spoiled);
		assert_true(f.a.shm->pairs.spoiled);
		/* The progress thread is woken once, to tell the daemon. */
		assert_int_equal(read(f.a.shm->progress_thread.self_wake_fd, &wakes,
					 sizeof(wakes)),
			sizeof(wakes));
		assert_int_equal(side_send(&f.a, QP_1, 1, 3), 1);
		assert_int_equal(daemon_finds(&f.a), 2);
		assert_int_equal(wakes, 1);
		assert_int_equal(read(f.a.shm->progress_thread.self_wake_fd, &wakes,
					 sizeof(wakes)),
			-1);
		assert_int_equal(pairs_deadline(f.a.shm), TIME_NEVER);
		fixture_close(&f);
	}
}

TEST(sleeping_partner_is_woken_by_the_futex)
{
	struct pair_fixture f;
	uint32_t *wakes;

	fixture_open(&f);
	wakes = &side_pair(&f.a)->own->wakes;
	asleep_set_how(&f.b.shm->region.client->rx_asleep, ASLEEP_FUTEX);
	pairs_show_asleep(f.b.shm);
	assert_int_equal(side_send(&f.a, QP_1, 3, 0), 3);
	assert_int_equal(*wakes, 1);
	assert_int_equal(side_send(&f.a, QP_1, 1, 3), 1);
	assert_int_equal(*wakes, 1); /* once for each sleep */
	assert_int_equal(f.a.stats.pair_wakeups, 1);
	assert_int_equal(daemon_finds(&f.a), 0);
	side_expect(&f.b, 4, 0);
	fixture_close(&f);
}

TEST(sleeping_partner_is_woken_by_the_connection)
{
	struct pair_fixture f;

	fixture_open(&f);
	for (unsigned i = 0; i < 3; i++) {
		asleep_set(&f.b.shm->region.client->rx_asleep);
		pairs_show_asleep(f.b.shm);
		assert_int_equal(side_woken(&f.b), NOT_WOKEN);
		assert_int_equal(side_send(&f.a, QP_2, 2, 0), 2);
		assert_int_equal(side_woken(&f.b), WOKEN);
		assert_int_equal(side_send(&f.a, QP_2, 1, 2), 1);
		assert_int_equal(side_woken(&f.b), NOT_WOKEN); /* once for each sleep */
		side_expect(&f.b, 3, 0);
	}
	assert_int_equal(f.a.stats.pair_wakeups, 3);
	assert_int_equal(side_pair(&f.a)->own->wakes, 0);
	assert_int_equal(daemon_finds(&f.a), 0);
	asleep_clear(&f.b.shm->region.client->rx_asleep);
	pairs_show_asleep(f.b.shm);
	assert_int_equal(side_send(&f.a, QP_2, 1, 1), 1);
	assert_int_equal(side_woken(&f.b), NOT_WOKEN);
	side_expect(&f.b, 1, 1);
	fixture_close(&f);
}

/* Nor does a partner hold up a client that has the other end of a full connection. */
TEST(partner_that_is_woken_all_the_time_reads_nothing)
{
	struct pair_fixture f;

	fixture_open(&f);
	for (unsigned i = 0; i < 2000; i++) {
		asleep_set(&f.b.shm->region.client->rx_asleep);
		pairs_show_asleep(f.b.shm);
		assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
		side_expect(&f.b, 1, 0);
	}
	assert_int_equal(f.a.stats.pair_wakeups, 2000);
	for (unsigned i = 0; side_woken(&f.b) != NOT_WOKEN; i++)
		assert_true(i < 2000);
	fixture_close(&f);
}

/* Its end is closed once, and its packets still go by the pair, which the daemon ends. */
TEST(partner_that_has_ended_is_not_woken)
{
	struct pair_fixture f;
	unsigned fds;

	fixture_open(&f);
	asleep_set(&f.b.shm->region.client->rx_asleep);
	pairs_show_asleep(f.b.shm);
	close(side_pair(&f.b)->wake_fd);
	side_pair(&f.b)->wake_fd = -1;
	fds = fds_count();
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1); /* no SIGPIPE */
	assert_int_equal(side_woken(&f.a), WOKEN);
	assert_int_equal(side_pair(&f.a)->wake_fd, -1);
	assert_int_equal(fds_count(), fds - 1);
	assert_int_equal(side_woken(&f.a), NOT_WOKEN);
	asleep_set(&f.b.shm->region.client->rx_asleep);
	pairs_show_asleep(f.b.shm);
	assert_int_equal(side_send(&f.a, QP_1, 1, 1), 1);
	assert_int_equal(daemon_finds(&f.a), 0);
	side_expect(&f.b, 2, 0);
	fixture_close(&f);
}

TEST(lagging_partner_is_woken_once)
{
	struct pair_fixture f;
	struct pkt pkt;

	fixture_open(&f);
	assert_int_equal(pairs_deadline(f.a.shm), TIME_NEVER);
	f.a.now += NS_PER_SEC;
	assert_int_equal(side_send(&f.a, QP_1, 3, 0), 3);
	assert_int_equal(pairs_deadline(f.a.shm), f.a.now + PAIR_LAG_NS);
	f.a.now += PAIR_LAG_NS - 1;
	side_expect(&f.a, 0, 0);
	assert_int_equal(f.a.stats.pair_lags, 0);
	f.a.now += PAIR_LAG_NS;
	side_expect(&f.a, 0, 0);
	assert_int_equal(f.a.stats.pair_lags, 1);
	assert_int_equal(side_woken(&f.b), WOKEN_LAGS);
	assert_int_equal(pairs_deadline(f.a.shm), TIME_NEVER);
	f.a.now += PAIR_LAG_NS;
	side_expect(&f.a, 0, 0);
	assert_int_equal(f.a.stats.pair_lags, 1);
	assert_int_equal(side_woken(&f.b), NOT_WOKEN);
	/* It takes one, then lags again, for longer. */
	assert_int_equal(side_take(&f.b, &pkt, 1), 1);
	f.b.port.ops->rx_release(f.b.shm, &pkt, 1);
	f.a.now += PAIR_LAG_NS;
	side_expect(&f.a, 0, 0);
	for (unsigned i = 0; f.a.stats.pair_lags == 1; i++) {
		assert_true(i < 2);
		f.a.now += PAIR_LAG_NS;
		side_expect(&f.a, 0, 0);
	}
	assert_int_equal(side_woken(&f.b), WOKEN_LAGS);
	side_expect(&f.b, 2, 1);
	f.a.now += PAIR_LAG_NS;
	side_expect(&f.a, 0, 0);
	assert_int_equal(f.a.stats.pair_lags, 2);
	fixture_close(&f);
}

/* Sends a packet. Returns after how many multiples of PAIR_LAG_NS the partner is woken, and takes it. */
static unsigned
lag_length(struct pair_fixture *f)
{
	uint64_t lags = f->a.stats.pair_lags;
	unsigned n = 0;

	assert_int_equal(side_send(&f->a, QP_1, 1, 0), 1);
	for (; f->a.stats.pair_lags == lags; n++) {
		assert_true(n <= LAGS_MAX);
		f->a.now += PAIR_LAG_NS;
		side_expect(&f->a, 0, 0);
	}
	side_expect(&f->b, 1, 0);
	return n;
}

/* Its application polls, when it has the core again. */
TEST(partner_is_woken_late_where_threads_take_turns)
{
	struct pair_fixture f;

	fixture_open(&f);
	f.a.now += NS_PER_SEC;
	f.a.dev->engines[0]->idle.in_turns = true;
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
	assert_int_equal(pairs_deadline(f.a.shm), f.a.now + PAIR_LAG_LAST_NS);
	f.a.now += PAIR_LAG_LAST_NS - 1;
	side_expect(&f.a, 0, 0);
	assert_int_equal(f.a.stats.pair_lags, 0);
	f.a.now += PAIR_LAG_NS;
	side_expect(&f.a, 0, 0);
	assert_int_equal(f.a.stats.pair_lags, 1);
	assert_int_equal(side_woken(&f.b), WOKEN_LAGS);
	side_expect(&f.b, 1, 0);
	/* It has the core for itself. */
	f.a.dev->engines[0]->idle.in_turns = false;
	assert_in_range(lag_length(&f), 2, 3);
	fixture_close(&f);
}

/* It may wait for a core. */
TEST(partner_that_lags_often_is_woken_later)
{
	struct pair_fixture f;
	unsigned last;

	fixture_open(&f);
	f.a.now += NS_PER_SEC;
	assert_int_equal(lag_length(&f), 1);
	assert_in_range(lag_length(&f), 2, 3);
	for (unsigned i = 0; i < 10; i++)
		last = lag_length(&f);
	/* The client looks every PAIR_LAG_NS. */
	assert_in_range(last, LAGS_MAX - 1, LAGS_MAX + 1);
	/* It takes packets in time. */
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
		side_expect(&f.b, 1, 0);
		f.a.now += PAIR_LAG_NS;
		side_expect(&f.a, 0, 0);
	}
	assert_in_range(lag_length(&f), 1, 2);
	fixture_close(&f);
}

TEST(packets_stay_without_a_buffer)
{
	struct pkt pkts[PAIR_RX_BUFFERS];
	struct pair_fixture f;
	unsigned got = 0;

	fixture_open(&f);
	while (got < PAIR_RX_BUFFERS) {
		assert_int_equal(side_send(&f.a, QP_1, SLOTS, (uint8_t)got), SLOTS);
		assert_int_equal(side_take(&f.b, pkts + got, SLOTS), SLOTS);
		got += SLOTS;
	}
	assert_int_equal(side_send(&f.a, QP_1, 2, 0), 2);
	side_expect(&f.b, 0, 0);
	for (unsigned i = 0; i < got; i++)
		assert_int_equal(pkts[i].data[61], i); /* each in a buffer of its own */
	f.b.port.ops->rx_release(f.b.shm, pkts, got);
	side_expect(&f.b, 2, 0);
	fixture_close(&f);
}

/* A client dumps packets: they go by the daemon, behind those that are in the pair. */
TEST(packets_are_dumped_by_the_daemon)
{
	struct pair_fixture f;

	fixture_open(&f);
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
	f.a.d.region.daemon->pairs_off = 1;
	assert_int_equal(side_send(&f.a, QP_1, 1, 1), 1);
	assert_int_equal(daemon_finds(&f.a), 0);
	side_expect(&f.b, 2, 0);
	assert_int_equal(side_send(&f.a, QP_1, 1, 2), 1);
	assert_int_equal(side_send(&f.a, QP_2, 1, 3), 1);
	assert_int_equal(daemon_finds(&f.a), 2);
	f.a.d.region.daemon->pairs_off = 0;
	assert_int_equal(side_send(&f.a, QP_1, 1, 4), 1);
	assert_int_equal(daemon_finds(&f.a), 3);
	daemon_forwards(&f.a, &f.b, 3);
	assert_int_equal(side_send(&f.a, QP_1, 1, 5), 1);
	assert_int_equal(daemon_finds(&f.a), 0);
	side_expect(&f.b, 4, 2);
	fixture_close(&f);
}

/* The packets wait in the ring, then in a pass of the partner, and then its answer in the ring. */
TEST(timers_wait_for_the_answer)
{
	struct answer_wait wait = {.on = true}, other = {.on = true};
	struct pair_fixture f;

	fixture_open(&f);
	assert_int_equal(side_send(&f.a, QP_2, 1, 9), 1);
	side_expect(&f.b, 1, 9);
	f.b.port.ops->rx_answered(f.b.shm);
	assert_int_equal(side_send(&f.a, QP_1, 2, 0), 2);
	assert_true(side_waits(&f.a, QP_1, &wait));
	daemon_has_nothing(&f.a, QP_2, &other);
	assert_false(side_waits(&f.a, QP_2, &other));
	side_expect(&f.b, 2, 0);
	assert_true(side_waits(&f.a, QP_1, &wait));
	assert_int_equal(side_send(&f.b, QP_1, 1, 7), 1);
	assert_true(side_waits(&f.a, QP_1, &wait));
	/* The daemon is not asked before the partner has answered. */
	assert_int_equal(daemon_finds(&f.a), 0);
	f.b.port.ops->rx_answered(f.b.shm);
	side_expect(&f.a, 1, 7);
	/* Another answer may be at the daemon, by which the partner has sent until now. */
	daemon_has_nothing(&f.a, QP_1, &wait);
	assert_int_equal(side_send(&f.b, QP_1, 1, 8), 1);
	assert_true(side_waits(&f.a, QP_1, &wait));
	side_expect(&f.a, 1, 8);
	assert_false(side_waits(&f.a, QP_1, &wait));
	fixture_close(&f);
}

/* There is no answer. The QP waits only while an answer could be among the packets that the partner goes
 * on to send. */
TEST(timers_expire_although_the_ring_is_never_empty)
{
	struct answer_wait wait = {.on = true};
	unsigned taken = 0, asked = 0;
	struct pair_fixture f;

	fixture_open(&f);
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
	side_expect(&f.b, 1, 0);
	f.b.port.ops->rx_answered(f.b.shm);
	daemon_has_nothing(&f.a, QP_1, &wait);
	assert_int_equal(side_send(&f.b, QP_2, 2, 0), 2);
	while (side_waits(&f.a, QP_1, &wait)) {
		struct pkt pkt;

		assert_int_equal(side_take(&f.a, &pkt, 1), 1);
		f.a.port.ops->rx_release(f.a.shm, &pkt, 1);
		taken++;
		assert_int_equal(side_send(&f.b, QP_2, 1, 0), 1);
		assert_true(++asked <= SLOTS);
	}
	assert_int_equal(taken, SLOTS);
	fixture_close(&f);
}

/* The partner drops them: the peer is gone. Its engine gets none of them, and completes no pass for them. */
TEST(timers_expire_when_the_partner_drops_the_packets)
{
	struct answer_wait wait = {.on = true};
	struct pair_fixture f;

	fixture_open(&f);
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
	side_expect(&f.b, 1, 0);
	f.b.port.ops->rx_answered(f.b.shm);
	pairs_unregister(f.b.shm, QP_1);
	assert_int_equal(side_send(&f.a, QP_1, 1, 1), 1);
	assert_true(side_waits(&f.a, QP_1, &wait));
	side_expect(&f.b, 0, 0);
	assert_int_equal(f.b.stats.pair_not_connected, 1);
	daemon_has_nothing(&f.a, QP_1, &wait);
	assert_false(side_waits(&f.a, QP_1, &wait));
	fixture_close(&f);
}

/* The partner has to make room for the announcement. */
TEST(announcement_waits_for_room)
{
	struct pair_fixture f;

	fixture_open(&f);
	assert_int_equal(side_send(&f.b, QP_1, SLOTS, 0), SLOTS);
	side_register(&f.b, QP_2, f.a.id, true);
	side_expect(&f.b, 0, 0);
	assert_true(f.b.shm->pairs.qps[QP_2 & f.b.shm->pairs.mask].announce);
	side_expect(&f.b, 0, 0);
	side_expect(&f.a, SLOTS, 0);
	side_expect(&f.b, 0, 0);
	side_expect(&f.b, 0, 0);
	assert_int_equal(side_pair(&f.b)->prod, 2 + SLOTS + 1);
	assert_false(f.b.shm->pairs.qps[QP_2 & f.b.shm->pairs.mask].announce);
	side_expect(&f.b, 0, 0);
	assert_int_equal(side_pair(&f.b)->prod, 2 + SLOTS + 1);
	side_expect(&f.a, 0, 0);
	assert_int_equal(f.a.stats.pair_not_connected + f.a.stats.pair_malformed, 0);
	fixture_close(&f);
}
