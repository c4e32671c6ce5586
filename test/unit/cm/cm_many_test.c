/* SPDX-License-Identifier: BSD-3-Clause */
/* As many connections as there can be, between two managers. No step visits all of them: the
 * tests count those that a call concerns. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "cm_pair.h"
#include "page.h"
#include "cm/half_open.h"
#include "port/gid.h"

#define MANY CM_CONNS_MAX
/* Other hosts do not get the last eighth. */
#define REMOTE (MANY / 8 * 7)
/* Of connections in a bucket, by a random function: a longer list has a probability below
 * 10^-8. */
#define LONGEST 14

static struct cm *cm[2];
static struct cm_listener *listener;
static struct cm_conn *active[MANY], *passive[MANY];
static uint64_t now;

static void
open_many(void)
{
	struct cm_conf conf;

	now = 100 * NS_PER_SEC;
	for (unsigned i = 0; i < 2; i++) {
		cm_conf_default(&conf);
		conf.ca_guid = 0x1111 * (i + 1);
		conf.random.word[0] = 23 + i;
		conf.max_conns = MANY;
		assert_int_equal(cm_create(&conf, now, &cm[i]), 0);
	}
	assert_int_equal(cm_listen(cm[B], SERVICE, NULL, 8, NULL, &listener), 0);
}

static void
close_many(void)
{
	cm_destroy(cm[A]);
	cm_destroy(cm[B]);
}

/* The message of one side arrives at the other. */
static enum mad_attr
carry(unsigned from)
{
	struct cm_path path, back = {.local = false};
	struct mad mad;

	assert_true(cm_tx(cm[from], &mad, &path));
	memcpy(back.sgid, path.dgid, 16);
	memcpy(back.dgid, path.sgid, 16);
	assert_int_equal(cm_rx(cm[!from], (const uint8_t *)&mad, MAD_LEN, &back, now),
		CM_DROP_none);
	return mad_attr_of(&mad);
}

static struct cm_conn *
event_of(unsigned side, enum cm_event_type type)
{
	struct cm_event event;

	assert_true(cm_next_event(cm[side], &event));
	assert_int_equal(event.type, type);
	return event.conn;
}

/* Each connection has QPs of its own. It is confirmed later. */
static void
accept_one(uint32_t i)
{
	struct cm_request req = request_from(A, 0x1000 + i);
	struct cm_qp qp = passive_qp;

	qp.qpn = 0x100000 + i;
	assert_int_equal(cm_connect(cm[A], &req, NULL, now, &active[i]), 0);
	assert_int_equal(carry(A), MAD_REQ);
	passive[i] = event_of(B, CM_EVENT_REQUEST);
	assert_int_equal(cm_accept(passive[i], &qp, NULL, 0, now), 0);
	assert_int_equal(carry(B), MAD_REP);
}

static void
connect_one(uint32_t i)
{
	accept_one(i);
	assert_ptr_equal(event_of(A, CM_EVENT_REPLY), active[i]);
	assert_int_equal(cm_confirm(active[i], NULL, 0, now), 0);
	assert_int_equal(carry(A), MAD_RTU);
	assert_ptr_equal(event_of(B, CM_EVENT_ESTABLISHED), passive[i]);
}

static void
lists_check(const struct cm *m)
{
	unsigned longest = 0, all = 0;

	for (uint32_t i = 0; i <= m->bucket_mask; i++) {
		const struct cm_conn *conn;
		unsigned ids = 0, qpns = 0;

		LIST_FOREACH(conn, &m->by_id[i], id_link)
		ids++;
		LIST_FOREACH(conn, &m->by_qpn[i], qpn_link)
		qpns++;
		longest = RTE_MAX(longest, RTE_MAX(ids, qpns));
		all += ids;
	}
	assert_int_equal(all, REMOTE);
	assert_in_range(longest, 2, LONGEST);
}

