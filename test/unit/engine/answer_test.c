/* SPDX-License-Identifier: BSD-3-Clause */
/* Ball games: an answer leaves from within its post and before the acknowledgement of
 * what it answers; and what is not answered is acknowledged. */
#include "engine/answer.h"
#include "engine_link.h"
#include "test_clock.h"

#define GAME_LOOKS 16 /* as in engine.c */
#define ROUND_NS 700

static struct engine_link fixture;
static struct link_qp a, b;
static uint64_t wr;

static int
setup(void **state)
{
	static const struct link_qp_conf plain = {.wr = 64};

	(void)state;
	engine_link_init(&fixture, NULL);
	test_clock = &fixture.now;
	link_qp_create(&fixture.a, &a, &plain);
	link_qp_create(&fixture.b, &b, &plain);
	link_qp_connect(&a, &b, &plain);
	wr = 0;
	return 0;
}

static struct answers *
answers(void)
{
	return &fixture.b.dev->engines[0]->answers;
}

static int
teardown(void **state)
{
	(void)state;
	engine_link_drain(&fixture);
	assert_false(answers()->held);
	link_qp_destroy(&a);
	link_qp_destroy(&b);
	engine_link_fini(&fixture);
	return 0;
}

static unsigned
poll_b(void)
{
	return engine_poll(fixture.b.dev->engines[0]);
}

/* How many frames b's next turn sends. */
static unsigned
turn(void)
{
	fixture.a.roce_frames = 0;
	poll_b();
	engine_link_deliver(&fixture);
	return fixture.a.roce_frames;
}

/* a sends, and what it sends has come to b's port. */
static void
serve(void)
{
	wr++;
	fixture.now += ROUND_NS;
	assert_int_equal(link_qp_recv(&b, wr, 0, 8), 0);
	assert_int_equal(link_qp_send(&a, wr, 0, 8, IBV_SEND_SIGNALED), 0);
	engine_poll(fixture.a.dev->engines[0]);
	engine_link_deliver(&fixture);
}

/* b takes it in; how many frames it has sent for that. */
static unsigned
take(void)
{
	struct cqe cqe;

	fixture.a.roce_frames = 0;
	poll_b();
	engine_link_deliver(&fixture);
	assert_true(link_qp_poll_recv(&b, &cqe));
	assert_int_equal(cqe.wr_id, wr);
	return fixture.a.roce_frames;
}

/* How many frames b's post has sent by itself. */
static unsigned
answer(void)
{
	assert_int_equal(link_qp_recv(&a, wr, 0, 8), 0);
	fixture.a.roce_frames = 0;
	assert_int_equal(link_qp_send(&b, wr, 0, 8, IBV_SEND_SIGNALED), 0);
	engine_link_deliver(&fixture);
	return fixture.a.roce_frames;
}

/* The rest of a round: all of it has arrived, once; and b's side of it. */
static void
finish(void)
{
	for (unsigned i = 0; i < 3; i++) {
		poll_b();
		engine_link_deliver(&fixture);
		engine_poll(fixture.a.dev->engines[0]);
		engine_link_deliver(&fixture);
	}
	link_qp_expect_sent(&a, wr, 1, IBV_WC_SUCCESS);
}

/* a plays no game: its turn behind the ball is before its answer. */
static void
arrived(void)
{
	engine_poll(fixture.a.dev->engines[0]);
	engine_poll(fixture.a.dev->engines[0]);
	engine_link_deliver(&fixture);
	poll_b();
	link_qp_expect_received(&a, wr, 1);
	link_qp_expect_sent(&b, wr, 1, IBV_WC_SUCCESS);
}

