/* SPDX-License-Identifier: BSD-3-Clause */
/* REQs: reasons to reject them, duplicates, and limits. */
#include <errno.h>
#include <string.h>

#include "case.h"
#include "cm_pair.h"
#include "port/net.h"

static struct cm_pair pair;

/* A REQ of a with this id and QPN, as it arrives at b. a forgets the connection. */
static struct mad
req_of(uint32_t id, uint32_t qpn)
{
	struct cm_request r = request_from(A, qpn);
	struct cm_conn *conn;
	struct mad req;

	assert_int_equal(cm_connect(pair.cm[A], &r, NULL, pair.now, &conn), 0);
	req = mad_take(&pair, A);
	cm_release(conn, pair.now);
	mad_take(&pair, A);
	mad_put(&req, MAD_REQ_local_id, id);
	return req;
}

static unsigned
rej_reason_take(const struct mad *req)
{
	struct mad rej = mad_take(&pair, B);

	assert_int_equal(mad_attr_of(&rej), MAD_REJ);
	assert_true(rej.tid == req->tid);
	assert_int_equal(mad_get(&rej, MAD_REJ_local_id), 0);
	assert_int_equal(mad_get(&rej, MAD_REJ_remote_id), mad_local_id(req));
	assert_int_equal(mad_get(&rej, MAD_REJ_message), CM_MSG_REQ);
	return (unsigned)mad_get(&rej, MAD_REJ_reason);
}

TEST(each_reject_reason)
{
	static const struct {
		enum mad_field field;
		uint64_t value;
		unsigned reason;
	} rows[] = {
		{MAD_REQ_service_id, 0x1061d30, CM_REJ_NO_SERVICE},
		{MAD_REQ_service_id, 0x1111d2f, CM_REJ_NO_SERVICE},
		{MAD_REQ_service_id, 0x7471, CM_REJ_NO_SERVICE},
		{MAD_REQ_transport, CM_RD, CM_REJ_TRANSPORT},
		{MAD_REQ_transport, CM_XRC,
			CM_REJ_TRANSPORT}, /* without extended transport type 1 */
		{MAD_REQ_path_mtu, 0, CM_REJ_MTU},
		{MAD_REQ_path_mtu, 6, CM_REJ_MTU},
		{MAD_REQ_path_mtu, 15, CM_REJ_MTU},
	};
	struct mad req;
	uint8_t other[16];

	cm_pair_init(&pair, 4);
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		req = req_of(100, 0x100);
		mad_put(&req, rows[i].field, rows[i].value);
		assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
		assert_int_equal(rej_reason_take(&req), rows[i].reason);
	}
	gid_parse("192.0.2.3", other, NULL);
	req = req_of(100, 0x100);
	mad_put_bytes(&req, MAD_REQ_primary_local_gid, other);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	assert_int_equal(rej_reason_take(&req), CM_REJ_GID);
	req = req_of(100, 0x100);
	mad_put_bytes(&req, MAD_REQ_primary_remote_gid, other);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	assert_int_equal(rej_reason_take(&req), CM_REJ_GID);
	/* The RDMA IP CM header: another version, then another destination address. */
	req = req_of(100, 0x100);
	mad_put_private(&req, 0, "\x01", 1);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	assert_int_equal(rej_reason_take(&req), CM_REJ_UNSUPPORTED);
	req = req_of(100, 0x100);
	mad_put_private(&req, 35, "\x03", 1);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	assert_int_equal(rej_reason_take(&req), CM_REJ_UNSUPPORTED);
	assert_int_equal(pair.cm[B]->stats.rejects_sent, RTE_DIM(rows) + 4);
	assert_int_equal(cm_in_use(pair.cm[B]), 0);
	cm_pair_fini(&pair);
}

TEST(invalid_req_is_dropped)
{
	static const uint32_t qpns[] = {0, 1, 0xFFFFFF};
	struct mad req;

	cm_pair_init(&pair, 4);
	for (unsigned i = 0; i < RTE_DIM(qpns); i++) {
		req = req_of(100, 0x100);
		mad_put(&req, MAD_REQ_local_qpn, qpns[i]);
		assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_field);
	}
	req = req_of(0, 0x100);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_field);
	assert_int_equal(pair.cm[B]->stats.drop[CM_DROP_field], 4);
	cm_pair_fini(&pair);
}

TEST(rc_uc_and_xrc_are_accepted)
{
	static const uint8_t kinds[] = {CM_RC, CM_UC, CM_XRC};

	cm_pair_init(&pair, 8);
	for (unsigned i = 0; i < RTE_DIM(kinds); i++) {
		struct cm_request r = request_from(A, 0x100 + i);
		struct cm_event e;
		struct cm_conn *conn;

		r.qp.transport = kinds[i];
		assert_int_equal(cm_connect(pair.cm[A], &r, NULL, pair.now, &conn), 0);
		cm_pair_drain(&pair);
		e = expect_event(&pair, B, CM_EVENT_REQUEST);
		assert_int_equal(e.qp.transport, kinds[i]);
		cm_release(e.conn, pair.now);
		cm_release(conn, pair.now);
	}
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
}

