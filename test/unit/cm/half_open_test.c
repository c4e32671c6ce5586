/* SPDX-License-Identifier: BSD-3-Clause */
/* REQs that other hosts send under false addresses: whom they keep from connecting, and
 * what they make this host send. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "cm_pair.h"

#define CONNS 512
#define LIMIT (CONNS / 4)    /* of a listener; half of that of a source */
#define RESERVED (CONNS / 8) /* for programs of this host */
#define HONEST 0

static struct cm_pair pair;
static struct cm_listener *large; /* b's, SERVICE + 1 */
static unsigned answers;          /* of b, to the host that flood() names */

/* The address of a host: 10.0.x.y. */
static struct cm_path
path_of(unsigned host)
{
	struct cm_path path = path_from(B);

	memset(path.dgid, 0, 10);
	path.dgid[12] = 10;
	path.dgid[13] = 0;
	path.dgid[14] = (uint8_t)(host >> 8);
	path.dgid[15] = (uint8_t)host;
	return path;
}

static struct mad
req_from(unsigned host, uint64_t service, uint32_t id)
{
	struct cm_path path = path_of(host);
	struct cma_hdr hdr = {.sport = 1};
	struct mad req;

	mad_init(&req, MAD_REQ, id);
	mad_put(&req, MAD_REQ_local_id, id);
	mad_put(&req, MAD_REQ_service_id, service);
	mad_put(&req, MAD_REQ_local_qpn, 0x100 + id);
	mad_put(&req, MAD_REQ_path_mtu, 3);
	mad_put(&req, MAD_REQ_local_timeout, 31);
	mad_put(&req, MAD_REQ_max_cm_retries, 15);
	mad_put_bytes(&req, MAD_REQ_primary_local_gid, path.dgid);
	mad_put_bytes(&req, MAD_REQ_primary_remote_gid, path.sgid);
	memcpy(hdr.src, path.dgid, 16);
	memcpy(hdr.dst, path.sgid, 16);
	cma_put(&req, &hdr);
	return req;
}

/* Acts as a server that accepts all requests at once, and releases all that end. */
static void
events_serve(void)
{
	struct cm_event e;

	while (cm_next_event(pair.cm[B], &e)) {
		if (e.type == CM_EVENT_REQUEST)
			assert_int_equal(
				cm_accept(e.conn, &passive_qp, NULL, 0, pair.now), 0);
		else if (e.type != CM_EVENT_ESTABLISHED)
			cm_release(e.conn, pair.now);
	}
}

/* Takes b's messages off its queue. Returns the number of those to the host. */
static unsigned
messages_take(unsigned host)
{
	struct cm_path path, to = path_of(host);
	unsigned count = 0;
	struct mad mad;

	while (cm_tx(pair.cm[B], &mad, &path))
		count += memcmp(path.dgid, to.dgid, 16) == 0;
	return count;
}

static void
req_deliver(unsigned host, uint64_t service, uint32_t id)
{
	struct cm_path path = path_of(host);
	struct mad req = req_from(host, service, id);

	assert_int_equal(cm_rx(pair.cm[B], (uint8_t *)&req, MAD_LEN, &path, pair.now),
		CM_DROP_none);
}

/* count REQs at intervals of 0.1 ms. hosts: how many addresses they come from. */
static void
flood(unsigned first_host, unsigned hosts, uint64_t service, unsigned count)
{
	static uint32_t id = 1000;

	for (unsigned i = 0; i < count; i++) {
		req_deliver(first_host + i % hosts, service, id++);
		events_serve();
		answers += messages_take(first_host);
		pair.now += NS_PER_MS / 10;
		cm_run(pair.cm[B], pair.now);
	}
}

static void
world_open(void)
{
	cm_pair_init(&pair, CONNS);
	assert_int_equal(
		cm_listen(pair.cm[B], SERVICE + 1, NULL, CONNS, NULL, &large), 0);
	answers = 0;
}

