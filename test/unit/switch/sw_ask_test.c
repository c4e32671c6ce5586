/* SPDX-License-Identifier: BSD-3-Clause */
/* A client asks whether answers to its packets may still be on their way. */
#include "uplink_fixture.h"

#include "switch/sw_ask.h"

static struct uplink_fixture u;

static void
ask(struct fixture_client *c, uint32_t qpn, enum sw_ask_step step, uint32_t mark)
{
	assert_true(ring_prod_refresh(&c->tx) && ring_room(&c->tx) != 0);
	ring_put(&c->tx, &(struct ring_desc){.buf = 0,
				 .qpn = qpn,
				 .len = (uint16_t)(5 << SW_ASK_STEP_BITS | step),
				 .flags = RING_ASK,
				 .mark = mark});
	ring_publish(&c->tx);
}

static void
pass(void)
{
	for (unsigned i = 0; i < 3; i++) {
		(void)sw_run(u.b.sw, u.b.now);
		for (uint32_t t = 1; t < u.b.sw->thread_count; t++)
			(void)sw_thread_run(u.b.sw->threads[t], u.b.now);
	}
}

/* Takes the reply, in front of which are n packets. */
static struct ring_desc
reply_behind(struct fixture_client *c, unsigned n)
{
	struct ring_desc reply;

	assert_true(ring_cons_refresh(&c->rx));
	assert_in_range(ring_count(&c->rx), n + 1, CLIENT_SLOTS);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(ring_peek(&c->rx, i).flags & RING_ASK, 0);
	reply = ring_peek(&c->rx, n);
	assert_int_equal(reply.flags, RING_ASK);
	assert_int_equal(reply.qpn, c->qpn);
	assert_int_equal(reply.len >> SW_ASK_STEP_BITS, 5);
	ring_release(&c->rx, n + 1);
	return reply;
}

static void
packets_post(struct fixture_client *c, const struct fixture_client *to, unsigned n)
{
	struct frame_spec f = frame_spec_valid(&u.b);

	f.dest_qpn = to->qpn;
	for (unsigned i = 0; i < n; i++) {
		uint32_t buf = c->tx.prod % CLIENT_BUFS;

		client_post(c, buf, c->qpn,
			frame_spec_build(region_tx_buf(&c->region, buf), &f));
	}
}

/* Asks from where the last reply ended, and expects this one. */
static struct ring_desc
ask_on(struct ring_desc last, enum sw_ask_step expected, unsigned packets)
{
	struct ring_desc reply;

	ask(&u.b.c[0], u.b.c[0].qpn, (enum sw_ask_step)SW_ASK_STEP(last.len), last.mark);
	pass();
	reply = reply_behind(&u.b.c[0], packets);
	assert_int_equal(SW_ASK_STEP(reply.len), expected);
	return reply;
}

static void
answered(struct fixture_client *c, uint32_t upto)
{
	__atomic_store_n(&c->region.client->rx_answered, upto, __ATOMIC_RELEASE);
}

static void
answer_is_followed(uint32_t threads)
{
	struct ring_desc reply;

	up_open_threads(&u, 0, threads);
	packets_post(&u.b.c[0], &u.b.c[1], 2);
	reply = ask_on((struct ring_desc){.len = 0}, SW_ASK_TAKEN, 0);
	assert_int_equal(reply.mark, 2);
	/* Taken, but not answered; then one of the two. */
	assert_true(ring_cons_refresh(&u.b.c[1].rx));
	ring_release(&u.b.c[1].rx, 2);
	reply = ask_on(reply, SW_ASK_TAKEN, 0);
	answered(&u.b.c[1], 1);
	reply = ask_on(reply, SW_ASK_TAKEN, 0);
	/* Answered: the reply comes behind the answer. */
	packets_post(&u.b.c[1], &u.b.c[0], 1);
	answered(&u.b.c[1], 2);
	pass();
	(void)ask_on(reply, SW_ASK_DONE, 1);
	up_close(&u);
}