/* A game, begun. */
static void
play(void)
{
	/* The first packet of all waits for a MAC. */
	engine_link_advance(&fixture, NS_PER_MS);
	serve();
	engine_link_drain(&fixture);
	link_qp_expect_sent(&a, wr, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(&b, wr, 1);
	for (unsigned i = 0; i < ANSWER_ROW; i++) {
		serve();
		assert_int_equal(take(), 1);
		assert_int_equal(answer(), 0);
		finish();
		link_qp_expect_sent(&b, wr, 1, IBV_WC_SUCCESS);
		link_qp_expect_received(&a, wr, 1);
	}
}

/* A ball that is answered; how many frames the turn behind sends: its acknowledgement, or
 * none. */
static unsigned
ball(void)
{
	unsigned sent;

	serve();
	assert_int_equal(take(), 0);
	assert_int_equal(answer(), 1);
	sent = turn();
	arrived();
	return sent;
}

/* Answers leave from within their posts, and ANSWER_KEPT balls are acknowledged at once. */
static void
test_game(void **state)
{
	uint64_t first;

	(void)state;
	play();
	first = wr + 1;
	for (unsigned i = 1; i <= 3 * ANSWER_KEPT; i++) {
		struct cqe cqe;

		assert_int_equal(ball(), i % ANSWER_KEPT == 0);
		assert_true(i % ANSWER_KEPT == 0 ||
			    engine_deadline(fixture.b.dev->engines[0]) ==
				    fixture.now + ANSWER_PAUSE_NS);
		if (i % ANSWER_KEPT == 0) {
			link_qp_expect_sent(&a, first, ANSWER_KEPT, IBV_WC_SUCCESS);
			first += ANSWER_KEPT;
		}
		assert_false(link_qp_poll_send(&a, &cqe));
	}
	/* One that is not answered: acknowledged by the next turn, and the game is over.
	 */
	serve();
	assert_int_equal(take(), 0);
	finish();
	serve();
	assert_int_equal(take(), 1);
	finish();
}

/* From the second round on what comes is expected, and its answer has been drafted. */
static void
test_prepared(void **state)
{
	(void)state;
	play();
	for (unsigned i = 0; i < 4; i++) {
		serve();
		assert_int_equal(take(), 0);
		assert_int_equal(answers()->matched, i != 0);
		assert_int_equal(answers()->drafted, i != 0);
		assert_int_equal(answer(), 1);
		assert_int_equal(answers()->posted, i != 0);
		/* It is counted in the turn behind. */
		assert_int_equal(b.qp->req.unacked, i == 0);
		assert_int_equal(turn(), 0);
		assert_false(answers()->posted);
		assert_int_equal(b.qp->req.unacked, 1);
		assert_int_not_equal(qp_deadline(b.qp), TIME_NEVER);
		arrived();
		assert_int_equal(b.qp->req.unacked, 0);
	}
	engine_link_advance(&fixture, NS_PER_MS);
	link_qp_expect_sent(&a, wr - 3, 4, IBV_WC_SUCCESS);
}

/* Where there is a receive in the turn behind, it is looked up there; and forgotten with
 * the rest. */
static void
test_ready(void **state)
{
	struct cqe cqe;

	(void)state;
	play();
	assert_int_equal(ball(), 0);
	assert_false(answers()->ready);
	assert_int_equal(link_qp_recv(&b, wr + 1, 0, 8), 0);
	assert_int_equal(ball(), 0);
	assert_true(answers()->ready);
	assert_int_equal(link_qp_modify(&b, IBV_QPS_RESET), 0);
	assert_false(answers()->ready);
	engine_link_deliver(&fixture);
	engine_poll(fixture.a.dev->engines[0]);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(link_qp_poll_send(&a, &cqe));
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	}
}

/* The next ball does not come: the acknowledgement leaves, and from then on none waits
 * for that any more, for long. */
static void
test_pause(void **state)
{
	(void)state;
	play();
	assert_int_equal(ball(), 0);
	fixture.now = engine_deadline(fixture.b.dev->engines[0]) - 1;
	assert_int_equal(turn(), 0);
	fixture.now++;
	assert_int_equal(turn(), 1);
	engine_poll(fixture.a.dev->engines[0]);
	link_qp_expect_sent(&a, wr, 1, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < ANSWER_VAIN - 1; i++) {
		assert_int_equal(ball(), 1);
		link_qp_expect_sent(&a, wr, 1, IBV_WC_SUCCESS);
	}
	assert_int_equal(ball(), 0);
	assert_int_equal(ball(), 0);
	engine_link_advance(&fixture, NS_PER_MS);
	link_qp_expect_sent(&a, wr - 1, 2, IBV_WC_SUCCESS);
}

/* The QP goes while its acknowledgement waits, behind its answer or for one: that leaves
 * before, and the answer, if it was drafted, counts. */
static void
gone(unsigned rounds, bool answered)
{
	struct cqe cqe;

	play();
	for (unsigned i = 0; i < rounds; i++)
		assert_int_equal(ball(), 0);
	serve();
	assert_int_equal(take(), 0);
	if (answered)
		assert_int_equal(answer(), 1);
	assert_int_equal(answers()->posted, answered && rounds != 0);
	assert_int_equal(link_qp_modify(&b, IBV_QPS_RESET), 0);
	assert_null(answers()->qp);
	assert_false(answers()->posted || answers()->drafted || answers()->prepare);
	assert_int_equal(answers()->expect.len, 0);
	engine_link_deliver(&fixture);
	engine_poll(fixture.a.dev->engines[0]);
	for (unsigned i = 0; i <= rounds; i++) {
		assert_true(link_qp_poll_send(&a, &cqe));
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	}
}

static void
test_gone(void **state)
{
	(void)state;
	gone(0, false);
}

static void
test_gone_answered(void **state)
{
	(void)state;
	gone(0, true);
}

static void
test_gone_drafted(void **state)
{
	(void)state;
	gone(2, true);
}

static void
test_gone_expecting(void **state)
{
	(void)state;
	gone(2, false);
}

