/* SPDX-License-Identifier: BSD-3-Clause */
/* Lost messages and silent peers: when messages are resent, and when a connection is
 * given up. */
#include <errno.h>
#include <string.h>

#include "case.h"
#include "cm_pair.h"

static struct cm_pair pair;

TEST(lost_req)
{
	struct cm_conn *a, *b;

	cm_pair_init(&pair, 4);
	pair.lose[MAD_REQ] = 2;
	a = active_connect(&pair);
	cm_pair_advance(&pair, REQ_WAIT_NS - NS_PER_MS);
	expect_wire(&pair, "(a:REQ)");
	cm_pair_advance(&pair, 2 * NS_PER_MS);
	expect_wire(&pair, "(a:REQ)");
	cm_pair_advance(&pair, REQ_WAIT_NS);
	cm_pair_drain(&pair);
	expect_wire(&pair, "a:REQ");
	b = expect_event(&pair, B, CM_EVENT_REQUEST).conn;
	assert_int_equal(cm_accept(b, &passive_qp, NULL, 0, pair.now), 0);
	cm_pair_drain(&pair);
	expect_event(&pair, A, CM_EVENT_REPLY);
	assert_int_equal(pair.cm[A]->stats.resent, 2);
	cm_release(a, pair.now);
	cm_release(b, pair.now);
	cm_pair_advance(&pair, NS_PER_SEC);
	cm_pair_fini(&pair);
}

TEST(lost_rep)
{
	struct cm_conn *a, *b;

	cm_pair_init(&pair, 4);
	pair.lose[MAD_REP] = 1;
	a = reach_req_rcvd(&pair, &b);
	assert_int_equal(cm_accept(b, &passive_qp, NULL, 0, pair.now), 0);
	cm_pair_advance(&pair, REQ_WAIT_NS + 10 * NS_PER_MS);
	/* First a's duplicate REQ makes b repeat its REP, then b's own timer does. */
	expect_event(&pair, A, CM_EVENT_REPLY);
	cm_confirm(a, NULL, 0, pair.now);
	cm_pair_drain(&pair);
	expect_event(&pair, B, CM_EVENT_ESTABLISHED);
	expect_no_event(&pair, B);
	expect_wire(&pair, "a:REQ (b:REP) a:REQ b:REP b:REP a:MRA a:RTU");
	assert_int_equal(pair.cm[B]->stats.duplicates, 1);
	assert_int_equal(pair.cm[A]->stats.duplicates, 1);
	cm_release(a, pair.now);
	cm_release(b, pair.now);
	cm_pair_fini(&pair);
}

TEST(lost_rtu)
{
	struct cm_conn *a, *b;

	cm_pair_init(&pair, 4);
	pair.lose[MAD_RTU] = 1;
	a = reach_rep_rcvd(&pair, &b);
	cm_confirm(a, NULL, 0, pair.now);
	cm_pair_advance(&pair, REQ_WAIT_NS + NS_PER_SEC);
	expect_wire(&pair, "a:REQ b:REP (a:RTU) b:REP a:RTU");
	expect_event(&pair, B, CM_EVENT_ESTABLISHED);
	cm_release(a, pair.now);
	cm_release(b, pair.now);
	cm_pair_fini(&pair);
}

/* Data that arrives before the RTU establishes the connection. */
TEST(data_before_rtu)
{
	struct cm_conn *a, *b;

	cm_pair_init(&pair, 4);
	pair.lose[MAD_RTU] = 1;
	a = reach_rep_rcvd(&pair, &b);
	cm_confirm(a, NULL, 0, pair.now);
	cm_pair_drain(&pair);
	assert_int_equal(cm_established(b, pair.now), 0);
	expect_event(&pair, B, CM_EVENT_ESTABLISHED);
	cm_pair_advance(&pair, 60 * NS_PER_SEC);
	expect_wire(&pair, "a:REQ b:REP (a:RTU)");
	cm_release(a, pair.now);
	cm_release(b, pair.now);
	cm_pair_fini(&pair);
}

