/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections made and ended by their users, without loss. */
#include <errno.h>
#include <string.h>

#include "case.h"
#include "cm_pair.h"
#include "port/net.h"

static struct cm_pair pair;

TEST(connect_and_disconnect)
{
	struct cm_conn *a, *b;

	cm_pair_init(&pair, 4);
	a = reach_established(&pair, &b);
	assert_string_equal(cm_state_name(a), "ESTABLISHED");
	assert_string_equal(cm_state_name(b), "ESTABLISHED");
	assert_true(cm_deadline(pair.cm[A]) == TIME_NEVER);
	assert_int_equal(cm_disconnect(a, "bye", 3, pair.now), 0);
	cm_pair_drain(&pair);
	expect_wire(&pair, "a:DREQ");
	assert_memory_equal(
		expect_event(&pair, B, CM_EVENT_DISCONNECTED).private, "bye", 4);
	/* The other end answers when its user is done with its QP. */
	cm_pair_advance(&pair, NS_PER_SEC);
	assert_string_equal(cm_state_name(b), "DREQ_RCVD");
	expect_no_event(&pair, A);
	assert_int_equal(cm_disconnect(b, NULL, 0, pair.now), 0);
	assert_int_equal(cm_disconnect(b, NULL, 0, pair.now), -ENOTCONN);
	cm_pair_drain(&pair);
	expect_wire(&pair, "b:DREP");
	assert_null(expect_event(&pair, A, CM_EVENT_DISCONNECTED).private);
	expect_no_event(&pair, A);
	cm_pair_advance(&pair, TIMEWAIT_NS + NS_PER_SEC);
	expect_event(&pair, A, CM_EVENT_TIMEWAIT_EXIT);
	expect_event(&pair, B, CM_EVENT_TIMEWAIT_EXIT);
	expect_wire(&pair, "");
	cm_release(a, pair.now);
	cm_release(b, pair.now);
	cm_pair_fini(&pair);
}

/* An event has the peer's values as this side needs them: the depths cross over. */
TEST(events_carry_the_peers_values)
{
	struct cm_request req = request_from(A, 0x111);
	struct cm_event e;
	struct cm_conn *a;
	struct cm_path path = path_from(B);

	cm_pair_init(&pair, 4);
	assert_int_equal(cm_connect(pair.cm[A], &req, "a", pair.now, &a), 0);
	cm_pair_drain(&pair);
	e = expect_event(&pair, B, CM_EVENT_REQUEST);
	assert_string_equal(e.user, "listener");
	assert_memory_equal(&e.path, &path, sizeof(path));
	assert_true(e.service_id == SERVICE);
	assert_int_equal(e.sport, 40000);
	assert_int_equal(e.private_len, CMA_REQ_PRIVATE);
	assert_memory_equal(e.private, "hello\0", 6);
	assert_int_equal(e.qp.qpn, 0x111);
	assert_int_equal(e.qp.psn, 0xa00);
	assert_int_equal(e.qp.responder_resources, 3); /* a's initiator_depth */
	assert_int_equal(e.qp.initiator_depth, 2);
	assert_int_equal(e.qp.rnr_retry, 5);
	assert_int_equal(e.qp.retry_count, 7);
	assert_int_equal(e.qp.path_mtu, 3);
	assert_int_equal(e.qp.transport, CM_RC);
	assert_int_equal(e.ack_timeout, 19);
	assert_int_equal(cm_accept(e.conn, &passive_qp, "hi", 2, pair.now), 0);
	cm_pair_drain(&pair);
	cm_release(e.conn, pair.now);
	e = expect_event(&pair, A, CM_EVENT_REPLY);
	assert_string_equal(e.user, "a");
	assert_int_equal(e.qp.qpn, 0x222);
	assert_int_equal(e.qp.psn, 0xb00);
	assert_int_equal(e.qp.responder_resources, 5);
	assert_int_equal(e.qp.initiator_depth, 4);
	assert_int_equal(e.qp.rnr_retry, 6);
	assert_int_equal(e.private_len, 196);
	assert_memory_equal(e.private, "hi\0", 3);
	cm_release(a, pair.now);
	cm_pair_drain(&pair);
	cm_pair_fini(&pair);
}