static void
world_close(void)
{
	for (unsigned i = 0; i < CONNS; i++) {
		struct cm_conn *conn = &pair.cm[B]->conns[i];

		if (conn->state != CM_FREE && !conn->released)
			cm_release(conn, pair.now);
	}
	while (cm_in_use(pair.cm[B]) != 0) {
		pair.now = cm_deadline(pair.cm[B]);
		cm_run(pair.cm[B], pair.now);
		messages_take(0);
	}
	cm_unlisten(large, pair.now);
	/* Many timers expire at once here. */
	pair.cm[B]->stats.tx_full = 0;
	cm_pair_fini(&pair);
}

/* The honest host gets a REP, and confirms after a round trip of 1 ms. */
static void
honest_host_connects(uint64_t service, uint32_t id)
{
	struct cm_path path = path_of(HONEST), to;
	struct mad rep, rtu;
	bool replied = false;

	req_deliver(HONEST, service, id);
	events_serve();
	while (!replied) {
		assert_true(cm_tx(pair.cm[B], &rep, &to));
		replied = memcmp(to.dgid, path.dgid, 16) == 0;
	}
	assert_int_equal(mad_attr_of(&rep), MAD_REP);
	flood(5000, 5000, service, 10);
	mad_init(&rtu, MAD_RTU, rep.tid);
	mad_put(&rtu, MAD_RTU_local_id, id);
	mad_put(&rtu, MAD_RTU_remote_id, mad_local_id(&rep));
	assert_int_equal(cm_rx(pair.cm[B], (uint8_t *)&rtu, MAD_LEN, &path, pair.now),
		CM_DROP_none);
}

/* False addresses fill neither the table nor the share of this host's own programs. */
TEST(flood_leaves_room_for_others)
{
	struct cm_request r = request_from(B, 0x500);
	struct cm_conn *conn[RESERVED];
	struct cm *cm;

	world_open();
	cm = pair.cm[B];
	for (unsigned i = 0; i < 20; i++) {
		flood(1, 50000, SERVICE + 1, 100);
		honest_host_connects(SERVICE + 1, 1 + i);
		assert_in_range(cm->half_open.count, 0, LIMIT);
	}
	assert_int_equal(cm->stats.established, 20);
	assert_true(cm->stats.evicted > 1000);
	assert_in_range(cm_in_use(cm), 0, LIMIT + 20);
	for (unsigned i = 0; i < RESERVED; i++)
		assert_int_equal(cm_connect(cm, &r, NULL, pair.now, &conn[i]), 0);
	world_close();
}

/* Connections that their peers confirm are not limited by source, but leave the
 * reserve. */
TEST(reserve_is_for_local_programs)
{
	struct cm_request r = request_from(B, 0x500);
	struct cm_path local = path_of(1);
	struct cm_conn *conn;
	unsigned taken = 0;
	struct mad req;

	world_open();
	local.local = true;
	for (unsigned i = 0; i < CONNS; i++) {
		req_deliver(i % 3, SERVICE + 1, 1 + i);
		while (messages_take(i % 3) != 0)
			;
		for (struct cm_event e; cm_next_event(pair.cm[B], &e);) {
			assert_int_equal(
				cm_accept(e.conn, &passive_qp, NULL, 0, pair.now), 0);
			assert_int_equal(cm_established(e.conn, pair.now), 0);
			taken++;
			assert_true(cm_next_event(pair.cm[B], &e));
		}
		messages_take(0);
	}
	assert_int_equal(taken, CONNS - RESERVED);
	/* A local program connects to another one: both ends take one. */
	req = req_from(1, SERVICE + 1, 9999);
	assert_int_equal(cm_rx(pair.cm[B], (uint8_t *)&req, MAD_LEN, &local, pair.now),
		CM_DROP_none);
	expect_event(&pair, B, CM_EVENT_REQUEST);
	for (unsigned i = 1; i < RESERVED; i++)
		assert_int_equal(cm_connect(pair.cm[B], &r, NULL, pair.now, &conn), 0);
	assert_int_equal(cm_connect(pair.cm[B], &r, NULL, pair.now, &conn), -ENOSPC);
	world_close();
}