TEST(reply_comes_behind_the_answers)
{
	answer_is_followed(1);
}

TEST(threads_hand_over_questions)
{
	answer_is_followed(2);
}

/* The peer's client has put the answer into its ring, and the switch has not forwarded it: it serves the
 * client that asks first. */
TEST(answers_are_to_be_forwarded)
{
	struct ring_desc reply;

	fixture_open(&u.b);
	packets_post(&u.b.c[1], &u.b.c[0], 1);
	reply = ask_on((struct ring_desc){.len = 0}, SW_ASK_FORWARDED, 0);
	assert_int_equal(reply.mark, 1);
	(void)ask_on(reply, SW_ASK_DONE, 1);
	fixture_close(&u.b);
}

/* No answer can come from a peer that is gone, or that has not registered the QP. */
TEST(lost_peers_are_found)
{
	struct sw_request clear = {.type = SW_PEER_CLEAR};
	struct sw_reply none;

	fixture_open(&u.b);
	packets_post(&u.b.c[0], &u.b.c[1], 1);
	(void)ask_on((struct ring_desc){.len = 0}, SW_ASK_TAKEN, 0);
	clear.qpn = u.b.c[1].qpn;
	client_request(&u.b, &u.b.c[1], &clear, &none);
	(void)ask_on((struct ring_desc){.len = SW_ASK_TAKEN, .mark = 1}, SW_ASK_DONE, 0);
	client_detach(&u.b.c[1]);
	(void)ask_on((struct ring_desc){.len = SW_ASK_TAKEN, .mark = 1}, SW_ASK_DONE, 0);
	/* A peer on another host. */
	assert_int_equal(
		client_set_peer(&u.b, &u.b.c[0], u.b.c[0].qpn, u.b.other, 0x77), 0);
	(void)ask_on((struct ring_desc){.len = 0}, SW_ASK_DONE, 0);
	fixture_close(&u.b);
}

/* A client asks for its own QPs only, and learns nothing of others. */
TEST(others_learn_nothing)
{
	uint64_t refused;

	fixture_open(&u.b);
	refused = u.b.c[2].client->stats.drop_not_owner;
	ask(&u.b.c[2], u.b.c[0].qpn, SW_ASK_BEGIN, 0);
	pass();
	assert_true(ring_cons_refresh(&u.b.c[2].rx));
	assert_int_equal(ring_count(&u.b.c[2].rx), 0);
	assert_int_equal(u.b.c[2].client->stats.drop_not_owner, refused + 1);
	/* Its QP names one that has another peer. */
	assert_int_equal(
		client_set_peer(&u.b, &u.b.c[2], u.b.c[2].qpn, u.b.addr, u.b.c[1].qpn),
		0);
	answered(&u.b.c[1], 0u - 1);
	ask(&u.b.c[2], u.b.c[2].qpn, SW_ASK_BEGIN, 0);
	pass();
	assert_int_equal(SW_ASK_STEP(reply_behind(&u.b.c[2], 0).len), SW_ASK_DONE);
	fixture_close(&u.b);
}

/* A client whose ring is full loses the reply, and asks again. */
TEST(full_ring_loses_the_reply)
{
	fixture_open(&u.b);
	for (unsigned i = 0; i < CLIENT_SLOTS; i++) {
		packets_post(&u.b.c[1], &u.b.c[0], 1);
		pass();
	}
	ask(&u.b.c[0], u.b.c[0].qpn, SW_ASK_BEGIN, 0);
	pass();
	assert_true(ring_cons_refresh(&u.b.c[0].rx));
	assert_int_equal(ring_count(&u.b.c[0].rx), CLIENT_SLOTS);
	assert_int_equal(ring_peek(&u.b.c[0].rx, CLIENT_SLOTS - 1).flags & RING_ASK, 0);
	ring_release(&u.b.c[0].rx, CLIENT_SLOTS);
	(void)ask_on((struct ring_desc){.len = 0}, SW_ASK_DONE, 0);
	fixture_close(&u.b);
}