TEST(duplicate_req_in_each_state)
{
	struct mad req, answer;
	struct cm_conn *b;

	cm_pair_init(&pair, 4);
	req = req_of(100, 0x100);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	b = expect_event(&pair, B, CM_EVENT_REQUEST).conn;
	/* Neither accepted nor rejected yet: an MRA. */
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	answer = mad_take(&pair, B);
	assert_int_equal(mad_attr_of(&answer), MAD_MRA);
	assert_int_equal(mad_get(&answer, MAD_MRA_service_timeout), 24);
	/* Accepted: the same REP again. */
	assert_int_equal(cm_accept(b, &passive_qp, "x", 1, pair.now), 0);
	answer = mad_take(&pair, B);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	assert_memory_equal(&answer, (struct mad[]){mad_take(&pair, B)}, MAD_LEN);
	/* The same id with another starting PSN. */
	mad_put(&req, MAD_REQ_starting_psn, 1);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	assert_int_equal(rej_reason_take(&req), CM_REJ_DUPLICATE_ID);
	mad_put(&req, MAD_REQ_starting_psn, 0xa00);
	cm_established(b, pair.now);
	expect_event(&pair, B, CM_EVENT_ESTABLISHED);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_duplicate);
	/* Disconnected: stale, before and after the peer's DREP. */
	cm_disconnect(b, NULL, 0, pair.now);
	answer = mad_take(&pair, B);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	assert_int_equal(rej_reason_take(&req), CM_REJ_STALE);
	mad_init(&answer, MAD_DREP, 1);
	mad_put(&answer, MAD_DREP_local_id, 100);
	mad_put(&answer, MAD_DREP_remote_id, b->local_id);
	assert_int_equal(mad_deliver(&pair, B, &answer), CM_DROP_none);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	assert_int_equal(rej_reason_take(&req), CM_REJ_STALE);
	expect_event(&pair, B, CM_EVENT_DISCONNECTED);
	/* After the time wait it is a new request. */
	cm_pair_advance(&pair, TIMEWAIT_NS + NS_PER_SEC);
	expect_event(&pair, B, CM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	cm_release(expect_event(&pair, B, CM_EVENT_REQUEST).conn, pair.now);
	cm_release(b, pair.now);
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
}

/* A duplicate of a rejected REQ gets the same REJ, and the user gets no event. */
TEST(duplicate_of_rejected_req)
{
	struct mad req, rej;
	struct cm_conn *b;

	cm_pair_init(&pair, 4);
	req = req_of(100, 0x100);
	mad_deliver(&pair, B, &req);
	b = expect_event(&pair, B, CM_EVENT_REQUEST).conn;
	cm_reject(b, CM_REJ_CONSUMER, "no", 2, pair.now);
	cm_release(b, pair.now);
	rej = mad_take(&pair, B);
	cm_pair_advance(&pair, REQ_WAIT_NS);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	assert_memory_equal(&rej, (struct mad[]){mad_take(&pair, B)}, MAD_LEN);
	expect_no_event(&pair, B);
	/* The QP can be used at once in a REQ with another id. */
	req = req_of(101, 0x100);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	cm_release(expect_event(&pair, B, CM_EVENT_REQUEST).conn, pair.now);
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
}

/* A restarted peer uses the same QPN again: the old connection ends and the new REQ is
 * rejected, also during the time wait. */
