/* SPDX-License-Identifier: BSD-3-Clause */
/* Unexpected messages: in each state, with unknown ids, repeated, and from other
 * senders. */
#include <string.h>

#include <rte_byteorder.h>

#include "../rand.h"
#include "case.h"
#include "cm_pair.h"
#include "port/net.h"

static struct cm_pair pair;

/* A message to this end of a connection, as its peer would send it. */
static struct mad
peer_mad(const struct cm_conn *to, enum mad_attr attr)
{
	uint32_t ids[2] = {rte_cpu_to_be_32(to->remote_id != 0 ? to->remote_id : 0x5555),
		rte_cpu_to_be_32(to->local_id)};
	struct mad mad;

	mad_init(&mad, attr, 99);
	memcpy(mad.data, ids, sizeof(ids));
	if (attr == MAD_DREQ)
		mad_put(&mad, MAD_DREQ_remote_qpn, to->local_qpn);
	if (attr == MAD_REP) {
		mad_put(&mad, MAD_REP_local_qpn, 0x999);
		mad_put(&mad, MAD_REP_ca_guid, 0x9999);
	}
	return mad;
}

/* Returns a connection in this state. *side: the side whose connection is returned. */
static struct cm_conn *
conn_in_state(enum cm_state want, unsigned *side)
{
	struct cm_conn *a, *b;

	cm_pair_init(&pair, 4);
	*side = want == CM_REQ_RCVD || want == CM_REP_SENT ? B : A;
	if (want == CM_REQ_SENT) {
		a = active_connect(&pair);
		mad_take(&pair, A);
		return a;
	}
	if (want == CM_REQ_RCVD) {
		reach_req_rcvd(&pair, &b);
		return b;
	}
	a = want == CM_REP_RCVD || want == CM_REP_SENT ? reach_rep_rcvd(&pair, &b)
						       : reach_established(&pair, &b);
	if (want == CM_DREQ_RCVD) {
		struct mad dreq = peer_mad(a, MAD_DREQ);

		assert_int_equal(mad_deliver(&pair, A, &dreq), CM_DROP_none);
		expect_event(&pair, A, CM_EVENT_DISCONNECTED);
	}
	if (want == CM_DREQ_SENT || want == CM_TIMEWAIT) {
		cm_disconnect(a, NULL, 0, pair.now);
		mad_take(&pair, A);
	}
	if (want == CM_TIMEWAIT) {
		struct mad drep = peer_mad(a, MAD_DREP);

		assert_int_equal(mad_deliver(&pair, A, &drep), CM_DROP_none);
		expect_event(&pair, A, CM_EVENT_DISCONNECTED);
	}
	return *side == A ? a : b;
}