/* REQ and REP carry the options of ECE; the other messages have none. */
TEST(options_are_exchanged)
{
	static const struct cm_ece none;
	struct cm_request req = request_from(A, 0x111);
	struct cm_qp qp = passive_qp;
	struct cm_conn *a, *b;
	struct cm_event e;
	struct mad mad;

	cm_pair_init(&pair, 4);
	req.qp.ece = (struct cm_ece){.vendor_id = 0xffeedd, .options = 0xccbbaa99};
	qp.ece = (struct cm_ece){.vendor_id = 0x112233, .options = 0x44556677};
	assert_int_equal(cm_connect(pair.cm[A], &req, "a", pair.now, &a), 0);
	cm_pair_drain(&pair);
	e = expect_event(&pair, B, CM_EVENT_REQUEST);
	assert_memory_equal(&e.qp.ece, &req.qp.ece, sizeof(none));
	b = e.conn;
	assert_int_equal(cm_accept(b, &qp, NULL, 0, pair.now), 0);
	cm_pair_drain(&pair);
	e = expect_event(&pair, A, CM_EVENT_REPLY);
	assert_memory_equal(&e.qp.ece, &qp.ece, sizeof(none));
	assert_int_equal(cm_confirm(a, NULL, 0, pair.now), 0);
	mad = mad_take(&pair, A);
	assert_int_equal(mad_attr_of(&mad), MAD_RTU);
	assert_int_equal(mad.modifier, 0);
	assert_int_equal(mad_deliver(&pair, B, &mad), CM_DROP_none);
	cm_release(b, pair.now);
	mad = mad_take(&pair, B);
	assert_int_equal(mad_attr_of(&mad), MAD_DREQ);
	assert_int_equal(mad.modifier, 0);
	assert_int_equal(mad_deliver(&pair, A, &mad), CM_DROP_none);
	cm_pair_drain(&pair);
	cm_release(a, pair.now);
	cm_pair_advance(&pair, TIMEWAIT_NS + NS_PER_SEC);
	/* Without options. */
	req.qp.ece = none;
	assert_int_equal(cm_connect(pair.cm[A], &req, "a", pair.now, &a), 0);
	cm_pair_drain(&pair);
	e = expect_event(&pair, B, CM_EVENT_REQUEST);
	assert_memory_equal(&e.qp.ece, &none, sizeof(none));
	assert_int_equal(cm_accept(e.conn, &passive_qp, NULL, 0, pair.now), 0);
	cm_release(e.conn, pair.now);
	cm_pair_drain(&pair);
	e = expect_event(&pair, A, CM_EVENT_REPLY);
	assert_memory_equal(&e.qp.ece, &none, sizeof(none));
	cm_release(a, pair.now);
	cm_pair_drain(&pair);
	cm_pair_fini(&pair);
}

/* Connects a with this transport to b, which answers by a REP whose fields are changed.
 * Returns the QPN that a's user gets. */
static uint32_t
replied_qpn(uint8_t transport, uint32_t local_qpn, uint32_t local_eecn)
{
	struct cm_request req = request_from(A, 0x111);
	struct cm_conn *a;
	struct mad rep;
	uint32_t qpn;

	cm_pair_init(&pair, 4);
	req.qp.transport = transport;
	assert_int_equal(cm_connect(pair.cm[A], &req, "a", pair.now, &a), 0);
	cm_pair_drain(&pair);
	cm_release(expect_event(&pair, B, CM_EVENT_REQUEST).conn, pair.now);
	(void)mad_take(&pair, B); /* the REJ */
	mad_init(&rep, MAD_REP, 9);
	mad_put(&rep, MAD_REP_local_id, 77);
	mad_put(&rep, MAD_REP_remote_id, a->local_id);
	mad_put(&rep, MAD_REP_local_qpn, local_qpn);
	mad_put(&rep, MAD_REP_local_eecn, local_eecn);
	assert_int_equal(mad_deliver(&pair, A, &rep), CM_DROP_none);
	/* Repeated: it names the same QP. */
	assert_int_equal(mad_deliver(&pair, A, &rep), CM_DROP_none);
	qpn = expect_event(&pair, A, CM_EVENT_REPLY).qp.qpn;
	cm_release(a, pair.now);
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
	return qpn;
}