TEST(lost_dreq_and_drep)
{
	struct cm_conn *a, *b;

	cm_pair_init(&pair, 4);
	a = reach_established(&pair, &b);
	pair.lose[MAD_DREQ] = pair.lose[MAD_DREP] = 1;
	cm_disconnect(a, NULL, 0, pair.now);
	cm_pair_advance(&pair, 3 * REQ_WAIT_NS);
	expect_wire(&pair, "(a:DREQ) a:DREQ a:DREQ");
	expect_event(&pair, B, CM_EVENT_DISCONNECTED);
	cm_disconnect(b, NULL, 0, pair.now);
	cm_pair_advance(&pair, REQ_WAIT_NS);
	/* b's time wait is over when the last DREQ arrives. b answers it all the same. */
	expect_wire(&pair, "(b:DREP) a:DREQ b:DREP");
	expect_event(&pair, B, CM_EVENT_TIMEWAIT_EXIT);
	expect_event(&pair, A, CM_EVENT_DISCONNECTED);
	cm_release(a, pair.now);
	cm_release(b, pair.now);
	cm_pair_fini(&pair);
}

/* ---- Silent peers ---- */

/* Loses all messages until the event comes, and returns the time that took. */
static uint64_t
time_until_event(unsigned side, enum cm_event_type type, int status)
{
	uint64_t start = pair.now;
	struct cm_event e;

	for (;;) {
		for (unsigned attr = MAD_ATTR_FIRST; attr <= MAD_ATTR_LAST; attr++)
			pair.lose[attr] = 1000;
		cm_pair_advance(&pair, 100 * NS_PER_MS);
		if (cm_next_event(pair.cm[side], &e))
			break;
		assert_true(pair.now - start < 1000 * NS_PER_SEC);
	}
	assert_int_equal(e.type, type);
	assert_int_equal(e.status, status);
	return pair.now - start;
}

static void
wire_reset(void)
{
	memset(pair.lose, 0, sizeof(pair.lose));
	pair.wire[0] = '\0';
}

