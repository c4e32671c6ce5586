/* SPDX-License-Identifier: BSD-3-Clause */
/* Lost messages and silent peers: when messages are resent, and when a connection is
 * given up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "bed.h"

#include <cmocka.h>

static struct bed bed;

static void
lost_req(void **state)
{
	struct cm_conn *a, *b;

	(void)state;
	bed_init(&bed, 4);
	bed.lose[MAD_REQ] = 2;
	a = bed_connect(&bed);
	bed_run(&bed, REQ_WAIT_NS - NS_PER_MS);
	bed_wire(&bed, "(a:REQ)");
	bed_run(&bed, 2 * NS_PER_MS);
	bed_wire(&bed, "(a:REQ)");
	bed_run(&bed, REQ_WAIT_NS);
	bed_settle(&bed);
	bed_wire(&bed, "a:REQ");
	b = bed_event(&bed, B, CM_EVENT_REQUEST).conn;
	assert_int_equal(cm_accept(b, &bed_qp, NULL, 0, bed.now), 0);
	bed_settle(&bed);
	bed_event(&bed, A, CM_EVENT_REPLY);
	assert_int_equal(bed.cm[A]->stats.resent, 2);
	cm_release(a, bed.now);
	cm_release(b, bed.now);
	bed_run(&bed, SEC_NS);
	bed_fini(&bed);
}

static void
lost_rep(void **state)
{
	struct cm_conn *a, *b;

	(void)state;
	bed_init(&bed, 4);
	bed.lose[MAD_REP] = 1;
	a = bed_requested(&bed, &b);
	assert_int_equal(cm_accept(b, &bed_qp, NULL, 0, bed.now), 0);
	bed_run(&bed, REQ_WAIT_NS + 10 * NS_PER_MS);
	/* First a's duplicate REQ makes b repeat its REP, then b's own timer does. */
	bed_event(&bed, A, CM_EVENT_REPLY);
	cm_confirm(a, NULL, 0, bed.now);
	bed_settle(&bed);
	bed_event(&bed, B, CM_EVENT_ESTABLISHED);
	bed_quiet(&bed, B);
	bed_wire(&bed, "a:REQ (b:REP) a:REQ b:REP b:REP a:MRA a:RTU");
	assert_int_equal(bed.cm[B]->stats.duplicates, 1);
	assert_int_equal(bed.cm[A]->stats.duplicates, 1);
	cm_release(a, bed.now);
	cm_release(b, bed.now);
	bed_fini(&bed);
}

static void
lost_rtu(void **state)
{
	struct cm_conn *a, *b;

	(void)state;
	bed_init(&bed, 4);
	bed.lose[MAD_RTU] = 1;
	a = bed_replied(&bed, &b);
	cm_confirm(a, NULL, 0, bed.now);
	bed_run(&bed, REQ_WAIT_NS + SEC_NS);
	bed_wire(&bed, "a:REQ b:REP (a:RTU) b:REP a:RTU");
	bed_event(&bed, B, CM_EVENT_ESTABLISHED);
	cm_release(a, bed.now);
	cm_release(b, bed.now);
	bed_fini(&bed);
}

/* Data that arrives before the RTU establishes the connection. */
static void
data_before_rtu(void **state)
{
	struct cm_conn *a, *b;

	(void)state;
	bed_init(&bed, 4);
	bed.lose[MAD_RTU] = 1;
	a = bed_replied(&bed, &b);
	cm_confirm(a, NULL, 0, bed.now);
	bed_settle(&bed);
	assert_int_equal(cm_established(b, bed.now), 0);
	bed_event(&bed, B, CM_EVENT_ESTABLISHED);
	bed_run(&bed, 60 * SEC_NS);
	bed_wire(&bed, "a:REQ b:REP (a:RTU)");
	cm_release(a, bed.now);
	cm_release(b, bed.now);
	bed_fini(&bed);
}