/* The REP of an XRC target has its QPN in the field of the EE context (annex A14), as
 * Linux reads and writes it. Earlier versions of Rocade use the field of the others. */
TEST(xrc_target_names_its_qp)
{
	struct cm_request req = request_from(A, 0x111);
	struct cm_conn *a, *b;
	struct cm_event e;
	struct mad rep;

	cm_pair_init(&pair, 4);
	req.qp.transport = CM_XRC;
	assert_int_equal(cm_connect(pair.cm[A], &req, "a", pair.now, &a), 0);
	cm_pair_drain(&pair);
	b = expect_event(&pair, B, CM_EVENT_REQUEST).conn;
	assert_int_equal(cm_accept(b, &passive_qp, NULL, 0, pair.now), 0);
	rep = mad_take(&pair, B);
	assert_int_equal(mad_get(&rep, MAD_REP_local_eecn), 0x222);
	assert_int_equal(mad_get(&rep, MAD_REP_local_qpn), 0x222);
	assert_int_equal(mad_get(&rep, MAD_REP_srq), 1);
	assert_int_equal(mad_deliver(&pair, A, &rep), CM_DROP_none);
	e = expect_event(&pair, A, CM_EVENT_REPLY);
	assert_int_equal(e.qp.qpn, 0x222);
	assert_true(e.qp.srq);
	cm_release(a, pair.now);
	cm_pair_drain(&pair);
	cm_release(b, pair.now);
	cm_pair_fini(&pair);
	assert_int_equal(replied_qpn(CM_XRC, 0, 0x333), 0x333);
	assert_int_equal(replied_qpn(CM_XRC, 0x444, 0), 0x444);
	assert_int_equal(replied_qpn(CM_RC, 0x444, 0x333), 0x444);
}

TEST(reject_of_a_request)
{
	struct cm_conn *a, *b;
	struct cm_event e;

	cm_pair_init(&pair, 4);
	a = reach_req_rcvd(&pair, &b);
	assert_int_equal(cm_reject(b, CM_REJ_CONSUMER, "no", 2, pair.now), 0);
	cm_pair_drain(&pair);
	e = expect_event(&pair, A, CM_EVENT_REJECTED);
	assert_int_equal(e.status, CM_REJ_CONSUMER);
	assert_int_equal(e.private_len, 148);
	assert_memory_equal(e.private, "no\0", 3);
	assert_int_equal(cm_accept(b, &passive_qp, NULL, 0, pair.now), -ENOTCONN);
	cm_release(a, pair.now);
	cm_release(b, pair.now);
	expect_wire(&pair, "a:REQ b:REJ");
	cm_pair_advance(&pair, 30 * NS_PER_SEC);
	expect_wire(&pair, "");
	cm_pair_fini(&pair);
}

