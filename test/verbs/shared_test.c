/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs devices on ports that the application owns. The application sends frames of its own
 * meanwhile. */
#include <errno.h>
#include <string.h>

#include <rte_mbuf.h>

#include "await.h"
#include "case.h"
#include "shared_pair.h"

#define MESSAGES 2000

static void
message_check(struct side *s, const struct ibv_wc *wc, unsigned number)
{
	const uint8_t *at = s->mem + wc->wr_id * MSG_BYTES;

	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_int_equal(wc->byte_len, MSG_BYTES);
	for (unsigned i = 0; i < MSG_BYTES; i++)
		assert_int_equal(at[i], number % 251);
}

/* Messages from side 0 to side 1, and a frame of each application for each of them. */
static void
messages_pass(enum how how)
{
	unsigned posted = 0, done = 0, received = 0, others = 0;
	struct await a = {.pauses = 0};
	struct ibv_wc wc;

	for (unsigned i = 0; i < DEPTH; i++)
		recv_post(&sides[1], i);
	while (received < MESSAGES || done < MESSAGES) {
		assert_true(await_goes_on(&a));
		while (posted < MESSAGES && posted - done < DEPTH)
			send_post(&sides[0], posted++);
		while (others < received) {
			other_frame_send(&sides[others % 2]);
			others++;
		}
		sides_pass(how);
		while (ibv_poll_cq(sides[0].cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			done++;
		}
		while (ibv_poll_cq(sides[1].cq, 1, &wc) == 1) {
			message_check(&sides[1], &wc, received++);
			recv_post(&sides[1], (unsigned)wc.wr_id);
		}
	}
	await_by(sides_pass(how), sides[0].others + sides[1].others >= others);
	assert_int_equal(sides[0].others, others / 2);
	assert_int_equal(sides[1].others, (others + 1) / 2);
}

/* Congestion control is on. Delays do not count on a virtual device. */
static void
target_check(const struct side *s)
{
	struct rocade_peer peer;

	assert_int_equal(rocade_port_peers(s->port, &peer, 1), 1);
	assert_true(peer.cc);
	assert_int_equal(peer.send.cc_target_ns, 0);
	assert_int_equal(peer.read.cc_target_ns, 0);
}

static void
traffic(enum how how)
{
	struct rocade_shared_stats stats;
	struct {
		struct rocade_shared_stats stats;
		uint64_t more; /* of a later program */
	} later = {.more = 1};

	side_open(&sides[0], how);
	side_open(&sides[1], how);
	side_connect(&sides[0], &sides[1]);
	side_connect(&sides[1], &sides[0]);
	messages_pass(how);
	target_check(&sides[0]);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(
			rocade_shared_stats(rocade_port_engine(sides[i].port, 0), &stats),
			0);
		assert_int_equal(
			stats.input_full + stats.exceptions_full + stats.no_copy, 0);
		assert_int_equal(
			rocade_shared_stats_sized(rocade_port_engine(sides[i].port, 0),
				&later.stats, sizeof(later)),
			0);
		assert_int_equal(later.more, 0);
		stats.no_copy = 77; /* an earlier program does not have it */
		assert_int_equal(
			rocade_shared_stats_sized(rocade_port_engine(sides[i].port, 0),
				&stats, offsetof(struct rocade_shared_stats, no_copy)),
			0);
		assert_int_equal(stats.no_copy, 77);
		assert_int_equal(sides[i].answered != 0, how == HOW_APP_ANSWERS);
		side_close(&sides[i]);
	}
}

TEST(application_passes_frames)
{
	traffic(HOW_FRAMES);
}

TEST(rocade_polls_the_queue)
{
	traffic(HOW_QUEUES);
}

TEST(application_sends_for_rocade)
{
	traffic(HOW_FUNCTION);
}

TEST(application_answers_for_rocade)
{
	traffic(HOW_APP_ANSWERS);
}

static void
expect_refusal(const struct rocade_port_conf *conf,
	const struct rocade_shared_conf *shared, int err, const char *words)
{
	struct rocade_port *port = NULL;

	assert_int_equal(rocade_open_shared(conf, shared, &port), err);
	if (strstr(rocade_error(), words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", rocade_error(), words);
	assert_null(port);
}

TEST(wrong_use_is_refused)
{
	struct rocade_port_conf conf = {.size = sizeof(conf),
		.addresses = "192.0.2.1/24",
		.ethdev = sides[0].ethdev};
	struct {
		struct rocade_shared_conf known;
		uint64_t newer;
	} larger = {.known = {.size = sizeof(larger)}, .newer = 1};
	struct rocade_shared_conf shared = {.size = sizeof(shared)};
	struct rocade_port_conf loop_conf[2] = {
		{.size = sizeof(conf), .addresses = "192.0.2.1/24"},
		{.size = sizeof(conf), .addresses = "192.0.2.2/24"}};
	struct rte_mbuf *frame = rte_pktmbuf_alloc(pool);
	struct rocade_shared_stats stats;
	struct rocade_port *loop[2];
	struct rocade_engine *engine;

	expect_refusal(&conf, NULL, EINVAL, "no configuration of the shared port");
	shared.size = 8;
	expect_refusal(&conf, &shared, EINVAL, "size: 8 is not sizeof");
	expect_refusal(&conf, &larger.known, EINVAL, "size: a member behind");
	shared.size = sizeof(shared);
	conf.ethdev = 77;
	expect_refusal(&conf, &shared, ENODEV, "there is no port 77");
	conf.ethdev = sides[0].ethdev;
	conf.rx_desc = 40000;
	expect_refusal(&conf, &shared, EINVAL, "rx_desc: 40000 is not in");
	conf.rx_desc = 0;
	conf.engines = 2;
	expect_refusal(
		&conf, &shared, EINVAL, "first_tx_queue: 0 to 1 are not among the 1");
	conf.engines = 1;
	conf.pool = pool;
	expect_refusal(&conf, &shared, EINVAL, "only rocade_open_port() uses them");
	conf.pool = NULL;
	conf.numa = 1;
	expect_refusal(&conf, &shared, EINVAL, "only rocade_open_port() uses them");
	conf.numa = 0;
	conf.addresses = "224.0.0.1/24";
	expect_refusal(&conf, &shared, EINVAL, "an address is not a valid host address");
	/* Another kind of port takes nothing, and has nothing. */
	assert_int_equal(rocade_open_loop(loop_conf, loop), 0);
	engine = rocade_port_engine(loop[0], 0);
	assert_int_equal(rocade_engine_input(engine, &frame, 1), 1);
	assert_int_equal(rocade_engine_exceptions(engine, &frame, 1), 0);
	assert_int_equal(rocade_shared_stats(engine, &stats), EINVAL);
	rte_pktmbuf_free(frame);
	rocade_close_port(loop[0]);
	rocade_close_port(loop[1]);
	/* The device is Rocade's, its link the application's. */
	side_open(&sides[0], HOW_FRAMES);
	assert_int_equal(rocade_port_set_link(sides[0].port, false), EOPNOTSUPP);
	side_close(&sides[0]);
}

TEST_GROUP(app_start, app_end)