/* One message from a QP to its like. */
static void
send_to(struct link_qp *from, struct link_qp *to, uint64_t wr_id)
{
	assert_int_equal(link_qp_recv(to, wr_id, 0, 8), 0);
	assert_int_equal(link_qp_send(from, wr_id, 0, 8, 0), 0);
	engine_poll(from->side->dev->engines[0]);
	engine_link_deliver(&fixture);
}

/* What is expected is expected of one QP: another one's answer comes in between, while
 * the last of the first QP left by its bell. The PSNs are the same, so nothing but the
 * headers tells whose the next ball is. */
static void
test_two_qps(void **state)
{
	static const struct link_qp_conf plain = {.wr = 64};
	struct link_qp c, d;
	struct cqe cqe;

	(void)state;
	link_qps_create(&fixture, &c, &d, 1, &plain);
	engine_link_advance(&fixture, NS_PER_MS);
	for (unsigned i = 0; i < ANSWER_ROW + 3; i++) {
		send_to(&c, &d, i);
		engine_link_drain(&fixture);
	}
	link_qp_expect_received(&d, 0, ANSWER_ROW + 3);
	play();
	assert_int_equal(ball(), 0);
	assert_int_equal(ball(), 0);
	serve();
	assert_int_equal(take(), 0);
	assert_true(answers()->matched);
	answers()->loop = 0; /* as if another thread answered */
	assert_int_equal(answer(), 0);
	turn();
	arrived();
	send_to(&c, &d, 100);
	poll_b();
	link_qp_expect_received(&d, 100, 1);
	assert_int_equal(link_qp_recv(&c, 1, 0, 8), 0);
	assert_int_equal(link_qp_send(&d, 1, 0, 8, 0), 0);
	assert_ptr_equal(answers()->qp, d.qp);
	turn();
	engine_poll(fixture.a.dev->engines[0]);
	engine_link_deliver(&fixture);
	poll_b();
	assert_int_equal(d.qp->resp.epsn, b.qp->resp.epsn);
	assert_int_equal(link_qp_recv(&d, 101, 0, 8), 0);
	serve();
	poll_b();
	link_qp_expect_received(&b, wr, 1);
	assert_false(link_qp_poll_recv(&d, &cqe));
	engine_link_advance(&fixture, NS_PER_MS);
	while (link_qp_poll_send(&a, &cqe) || link_qp_poll_recv(&c, &cqe))
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	link_qps_destroy(&c, &d, 1);
}

/* A message in every turn, each answered: not many wait for their acknowledgement. */
static void
test_no_pause(void **state)
{
	unsigned done = 0;

	(void)state;
	play();
	for (unsigned i = 1; i <= 20; i++) {
		struct cqe cqe;

		serve();
		take();
		answer();
		engine_poll(fixture.a.dev->engines[0]);
		engine_link_deliver(&fixture);
		while (link_qp_poll_send(&a, &cqe))
			done++;
		assert_true(i - done <= ANSWER_KEPT + 1);
		while (link_qp_poll_recv(&a, &cqe) || link_qp_poll_send(&b, &cqe))
			assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	}
	engine_link_drain(&fixture);
}

/* How often b's next turn looks at the port. */
static unsigned
looks(void)
{
	unsigned before = fixture.b.port.q[0].rx_calls;

	poll_b();
	return fixture.b.port.q[0].rx_calls - before;
}

/* Who waits for a ball looks for it several times in a turn that finds nothing; what came
 * is taken in at once, and nobody looks again who has something to send. */
static void
test_looks(void **state)
{
	(void)state;
	assert_int_equal(looks(), 1);
	play();
	assert_int_equal(looks(), GAME_LOOKS);
	assert_int_equal(looks(), GAME_LOOKS);
	serve();
	assert_int_equal(looks(), 1);
	link_qp_expect_received(&b, wr, 1);
	assert_int_equal(answer(), 1);
	/* While the acknowledgement waits, too. */
	assert_int_equal(looks(), GAME_LOOKS);
	fixture.now += ANSWER_PAUSE_NS;
	assert_int_equal(looks(), 1);
	finish();
	link_qp_expect_sent(&b, wr, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(&a, wr, 1);
	assert_int_equal(looks(), GAME_LOOKS);
	/* A bell. */
	assert_int_equal(answer(), 0);
	assert_int_equal(looks(), 1);
	engine_link_drain(&fixture);
	link_qp_expect_sent(&b, wr, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(&a, wr, 1);
	/* No answer: the game is over. */
	serve();
	assert_int_equal(take(), 0);
	finish();
	assert_int_equal(looks(), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_game, setup, teardown),
		cmocka_unit_test_setup_teardown(test_prepared, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ready, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pause, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_drafted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_expecting, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_qps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_pause, setup, teardown),
		cmocka_unit_test_setup_teardown(test_looks, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
