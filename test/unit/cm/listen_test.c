/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "case.h"
#include "cm_pair.h"
#include "cm/listen.h"
#include "port/net.h"

static struct cm_pair pair;

TEST(listener_of_the_address_wins)
{
	struct cm_listener *one, *two, *again;
	uint8_t ours[16], other[16];
	struct cm_conn *a;
	struct cm_event e;

	cm_pair_init(&pair, 8);
	gid_parse("192.0.2.2", ours, NULL);
	gid_parse("192.0.2.9", other, NULL);
	assert_int_equal(
		cm_listen(pair.cm[B], SERVICE, NULL, 8, NULL, &again), -EADDRINUSE);
	assert_int_equal(cm_listen(pair.cm[B], SERVICE, other, 8, "other", &two), 0);
	assert_int_equal(cm_listen(pair.cm[B], SERVICE, ours, 8, "ours", &one), 0);
	assert_int_equal(
		cm_listen(pair.cm[B], SERVICE, ours, 8, "ours", &again), -EADDRINUSE);
	assert_int_equal(
		cm_listen(pair.cm[B], SERVICE + 1, NULL, 0, NULL, &again), -EINVAL);
	assert_int_equal(cm_listeners(pair.cm[B]), 3);
	a = active_connect(&pair);
	cm_pair_drain(&pair);
	e = expect_event(&pair, B, CM_EVENT_REQUEST);
	assert_string_equal(e.user, "ours");
	cm_release(e.conn, pair.now);
	cm_pair_drain(&pair);
	cm_release(a, pair.now);
	/* Without that listener the one of all addresses gets the request. Without both
	 * it is rejected. */
	cm_unlisten(one, pair.now);
	a = active_connect(&pair);
	cm_pair_drain(&pair);
	e = expect_event(&pair, B, CM_EVENT_REQUEST);
	assert_string_equal(e.user, "listener");
	cm_release(e.conn, pair.now);
	cm_pair_drain(&pair);
	expect_event(&pair, A, CM_EVENT_REJECTED);
	cm_release(a, pair.now);
	cm_unlisten(pair.listener, pair.now);
	pair.listener = NULL;
	a = active_connect(&pair);
	cm_pair_drain(&pair);
	assert_int_equal(
		expect_event(&pair, A, CM_EVENT_REJECTED).status, CM_REJ_NO_SERVICE);
	cm_release(a, pair.now);
	cm_unlisten(two, pair.now);
	assert_int_equal(cm_listeners(pair.cm[B]), 0);
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
}

/* The most specific listener gets the request: of the address, of its family, of all. */
TEST(listener_of_the_family_wins)
{
	static const uint8_t any4[16] = {[10] = 0xff, 0xff}, any6[16];
	struct cm_listener *v4, *v6, *again;
	uint8_t ours4[16], ours6[16];
	struct cm *cm;

	cm_pair_init(&pair, 8);
	cm = pair.cm[B];
	gid_parse("192.0.2.2", ours4, NULL);
	gid_parse("2001:db8::2", ours6, NULL);
	assert_int_equal(cm_listen(cm, SERVICE, any4, 8, NULL, &v4), 0);
	assert_int_equal(cm_listen(cm, SERVICE, any6, 8, NULL, &v6), 0);
	assert_int_equal(cm_listen(cm, SERVICE, any4, 8, NULL, &again), -EADDRINUSE);
	assert_int_equal(cm_listen(cm, SERVICE, any6, 8, NULL, &again), -EADDRINUSE);
	assert_ptr_equal(listener_find(cm, SERVICE, false, ours4), v4);
	assert_ptr_equal(listener_find(cm, SERVICE, false, ours6), v6);
	cm_unlisten(v4, pair.now);
	assert_ptr_equal(listener_find(cm, SERVICE, false, ours4), pair.listener);
	cm_unlisten(pair.listener, pair.now);
	pair.listener = NULL;
	assert_null(listener_find(cm, SERVICE, false, ours4));
	cm_unlisten(v6, pair.now);
	cm_pair_fini(&pair);
}

/* Closing a listener rejects its unread requests. A connection that its user has read
 * stays. */