/* Each message in each state: the reason to drop it, the next state, the answer. */
static const struct {
	enum cm_state state;
	enum mad_attr attr;
	enum cm_drop why;
	enum cm_state then;
	int answer; /* an attribute, 0: no answer */
} table[] = {
	{CM_REQ_SENT, MAD_REP, CM_DROP_none, CM_REP_RCVD, 0},
	{CM_REQ_SENT, MAD_RTU, CM_DROP_state, CM_REQ_SENT, 0},
	{CM_REQ_SENT, MAD_REJ, CM_DROP_none, CM_CLOSED, 0},
	{CM_REQ_SENT, MAD_MRA, CM_DROP_none, CM_REQ_SENT, 0},
	{CM_REQ_SENT, MAD_DREQ, CM_DROP_state, CM_REQ_SENT, MAD_DREP},
	{CM_REQ_SENT, MAD_DREP, CM_DROP_state, CM_REQ_SENT, 0},
	{CM_REQ_SENT, MAD_LAP, CM_DROP_none, CM_REQ_SENT, MAD_APR},
	{CM_REQ_SENT, MAD_APR, CM_DROP_state, CM_REQ_SENT, 0},
	{CM_REP_RCVD, MAD_REP, CM_DROP_field, CM_REP_RCVD, 0}, /* names another QP */
	{CM_REP_RCVD, MAD_RTU, CM_DROP_state, CM_REP_RCVD, 0},
	{CM_REP_RCVD, MAD_REJ, CM_DROP_none, CM_TIMEWAIT, 0},
	{CM_REP_RCVD, MAD_MRA, CM_DROP_state, CM_REP_RCVD, 0},
	{CM_REP_RCVD, MAD_DREQ, CM_DROP_none, CM_TIMEWAIT, MAD_DREP},
	{CM_REP_RCVD, MAD_DREP, CM_DROP_state, CM_REP_RCVD, 0},
	{CM_REQ_RCVD, MAD_REP, CM_DROP_state, CM_REQ_RCVD, 0},
	{CM_REQ_RCVD, MAD_RTU, CM_DROP_state, CM_REQ_RCVD, 0},
	{CM_REQ_RCVD, MAD_REJ, CM_DROP_none, CM_CLOSED, 0},
	{CM_REQ_RCVD, MAD_MRA, CM_DROP_state, CM_REQ_RCVD, 0},
	{CM_REQ_RCVD, MAD_DREQ, CM_DROP_none, CM_TIMEWAIT, MAD_DREP},
	{CM_REQ_RCVD, MAD_DREP, CM_DROP_state, CM_REQ_RCVD, 0},
	{CM_REP_SENT, MAD_REP, CM_DROP_state, CM_REP_SENT, 0},
	{CM_REP_SENT, MAD_RTU, CM_DROP_none, CM_ESTABLISHED, 0},
	{CM_REP_SENT, MAD_REJ, CM_DROP_none, CM_TIMEWAIT, 0},
	{CM_REP_SENT, MAD_MRA, CM_DROP_state, CM_REP_SENT, 0}, /* an MRA for a REQ */
	{CM_REP_SENT, MAD_DREQ, CM_DROP_none, CM_DREQ_RCVD, 0},
	{CM_REP_SENT, MAD_DREP, CM_DROP_state, CM_REP_SENT, 0},
	{CM_ESTABLISHED, MAD_REP, CM_DROP_field, CM_ESTABLISHED, 0},
	{CM_ESTABLISHED, MAD_RTU, CM_DROP_duplicate, CM_ESTABLISHED, 0},
	{CM_ESTABLISHED, MAD_REJ, CM_DROP_none, CM_TIMEWAIT, 0},
	{CM_ESTABLISHED, MAD_MRA, CM_DROP_state, CM_ESTABLISHED, 0},
	{CM_ESTABLISHED, MAD_DREQ, CM_DROP_none, CM_DREQ_RCVD, 0},
	{CM_ESTABLISHED, MAD_DREP, CM_DROP_state, CM_ESTABLISHED, 0},
	{CM_ESTABLISHED, MAD_LAP, CM_DROP_none, CM_ESTABLISHED, MAD_APR},
	{CM_ESTABLISHED, MAD_APR, CM_DROP_state, CM_ESTABLISHED, 0},
	{CM_DREQ_SENT, MAD_REP, CM_DROP_state, CM_DREQ_SENT, 0},
	{CM_DREQ_SENT, MAD_RTU, CM_DROP_state, CM_DREQ_SENT, 0},
	{CM_DREQ_SENT, MAD_REJ, CM_DROP_none, CM_TIMEWAIT, 0},
	{CM_DREQ_SENT, MAD_MRA, CM_DROP_state, CM_DREQ_SENT, 0},
	{CM_DREQ_SENT, MAD_DREQ, CM_DROP_none, CM_TIMEWAIT, MAD_DREP},
	{CM_DREQ_SENT, MAD_DREP, CM_DROP_none, CM_TIMEWAIT, 0},
	{CM_DREQ_RCVD, MAD_REP, CM_DROP_state, CM_DREQ_RCVD, 0},
	{CM_DREQ_RCVD, MAD_RTU, CM_DROP_state, CM_DREQ_RCVD, 0},
	{CM_DREQ_RCVD, MAD_REJ, CM_DROP_state, CM_DREQ_RCVD, 0},
	{CM_DREQ_RCVD, MAD_MRA, CM_DROP_state, CM_DREQ_RCVD, 0},
	{CM_DREQ_RCVD, MAD_DREQ, CM_DROP_none, CM_DREQ_RCVD, 0},
	{CM_DREQ_RCVD, MAD_DREP, CM_DROP_state, CM_DREQ_RCVD, 0},
	{CM_TIMEWAIT, MAD_REP, CM_DROP_state, CM_TIMEWAIT, 0},
	{CM_TIMEWAIT, MAD_RTU, CM_DROP_state, CM_TIMEWAIT, 0},
	{CM_TIMEWAIT, MAD_REJ, CM_DROP_state, CM_TIMEWAIT, 0},
	{CM_TIMEWAIT, MAD_MRA, CM_DROP_state, CM_TIMEWAIT, 0},
	{CM_TIMEWAIT, MAD_DREQ, CM_DROP_none, CM_TIMEWAIT, MAD_DREP},
	{CM_TIMEWAIT, MAD_DREP, CM_DROP_state, CM_TIMEWAIT, 0},
};