/* The active side can send a REJ instead of the RTU. */
/* The active side learns which path MTU the passive side can do. */
TEST(reject_of_a_path_mtu)
{
	struct cm_event e;
	struct cm_conn *a, *b;

	cm_pair_init(&pair, 4);
	a = reach_req_rcvd(&pair, &b);
	assert_int_equal(cm_reject_mtu(b, 2, pair.now), 0);
	assert_int_equal(cm_reject_mtu(b, 2, pair.now), -ENOTCONN);
	cm_release(b, pair.now);
	cm_pair_drain(&pair);
	expect_wire(&pair, "a:REQ b:REJ");
	e = expect_event(&pair, A, CM_EVENT_REJECTED);
	assert_int_equal(e.status, CM_REJ_MTU);
	assert_int_equal(e.path_mtu, 2);
	assert_int_equal(mad_get(&a->last, MAD_REJ_info_len), 1);
	assert_int_equal(mad_get(&a->last, MAD_REJ_message), CM_MSG_REQ);
	cm_release(a, pair.now);
	/* Without information. */
	a = reach_req_rcvd(&pair, &b);
	assert_int_equal(cm_reject(b, CM_REJ_MTU, NULL, 0, pair.now), 0);
	cm_release(b, pair.now);
	cm_pair_drain(&pair);
	assert_int_equal(expect_event(&pair, A, CM_EVENT_REJECTED).path_mtu, 0);
	cm_release(a, pair.now);
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
}

TEST(reject_of_a_reply)
{
	struct cm_conn *a, *b;

	cm_pair_init(&pair, 4);
	a = reach_rep_rcvd(&pair, &b);
	assert_int_equal(cm_reject(a, CM_REJ_NO_QP, NULL, 0, pair.now), 0);
	cm_pair_drain(&pair);
	expect_wire(&pair, "a:REQ b:REP a:REJ");
	assert_int_equal(expect_event(&pair, B, CM_EVENT_REJECTED).status, CM_REJ_NO_QP);
	assert_int_equal(cm_confirm(a, NULL, 0, pair.now), -ENOTCONN);
	cm_release(a, pair.now);
	cm_release(b, pair.now);
	cm_pair_fini(&pair);
}

/* A call that the state does not allow returns -ENOTCONN, changes nothing and sends
 * nothing. */
TEST(calls_in_wrong_states_fail)
{
	struct cm_conn *a, *b;

	cm_pair_init(&pair, 4);
	a = reach_req_rcvd(&pair, &b);
	expect_wire(&pair, "a:REQ");
	assert_int_equal(cm_accept(a, &passive_qp, NULL, 0, pair.now), -ENOTCONN);
	assert_int_equal(cm_reject(a, CM_REJ_CONSUMER, NULL, 0, pair.now), -ENOTCONN);
	assert_int_equal(cm_confirm(a, NULL, 0, pair.now), -ENOTCONN);
	assert_int_equal(cm_disconnect(a, NULL, 0, pair.now), -ENOTCONN);
	assert_int_equal(cm_established(a, pair.now), -ENOTCONN);
	assert_int_equal(cm_sidr_reply(b, 0, 5, 0, NULL, 0, pair.now), -ENOTCONN);
	assert_int_equal(cm_confirm(b, NULL, 0, pair.now), -ENOTCONN);
	assert_int_equal(cm_disconnect(b, NULL, 0, pair.now), -ENOTCONN);
	assert_int_equal(cm_established(b, pair.now), -ENOTCONN);
	cm_pair_drain(&pair);
	expect_wire(&pair, "");
	assert_int_equal(cm_accept(b, &passive_qp, NULL, 0, pair.now), 0);
	assert_int_equal(cm_accept(b, &passive_qp, NULL, 0, pair.now), -ENOTCONN);
	cm_pair_drain(&pair);
	expect_event(&pair, A, CM_EVENT_REPLY);
	assert_int_equal(cm_disconnect(a, NULL, 0, pair.now), -ENOTCONN);
	cm_release(a, pair.now);
	cm_release(b, pair.now);
	cm_pair_advance(&pair, NS_PER_SEC);
	cm_pair_fini(&pair);
}

