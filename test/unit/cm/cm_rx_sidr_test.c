/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "case.h"
#include "cm_pair.h"

static struct cm_pair pair;

static struct cm_conn *
sidr_request_send(void)
{
	struct cm_request r = request_from(A, 0);
	struct cm_conn *conn;

	r.service_id = UD_SERVICE;
	assert_int_equal(cm_sidr_request(pair.cm[A], &r, "asks", pair.now, &conn), 0);
	return conn;
}

static struct cm_listener *
listen_ud(void)
{
	struct cm_listener *listener;

	cm_pair_init(&pair, 4);
	assert_int_equal(
		cm_sidr_listen(pair.cm[B], UD_SERVICE, NULL, 2, "ud", &listener), 0);
	return listener;
}

TEST(sidr_request_is_answered)
{
	struct cm_listener *listener = listen_ud();
	struct cm_conn *a = sidr_request_send();
	struct cm_event e;

	cm_pair_drain(&pair);
	e = expect_event(&pair, B, CM_EVENT_SIDR_REQUEST);
	assert_string_equal(e.user, "ud");
	assert_true(e.service_id == UD_SERVICE);
	assert_int_equal(e.sport, 40000);
	assert_int_equal(e.private_len, CMA_SIDR_PRIVATE);
	assert_memory_equal(e.private, "hello\0", 6);
	assert_int_equal(
		cm_sidr_reply(e.conn, CM_SIDR_VALID, 1, 0, NULL, 0, pair.now), -EINVAL);
	assert_int_equal(cm_sidr_reply(e.conn, CM_SIDR_VALID, 0x333, 0x01234567, "ok", 2,
				 pair.now),
		0);
	cm_release(e.conn, pair.now);
	cm_pair_drain(&pair);
	e = expect_event(&pair, A, CM_EVENT_SIDR_REPLY);
	assert_string_equal(e.user, "asks");
	assert_int_equal(e.status, CM_SIDR_VALID);
	assert_int_equal(e.qp.qpn, 0x333);
	assert_int_equal(e.qkey, 0x01234567);
	assert_int_equal(e.private_len, 136);
	assert_memory_equal(e.private, "ok\0", 3);
	expect_wire(&pair, "a:SIDR_REQ b:SIDR_REP");
	cm_release(a, pair.now);
	cm_unlisten(listener, pair.now);
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
}

TEST(sidr_request_is_refused)
{
	struct cm_listener *listener;
	struct cm_conn *a, *many[3];
	struct cm_event e;

	cm_pair_init(&pair, 4);
	a = sidr_request_send();
	cm_pair_drain(&pair);
	e = expect_event(&pair, A, CM_EVENT_SIDR_REPLY);
	assert_int_equal(e.status, CM_SIDR_NO_SERVICE);
	assert_int_equal(pair.cm[A]->stats.rejects_received, 1);
	cm_release(a, pair.now);
	cm_pair_fini(&pair);

	/* The user's status, and a backlog of two. */
	listener = listen_ud();
	for (unsigned i = 0; i < 3; i++)
		many[i] = sidr_request_send();
	cm_pair_drain(&pair);
	e = expect_event(&pair, A, CM_EVENT_SIDR_REPLY);
	assert_ptr_equal(e.conn, many[2]);
	assert_int_equal(e.status, CM_SIDR_REJECTED);
	e = expect_event(&pair, B, CM_EVENT_SIDR_REQUEST);
	assert_int_equal(
		cm_sidr_reply(e.conn, CM_SIDR_NO_QP, 0, 0, NULL, 0, pair.now), 0);
	cm_release(e.conn, pair.now);
	/* A request released without an answer is rejected. */
	cm_release(expect_event(&pair, B, CM_EVENT_SIDR_REQUEST).conn, pair.now);
	cm_pair_drain(&pair);
	assert_int_equal(
		expect_event(&pair, A, CM_EVENT_SIDR_REPLY).status, CM_SIDR_NO_QP);
	assert_int_equal(
		expect_event(&pair, A, CM_EVENT_SIDR_REPLY).status, CM_SIDR_REJECTED);
	for (unsigned i = 0; i < 3; i++)
		cm_release(many[i], pair.now);
	cm_unlisten(listener, pair.now);
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
}

