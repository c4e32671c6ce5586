/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "bed.h"
#include "port/neigh.h"

#include <cmocka.h>

static struct bed bed;

static void
by_address(void **state)
{
	struct cm_listener *one, *two, *again;
	uint8_t ours[16], other[16];
	struct cm_conn *a;
	struct cm_event e;

	(void)state;
	bed_init(&bed, 8);
	gid_parse("192.0.2.2", ours, NULL);
	gid_parse("192.0.2.9", other, NULL);
	assert_int_equal(
		cm_listen(bed.cm[B], SERVICE, NULL, 8, NULL, &again), -EADDRINUSE);
	assert_int_equal(cm_listen(bed.cm[B], SERVICE, other, 8, "other", &two), 0);
	assert_int_equal(cm_listen(bed.cm[B], SERVICE, ours, 8, "ours", &one), 0);
	assert_int_equal(
		cm_listen(bed.cm[B], SERVICE, ours, 8, "ours", &again), -EADDRINUSE);
	assert_int_equal(
		cm_listen(bed.cm[B], SERVICE + 1, NULL, 0, NULL, &again), -EINVAL);
	assert_int_equal(cm_listeners(bed.cm[B]), 3);
	a = bed_connect(&bed);
	bed_settle(&bed);
	e = bed_event(&bed, B, CM_EVENT_REQUEST);
	assert_string_equal(e.user, "ours");
	cm_release(e.conn, bed.now);
	bed_settle(&bed);
	cm_release(a, bed.now);
	/* Without that listener the one of all addresses gets the request. Without both
	 * it is rejected. */
	cm_unlisten(one, bed.now);
	a = bed_connect(&bed);
	bed_settle(&bed);
	e = bed_event(&bed, B, CM_EVENT_REQUEST);
	assert_string_equal(e.user, "listener");
	cm_release(e.conn, bed.now);
	bed_settle(&bed);
	bed_event(&bed, A, CM_EVENT_REJECTED);
	cm_release(a, bed.now);
	cm_unlisten(bed.listener, bed.now);
	bed.listener = NULL;
	a = bed_connect(&bed);
	bed_settle(&bed);
	assert_int_equal(bed_event(&bed, A, CM_EVENT_REJECTED).status, CM_REJ_NO_SERVICE);
	cm_release(a, bed.now);
	cm_unlisten(two, bed.now);
	assert_int_equal(cm_listeners(bed.cm[B]), 0);
	bed_run(&bed, 20 * SEC_NS);
	bed_fini(&bed);
}

/* The most specific listener gets the request: of the address, of its family, of all. */
static void
by_family(void **state)
{
	static const uint8_t any4[16] = {[10] = 0xff, 0xff}, any6[16];
	struct cm_listener *v4, *v6, *again;
	uint8_t ours4[16], ours6[16];
	struct cm *cm;

	(void)state;
	bed_init(&bed, 8);
	cm = bed.cm[B];
	gid_parse("192.0.2.2", ours4, NULL);
	gid_parse("2001:db8::2", ours6, NULL);
	assert_int_equal(cm_listen(cm, SERVICE, any4, 8, NULL, &v4), 0);
	assert_int_equal(cm_listen(cm, SERVICE, any6, 8, NULL, &v6), 0);
	assert_int_equal(cm_listen(cm, SERVICE, any4, 8, NULL, &again), -EADDRINUSE);
	assert_int_equal(cm_listen(cm, SERVICE, any6, 8, NULL, &again), -EADDRINUSE);
	assert_ptr_equal(listener_find(cm, SERVICE, false, ours4), v4);
	assert_ptr_equal(listener_find(cm, SERVICE, false, ours6), v6);
	cm_unlisten(v4, bed.now);
	assert_ptr_equal(listener_find(cm, SERVICE, false, ours4), bed.listener);
	cm_unlisten(bed.listener, bed.now);
	bed.listener = NULL;
	assert_null(listener_find(cm, SERVICE, false, ours4));
	cm_unlisten(v6, bed.now);
	bed_fini(&bed);
}

/* Closing a listener rejects its unread requests. A connection that its user has read
 * stays. */