TEST(invalid_arguments_are_refused)
{
	const struct cm_request good = request_from(A, 0x111);
	struct cm_request r;
	struct cm_qp qp = passive_qp;
	struct cm_conn *conn, *b;
	char much[256] = {0};

	cm_pair_init(&pair, 4);
#define REFUSED(change)                                                                  \
	do {                                                                             \
		r = good;                                                                \
		change;                                                                  \
		assert_int_equal(                                                        \
			cm_connect(pair.cm[A], &r, NULL, pair.now, &conn), -EINVAL);     \
	} while (0)
	REFUSED(r.qp.qpn = 0);
	REFUSED(r.qp.qpn = 1);
	REFUSED(r.qp.qpn = 0xFFFFFF);
	REFUSED(r.qp.path_mtu = 0);
	REFUSED(r.qp.path_mtu = 6);
	REFUSED(r.qp.retry_count = 8);
	REFUSED(r.qp.rnr_retry = 8);
	REFUSED(r.qp.transport = CM_RD);
	REFUSED(r.qp.transport = 4);
	REFUSED(r.qp.ece.vendor_id = 1u << 24);
	REFUSED((r.private = much, r.private_len = CMA_REQ_PRIVATE + 1));
	REFUSED(memset(r.path.dgid, 0, 16));
	REFUSED(memset(r.path.sgid, 0, 16));
	REFUSED(gid_parse("239.1.1.1", r.path.dgid, NULL));
	REFUSED(gid_parse("ff02::1", r.path.dgid, NULL));
#undef REFUSED
	r = good;
	r.private = much;
	r.private_len = CMA_SIDR_PRIVATE + 1;
	assert_int_equal(cm_sidr_request(pair.cm[A], &r, NULL, pair.now, &conn), -EINVAL);
	assert_int_equal(cm_in_use(pair.cm[A]), 0);
	conn = reach_req_rcvd(&pair, &b);
	qp.qpn = 0;
	assert_int_equal(cm_accept(b, &qp, NULL, 0, pair.now), -EINVAL);
	qp.qpn = 5;
	qp.rnr_retry = 8;
	assert_int_equal(cm_accept(b, &qp, NULL, 0, pair.now), -EINVAL);
	qp = passive_qp;
	qp.ece.vendor_id = 1u << 24;
	assert_int_equal(cm_accept(b, &qp, NULL, 0, pair.now), -EINVAL);
	assert_int_equal(cm_accept(b, &passive_qp, much, 197, pair.now), -EINVAL);
	assert_int_equal(cm_reject(b, CM_REJ_CONSUMER, much, 149, pair.now), -EINVAL);
	assert_int_equal(cm_accept(b, &passive_qp, much, 196, pair.now), 0);
	cm_pair_drain(&pair);
	expect_event(&pair, A, CM_EVENT_REPLY);
	assert_int_equal(cm_confirm(conn, much, 225, pair.now), -EINVAL);
	assert_int_equal(cm_confirm(conn, much, 224, pair.now), 0);
	assert_int_equal(cm_confirm(conn, much, 224, pair.now), -ENOTCONN);
	assert_int_equal(cm_disconnect(conn, much, 221, pair.now), -EINVAL);
	assert_int_equal(cm_disconnect(conn, much, 220, pair.now), 0);
	cm_pair_drain(&pair);
	cm_release(conn, pair.now);
	cm_release(b, pair.now);
	cm_pair_fini(&pair);
}

/* A connection released in any state: the peer gets a message and an event, and nothing
 * remains. */