/* A host with one address, and one listener, push out their own requests only. */
TEST(source_and_listener_pay_for_themselves)
{
	struct cm_listener *other;
	struct cm_conn *mine, *others;

	world_open();
	assert_int_equal(
		cm_listen(pair.cm[B], SERVICE + 2, NULL, CONNS, NULL, &other), 0);
	req_deliver(HONEST, SERVICE + 1, 1);
	mine = expect_event(&pair, B, CM_EVENT_REQUEST).conn;
	flood(7, 1, SERVICE + 1, 10 * LIMIT);
	assert_int_equal(mine->state, CM_REQ_RCVD);
	assert_int_equal(large->half_open.count, LIMIT / 2 + 1);
	req_deliver(HONEST + 1, SERVICE + 2, 1);
	others = expect_event(&pair, B, CM_EVENT_REQUEST).conn;
	assert_int_equal(mine->state, CM_REQ_RCVD);
	/* Many sources: the oldest requests of this listener go, not those of others. */
	flood(100, 5000, SERVICE + 1, 10 * LIMIT);
	assert_int_equal(large->half_open.count, LIMIT);
	assert_int_equal(others->state, CM_REQ_RCVD);
	assert_int_equal(other->half_open.count, 1);
	cm_release(others, pair.now);
	messages_take(0);
	cm_unlisten(other, pair.now);
	world_close();
}

/* The oldest goes first. Its user is told, and its peer, if it exists, gets a REJ. */
TEST(oldest_goes_first)
{
	struct cm_conn *conn[LIMIT];
	struct cm_path path;
	struct mad rej;

	world_open();
	for (unsigned i = 0; i < LIMIT; i++) {
		req_deliver(i, SERVICE + 1, 1 + i);
		conn[i] = expect_event(&pair, B, CM_EVENT_REQUEST).conn;
	}
	/* The first one is confirmed, the second one accepted. */
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(cm_accept(conn[i], &passive_qp, NULL, 0, pair.now), 0);
		mad_take(&pair, B);
	}
	cm_established(conn[0], pair.now);
	expect_event(&pair, B, CM_EVENT_ESTABLISHED);
	for (unsigned i = 0; i < 3; i++) {
		req_deliver(1000 + i, SERVICE + 1, 2000 + i);
		assert_int_equal(pair.cm[B]->stats.evicted, i);
		if (i == 0) {
			expect_event(&pair, B, CM_EVENT_REQUEST);
			continue;
		}
		assert_ptr_equal(
			expect_event(&pair, B,
				i == 1 ? CM_EVENT_UNREACHABLE : CM_EVENT_REJECTED)
				.conn,
			conn[i]);
		expect_event(&pair, B, CM_EVENT_REQUEST);
		assert_true(cm_tx(pair.cm[B], &rej, &path));
		assert_int_equal(mad_remote_id(&rej), 1 + i);
		assert_int_equal(mad_get(&rej, MAD_REJ_reason),
			i == 1 ? CM_REJ_TIMEOUT : CM_REJ_NO_RESOURCES);
		assert_true(cm_has_ended(conn[i]));
	}
	assert_int_equal(conn[0]->state, CM_ESTABLISHED);
	assert_int_equal(conn[3]->state, CM_REQ_RCVD);
	world_close();
}

