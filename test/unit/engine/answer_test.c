/* SPDX-License-Identifier: BSD-3-Clause */
/* Ball games: an answer leaves from within its post and before the acknowledgement of
 * what it answers; and what is not answered is acknowledged. */
#include "engine/answer.h"
#include "engine_bed.h"

#define GAME_LOOKS 8 /* as in engine.c */

static struct bed bed;
static struct bed_qp a, b;
static uint64_t wr;

static int
setup(void **state)
{
	static const struct bed_qp_conf plain = {.wr = 64};

	(void)state;
	bed_init(&bed, NULL);
	bed_qp_create(&bed.a, &a, &plain);
	bed_qp_create(&bed.b, &b, &plain);
	bed_connect(&a, &b, &plain);
	wr = 0;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	bed_settle(&bed);
	assert_false(bed.b.dev->engines[0]->answers.held);
	bed_qp_destroy(&a);
	bed_qp_destroy(&b);
	bed_fini(&bed);
	return 0;
}

/* What an application does, on the clock of the machine. */
static unsigned
poll_b(void)
{
	return engine_poll(bed.b.dev->engines[0]);
}

/* a sends, and what it sends has come to b's port. */
static void
serve(void)
{
	wr++;
	assert_int_equal(bed_recv(&b, wr, 0, 8), 0);
	assert_int_equal(bed_send(&a, wr, 0, 8, IBV_SEND_SIGNALED), 0);
	engine_poll(bed.a.dev->engines[0]);
	bed_carry(&bed);
}

/* b takes it in; how many frames it has sent for that. */
static unsigned
take(void)
{
	struct cqe cqe;

	bed.a.roce_frames = 0;
	poll_b();
	bed_carry(&bed);
	assert_true(bed_received(&b, &cqe));
	assert_int_equal(cqe.wr_id, wr);
	return bed.a.roce_frames;
}

/* How many frames b's post has sent by itself. */
static unsigned
answer(void)
{
	assert_int_equal(bed_recv(&a, wr, 0, 8), 0);
	bed.a.roce_frames = 0;
	assert_int_equal(bed_send(&b, wr, 0, 8, IBV_SEND_SIGNALED), 0);
	bed_carry(&bed);
	return bed.a.roce_frames;
}

/* The rest of a round: all of it has arrived, once. */
static void
finish(void)
{
	for (unsigned i = 0; i < 3; i++) {
		poll_b();
		bed_carry(&bed);
		engine_poll(bed.a.dev->engines[0]);
		bed_carry(&bed);
	}
	bed_expect_sent(&a, wr, 1, IBV_WC_SUCCESS);
}

/* A game, begun. */
static void
play(void)
{
	/* The first packet of all waits for a MAC. */
	bed_run(&bed, NS_PER_MS);
	serve();
	bed_settle(&bed);
	bed_expect_sent(&a, wr, 1, IBV_WC_SUCCESS);
	bed_expect_received(&b, wr, 1);
	for (unsigned i = 0; i < ANSWER_ROW; i++) {
		serve();
		assert_int_equal(take(), 1);
		assert_int_equal(answer(), 0);
		finish();
		bed_expect_sent(&b, wr, 1, IBV_WC_SUCCESS);
		bed_expect_received(&a, wr, 1);
	}
}

static void
test_game(void **state)
{
	(void)state;
	play();
	for (unsigned i = 0; i < 5; i++) {
		uint16_t udp_len;

		serve();
		assert_int_equal(take(), 0);
		assert_int_equal(answer(), 1);
		udp_len = b.qp->hdr.udp_len;
		bed.a.roce_frames = 0;
		poll_b();
		bed_carry(&bed);
		assert_int_equal(bed.a.roce_frames, 1); /* the acknowledgement */
		/* And the headers are the answer's again. */
		assert_int_equal(b.qp->hdr.udp_len, udp_len);
		assert_int_not_equal(b.qp->hdr.other_udp_len, udp_len);
		assert_null(bed.b.dev->engines[0]->answers.qp);
		finish();
		bed_expect_sent(&b, wr, 1, IBV_WC_SUCCESS);
		bed_expect_received(&a, wr, 1);
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

/* The QP goes while its acknowledgement waits, behind its answer or for one: that leaves
 * before. */
static void
gone(bool answered)
{
	struct cqe cqe;

	play();
	serve();
	assert_int_equal(take(), 0);
	if (answered)
		assert_int_equal(answer(), 1);
	assert_int_equal(bed_modify(&b, IBV_QPS_RESET), 0);
	assert_null(bed.b.dev->engines[0]->answers.qp);
	bed_carry(&bed);
	engine_poll(bed.a.dev->engines[0]);
	assert_true(bed_sent(&a, &cqe));
	assert_int_equal(cqe.status, IBV_WC_SUCCESS);
}

static void
test_gone(void **state)
{
	(void)state;
	gone(false);
}

static void
test_gone_answered(void **state)
{
	(void)state;
	gone(true);
}

/* A message in every turn, each answered: no second turn keeps the acknowledgement. */
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
		engine_poll(bed.a.dev->engines[0]);
		bed_carry(&bed);
		while (bed_sent(&a, &cqe))
			done++;
		assert_true(i - done <= 2);
		while (bed_received(&a, &cqe) || bed_sent(&b, &cqe))
			assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	}
	bed_settle(&bed);
}

/* How often b's next turn looks at the port. */
static unsigned
looks(void)
{
	unsigned before = bed.b.port.q[0].rx_calls;

	poll_b();
	return bed.b.port.q[0].rx_calls - before;
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
	bed_expect_received(&b, wr, 1);
	assert_int_equal(answer(), 1);
	/* The acknowledgement. */
	assert_int_equal(looks(), 1);
	finish();
	bed_expect_sent(&b, wr, 1, IBV_WC_SUCCESS);
	bed_expect_received(&a, wr, 1);
	assert_int_equal(looks(), GAME_LOOKS);
	/* A bell. */
	assert_int_equal(answer(), 0);
	assert_int_equal(looks(), 1);
	bed_settle(&bed);
	bed_expect_sent(&b, wr, 1, IBV_WC_SUCCESS);
	bed_expect_received(&a, wr, 1);
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
		cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_pause, setup, teardown),
		cmocka_unit_test_setup_teardown(test_looks, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