/* A listener for connections gets no SIDR requests, and a SIDR listener gets no REQs. */
TEST(cm_and_sidr_listeners_are_separate)
{
	struct cm_request r = request_from(A, 0x111);
	struct cm_listener *listener = listen_ud(), *same;
	struct cm_conn *a[2];

	r.service_id = UD_SERVICE;
	assert_int_equal(cm_connect(pair.cm[A], &r, NULL, pair.now, &a[0]), 0);
	r.service_id = SERVICE;
	r.private_len = 0;
	assert_int_equal(cm_sidr_request(pair.cm[A], &r, NULL, pair.now, &a[1]), 0);
	cm_pair_drain(&pair);
	assert_int_equal(
		expect_event(&pair, A, CM_EVENT_REJECTED).status, CM_REJ_NO_SERVICE);
	assert_int_equal(
		expect_event(&pair, A, CM_EVENT_SIDR_REPLY).status, CM_SIDR_NO_SERVICE);
	expect_no_event(&pair, B);
	cm_release(a[0], pair.now);
	cm_release(a[1], pair.now);
	/* One service id can have a listener of each kind. */
	assert_int_equal(cm_sidr_listen(pair.cm[B], SERVICE, NULL, 1, "both", &same), 0);
	assert_int_equal(cm_sidr_request(pair.cm[A], &r, NULL, pair.now, &a[1]), 0);
	cm_pair_drain(&pair);
	cm_release(expect_event(&pair, B, CM_EVENT_SIDR_REQUEST).conn, pair.now);
	cm_pair_drain(&pair);
	cm_release(expect_event(&pair, A, CM_EVENT_SIDR_REPLY).conn, pair.now);
	cm_unlisten(same, pair.now);
	cm_unlisten(listener, pair.now);
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
}

TEST(lost_sidr_req_and_rep)
{
	struct cm_listener *listener = listen_ud();
	struct cm_conn *a = sidr_request_send(), *b;

	pair.lose[MAD_SIDR_REQ] = pair.lose[MAD_SIDR_REP] = 1;
	cm_pair_advance(&pair, REQ_WAIT_NS + NS_PER_SEC);
	b = expect_event(&pair, B, CM_EVENT_SIDR_REQUEST).conn;
	assert_int_equal(cm_sidr_reply(b, CM_SIDR_VALID, 5, 6, NULL, 0, pair.now), 0);
	cm_release(b, pair.now);
	cm_pair_advance(&pair, REQ_WAIT_NS);
	expect_wire(&pair, "(a:SIDR_REQ) a:SIDR_REQ (b:SIDR_REP) a:SIDR_REQ b:SIDR_REP");
	expect_no_event(&pair, B);
	assert_int_equal(expect_event(&pair, A, CM_EVENT_SIDR_REPLY).qp.qpn, 5);
	cm_release(a, pair.now);
	cm_unlisten(listener, pair.now);
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
}

TEST(no_peer_for_sidr_req)
{
	struct cm_conn *a;

	cm_pair_init(&pair, 4);
	a = sidr_request_send();
	pair.lose[MAD_SIDR_REQ] = 16;
	cm_pair_advance(&pair, 16 * REQ_WAIT_NS - NS_PER_SEC);
	expect_no_event(&pair, A);
	cm_pair_advance(&pair, 2 * NS_PER_SEC);
	assert_int_equal(expect_event(&pair, A, CM_EVENT_UNREACHABLE).status, -ETIMEDOUT);
	cm_release(a, pair.now);
	cm_pair_fini(&pair);
}

/* Duplicates before and after the answer, another request under the same id, a reply that
 * no request waits for. */
TEST(duplicate_and_invalid_sidr_messages)
{
	struct cm_listener *listener = listen_ud();
	struct cm_conn *a = sidr_request_send();
	struct mad req = mad_take(&pair, A), rep;
	struct cm_path path = path_from(A);

	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_duplicate);
	cm_release(expect_event(&pair, B, CM_EVENT_SIDR_REQUEST).conn, pair.now);
	rep = mad_take(&pair, B);
	mad_put(&req, MAD_SIDR_REQ_pkey, 0x7FFF);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_duplicate);
	/* Another version of the RDMA IP CM header. */
	mad_put(&req, MAD_SIDR_REQ_request_id, 77);
	mad_put_private(&req, 0, "\x10", 1);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	req = mad_take(&pair, B);
	assert_int_equal(mad_get(&req, MAD_SIDR_REP_status), CM_SIDR_VERSION);
	path.dgid[15] = 9;
	assert_int_equal(cm_rx(pair.cm[A], (uint8_t *)&rep, MAD_LEN, &path, pair.now),
		CM_DROP_address);
	assert_int_equal(mad_deliver(&pair, A, &rep), CM_DROP_none);
	expect_event(&pair, A, CM_EVENT_SIDR_REPLY);
	assert_int_equal(mad_deliver(&pair, A, &rep), CM_DROP_state);
	cm_release(a, pair.now);
	assert_int_equal(mad_deliver(&pair, A, &rep), CM_DROP_ids);
	cm_unlisten(listener, pair.now);
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
}