TEST(each_message_in_each_state)
{
	for (unsigned i = 0; i < RTE_DIM(table); i++) {
		unsigned side;
		struct cm_conn *conn = conn_in_state(table[i].state, &side);
		struct mad mad = peer_mad(conn, table[i].attr);
		enum cm_drop why = mad_deliver(&pair, side, &mad);

		if (why != table[i].why || conn->state != table[i].then)
			fail_msg("row %u: %d, then %s", i, why, cm_state_name(conn));
		assert_int_equal(pair.cm[side]->stats.drop[why] >= 1, true);
		if (table[i].answer != 0) {
			struct mad answer = mad_take(&pair, side);

			assert_int_equal(mad_attr_of(&answer), table[i].answer);
			assert_true(answer.tid == 99);
			assert_int_equal(mad_local_id(&answer), mad_remote_id(&mad));
			assert_int_equal(mad_remote_id(&answer), mad_local_id(&mad));
		}
		assert_false(cm_tx(pair.cm[side], &mad, &pair.flights[0].path));
		cm_destroy(pair.cm[A]);
		cm_destroy(pair.cm[B]);
	}
}

/* From another address, with a wrong peer id, or with a wrong QPN: dropped without an
 * answer. */
TEST(messages_not_from_the_peer_are_dropped)
{
	static const enum mad_attr attrs[] = {
		MAD_MRA, MAD_REJ, MAD_REP, MAD_RTU, MAD_DREQ, MAD_DREP, MAD_LAP, MAD_APR};
	struct cm_path path = path_from(A);
	struct cm_conn *a;
	unsigned side;

	a = conn_in_state(CM_ESTABLISHED, &side);
	path.dgid[15] = 77;
	for (unsigned i = 0; i < RTE_DIM(attrs); i++) {
		struct mad mad = peer_mad(a, attrs[i]);
		uint32_t id = rte_cpu_to_be_32(a->remote_id + 1);

		assert_int_equal(
			cm_rx(pair.cm[A], (uint8_t *)&mad, MAD_LEN, &path, pair.now),
			CM_DROP_address);
		memcpy(mad.data, &id, 4);
		assert_int_equal(mad_deliver(&pair, A, &mad), CM_DROP_ids);
		assert_int_equal(a->state, CM_ESTABLISHED);
	}
	struct mad dreq = peer_mad(a, MAD_DREQ);

	mad_put(&dreq, MAD_DREQ_remote_qpn, 0x112);
	assert_int_equal(mad_deliver(&pair, A, &dreq), CM_DROP_field);
	expect_no_event(&pair, A);
	cm_destroy(pair.cm[A]);
	cm_destroy(pair.cm[B]);
}

/* A message from a multicast address gets no answer. */
TEST(multicast_source_gets_no_answer)
{
	static const char *const groups[] = {"224.0.0.1", "239.1.1.1", "ff02::1"};
	static const enum mad_attr attrs[] = {MAD_REQ, MAD_SIDR_REQ, MAD_DREQ, MAD_REP};
	struct cm_path path = path_from(B);

	cm_pair_init(&pair, 4);
	for (unsigned i = 0; i < RTE_DIM(groups) * RTE_DIM(attrs); i++) {
		struct mad mad;

		mad_init(&mad, attrs[i % RTE_DIM(attrs)], 5);
		gid_parse(groups[i / RTE_DIM(attrs)], path.dgid, NULL);
		assert_int_equal(
			cm_rx(pair.cm[B], (uint8_t *)&mad, MAD_LEN, &path, pair.now),
			CM_DROP_address);
		assert_false(cm_has_tx(pair.cm[B]));
	}
	cm_pair_fini(&pair);
}

/* A REP to the end that sent one. */
TEST(rep_to_the_passive_side)
{
	struct cm_conn *a, *b;
	struct mad rep;

	cm_pair_init(&pair, 4);
	a = reach_established(&pair, &b);
	rep = peer_mad(b, MAD_REP);
	assert_int_equal(mad_deliver(&pair, B, &rep), CM_DROP_state);
	assert_int_equal(b->state, CM_ESTABLISHED);
	cm_release(a, pair.now);
	cm_release(b, pair.now);
	cm_pair_fini(&pair);
}