/* Released connections that only wait for their peer make room before any other. */
TEST(ending_connections_make_room)
{
	struct cm_conn *b[3];
	struct mad req;

	cm_pair_init(&pair, 3);
	for (unsigned i = 0; i < 3; i++) {
		req = req_from(i, SERVICE, 1 + i);
		req_deliver(i, SERVICE, 1 + i);
		b[i] = expect_event(&pair, B, CM_EVENT_REQUEST).conn;
	}
	/* In the order in which they end: DREQ sent, time wait, REJ sent. */
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(cm_accept(b[i], &passive_qp, NULL, 0, pair.now), 0);
		cm_established(b[i], pair.now);
		expect_event(&pair, B, CM_EVENT_ESTABLISHED);
		cm_release(b[i], pair.now);
		assert_int_equal(b[i]->state, CM_DREQ_SENT);
	}
	mad_init(&req, MAD_DREP, 1);
	mad_put(&req, MAD_DREP_local_id, 2);
	mad_put(&req, MAD_DREP_remote_id, b[1]->local_id);
	assert_int_equal(cm_rx(pair.cm[B], (uint8_t *)&req, MAD_LEN,
				 (struct cm_path[]){path_of(1)}, pair.now),
		CM_DROP_none);
	assert_int_equal(b[1]->state, CM_TIMEWAIT);
	cm_release(b[2], pair.now);
	assert_int_equal(b[2]->state, CM_ANSWERED);
	for (unsigned i = 0; i < 3; i++) {
		req_deliver(10 + i, SERVICE, 100 + i);
		assert_ptr_equal(expect_event(&pair, B, CM_EVENT_REQUEST).conn, b[i]);
	}
	assert_int_equal(pair.cm[B]->stats.evicted, 0);
	messages_take(0);
	for (unsigned i = 0; i < 3; i++)
		cm_release(b[i], pair.now);
	messages_take(0);
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
}

/* A host under whose address others send REQs gets no more messages than they send, and
 * few that no REQ has asked for. */
TEST(answers_to_an_address_are_limited)
{
	unsigned rejects = 0, sent = 0;

	world_open();
	/* To a port without a listener: 0.5 s of REQs. */
	flood(7, 1, SERVICE + 5, 5000);
	rejects = answers;
	assert_in_range(rejects, 1024, 1024 + 64);
	assert_int_equal(pair.cm[B]->stats.answers_limited, 5000 - rejects);
	/* Other hosts get their answers. */
	answers = 0;
	flood(8, 1, SERVICE + 5, 100);
	assert_int_equal(answers, 100);
	/* To a server that accepts: a REP each, and not all of the REJs and repeated
	 * REPs. */
	pair.now += 60 * NS_PER_SEC;
	cm_run(pair.cm[B], pair.now);
	answers = 0;
	for (unsigned i = 0; i < 10; i++) {
		flood(7, 1, SERVICE + 1, 1000);
		sent += 1000;
	}
	assert_in_range(answers, sent, sent + 1024 + 125 + 1);
	for (unsigned i = 0; i < 120; i++) {
		pair.now += NS_PER_SEC;
		cm_run(pair.cm[B], pair.now);
		events_serve();
		answers += messages_take(7);
	}
	assert_in_range(answers, sent, sent + 1024 + 121 * 125);
	world_close();
}

/* REPs that come too often for their address are not sent, but count as tries. */
TEST(repeated_reps_are_limited)
{
	uint64_t *until_ns;
	unsigned sent = 0;

	world_open();
	for (unsigned i = 0; i < LIMIT / 2; i++)
		req_deliver(7, SERVICE + 1, 1 + i);
	events_serve();
	assert_int_equal(messages_take(7), LIMIT / 2);
	/* As after many answers to this address. */
	for (until_ns = pair.cm[B]->answers_until_ns;
		until_ns < pair.cm[B]->answers_until_ns + CM_BUCKETS; until_ns++)
		*until_ns = pair.now + 1000 * NS_PER_SEC;
	for (unsigned i = 0; i < 60; i++) {
		pair.now += NS_PER_SEC;
		cm_run(pair.cm[B], pair.now);
		events_serve();
		sent += messages_take(7);
	}
	/* Each gives up with one REJ. */
	assert_int_equal(sent, LIMIT / 2);
	assert_int_equal(pair.cm[B]->stats.answers_limited, LIMIT / 2 * CM_REP_RETRIES);
	world_close();
}