TEST(released_in_each_state)
{
	static const char *const heard[] = {
		"a:REQ a:REJ",
		"a:REQ b:REJ",
		"a:REQ b:REP a:REJ",
		"a:REQ b:REP b:DREQ a:DREP",
		"a:REQ b:REP a:RTU a:DREQ",
		"a:REQ b:REP a:RTU b:DREQ",
	};

	for (unsigned which = 0; which < RTE_DIM(heard); which++) {
		struct cm_conn *a, *b;

		cm_pair_init(&pair, 4);
		if (which < 2)
			a = reach_req_rcvd(&pair, &b);
		else
			a = reach_rep_rcvd(&pair, &b);
		if (which >= 4) {
			cm_confirm(a, NULL, 0, pair.now);
			cm_pair_drain(&pair);
			expect_event(&pair, B, CM_EVENT_ESTABLISHED);
		}
		cm_release(which % 2 == 0 ? a : b, pair.now);
		cm_pair_drain(&pair);
		expect_wire(&pair, heard[which]);
		expect_event(&pair, which % 2 == 0 ? B : A,
			which < 3 ? CM_EVENT_REJECTED : CM_EVENT_DISCONNECTED);
		cm_release(which % 2 == 0 ? b : a, pair.now);
		cm_pair_advance(&pair, NS_PER_SEC);
		expect_wire(&pair, which < 4 ? "" : which == 4 ? "b:DREP" : "a:DREP");
		cm_pair_advance(&pair, 20 * NS_PER_SEC);
		expect_wire(&pair, "");
		cm_pair_fini(&pair);
	}
}

/* Both ends disconnect at the same time. */
TEST(crossing_dreqs)
{
	struct cm_conn *a, *b;

	cm_pair_init(&pair, 4);
	a = reach_established(&pair, &b);
	cm_disconnect(a, NULL, 0, pair.now);
	cm_disconnect(b, NULL, 0, pair.now);
	cm_pair_drain(&pair);
	expect_wire(&pair, "a:DREQ b:DREQ b:DREP a:DREP");
	expect_event(&pair, A, CM_EVENT_DISCONNECTED);
	expect_event(&pair, B, CM_EVENT_DISCONNECTED);
	cm_release(a, pair.now);
	cm_release(b, pair.now);
	cm_pair_fini(&pair);
}

/* Both ends of the connection belong to one manager. */
TEST(connection_within_one_manager)
{
	struct cm_request req = request_from(B, 0x111);
	struct cm_event e;
	struct cm_conn *active;
	struct mad mad;
	struct cm_path path;

	cm_pair_init(&pair, 4);
	memcpy(req.path.dgid, req.path.sgid, 16);
	assert_int_equal(cm_connect(pair.cm[B], &req, "active", pair.now, &active), 0);
#define AROUND()                                                                         \
	do {                                                                             \
		while (cm_tx(pair.cm[B], &mad, &path))                                   \
			assert_int_equal(cm_rx(pair.cm[B], (uint8_t *)&mad, MAD_LEN,     \
						 &path, pair.now),                       \
				CM_DROP_none);                                           \
	} while (0)
	AROUND();
	e = expect_event(&pair, B, CM_EVENT_REQUEST);
	assert_int_equal(cm_accept(e.conn, &passive_qp, NULL, 0, pair.now), 0);
	AROUND();
	assert_ptr_equal(expect_event(&pair, B, CM_EVENT_REPLY).conn, active);
	assert_int_equal(cm_confirm(active, NULL, 0, pair.now), 0);
	AROUND();
	assert_ptr_equal(expect_event(&pair, B, CM_EVENT_ESTABLISHED).conn, e.conn);
	/* The other end is known while its user has to answer the DREQ. */
	cm_set_user(e.conn, "passive");
	assert_null(cm_awaited_user(active));
	assert_int_equal(cm_disconnect(active, NULL, 0, pair.now), 0);
	assert_null(cm_awaited_user(active));
	AROUND();
	assert_string_equal(cm_awaited_user(active), "passive");
	assert_null(cm_awaited_user(e.conn));
	/* The IDs are those of each other, but the peer is another host's. */
	e.conn->path.dgid[15]++;
	assert_null(cm_awaited_user(active));
	e.conn->path.dgid[15]--;
	e.conn->remote_id++;
	assert_null(cm_awaited_user(active));
	e.conn->remote_id--;
	expect_event(&pair, B, CM_EVENT_DISCONNECTED);
	cm_release(e.conn, pair.now);
	AROUND();
#undef AROUND
	assert_null(cm_awaited_user(active));
	expect_event(&pair, B, CM_EVENT_DISCONNECTED);
	cm_release(active, pair.now);
	cm_pair_fini(&pair);
}
