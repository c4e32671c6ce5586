/* SPDX-License-Identifier: BSD-3-Clause */
/* The datagram services of cm.h: service ID resolution requests, their replies, and the
 * datagrams that follow. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "await.h"
#include "case.h"
#include "cm_ud_fixture.h"

#define GRH 40
#define LEN 300

/* Sends one datagram to the address of an event. Returns the QPN that the receiver sees
 * as source. */
static uint32_t
send_datagram(struct verbs_side *from, struct ibv_qp *qp, struct verbs_side *to,
	struct ibv_qp *to_qp, const struct rocade_cm_event *e, uint32_t qpn,
	uint32_t qkey)
{
	struct ibv_ah_attr attr = {.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = e->peer, .sgid_index = e->sgid_index, .hop_limit = 64}};
	struct ibv_ah *ah = ibv_create_ah(from->pd, &attr);
	struct ibv_sge out = pair_sge(from, 0, LEN), in = pair_sge(to, 4096, GRH + LEN);
	struct ibv_recv_wr recv = {.sg_list = &in, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr wr = {.sg_list = &out,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = {.remote_qpn = qpn, .remote_qkey = qkey}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	assert_non_null(ah);
	wr.wr.ud.ah = ah;
	for (unsigned i = 0; i < LEN; i++)
		from->mem[i] = (uint8_t)(qpn + i * 7);
	assert_int_equal(ibv_post_recv(to_qp, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	pair_poll_cq(&pair, from->send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_poll_cq(&pair, to->recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, GRH + LEN);
	assert_memory_equal(to->mem + 4096 + GRH, from->mem, LEN);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	return wc.src_qp;
}

TEST_WITH(resolve_then_datagrams, ud_setup, ud_teardown)
{
	struct rocade_cm_id *a = ud_resolve(CM_PORT, "hello");
	struct rocade_cm_event asked = cm_expect_event(cm_b, ROCADE_CM_REQUEST), e;
	struct rocade_cm_ud_param p = ud_param("hi");
	uint32_t src;

	assert_string_equal(asked.user, "listener");
	assert_memory_equal(&asked.peer, &pair.a.gid, 16);
	assert_int_equal(asked.sgid_index, gid_index_of(&pair.b));
	assert_int_equal(asked.private_len, 180);
	assert_memory_equal(asked.private_data, "hello\0", 6);
	assert_int_equal(rocade_cm_ud_answer(asked.id, qp_b, &p), 0);
	assert_int_equal(rocade_cm_ud_answer(asked.id, qp_b, &p), ENOTCONN);
	assert_int_equal(rocade_cm_ud_reject(asked.id, 2, NULL), ENOTCONN);
	rocade_cm_release(asked.id);
	e = cm_expect_event(cm_a, ROCADE_CM_RESOLVED);
	assert_ptr_equal(e.id, a);
	assert_string_equal(e.user, "a");
	assert_string_equal(rocade_cm_event_name(e.type), "resolved");
	assert_int_equal(e.status, 0);
	assert_int_equal(e.qpn, qp_b->qp_num);
	assert_int_equal(e.qkey, QKEY_B);
	assert_memory_equal(&e.peer, &pair.b.gid, 16);
	assert_int_equal(e.sgid_index, gid_index_of(&pair.a));
	assert_int_equal(e.private_len, 136);
	assert_memory_equal(e.private_data, "hi\0", 3);
	src = send_datagram(&pair.a, qp_a, &pair.b, qp_b, &e, e.qpn, e.qkey);
	assert_int_equal(src, qp_a->qp_num);
	src = send_datagram(&pair.b, qp_b, &pair.a, qp_a, &asked, src, QKEY_A);
	assert_int_equal(src, qp_b->qp_num);
	rocade_cm_release(a);
	cm_expect_no_event();
}

TEST_ADD(resolve_then_datagrams_ipv6, resolve_then_datagrams, ud_setup_ipv6, ud_teardown)

/* The largest private data, in both directions. */
TEST_WITH(largest_private_data, ud_setup, ud_teardown)
{
	static char question[180], reply[136];
	struct rocade_cm_ud_param p = ud_param("");
	struct rocade_cm_event e;
	struct rocade_cm_id *a;

	memset(question, 'q', sizeof(question));
	memset(reply, 'r', sizeof(reply));
	p.sgid_index = gid_index_of(&pair.a);
	p.private_data = question;
	p.private_len = sizeof(question);
	assert_int_equal(
		rocade_cm_ud_resolve(cm_a, &pair.b.gid, CM_PORT, &p, "a", &a), 0);
	e = cm_expect_event(cm_b, ROCADE_CM_REQUEST);
	assert_memory_equal(e.private_data, question, sizeof(question));
	p.private_data = reply;
	p.private_len = sizeof(reply) + 1;
	assert_int_equal(rocade_cm_ud_answer(e.id, qp_b, &p), EINVAL);
	assert_int_equal(rocade_cm_ud_reject(e.id, 2, &p), EINVAL);
	p.private_len = sizeof(reply);
	assert_int_equal(rocade_cm_ud_answer(e.id, qp_b, &p), 0);
	rocade_cm_release(e.id);
	e = cm_expect_event(cm_a, ROCADE_CM_RESOLVED);
	assert_memory_equal(e.private_data, reply, sizeof(reply));
	rocade_cm_release(a);
	cm_expect_no_event();
}

TEST_WITH(rejected_by_application_or_backlog, ud_setup, ud_teardown)
{
	struct rocade_cm_ud_param p = ud_param("no");
	struct rocade_cm_event e;
	struct rocade_cm_id *a, *more[3];

	for (int status = 1; status <= 3; status++) {
		a = ud_resolve(CM_PORT, "x");
		e = cm_expect_event(cm_b, ROCADE_CM_REQUEST);
		assert_int_equal(rocade_cm_ud_reject(e.id, status, &p), 0);
		rocade_cm_release(e.id);
		e = cm_expect_event(cm_a, ROCADE_CM_REJECTED);
		assert_int_equal(e.status, status);
		assert_memory_equal(e.private_data, "no\0", 3);
		rocade_cm_release(a);
	}
	a = ud_resolve(CM_PORT, "");
	rocade_cm_release(cm_expect_event(cm_b, ROCADE_CM_REQUEST).id);
	ud_expect_rejected(a, 2);
	/* One request more than the backlog. */
	for (unsigned i = 0; i < 3; i++)
		more[i] = ud_resolve(CM_PORT, "");
	ud_expect_rejected(more[2], 2);
	for (unsigned i = 0; i < 2; i++) {
		ud_reply(cm_expect_event(cm_b, ROCADE_CM_REQUEST).id);
		ud_expect_resolved(more[i]);
	}
	cm_expect_no_event();
}

/* A connection listener does not get resolution requests, nor the other way round. */
TEST_WITH(listeners_of_both_kinds_are_separate, ud_setup, ud_teardown)
{
	struct rocade_cm_listener *other;
	struct rocade_cm_event e;
	struct rocade_cm_id *id;

	assert_int_equal(rocade_cm_listen(cm_b, CM_PORT + 1, 1, NULL, &other), 0);
	ud_expect_rejected(ud_resolve(CM_PORT + 1, ""), 1);
	rocade_cm_unlisten(other);
	pair_to_init(pair.a.qp[0]);
	assert_int_equal(rocade_cm_connect(cm_a, pair.a.qp[0], &pair.b.gid, CM_PORT, NULL,
				 NULL, &id),
		0);
	e = cm_expect_event(cm_a, ROCADE_CM_REJECTED);
	assert_int_equal(e.status, 8);
	rocade_cm_release(id);
	cm_expect_no_event();
}

static void
lose_all(struct verbs_side *s, bool on)
{
	struct rocade_impair all = {.loss_ppm = on ? 1000000 : 0};

	assert_int_equal(rocade_port_impair(s->port, &all), 0);
}

/* On a slow machine B may have forgotten the request after two timeouts of A, and gets it anew. Returns
 * whether it did. */
static unsigned
pair_pass_and_reply(void)
{
	struct rocade_cm_event e;

	pair_poll(&pair);
	if (rocade_cm_next_event(cm_b, &e) != 0)
		return 0;
	ud_reply(e.id);
	return 1;
}

TEST_WITH(lost_request_and_reply_are_repeated, ud_setup, ud_teardown)
{
	struct rocade_cm_id *a;
	struct rocade_cm_event e;
	unsigned again = 0;

	/* The request is lost, but no neighbour resolution is: the address is known. */
	a = ud_resolve(CM_PORT, "");
	ud_reply(cm_expect_event(cm_b, ROCADE_CM_REQUEST).id);
	ud_expect_resolved(a);
	lose_all(&pair.b, true);
	a = ud_resolve(CM_PORT, "");
	pair_drain(&pair);
	assert_int_equal(rocade_cm_next_event(cm_b, &e), EAGAIN);
	lose_all(&pair.b, false);
	e = cm_expect_event(cm_b, ROCADE_CM_REQUEST);
	assert_true(cm_stat(cm_a, "resent") > 0);
	/* The reply is lost. B repeats it although the application released the ID. */
	lose_all(&pair.a, true);
	ud_reply(e.id);
	pair_drain(&pair);
	assert_int_equal(rocade_cm_next_event(cm_a, &e), EAGAIN);
	lose_all(&pair.a, false);
	await_by(again += pair_pass_and_reply(), rocade_cm_next_event(cm_a, &e) == 0);
	assert_int_equal(e.type, ROCADE_CM_RESOLVED);
	assert_ptr_equal(e.id, a);
	rocade_cm_release(a);
	assert_true(cm_stat(cm_b, "duplicates") > 0 || again > 0);
	cm_expect_no_event();
}

TEST_WITH(silent_peer_is_unreachable, ud_setup, ud_teardown)
{
	struct rocade_cm_event e;
	struct rocade_cm_id *a;

	lose_all(&pair.b, true);
	a = ud_resolve(CM_PORT, "");
	e = cm_expect_event(cm_a, ROCADE_CM_UNREACHABLE);
	assert_ptr_equal(e.id, a);
	assert_string_equal(e.user, "a");
	assert_int_equal(cm_stat(cm_a, "resent"), 15);
	lose_all(&pair.b, false);
	rocade_cm_release(a);
	cm_expect_no_event();
}

/* Requests that the application did not read are rejected; the one it read can still be
 * answered. */
TEST_WITH(closed_listener_rejects_unread_requests, ud_setup, ud_teardown)
{
	struct rocade_cm_id *a[2] = {ud_resolve(CM_PORT, ""), NULL};
	struct rocade_cm_event e = cm_expect_event(cm_b, ROCADE_CM_REQUEST);
	int fd = rocade_cm_fd(cm_b);

	assert_false(fd_readable(fd));
	a[1] = ud_resolve(CM_PORT, "");
	while (!fd_readable(fd))
		pair_poll(&pair);
	rocade_cm_unlisten(listener);
	listener = NULL;
	ud_expect_rejected(a[1], 2);
	ud_reply(e.id);
	ud_expect_resolved(a[0]);
	ud_expect_rejected(ud_resolve(CM_PORT, ""), 1);
	cm_expect_no_event();
}

/* A's address is removed after the reply arrived and before A reads the event. */
TEST_WITH(local_address_removed_before_event_is_read, ud_setup, ud_teardown)
{
	struct rocade_cm_id *a = ud_resolve(CM_PORT, "");

	ud_reply(cm_expect_event(cm_b, ROCADE_CM_REQUEST).id);
	pair_drain(&pair);
	assert_int_equal(
		rocade_port_set_addresses(pair.a.port, "192.0.2.77/24", NULL, NULL), 0);
	pair_drain(&pair);
	ud_expect_rejected(a, -EADDRNOTAVAIL);
	cm_expect_no_event();
}

/* A releases before B replies; the reply finds no ID. */
TEST_WITH(release_before_reply, ud_setup, ud_teardown)
{
	struct rocade_cm_id *a = ud_resolve(CM_PORT, "");
	struct rocade_cm_event e = cm_expect_event(cm_b, ROCADE_CM_REQUEST);

	rocade_cm_release(a);
	ud_reply(e.id);
	cm_expect_no_event();
	/* The request is still unread at teardown. */
	rocade_cm_release(ud_resolve(CM_PORT, ""));
	pair_drain(&pair);
}

TEST_WITH(invalid_calls_are_refused, ud_setup, ud_teardown)
{
	struct rocade_cm_ud_param p = ud_param("");
	struct rocade_cm_listener *l;
	struct rocade_cm_id *id, *b, *c;
	union ibv_gid v6 = {.raw = {0xfe, 0x80, [15] = 1}};
	union ibv_gid group = pair.b.gid;
	struct ibv_qp *reset;
	char much[181] = {0};

	assert_int_equal(rocade_cm_ud_listen(cm_b, CM_PORT, 1, NULL, &l), EADDRINUSE);
	assert_int_equal(rocade_cm_ud_listen(cm_b, 0, 1, NULL, &l), EINVAL);
	assert_int_equal(rocade_cm_ud_listen(cm_b, 1, 0, NULL, &l), EINVAL);
#define REFUSED(gid, port)                                                               \
	assert_int_equal(rocade_cm_ud_resolve(cm_a, gid, port, &p, NULL, &id), EINVAL)
	p.sgid_index = gid_index_of(&pair.a);
	REFUSED(&pair.b.gid, 0);
	REFUSED(&v6, CM_PORT);
	group.raw[12] = 224;
	REFUSED(&group, CM_PORT);
	p.private_data = much;
	p.private_len = 181;
	REFUSED(&pair.b.gid, CM_PORT);
	p = ud_param("");
	p.sgid_index = 200;
	REFUSED(&pair.b.gid, CM_PORT);
	p = (struct rocade_cm_ud_param){.size = 4};
	REFUSED(&pair.b.gid, CM_PORT);
#undef REFUSED
	id = ud_resolve(CM_PORT, "");
	assert_int_equal(rocade_cm_ud_answer(id, qp_a, NULL), ENOTCONN);
	assert_int_equal(rocade_cm_ud_reject(id, 2, NULL), ENOTCONN);
	b = cm_expect_event(cm_b, ROCADE_CM_REQUEST).id;
	reset = ud_qp_create(&pair.b, 0);
	assert_int_equal(rocade_cm_ud_answer(b, reset, NULL), EINVAL);
	assert_int_equal(ibv_destroy_qp(reset), 0);
	assert_int_equal(rocade_cm_ud_answer(b, qp_a, NULL), EINVAL);
	assert_int_equal(rocade_cm_ud_answer(b, pair.b.qp[0], NULL), EINVAL);
	for (int status = 0; status <= 4; status += 4)
		assert_int_equal(rocade_cm_ud_reject(b, status, NULL), EINVAL);
	/* Calls that are for connections only. */
	pair_to_init(pair.b.qp[0]);
	assert_int_equal(rocade_cm_accept(b, pair.b.qp[0], NULL, NULL), ENOTCONN);
	assert_int_equal(pair.b.qp[0]->state, IBV_QPS_INIT);
	assert_int_equal(rocade_cm_reject(b, NULL, 0), ENOTCONN);
	assert_int_equal(rocade_cm_disconnect(b), ENOTCONN);
	ud_reply(b);
	ud_expect_resolved(id);
	/* Datagram calls on a connection ID. */
	assert_int_equal(rocade_cm_listen(cm_b, CM_PORT, 1, NULL, &l), 0);
	pair_to_init(pair.a.qp[0]);
	assert_int_equal(rocade_cm_connect(cm_a, pair.a.qp[0], &pair.b.gid, CM_PORT, NULL,
				 NULL, &id),
		0);
	c = cm_expect_event(cm_b, ROCADE_CM_REQUEST).id;
	assert_int_equal(rocade_cm_ud_answer(c, qp_b, NULL), ENOTCONN);
	assert_int_equal(rocade_cm_ud_reject(c, 2, NULL), ENOTCONN);
	rocade_cm_release(c);
	assert_int_equal(cm_expect_event(cm_a, ROCADE_CM_REJECTED).status, 28);
	rocade_cm_release(id);
	rocade_cm_unlisten(l);
	cm_expect_no_event();
}