/* Unknown ids: a peer that waits for an answer gets one, and answers get none. */
TEST(unknown_ids)
{
	static const struct {
		enum mad_attr attr;
		int answer;
	} rows[] = {{MAD_MRA, 0}, {MAD_REJ, 0}, {MAD_REP, MAD_REJ}, {MAD_RTU, 0},
		{MAD_DREQ, MAD_DREP}, {MAD_DREP, 0}, {MAD_LAP, MAD_APR}, {MAD_APR, 0},
		{MAD_SIDR_REP, 0}};
	struct cm_path path;
	struct mad mad, answer;

	cm_pair_init(&pair, 4);
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		mad_init(&mad, rows[i].attr, 7);
		mad.data[3] = 0x11;
		mad.data[7] = 0x22;
		assert_int_equal(mad_deliver(&pair, B, &mad), CM_DROP_ids);
		if (rows[i].answer != 0) {
			answer = mad_take(&pair, B);
			assert_int_equal(mad_attr_of(&answer), rows[i].answer);
			assert_int_equal(mad_local_id(&answer), 0x22);
			assert_int_equal(mad_remote_id(&answer), 0x11);
			assert_true(answer.tid == 7);
		}
		if (rows[i].attr == MAD_REP)
			assert_int_equal(
				mad_get(&answer, MAD_REJ_reason), CM_REJ_INVALID_ID);
		if (rows[i].attr == MAD_LAP)
			assert_int_equal(mad_get(&answer, MAD_APR_status), 1);
		assert_false(cm_tx(pair.cm[B], &mad, &path));
	}
	assert_int_equal(pair.cm[B]->stats.drop[CM_DROP_ids], RTE_DIM(rows));
	cm_pair_fini(&pair);
}

/* A peer that gives up its REQ does not know our id: the REJ is matched by the peer's CA
 * GUID and id. */
TEST(rej_is_matched_by_guid)
{
	struct cm_conn *a, *b;
	struct mad rej;

	cm_pair_init(&pair, 4);
	a = reach_req_rcvd(&pair, &b);
	cm_release(a, pair.now);
	rej = mad_take(&pair, A);
	assert_int_equal(mad_get(&rej, MAD_REJ_reason), CM_REJ_TIMEOUT);
	assert_int_equal(mad_remote_id(&rej), 0);
	mad_put(&rej, MAD_REJ_info_len, 7);
	assert_int_equal(mad_deliver(&pair, B, &rej), CM_DROP_ids);
	mad_put(&rej, MAD_REJ_info_len, 8);
	assert_int_equal(mad_deliver(&pair, B, &rej), CM_DROP_none);
	assert_int_equal(
		expect_event(&pair, B, CM_EVENT_REJECTED).status, CM_REJ_TIMEOUT);
	cm_release(b, pair.now);
	cm_pair_fini(&pair);
}

/* An invalid REP is dropped: the REQ waits for a valid one. */
TEST(invalid_rep_is_dropped)
{
	static const uint32_t qpns[] = {0, 1, 0xFFFFFF};
	struct cm_conn *a;
	unsigned side;
	struct mad rep;

	a = conn_in_state(CM_REQ_SENT, &side);
	for (unsigned i = 0; i < RTE_DIM(qpns); i++) {
		rep = peer_mad(a, MAD_REP);
		mad_put(&rep, MAD_REP_local_qpn, qpns[i]);
		assert_int_equal(mad_deliver(&pair, A, &rep), CM_DROP_field);
	}
	rep = peer_mad(a, MAD_REP);
	mad_put(&rep, MAD_REP_local_id, 0);
	assert_int_equal(mad_deliver(&pair, A, &rep), CM_DROP_field);
	assert_int_equal(a->state, CM_REQ_SENT);
	cm_destroy(pair.cm[A]);
	cm_destroy(pair.cm[B]);
}

/* A REP names a QP that is the peer of an established connection: that connection ends,
 * and the new one is rejected as stale. */
TEST(rep_from_a_stale_peer)
{
	struct cm_conn *a, *b, *again;
	struct cm_request req = request_from(A, 0x112);
	struct mad mad;

	cm_pair_init(&pair, 4);
	a = reach_established(&pair, &b);
	assert_int_equal(cm_connect(pair.cm[A], &req, "again", pair.now, &again), 0);
	mad_take(&pair, A);
	mad = peer_mad(again, MAD_REP);
	mad_put(&mad, MAD_REP_local_qpn, 0x222);
	mad_put(&mad, MAD_REP_ca_guid, 0x2222);
	assert_int_equal(mad_deliver(&pair, A, &mad), CM_DROP_none);
	assert_int_equal(expect_event(&pair, A, CM_EVENT_DISCONNECTED).conn == a, true);
	assert_int_equal(expect_event(&pair, A, CM_EVENT_REJECTED).status, CM_REJ_STALE);
	mad = mad_take(&pair, A);
	assert_int_equal(mad_attr_of(&mad), MAD_DREQ);
	mad = mad_take(&pair, A);
	assert_int_equal(mad_get(&mad, MAD_REJ_reason), CM_REJ_STALE);
	cm_release(a, pair.now);
	cm_release(b, pair.now);
	cm_release(again, pair.now);
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
}

