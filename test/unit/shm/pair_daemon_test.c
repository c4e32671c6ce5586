/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that go by the daemon although there is a pair. */
#include "pair_question.h"

/* A QP that sends by the daemon asks it, as far as that knows. */
TEST(daemon_is_asked)
{
	struct answer_wait wait = {.on = true};
	struct pair_fixture f;
	struct ring_desc ask;

	fixture_open(&f);
	f.a.d.region.daemon->pairs_off = 1;
	wait.since_ns = f.a.now;
	assert_int_equal(side_send(&f.a, QP_1, 2, 0), 2);
	assert_true(side_waits(&f.a, QP_1, &wait));
	ask = daemon_takes_question(&f.a, QP_1, 2);
	assert_int_equal(SW_ASK_STEP(ask.len), SW_ASK_BEGIN);
	/* One question at a time. */
	assert_true(side_waits(&f.a, QP_1, &wait));
	assert_int_equal(daemon_finds(&f.a), 0);
	/* The next one goes on where the reply has ended. */
	daemon_replies(&f.a, &ask, SW_ASK_TAKEN, 4711);
	assert_true(side_waits(&f.a, QP_1, &wait));
	ask = daemon_takes_question(&f.a, QP_1, 0);
	assert_int_equal(SW_ASK_STEP(ask.len), SW_ASK_TAKEN);
	assert_int_equal(ask.mark, 4711);
	daemon_replies(&f.a, &ask, SW_ASK_DONE, 0);
	assert_false(side_waits(&f.a, QP_1, &wait));
	assert_int_equal(daemon_finds(&f.a), 0);
	fixture_close(&f);
}

/* The QP sends by the daemon, and its peer by the pair: the answer may be there. */
TEST(answer_comes_by_the_pair)
{
	struct answer_wait wait = {.on = true};
	struct pair_fixture f;

	fixture_open(&f);
	f.a.d.region.daemon->pairs_off = 1;
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
	daemon_forwards(&f.a, &f.b, 1);
	daemon_has_nothing(&f.a, QP_1, &wait);
	side_expect(&f.b, 1, 0);
	assert_int_equal(side_send(&f.b, QP_1, 1, 1), 1);
	assert_true(side_waits(&f.a, QP_1, &wait));
	side_expect(&f.a, 1, 1);
	assert_false(side_waits(&f.a, QP_1, &wait));
	fixture_close(&f);
}

/* A lost reply makes the QP ask again, and a late one to an earlier question says nothing. */
TEST(daemon_is_asked_again)
{
	struct answer_wait wait = {.on = true};
	struct ring_desc first, ask;
	struct pair_fixture f;

	fixture_open(&f);
	f.a.d.region.daemon->pairs_off = 1;
	wait.since_ns = f.a.now;
	assert_true(side_waits(&f.a, QP_1, &wait));
	first = daemon_takes_question(&f.a, QP_1, 0);
	f.a.now += NS_PER_MS;
	assert_true(side_waits(&f.a, QP_1, &wait));
	ask = daemon_takes_question(&f.a, QP_1, 0);
	assert_int_not_equal(ask.len, first.len);
	daemon_replies(&f.a, &first, SW_ASK_DONE, 0);
	assert_true(side_waits(&f.a, QP_1, &wait));
	daemon_replies(&f.a, &ask, SW_ASK_DONE, 0);
	assert_false(side_waits(&f.a, QP_1, &wait));
	/* The next timeout begins anew. */
	f.a.now++;
	wait = (struct answer_wait){.on = true, .since_ns = f.a.now};
	assert_true(side_waits(&f.a, QP_1, &wait));
	ask = daemon_takes_question(&f.a, QP_1, 0);
	assert_int_equal(SW_ASK_STEP(ask.len), SW_ASK_BEGIN);
	fixture_close(&f);
}

/* Without room for the question the daemon has not taken the packets. A QP without a peer does not
 * ask. */