static void
lost_dreq_and_drep(void **state)
{
	struct cm_conn *a, *b;

	(void)state;
	bed_init(&bed, 4);
	a = bed_established(&bed, &b);
	bed.lose[MAD_DREQ] = bed.lose[MAD_DREP] = 1;
	cm_disconnect(a, NULL, 0, bed.now);
	bed_run(&bed, 3 * REQ_WAIT_NS);
	/* b's time wait is over when the last DREQ arrives. b answers it all the same. */
	bed_wire(&bed, "(a:DREQ) a:DREQ (b:DREP) a:DREQ b:DREP");
	bed_event(&bed, B, CM_EVENT_DISCONNECTED);
	bed_event(&bed, B, CM_EVENT_TIMEWAIT_EXIT);
	bed_event(&bed, A, CM_EVENT_DISCONNECTED);
	cm_release(a, bed.now);
	cm_release(b, bed.now);
	bed_fini(&bed);
}

/* ---- Silent peers ---- */

/* Loses all messages until the event comes, and returns the time that took. */
static uint64_t
until(unsigned side, enum cm_event_type type, int status)
{
	uint64_t start = bed.now;
	struct cm_event e;

	for (;;) {
		for (unsigned attr = MAD_ATTR_FIRST; attr <= MAD_ATTR_LAST; attr++)
			bed.lose[attr] = 1000;
		bed_run(&bed, 100 * NS_PER_MS);
		if (cm_next_event(bed.cm[side], &e))
			break;
		assert_true(bed.now - start < 1000 * SEC_NS);
	}
	assert_int_equal(e.type, type);
	assert_int_equal(e.status, status);
	return bed.now - start;
}

static void
wire_again(void)
{
	memset(bed.lose, 0, sizeof(bed.lose));
	bed.wire[0] = '\0';
}