TEST(unlisten_rejects_unread_requests)
{
	struct cm_conn *a[3], *b, *c;
	struct cm_request r;
	struct mad rej;

	cm_pair_init(&pair, 8);
	for (unsigned i = 0; i < 3; i++) {
		r = request_from(A, 0x100 + i);
		assert_int_equal(cm_connect(pair.cm[A], &r, NULL, pair.now, &a[i]), 0);
		cm_pair_drain(&pair);
	}
	b = expect_event(&pair, B, CM_EVENT_REQUEST).conn;
	c = &pair.cm[B]->conns[1];
	assert_int_equal(c->state, CM_REQ_RCVD);
	/* The second peer gives up before the user has read its request. */
	cm_release(a[1], pair.now);
	cm_pair_drain(&pair);
	assert_int_equal(c->state, CM_CLOSED);
	cm_unlisten(pair.listener, pair.now);
	pair.listener = NULL;
	assert_int_equal(c->state, CM_FREE);
	rej = mad_take(&pair, B);
	assert_int_equal(mad_get(&rej, MAD_REJ_reason), CM_REJ_CONSUMER);
	assert_int_equal(mad_deliver(&pair, A, &rej), CM_DROP_none);
	assert_ptr_equal(expect_event(&pair, A, CM_EVENT_REJECTED).conn, a[2]);
	expect_no_event(&pair, B);
	assert_int_equal(cm_accept(b, &passive_qp, NULL, 0, pair.now), 0);
	cm_pair_drain(&pair);
	assert_ptr_equal(expect_event(&pair, A, CM_EVENT_REPLY).conn, a[0]);
	cm_release(a[0], pair.now);
	cm_release(a[2], pair.now);
	cm_release(b, pair.now);
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
}

/* Requests that their peers give up keep their place in the backlog until the user has
 * read them. */
TEST(abandoned_requests_keep_their_backlog_place)
{
	struct cm_request r;
	struct cm_conn *conn;

	cm_pair_init(&pair, 16);
	for (unsigned i = 0; i < 8; i++) {
		r = request_from(A, 0x100 + i);
		assert_int_equal(cm_connect(pair.cm[A], &r, NULL, pair.now, &conn), 0);
		cm_pair_drain(&pair);
		cm_release(conn, pair.now);
		cm_pair_drain(&pair);
		assert_int_equal(pair.cm[B]->conns[i].state, CM_CLOSED);
	}
	assert_int_equal(pair.listener->pending, 8);
	r = request_from(A, 0x200);
	assert_int_equal(cm_connect(pair.cm[A], &r, NULL, pair.now, &conn), 0);
	cm_pair_drain(&pair);
	assert_int_equal(
		expect_event(&pair, A, CM_EVENT_REJECTED).status, CM_REJ_NO_RESOURCES);
	cm_release(conn, pair.now);
	for (unsigned i = 0; i < 8; i++)
		expect_event(&pair, B, CM_EVENT_REQUEST);
	assert_int_equal(pair.listener->pending, 0);
	for (unsigned i = 0; i < 8; i++)
		cm_release(expect_event(&pair, B, CM_EVENT_REJECTED).conn, pair.now);
	cm_pair_advance(&pair, 20 * NS_PER_SEC);
	cm_pair_fini(&pair);
}

TEST(listeners_are_limited)
{
	struct cm_listener *l[CM_MAX_LISTENERS], *more;

	cm_pair_init(&pair, 4);
	for (unsigned i = 1; i < CM_MAX_LISTENERS; i++)
		assert_int_equal(
			cm_listen(pair.cm[B], UD_SERVICE + i, NULL, 1, NULL, &l[i]), 0);
	assert_int_equal(cm_listen(pair.cm[B], 5, NULL, 1, NULL, &more), -ENOSPC);
	for (unsigned i = 1; i < CM_MAX_LISTENERS / 2; i++)
		cm_unlisten(l[i], pair.now);
	assert_int_equal(cm_listen(pair.cm[B], 5, NULL, 1, NULL, &more), 0);
	cm_pair_fini(&pair); /* frees the other listeners */
}