static void
gone_with_requests(void **state)
{
	struct cm_conn *a[3], *b, *c;
	struct cm_request r;
	struct mad rej;

	(void)state;
	bed_init(&bed, 8);
	for (unsigned i = 0; i < 3; i++) {
		r = bed_request(A, 0x100 + i);
		assert_int_equal(cm_connect(bed.cm[A], &r, NULL, bed.now, &a[i]), 0);
		bed_settle(&bed);
	}
	b = bed_event(&bed, B, CM_EVENT_REQUEST).conn;
	c = &bed.cm[B]->conns[1];
	assert_int_equal(c->state, CM_REQ_RCVD);
	/* The second peer gives up before the user has read its request. */
	cm_release(a[1], bed.now);
	bed_settle(&bed);
	assert_int_equal(c->state, CM_CLOSED);
	cm_unlisten(bed.listener, bed.now);
	bed.listener = NULL;
	assert_int_equal(c->state, CM_FREE);
	rej = bed_take(&bed, B);
	assert_int_equal(mad_get(&rej, MAD_REJ_reason), CM_REJ_CONSUMER);
	assert_int_equal(bed_give(&bed, A, &rej), CM_DROP_none);
	assert_ptr_equal(bed_event(&bed, A, CM_EVENT_REJECTED).conn, a[2]);
	bed_quiet(&bed, B);
	assert_int_equal(cm_accept(b, &bed_qp, NULL, 0, bed.now), 0);
	bed_settle(&bed);
	assert_ptr_equal(bed_event(&bed, A, CM_EVENT_REPLY).conn, a[0]);
	cm_release(a[0], bed.now);
	cm_release(a[2], bed.now);
	cm_release(b, bed.now);
	bed_run(&bed, 20 * SEC_NS);
	bed_fini(&bed);
}

/* Requests that their peers give up keep their place in the backlog until the user has
 * read them. */
static void
given_up_unheard(void **state)
{
	struct cm_request r;
	struct cm_conn *conn;

	(void)state;
	bed_init(&bed, 16);
	for (unsigned i = 0; i < 8; i++) {
		r = bed_request(A, 0x100 + i);
		assert_int_equal(cm_connect(bed.cm[A], &r, NULL, bed.now, &conn), 0);
		bed_settle(&bed);
		cm_release(conn, bed.now);
		bed_settle(&bed);
		assert_int_equal(bed.cm[B]->conns[i].state, CM_CLOSED);
	}
	assert_int_equal(bed.listener->pending, 8);
	r = bed_request(A, 0x200);
	assert_int_equal(cm_connect(bed.cm[A], &r, NULL, bed.now, &conn), 0);
	bed_settle(&bed);
	assert_int_equal(
		bed_event(&bed, A, CM_EVENT_REJECTED).status, CM_REJ_NO_RESOURCES);
	cm_release(conn, bed.now);
	for (unsigned i = 0; i < 8; i++)
		bed_event(&bed, B, CM_EVENT_REQUEST);
	assert_int_equal(bed.listener->pending, 0);
	for (unsigned i = 0; i < 8; i++)
		cm_release(bed_event(&bed, B, CM_EVENT_REJECTED).conn, bed.now);
	bed_run(&bed, 20 * SEC_NS);
	bed_fini(&bed);
}

static void
bounded(void **state)
{
	struct cm_listener *l[CM_MAX_LISTENERS], *more;

	(void)state;
	bed_init(&bed, 4);
	for (unsigned i = 1; i < CM_MAX_LISTENERS; i++)
		assert_int_equal(
			cm_listen(bed.cm[B], UD_SERVICE + i, NULL, 1, NULL, &l[i]), 0);
	assert_int_equal(cm_listen(bed.cm[B], 5, NULL, 1, NULL, &more), -ENOSPC);
	for (unsigned i = 1; i < CM_MAX_LISTENERS / 2; i++)
		cm_unlisten(l[i], bed.now);
	assert_int_equal(cm_listen(bed.cm[B], 5, NULL, 1, NULL, &more), 0);
	bed_fini(&bed); /* frees the other listeners */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_address),
		cmocka_unit_test(by_family),
		cmocka_unit_test(gone_with_requests),
		cmocka_unit_test(given_up_unheard),
		cmocka_unit_test(bounded),
	};

	return cmocka_run_group_tests_name("listen", tests, NULL, NULL);
}