/* Random bit errors in messages of both directions: no crash, and all connections end. */
TEST(random_bit_errors)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		uint64_t r = seed;
		struct cm_conn *a, *b;
		struct cm_event e;

		cm_pair_init(&pair, 4);
		a = reach_established(&pair, &b);
		for (unsigned i = 0; i < 40; i++) {
			struct mad mad = peer_mad(rand_below(&r, 2) ? a : b,
				MAD_ATTR_FIRST + rand_below(&r, 11));

			for (unsigned k = rand_below(&r, 4); k != 0; k--)
				((uint8_t *)&mad)[rand_below(&r, MAD_LEN)] ^=
					(uint8_t)(1u << rand_below(&r, 8));
			mad_deliver(&pair, rand_below(&r, 2), &mad);
			cm_pair_advance(&pair, rand_below(&r, 2) * NS_PER_SEC);
		}
		for (unsigned i = 0; i < 2; i++)
			while (cm_next_event(pair.cm[i], &e))
				if (e.type == CM_EVENT_REQUEST ||
					e.type == CM_EVENT_SIDR_REQUEST)
					cm_release(e.conn, pair.now);
		cm_release(a, pair.now);
		cm_release(b, pair.now);
		cm_pair_advance(&pair, 300 * NS_PER_SEC);
		cm_pair_fini(&pair);
	}
}

static bool
claims(unsigned side, const struct mad *mad)
{
	struct cm_path path = path_from(side);

	return cm_claims(pair.cm[side], (const uint8_t *)mad, sizeof(*mad), &path);
}

/* Another manager may use the same QP 1: a manager claims what its listeners and connections
 * get, and nothing else. */
TEST(own_messages_are_claimed)
{
	struct cm_request ask = request_from(A, 0x100);
	struct cm_listener *listener;
	struct cm_conn *a, *b, *sidr;
	struct mad req, rep, mad;

	cm_pair_init(&pair, 4);
	a = active_connect(&pair);
	req = mad_take(&pair, A);
	assert_true(claims(B, &req));
	assert_false(claims(A, &req));
	cm_unlisten(pair.listener, pair.now);
	assert_false(claims(B, &req));
	assert_int_equal(
		cm_listen(pair.cm[B], SERVICE, NULL, 4, NULL, &pair.listener), 0);
	mad = peer_mad(a, MAD_REJ);
	assert_true(claims(A, &mad));
	assert_false(claims(B, &mad));
	mad = (struct mad){.tid = 0};
	assert_false(claims(A, &mad));
	cm_release(a, pair.now);
	assert_int_equal(mad_attr_of(&req), MAD_REQ);
	mad = mad_take(&pair, A);
	assert_int_equal(mad_attr_of(&mad), MAD_REJ);

	ask.service_id = UD_SERVICE;
	assert_int_equal(cm_sidr_request(pair.cm[A], &ask, NULL, pair.now, &sidr), 0);
	req = mad_take(&pair, A);
	assert_false(claims(B, &req));
	assert_int_equal(
		cm_sidr_listen(pair.cm[B], UD_SERVICE, NULL, 4, NULL, &listener), 0);
	assert_true(claims(B, &req));
	assert_int_equal(mad_deliver(&pair, B, &req), CM_DROP_none);
	b = expect_event(&pair, B, CM_EVENT_SIDR_REQUEST).conn;
	assert_int_equal(cm_sidr_reply(b, CM_SIDR_VALID, 0x200, 1, NULL, 0, pair.now), 0);
	cm_unlisten(listener, pair.now);
	assert_true(claims(B, &req)); /* repeated */
	rep = mad_take(&pair, B);
	assert_true(claims(A, &rep));
	assert_false(claims(B, &rep));
	cm_release(sidr, pair.now);
	cm_release(b, pair.now);
	cm_pair_advance(&pair, 300 * NS_PER_SEC);
	cm_pair_fini(&pair);
}