static void
no_peer_for_req(void **state)
{
	uint64_t took;
	struct cm_conn *a;

	(void)state;
	bed_init(&bed, 4);
	a = bed_connect(&bed);
	took = until(A, CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_in_range(took, 16 * REQ_WAIT_NS, 16 * REQ_WAIT_NS + SEC_NS);
	assert_int_equal(bed.cm[A]->stats.resent, 15);
	assert_int_equal(bed.cm[A]->stats.unanswered, 1);
	assert_non_null(strstr(bed.wire, "(a:REQ) (a:REJ)"));
	cm_release(a, bed.now);
	assert_int_equal(cm_in_use(bed.cm[A]), 0);
	wire_again();
	bed_fini(&bed);
}

static void
no_peer_for_rep(void **state)
{
	uint64_t took;
	struct cm_conn *a, *b;

	(void)state;
	bed_init(&bed, 4);
	a = bed_requested(&bed, &b);
	cm_release(a, bed.now);
	bed_take(&bed, A);
	cm_accept(b, &bed_qp, NULL, 0, bed.now);
	took = until(B, CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_in_range(took, 16 * REQ_WAIT_NS, 16 * REQ_WAIT_NS + SEC_NS);
	until(B, CM_EVENT_TIMEWAIT_EXIT, 0);
	cm_release(b, bed.now);
	wire_again();
	bed_fini(&bed);
}

static void
no_peer_for_dreq(void **state)
{
	uint64_t took;
	struct cm_conn *a, *b;

	(void)state;
	bed_init(&bed, 4);
	a = bed_established(&bed, &b);
	cm_disconnect(a, NULL, 0, bed.now);
	took = until(A, CM_EVENT_DISCONNECTED, 0);
	assert_in_range(took, 16 * REQ_WAIT_NS, 16 * REQ_WAIT_NS + SEC_NS);
	took = until(A, CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_in_range(took, TIMEWAIT_NS - 100 * NS_PER_MS, TIMEWAIT_NS + SEC_NS);
	cm_release(a, bed.now);
	wire_again();
	cm_release(b, bed.now);
	bed_run(&bed, SEC_NS);
	bed_wire(&bed, "b:DREQ a:DREP");
	bed_fini(&bed);
}

/* A release by the user does not change these times. */
static void
no_peer_and_no_user(void **state)
{
	struct cm_conn *a, *b;

	(void)state;
	bed_init(&bed, 4);
	a = bed_established(&bed, &b);
	cm_release(a, bed.now);
	bed.lose[MAD_DREQ] = 1000;
	bed_run(&bed, 16 * REQ_WAIT_NS - SEC_NS);
	assert_int_equal(cm_in_use(bed.cm[A]), 1);
	bed_run(&bed, 2 * SEC_NS + TIMEWAIT_NS);
	assert_int_equal(cm_in_use(bed.cm[A]), 0);
	wire_again();
	cm_release(b, bed.now);
	bed_fini(&bed);
}

/* The times that a peer asks for in its REQ are bounded. */
static void
peers_patience(void **state)
{
	struct cm_conn *a, *b;
	struct mad req;
	uint64_t took;

	(void)state;
	bed_init(&bed, 4);
	a = bed_connect(&bed);
	req = bed_take(&bed, A);
	mad_put(&req, MAD_REQ_local_timeout, 31);
	mad_put(&req, MAD_REQ_primary_ack_timeout, 31);
	mad_put(&req, MAD_REQ_max_cm_retries, 3);
	assert_int_equal(bed_give(&bed, B, &req), CM_DROP_none);
	b = bed_event(&bed, B, CM_EVENT_REQUEST).conn;
	cm_accept(b, &bed_qp, NULL, 0, bed.now);
	cm_release(a, bed.now);
	bed_take(&bed, A);
	took = until(B, CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_in_range(took, 4 * code_ns(CM_TIMEOUT_MAX),
		4 * (code_ns(CM_TIMEOUT_MAX) + 2 * code_ns(18)) + SEC_NS);
	took = until(B, CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_in_range(took, code_ns(CM_MRA_MAX) - SEC_NS, code_ns(CM_MRA_MAX) + SEC_NS);
	cm_release(b, bed.now);
	wire_again();
	bed_fini(&bed);
}

/* ---- MRA ---- */

static void
slow_user(void **state)
{
	struct cm_conn *a, *b;

	(void)state;
	bed_init(&bed, 4);
	a = bed_requested(&bed, &b);
	/* As in capture 89: the second REQ is answered by an MRA, and there is no
	 * third. */
	bed_run(&bed, 60 * SEC_NS);
	bed_wire(&bed, "a:REQ a:REQ b:MRA");
	cm_accept(b, &bed_qp, NULL, 0, bed.now);
	bed_settle(&bed);
	bed_event(&bed, A, CM_EVENT_REPLY);
	bed.wire[0] = '\0';
	/* The active side's user is slow as well. */
	bed_run(&bed, 60 * SEC_NS);
	bed_wire(&bed, "b:REP a:MRA");
	cm_confirm(a, NULL, 0, bed.now);
	bed_settle(&bed);
	bed_event(&bed, B, CM_EVENT_ESTABLISHED);
	cm_release(a, bed.now);
	cm_release(b, bed.now);
	bed_fini(&bed);
}

/* An MRA extends the wait for an answer once, by 69 s at most. */
static void
mra_is_bounded(void **state)
{
	struct cm_conn *a;
	struct mad req, mra;

	(void)state;
	bed_init(&bed, 4);
	a = bed_connect(&bed);
	req = bed_take(&bed, A);
	mad_init(&mra, MAD_MRA, req.tid);
	mad_put(&mra, MAD_MRA_remote_id, mad_local_id(&req));
	mad_put(&mra, MAD_MRA_local_id, 5);
	mad_put(&mra, MAD_MRA_message, CM_MRA_REP);
	mad_put(&mra, MAD_MRA_service_timeout, 31);
	assert_int_equal(bed_give(&bed, A, &mra), CM_DROP_state);
	mad_put(&mra, MAD_MRA_message, CM_MRA_REQ);
	assert_int_equal(bed_give(&bed, A, &mra), CM_DROP_none);
	assert_int_equal(bed_give(&bed, A, &mra), CM_DROP_duplicate);
	bed.lose[MAD_REQ] = 1000;
	bed_run(&bed, code_ns(CM_MRA_MAX));
	assert_int_equal(bed.cm[A]->stats.resent, 0);
	bed_run(&bed, 2 * SEC_NS);
	assert_int_equal(bed.cm[A]->stats.resent, 1);
	assert_int_equal(bed_give(&bed, A, &mra), CM_DROP_duplicate);
	bed_run(&bed, 15 * REQ_WAIT_NS);
	bed_event(&bed, A, CM_EVENT_UNREACHABLE);
	cm_release(a, bed.now);
	wire_again();
	bed_fini(&bed);
}

/* Time to free a connection of a silent peer according to lib/cm/cm_core.h: all tries of a
 * request or a DREQ, and the time wait. */
#define FORGOTTEN_NS (17 * REQ_WAIT_NS + 5 * SEC_NS)

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
silence(void)
{
	for (unsigned attr = MAD_ATTR_FIRST; attr <= MAD_ATTR_LAST; attr++)
		bed.lose[attr] = 100000;
}

/* Brings a connection into the stage, then cuts the wire. *b: NULL if b has no end of
 * it. */
static void
stage_reach(enum stage stage, struct cm_conn **a, struct cm_conn **b)
{
	struct cm_request r = bed_request(A, 0x111);
	struct cm_listener *listener;

	*b = NULL;
	if (stage == ST_REQ_RCVD || stage == ST_REJECTED)
		*a = bed_requested(&bed, b);
	else if (stage == ST_REPLIED)
		*a = bed_replied(&bed, b);
	else if (stage >= ST_ESTABLISHED && stage <= ST_TIMEWAIT)
		*a = bed_established(&bed, b);
	else if (stage == ST_REQ_SENT)
		*a = bed_connect(&bed);
	else
		assert_int_equal(
			cm_sidr_listen(bed.cm[B], SERVICE, NULL, 1, "ud", &listener), 0);
	if (stage == ST_SIDR_SENT)
		silence();
	if (stage >= ST_SIDR_SENT) {
		assert_int_equal(cm_sidr_request(bed.cm[A], &r, "a", bed.now, a), 0);
		bed_settle(&bed);
	}
	if (stage == ST_SIDR_RCVD)
		*b = bed_event(&bed, B, CM_EVENT_SIDR_REQUEST).conn;
	if (stage != ST_TIMEWAIT)
		silence();
	if (stage == ST_DREQ_SENT || stage == ST_TIMEWAIT)
		cm_disconnect(*a, NULL, 0, bed.now);
	if (stage == ST_REJECTED)
		cm_reject(*b, CM_REJ_CONSUMER, NULL, 0, bed.now);
	if (stage == ST_TIMEWAIT)
		bed_settle(&bed);
	silence();
}

/* A peer vanishes in each state. Nothing remains of a released connection after the
 * documented time, whether its user releases it at once or after that time. */
static void
vanished_in_each_state(void **state)
{
	struct cm_event e;

	(void)state;
	for (unsigned i = 0; i < 2 * ST_COUNT; i++) {
		struct cm_conn *a, *b;

		bed_init(&bed, 4);
		stage_reach(i / 2, &a, &b);
		if (i % 2 == 1) {
			bed_run(&bed, FORGOTTEN_NS);
			for (unsigned side = 0; side < 2; side++)
				while (cm_next_event(bed.cm[side], &e))
					assert_true(e.conn == a || e.conn == b);
		}
		cm_release(a, bed.now);
		if (b != NULL)
			cm_release(b, bed.now);
		bed_run(&bed, FORGOTTEN_NS);
		if (cm_in_use(bed.cm[A]) != 0 || cm_in_use(bed.cm[B]) != 0)
			fail_msg("stage %u, %s: %u and %u are left", i / 2,
				i % 2 ? "waited" : "at once", cm_in_use(bed.cm[A]),
				cm_in_use(bed.cm[B]));
		bed_fini(&bed);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_req),
		cmocka_unit_test(lost_rep),
		cmocka_unit_test(lost_rtu),
		cmocka_unit_test(data_before_rtu),
		cmocka_unit_test(lost_dreq_and_drep),
		cmocka_unit_test(no_peer_for_req),
		cmocka_unit_test(no_peer_for_rep),
		cmocka_unit_test(no_peer_for_dreq),
		cmocka_unit_test(no_peer_and_no_user),
		cmocka_unit_test(peers_patience),
		cmocka_unit_test(slow_user),
		cmocka_unit_test(mra_is_bounded),
		cmocka_unit_test(vanished_in_each_state),
	};

	return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