TEST(question_waits_for_room)
{
	struct answer_wait wait = {.on = true};
	struct pair_fixture f;
	unsigned sent = 0, n;

	fixture_open(&f);
	f.a.d.region.daemon->pairs_off = 1;
	wait.since_ns = f.a.now;
	while ((n = side_send(&f.a, QP_1, BURST, 0)) != 0)
		sent += n;
	assert_int_equal(daemon_finds(&f.a), sent);
	assert_true(side_waits(&f.a, QP_1, &wait));
	assert_int_equal(daemon_finds(&f.a), sent);
	ring_release(&f.a.d.tx, 1);
	assert_true(side_waits(&f.a, QP_1, &wait));
	(void)daemon_takes_question(&f.a, QP_1, sent - 1);
	assert_false(side_waits(&f.a, QP_UD, &wait));
	fixture_close(&f);
}

static unsigned thread_woken;

static void
thread_wake(void *arg)
{
	(void)arg;
	thread_woken++;
}

/* The time goes on, and the QP still waits. Returns whether the progress thread is to ask the daemon. */
static bool
standstill_after(struct pair_side *s, uint64_t ns, struct answer_wait *wait)
{
	bool is_due;

	s->now += ns;
	assert_true(side_waits(s, QP_1, wait));
	is_due = s->shm->standstill.is_due;
	s->shm->standstill.is_due = false;
	return is_due;
}

/* The program makes no request, and the daemon is stopped. */
TEST(daemon_that_takes_nothing_is_noticed)
{
	struct answer_wait wait = {.on = true};
	struct pair_fixture f;

	fixture_open(&f);
	f.a.d.region.daemon->pairs_off = 1;
	f.a.shm->engine_thread.wake = thread_wake;
	thread_woken = 0;
	wait.since_ns = f.a.now;
	assert_int_equal(side_send(&f.a, QP_1, 2, 0), 2);
	assert_false(standstill_after(&f.a, 0, &wait));
	assert_false(standstill_after(&f.a, NS_PER_SEC - 1, &wait));
	/* It takes a packet: it is slow. */
	assert_true(daemon_finds(&f.a) > 1);
	ring_release(&f.a.d.tx, 1);
	assert_false(standstill_after(&f.a, 1, &wait));
	assert_false(standstill_after(&f.a, NS_PER_SEC - 1, &wait));
	assert_int_equal(thread_woken, 0);
	assert_true(standstill_after(&f.a, 1, &wait));
	assert_int_equal(thread_woken, 1);
	/* It is asked once in a second. */
	assert_false(standstill_after(&f.a, NS_PER_SEC - 1, &wait));
	assert_true(standstill_after(&f.a, 1, &wait));
	assert_int_equal(thread_woken, 2);
	/* It takes all: what comes then has not waited yet. */
	ring_release(&f.a.d.tx, daemon_finds(&f.a));
	assert_false(standstill_after(&f.a, NS_PER_SEC, &wait));
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
	assert_false(standstill_after(&f.a, NS_PER_SEC, &wait));
	assert_false(standstill_after(&f.a, NS_PER_SEC - 1, &wait));
	assert_true(standstill_after(&f.a, 1, &wait));
	assert_int_equal(thread_woken, 3);
	fixture_close(&f);
}

/* The daemon is shown up to where the client has answered. Its replies to the client's own questions need
 * no answer. */
TEST(answered_packets_are_shown)
{
	struct answer_wait wait = {.on = true};
	const struct region_client *shown;
	struct pair_fixture f;
	struct ring_desc ask;

	fixture_open(&f);
	shown = f.b.d.region.client;
	f.a.d.region.daemon->pairs_off = f.b.d.region.daemon->pairs_off = 1;
	assert_int_equal(side_send(&f.a, QP_1, 3, 0), 3);
	daemon_forwards(&f.a, &f.b, 3);
	side_expect(&f.b, 3, 0);
	assert_int_equal(shown->rx_answered, 0);
	f.b.port.ops->rx_answered(f.b.shm);
	assert_int_equal(shown->rx_answered, 3);
	wait.since_ns = f.b.now;
	assert_true(side_waits(&f.b, QP_1, &wait));
	ask = daemon_takes_question(&f.b, QP_1, 0);
	daemon_replies(&f.b, &ask, SW_ASK_TAKEN, 0);
	assert_int_equal(shown->rx_answered, 4);
	fixture_close(&f);
}

/* Or the partner takes an acknowledgement, and goes away before the answer behind it comes. */
TEST(packets_of_a_burst_are_shown_at_once)
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