/* The limits, and what a received message looks at. */
TEST(all_connections_are_in_use)
{
	struct cm_request req = request_from(A, 0x800);
	struct cm_conn *conn;
	struct mad mad;
	struct cm_path path;

	open_many();
	for (uint32_t i = 0; i < REMOTE; i++)
		connect_one(i);
	lists_check(cm[A]);
	lists_check(cm[B]);
	/* The next one is refused for lack of resources; none that is open ends for it. */
	assert_int_equal(cm_connect(cm[A], &req, NULL, now, &conn), 0);
	assert_int_equal(carry(A), MAD_REQ);
	assert_int_equal(carry(B), MAD_REJ);
	assert_ptr_equal(event_of(A, CM_EVENT_REJECTED), conn);
	assert_int_equal(conn->status, CM_REJ_NO_RESOURCES);
	cm_release(conn, now);
	assert_int_equal(cm_in_use(cm[B]), REMOTE);
	/* This side takes them all. */
	for (uint32_t i = REMOTE; i < MANY; i++) {
		assert_int_equal(cm_connect(cm[A], &req, NULL, now, &active[i]), 0);
		assert_true(cm_tx(cm[A], &mad, &path));
	}
	assert_int_equal(cm_in_use(cm[A]), MANY);
	assert_int_equal(cm_connect(cm[A], &req, NULL, now, &conn), -ENOSPC);
	close_many();
}

/* All end at once: each waits for the answer to its DREQ, which does not come. */
TEST(timers_are_handled_in_steps)
{
	unsigned steps = 0;
	struct mad mad;
	struct cm_path path;

	open_many();
	for (uint32_t i = 0; i < REMOTE; i++)
		connect_one(i);
	for (uint32_t i = 0; i < REMOTE; i++) {
		cm_release(active[i], now);
		assert_true(cm_tx(cm[A], &mad, &path));
	}
	assert_int_equal(cm[A]->wheel.count, REMOTE);
	now += REQ_WAIT_NS + MANY * WHEEL_TICK_NS + NS_PER_MS;
	for (uint64_t resent = 0; cm_deadline(cm[A]) <= now; steps++) {
		unsigned sent = 0;

		cm_run(cm[A], now);
		while (cm_tx(cm[A], &mad, &path))
			sent++;
		resent += sent;
		assert_in_range(sent, 0, CM_TIMERS_BATCH);
		assert_int_equal(cm_stats_of(cm[A])->resent, resent);
	}
	assert_int_equal(cm_stats_of(cm[A])->resent, REMOTE);
	assert_in_range(steps, REMOTE / CM_TIMERS_BATCH,
		REMOTE / CM_TIMERS_BATCH + MANY * WHEEL_LEVELS / CM_TIMER_MOVES);
	close_many();
}

/* A listener ends while many of its connections are accepted, and not confirmed: they are not
 * visited. The limits go on to count them. */
TEST(listener_ends_in_one_step)
{
	enum { OPEN = 2000 };
	const struct half_open_list *list;
	struct cm_listener *ended;

	open_many();
	ended = listener;
	list = &ended->half_open;
	for (uint32_t i = 0; i < OPEN; i++)
		accept_one(i);
	cm_unlisten(listener, now);
	assert_int_equal(cm_listeners(cm[B]), 0);
	assert_ptr_equal(LIST_FIRST(&cm[B]->closed), ended);
	for (uint32_t i = 0; i < OPEN; i++)
		assert_ptr_equal(passive[i]->half_open[HALF_OPEN_LISTENER], list);
	assert_int_equal(cm_listen(cm[B], SERVICE, NULL, 8, NULL, &listener), 0);
	for (uint32_t i = 0; i < OPEN; i++) {
		assert_int_equal(list->count, OPEN - i);
		(void)event_of(A, CM_EVENT_REPLY);
		assert_int_equal(cm_confirm(active[i], NULL, 0, now), 0);
		assert_int_equal(carry(A), MAD_RTU);
	}
	/* The last one has freed it. */
	assert_true(LIST_EMPTY(&cm[B]->closed));
	close_many();
}

/* docs/running.md names the memory of a connection. */
TEST(memory_is_as_documented)
{
	page_names(RUNNING_PAGE, cm_conn_size(), "bytes for each connection");
}