TEST(restarted_peer_is_stale)
{
	struct cm_conn *a, *b;
	struct mad req, mad;

	cm_pair_init(&pair, 4);
	a = reach_established(&pair, &b);
	req = req_of(100, 0x111);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	expect_event(&pair, B, CM_EVENT_DISCONNECTED);
	mad = mad_take(&pair, B);
	assert_int_equal(mad_attr_of(&mad), MAD_DREQ);
	assert_int_equal(rej_reason_take(&req), CM_REJ_STALE);
	assert_int_equal(pair.cm[B]->stats.stale, 1);
	/* The peer does not know the old connection and answers with a DREP. */
	mad_init(&mad, MAD_DREP, mad.tid);
	mad_put(&mad, MAD_DREP_local_id, b->remote_id);
	mad_put(&mad, MAD_DREP_remote_id, b->local_id);
	assert_int_equal(mad_deliver(&pair, B, &mad), CM_DROP_none);
	expect_no_event(&pair, B);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	assert_int_equal(rej_reason_take(&req), CM_REJ_STALE);
	cm_pair_advance(&pair, TIMEWAIT_NS + NS_PER_SEC);
	expect_event(&pair, B, CM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	cm_release(expect_event(&pair, B, CM_EVENT_REQUEST).conn, pair.now);
	cm_release(a, pair.now);
	cm_release(b, pair.now);
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
}

/* A host claims the CA GUID and the QPN of another one, or also its communication ID. It
 * is another peer: it neither ends that host's connection nor keeps that host from
 * connecting. */
TEST(same_guid_from_another_address)
{
	struct cm_path path = path_from(B);
	struct cm_conn *a, *b, *other[3];
	struct mad req;

	cm_pair_init(&pair, 8);
	a = reach_established(&pair, &b);
	req = req_of(100, 0x111);
	gid_parse("192.0.2.66", path.dgid, NULL);
	mad_put_bytes(&req, MAD_REQ_primary_local_gid, path.dgid);
	for (unsigned i = 0; i < 3; i++) {
		mad_put(&req, MAD_REQ_local_id, i == 1 ? b->remote_id : 100 + i);
		mad_put(&req, MAD_REQ_local_qpn, i == 2 ? 0x112 : 0x111 + 0x100 * i);
		assert_int_equal(
			cm_rx(pair.cm[B], (uint8_t *)&req, MAD_LEN, &path, pair.now),
			CM_DROP_none);
		other[i] = expect_event(&pair, B, CM_EVENT_REQUEST).conn;
		assert_int_equal(b->state, CM_ESTABLISHED);
	}
	/* The real peer uses the QP that the third REQ has claimed. */
	req = req_of(200, 0x112);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	cm_release(expect_event(&pair, B, CM_EVENT_REQUEST).conn, pair.now);
	assert_int_equal(pair.cm[B]->stats.stale, 0);
	for (unsigned i = 0; i < 3; i++)
		cm_release(other[i], pair.now);
	cm_release(a, pair.now);
	cm_release(b, pair.now);
	cm_pair_advance(&pair, 5 * NS_PER_SEC);
	cm_pair_fini(&pair);
}

TEST(full_backlog_rejects)
{
	struct cm_conn *b[8];
	struct mad req;

	cm_pair_init(&pair, 32);
	for (unsigned i = 0; i < 8; i++) {
		req = req_of(100 + i, 0x100 + i);
		assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
		b[i] = expect_event(&pair, B, CM_EVENT_REQUEST).conn;
	}
	req = req_of(200, 0x200);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	assert_int_equal(rej_reason_take(&req), CM_REJ_NO_RESOURCES);
	/* A rejected or accepted request frees its place. */
	assert_int_equal(cm_reject(b[0], CM_REJ_CONSUMER, NULL, 0, pair.now), 0);
	mad_take(&pair, B);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	cm_release(b[0], pair.now);
	b[0] = expect_event(&pair, B, CM_EVENT_REQUEST).conn;
	assert_int_equal(cm_accept(b[1], &passive_qp, NULL, 0, pair.now), 0);
	mad_take(&pair, B);
	req = req_of(201, 0x201);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	expect_event(&pair, B, CM_EVENT_REQUEST);
	assert_int_equal(pair.listener->pending, 8);
	for (unsigned i = 0; i < 32; i++)
		if (pair.cm[B]->conns[i].state != CM_FREE)
			cm_release(&pair.cm[B]->conns[i], pair.now);
	assert_int_equal(pair.listener->pending, 0);
	cm_pair_advance(&pair, 200 * NS_PER_SEC);
	cm_pair_fini(&pair);
}

/* All connections are in use: those that are kept only to repeat a REJ are reused. Then
 * the oldest request that is not decided ends. Its place is free when its user has
 * released it. */
TEST(no_free_connection)
{
	struct cm_request r = request_from(B, 0x500);
	struct cm_conn *conn;
	struct cm_event event;
	struct mad req, rej;

	cm_pair_init(&pair, 4);
	for (unsigned i = 0; i < 4; i++) {
		req = req_of(100 + i, 0x100 + i);
		assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
		conn = expect_event(&pair, B, CM_EVENT_REQUEST).conn;
		if (i < 2) {
			cm_release(conn, pair.now);
			mad_take(&pair, B);
		}
	}
	for (unsigned i = 0; i < 2; i++) {
		req = req_of(200 + i, 0x200 + i);
		assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
		expect_event(&pair, B, CM_EVENT_REQUEST);
	}
	req = req_of(300, 0x300);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	rej = mad_take(&pair, B);
	assert_int_equal(mad_remote_id(&rej), 102);
	assert_int_equal(mad_get(&rej, MAD_REJ_reason), CM_REJ_NO_RESOURCES);
	assert_int_equal(rej_reason_take(&req), CM_REJ_NO_RESOURCES);
	event = expect_event(&pair, B, CM_EVENT_REJECTED);
	assert_int_equal(event.conn->remote_id, 102);
	assert_int_equal(event.status, CM_REJ_NO_RESOURCES);
	cm_release(event.conn, pair.now);
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	expect_event(&pair, B, CM_EVENT_REQUEST);
	/* The user's own requests make room in the same way. */
	assert_int_equal(cm_connect(pair.cm[B], &r, NULL, pair.now, &conn), -ENOSPC);
	assert_int_equal(cm_sidr_request(pair.cm[B], &r, NULL, pair.now, &conn), -ENOSPC);
	assert_int_equal(pair.cm[B]->stats.evicted, 3);
	expect_event(&pair, B, CM_EVENT_REJECTED);
	expect_event(&pair, B, CM_EVENT_REJECTED);
	for (unsigned i = 0; i < 4; i++)
		cm_release(&pair.cm[B]->conns[i], pair.now);
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
}