TEST(no_peer_for_req)
{
	uint64_t took;
	struct cm_conn *a;

	cm_pair_init(&pair, 4);
	a = active_connect(&pair);
	took = time_until_event(A, CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_in_range(took, 16 * REQ_WAIT_NS, 16 * REQ_WAIT_NS + NS_PER_SEC);
	assert_int_equal(pair.cm[A]->stats.resent, 15);
	assert_int_equal(pair.cm[A]->stats.unanswered, 1);
	assert_non_null(strstr(pair.wire, "(a:REQ) (a:REJ)"));
	cm_release(a, pair.now);
	assert_int_equal(cm_in_use(pair.cm[A]), 0);
	wire_reset();
	cm_pair_fini(&pair);
}

TEST(no_peer_for_rep)
{
	uint64_t took;
	struct cm_conn *a, *b;

	cm_pair_init(&pair, 4);
	a = reach_req_rcvd(&pair, &b);
	cm_release(a, pair.now);
	mad_take(&pair, A);
	cm_accept(b, &passive_qp, NULL, 0, pair.now);
	/* The REQ asks for 15 retries. */
	took = time_until_event(B, CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_in_range(took, 8 * REQ_WAIT_NS, 8 * REQ_WAIT_NS + NS_PER_SEC);
	assert_int_equal(pair.cm[B]->stats.resent, CM_REP_RETRIES);
	time_until_event(B, CM_EVENT_TIMEWAIT_EXIT, 0);
	cm_release(b, pair.now);
	wire_reset();
	cm_pair_fini(&pair);
}

TEST(no_peer_for_dreq)
{
	uint64_t took;
	struct cm_conn *a, *b;

	cm_pair_init(&pair, 4);
	a = reach_established(&pair, &b);
	a->retries_left = 1; /* as after a REQ that was lost often */
	cm_disconnect(a, NULL, 0, pair.now);
	took = time_until_event(A, CM_EVENT_DISCONNECTED, 0);
	assert_in_range(took, 16 * REQ_WAIT_NS, 16 * REQ_WAIT_NS + NS_PER_SEC);
	took = time_until_event(A, CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_in_range(took, TIMEWAIT_NS - 100 * NS_PER_MS, TIMEWAIT_NS + NS_PER_SEC);
	cm_release(a, pair.now);
	wire_reset();
	cm_release(b, pair.now);
	cm_pair_advance(&pair, NS_PER_SEC);
	expect_wire(&pair, "b:DREQ a:DREP");
	cm_pair_fini(&pair);
}

/* A release by the user does not change these times. */
TEST(no_peer_after_release)
{
	struct cm_conn *a, *b;

	cm_pair_init(&pair, 4);
	a = reach_established(&pair, &b);
	cm_release(a, pair.now);
	pair.lose[MAD_DREQ] = 1000;
	cm_pair_advance(&pair, 16 * REQ_WAIT_NS - NS_PER_SEC);
	assert_int_equal(cm_in_use(pair.cm[A]), 1);
	cm_pair_advance(&pair, 2 * NS_PER_SEC + TIMEWAIT_NS);
	assert_int_equal(cm_in_use(pair.cm[A]), 0);
	wire_reset();
	cm_release(b, pair.now);
	cm_pair_fini(&pair);
}

/* The times that a peer asks for in its REQ are bounded. */
TEST(timeouts_of_the_peer_are_bounded)
{
	struct cm_conn *a, *b;
	struct mad req;
	uint64_t took;

	cm_pair_init(&pair, 4);
	a = active_connect(&pair);
	req = mad_take(&pair, A);
	mad_put(&req, MAD_REQ_local_timeout, 31);
	mad_put(&req, MAD_REQ_primary_ack_timeout, 31);
	mad_put(&req, MAD_REQ_max_cm_retries, 3);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	b = expect_event(&pair, B, CM_EVENT_REQUEST).conn;
	cm_accept(b, &passive_qp, NULL, 0, pair.now);
	cm_release(a, pair.now);
	mad_take(&pair, A);
	took = time_until_event(B, CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_in_range(took, 4 * REQ_WAIT_NS, 4 * REQ_WAIT_NS + NS_PER_SEC);
	took = time_until_event(B, CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_in_range(
		took, code_ns(CM_MRA_MAX) - NS_PER_SEC, code_ns(CM_MRA_MAX) + NS_PER_SEC);
	cm_release(b, pair.now);
	wire_reset();
	cm_pair_fini(&pair);
}

/* ---- MRA ---- */

TEST(mra_for_a_slow_user)
{
	struct cm_conn *a, *b;

	cm_pair_init(&pair, 4);
	a = reach_req_rcvd(&pair, &b);
	/* As in capture 89: the second REQ is answered by an MRA, and there is no
	 * third. */
	cm_pair_advance(&pair, 60 * NS_PER_SEC);
	expect_wire(&pair, "a:REQ a:REQ b:MRA");
	cm_accept(b, &passive_qp, NULL, 0, pair.now);
	cm_pair_drain(&pair);
	expect_event(&pair, A, CM_EVENT_REPLY);
	pair.wire[0] = '\0';
	/* The active side's user is slow as well. */
	cm_pair_advance(&pair, 60 * NS_PER_SEC);
	expect_wire(&pair, "b:REP a:MRA");
	cm_confirm(a, NULL, 0, pair.now);
	cm_pair_drain(&pair);
	expect_event(&pair, B, CM_EVENT_ESTABLISHED);
	cm_release(a, pair.now);
	cm_release(b, pair.now);
	cm_pair_fini(&pair);
}

/* An MRA extends the wait for an answer once, by 69 s at most. */
TEST(mra_is_bounded)
{
	struct cm_conn *a;
	struct mad req, mra;

	cm_pair_init(&pair, 4);
	a = active_connect(&pair);
	req = mad_take(&pair, A);
	mad_init(&mra, MAD_MRA, req.tid);
	mad_put(&mra, MAD_MRA_remote_id, mad_local_id(&req));
	mad_put(&mra, MAD_MRA_local_id, 5);
	mad_put(&mra, MAD_MRA_message, CM_MSG_REP);
	mad_put(&mra, MAD_MRA_service_timeout, 31);
	assert_int_equal(mad_deliver(&pair, A, &mra), CM_DROP_state);
	mad_put(&mra, MAD_MRA_message, CM_MSG_REQ);
	assert_int_equal(mad_deliver(&pair, A, &mra), CM_DROP_none);
	assert_int_equal(mad_deliver(&pair, A, &mra), CM_DROP_duplicate);
	pair.lose[MAD_REQ] = 1000;
	cm_pair_advance(&pair, code_ns(CM_MRA_MAX));
	assert_int_equal(pair.cm[A]->stats.resent, 0);
	cm_pair_advance(&pair, 2 * NS_PER_SEC);
	assert_int_equal(pair.cm[A]->stats.resent, 1);
	assert_int_equal(mad_deliver(&pair, A, &mra), CM_DROP_duplicate);
	cm_pair_advance(&pair, 15 * REQ_WAIT_NS);
	expect_event(&pair, A, CM_EVENT_UNREACHABLE);
	cm_release(a, pair.now);
	wire_reset();
	cm_pair_fini(&pair);
}

/* Time to free a connection of a silent peer according to lib/cm/cm_core.h: all tries of a
 * request or a DREQ, and the time wait. */
#define FORGOTTEN_NS (17 * REQ_WAIT_NS + 5 * NS_PER_SEC)

enum stage {
	ST_REQ_SENT,
	ST_REQ_RCVD,
	ST_REPLIED,
	ST_ESTABLISHED,
	ST_DREQ_SENT,
	ST_TIMEWAIT,
	ST_REJECTED,
	ST_SIDR_SENT,
	ST_SIDR_RCVD,
	ST_COUNT
};

static void
lose_all(void)
{
	for (unsigned attr = MAD_ATTR_FIRST; attr <= MAD_ATTR_LAST; attr++)
		pair.lose[attr] = 100000;
}

/* Brings a connection into the stage, then cuts the wire. *b: NULL if b has no end of
 * it. */
static void
stage_reach(enum stage stage, struct cm_conn **a, struct cm_conn **b)
{
	struct cm_request r = request_from(A, 0x111);
	struct cm_listener *listener;

	*b = NULL;
	if (stage == ST_REQ_RCVD || stage == ST_REJECTED)
		*a = reach_req_rcvd(&pair, b);
	else if (stage == ST_REPLIED)
		*a = reach_rep_rcvd(&pair, b);
	else if (stage >= ST_ESTABLISHED && stage <= ST_TIMEWAIT)
		*a = reach_established(&pair, b);
	else if (stage == ST_REQ_SENT)
		*a = active_connect(&pair);
	else
		assert_int_equal(
			cm_sidr_listen(pair.cm[B], SERVICE, NULL, 1, "ud", &listener), 0);
	if (stage == ST_SIDR_SENT)
		lose_all();
	if (stage >= ST_SIDR_SENT) {
		assert_int_equal(cm_sidr_request(pair.cm[A], &r, "a", pair.now, a), 0);
		cm_pair_drain(&pair);
	}
	if (stage == ST_SIDR_RCVD)
		*b = expect_event(&pair, B, CM_EVENT_SIDR_REQUEST).conn;
	if (stage != ST_TIMEWAIT)
		lose_all();
	if (stage == ST_DREQ_SENT || stage == ST_TIMEWAIT)
		cm_disconnect(*a, NULL, 0, pair.now);
	if (stage == ST_REJECTED)
		cm_reject(*b, CM_REJ_CONSUMER, NULL, 0, pair.now);
	if (stage == ST_TIMEWAIT)
		cm_pair_drain(&pair);
	lose_all();
}

/* A peer vanishes in each state. Nothing remains of a released connection after the
 * documented time, whether its user releases it at once or after that time. */
TEST(vanished_in_each_state)
{
	struct cm_event e;

	for (unsigned i = 0; i < 2 * ST_COUNT; i++) {
		struct cm_conn *a, *b;

		cm_pair_init(&pair, 4);
		stage_reach(i / 2, &a, &b);
		if (i % 2 == 1) {
			cm_pair_advance(&pair, FORGOTTEN_NS);
			for (unsigned side = 0; side < 2; side++)
				while (cm_next_event(pair.cm[side], &e))
					assert_true(e.conn == a || e.conn == b);
		}
		cm_release(a, pair.now);
		if (b != NULL)
			cm_release(b, pair.now);
		cm_pair_advance(&pair, FORGOTTEN_NS);
		if (cm_in_use(pair.cm[A]) != 0 || cm_in_use(pair.cm[B]) != 0)
			fail_msg("stage %u, %s: %u and %u are left", i / 2,
				i % 2 ? "waited" : "at once", cm_in_use(pair.cm[A]),
				cm_in_use(pair.cm[B]));
		cm_pair_fini(&pair);
	}
}
