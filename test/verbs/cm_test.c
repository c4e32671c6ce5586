/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager API of cm.h: listeners, connections, and data over them. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "await.h"
#include "case.h"
#include "cm_fixture.h"

static int
setup(void **state)
{
	cm_pair_listen(2);
	return 0;
}

static struct rocade_cm_id *
connect_request(unsigned qp, uint16_t port, const char *text)
{
	struct rocade_cm_param p = {.size = sizeof(p),
		.private_data = text,
		.private_len = strlen(text),
		.responder_resources = 2,
		.initiator_depth = 3,
		.retry_count = 6,
		.rnr_retry_count = 5,
		.psn = 0xabc + qp};
	struct rocade_cm_id *id;

	assert_int_equal(
		rocade_cm_connect(cm_a, pair.a.qp[qp], &pair.b.gid, port, &p, "a", &id),
		0);
	return id;
}

static void
send_both_ways(unsigned qp)
{
	struct ibv_wc wc;

	assert_int_equal(pair_post_recv(&pair.b, qp, 1, 4096, 100), 0);
	assert_int_equal(pair_post_recv(&pair.a, qp, 2, 4096, 100), 0);
	assert_int_equal(pair_send(&pair.a, qp, 3, 0, 100, IBV_SEND_SIGNALED), 0);
	assert_int_equal(pair_send(&pair.b, qp, 4, 0, 100, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_poll_cq(&pair, pair.a.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_poll_cq(&pair, pair.b.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

TEST_WITH(connect_transfer_disconnect, setup, cm_pair_close)
{
	struct rocade_cm_id *a = connect_request(0, CM_PORT, "hello");
	struct rocade_cm_param p = {.size = sizeof(p),
		.private_data = "hi",
		.private_len = 2,
		.initiator_depth = 9};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct rocade_cm_event e;

	p.rnr_retry_count = 4;
	p.responder_resources = 7;
	p.psn = 0xdef;
	e = cm_expect_event(cm_b, ROCADE_CM_REQUEST);
	assert_string_equal(e.user, "listener");
	assert_memory_equal(&e.peer, &pair.a.gid, 16);
	assert_int_equal(e.private_len, 56);
	assert_memory_equal(e.private_data, "hello\0", 6);
	assert_int_equal(e.responder_resources, 3);
	assert_int_equal(e.initiator_depth, 2);
	struct rocade_cm_id *b = e.id;
	assert_int_equal(rocade_cm_accept(b, pair.b.qp[0], &p, "b"), 0);
	assert_int_equal(pair.b.qp[0]->state, IBV_QPS_RTR);
	e = cm_expect_event(cm_a, ROCADE_CM_ESTABLISHED);
	assert_ptr_equal(e.id, a);
	assert_string_equal(e.user, "a");
	assert_memory_equal(e.private_data, "hi\0", 3);
	e = cm_expect_event(cm_b, ROCADE_CM_ESTABLISHED);
	assert_ptr_equal(e.id, b);
	assert_string_equal(e.user, "b");
	/* The parameters of each side are in the other side's QP. */
	assert_int_equal(ibv_query_qp(pair.a.qp[0], &attr, 0, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.dest_qp_num, pair.b.qp[0]->qp_num);
	assert_int_equal(attr.rq_psn, 0xabc);
	assert_int_equal(attr.sq_psn, 0xdef);
	assert_int_equal(attr.rnr_retry, 4);
	assert_int_equal(attr.retry_cnt, 6);
	assert_int_equal(attr.timeout, 19);
	assert_int_equal(attr.max_rd_atomic, 3);
	assert_int_equal(attr.max_dest_rd_atomic, 2);
	assert_int_equal(ibv_query_qp(pair.b.qp[0], &attr, 0, &init), 0);
	assert_int_equal(attr.dest_qp_num, pair.a.qp[0]->qp_num);
	assert_int_equal(attr.sq_psn, 0xabc);
	assert_int_equal(attr.rq_psn, 0xdef);
	assert_int_equal(attr.rnr_retry, 5);
	assert_int_equal(attr.retry_cnt, 6);
	assert_int_equal(attr.timeout, 19);
	assert_int_equal(attr.max_rd_atomic, 2);
	assert_int_equal(attr.max_dest_rd_atomic, 3);
	send_both_ways(0);
	assert_int_equal(rocade_cm_disconnect(a), 0);
	assert_int_equal(rocade_cm_disconnect(a), ENOTCONN);
	assert_ptr_equal(cm_expect_event(cm_b, ROCADE_CM_DISCONNECTED).id, b);
	assert_int_equal(rocade_cm_disconnect(b), 0);
	assert_int_equal(rocade_cm_disconnect(b), ENOTCONN);
	assert_ptr_equal(cm_expect_event(cm_a, ROCADE_CM_DISCONNECTED).id, a);
	assert_ptr_equal(cm_expect_event(cm_a, ROCADE_CM_TIMEWAIT_EXIT).id, a);
	rocade_cm_release(a);
	rocade_cm_release(b);
	assert_int_equal(cm_stat(cm_a, "established"), 1);
	assert_int_equal(cm_stat(cm_b, "disconnected"), 1);
}

/* Without parameters all of them are 0: no retries, no RNR retries, no READs. The two
 * that 0 does not mean 0 for have their defaults. */
TEST_WITH(null_parameters_are_zeros, setup, cm_pair_close)
{
	struct ibv_qp_init_attr init;
	struct rocade_cm_id *a, *b;
	struct ibv_qp_attr attr;

	assert_int_equal(rocade_cm_connect(cm_a, pair.a.qp[0], &pair.b.gid, CM_PORT, NULL,
				 NULL, &a),
		0);
	b = cm_expect_event(cm_b, ROCADE_CM_REQUEST).id;
	assert_int_equal(rocade_cm_accept(b, pair.b.qp[0], NULL, NULL), 0);
	cm_expect_event(cm_a, ROCADE_CM_ESTABLISHED);
	cm_expect_event(cm_b, ROCADE_CM_ESTABLISHED);
	for (unsigned i = 0; i < 2; i++) {
		struct ibv_qp *qp = i == 0 ? pair.a.qp[0] : pair.b.qp[0];

		assert_int_equal(ibv_query_qp(qp, &attr, 0, &init), 0);
		assert_int_equal(attr.retry_cnt, 0);
		assert_int_equal(attr.rnr_retry, 0);
		assert_int_equal(attr.max_rd_atomic, 0);
		assert_int_equal(attr.max_dest_rd_atomic, 0);
		assert_int_equal(attr.timeout, 19);
		assert_int_equal(attr.path_mtu, IBV_MTU_4096);
	}
	rocade_cm_release(a);
	cm_expect_event(cm_b, ROCADE_CM_DISCONNECTED);
	rocade_cm_release(b);
}

/* Fills A's transmit queue, so that further messages are lost. */
static void
tx_queue_fill(void)
{
	uint64_t lost = cm_stat(cm_a, "tx_full");

	while (cm_stat(cm_a, "tx_full") == lost)
		rocade_cm_release(connect_request(1, CM_PORT + 1, ""));
}

/* The RTU is lost, but data arrives: the data establishes the passive side long before
 * its first retransmission (IBA 12.9.7.2). */
TEST_WITH(data_establishes_before_rtu, setup, cm_pair_close)
{
	struct rocade_cm_id *a = connect_request(0, CM_PORT, ""),
			    *b = cm_expect_event(cm_b, ROCADE_CM_REQUEST).id;
	uint64_t begin = pair_clock_ns(), lost;
	struct rocade_cm_event e;
	int fd = rocade_cm_fd(cm_b);
	struct ibv_wc wc;

	assert_int_equal(rocade_cm_accept(b, pair.b.qp[0], NULL, NULL), 0);
	assert_int_equal(pair_post_recv(&pair.b, 0, 1, 4096, 100), 0);
	pair_drain(&pair);
	tx_queue_fill();
	lost = cm_stat(cm_a, "tx_full");
	assert_int_equal(rocade_cm_next_event(cm_a, &e), 0);
	assert_int_equal(e.type, ROCADE_CM_ESTABLISHED);
	assert_int_equal(cm_stat(cm_a, "tx_full"), lost + 1);
	pair_drain(&pair);
	assert_int_equal(rocade_cm_next_event(cm_b, &e), EAGAIN);
	assert_false(fd_readable(fd));
	assert_int_equal(pair.b.qp[0]->state, IBV_QPS_RTR);
	assert_int_equal(pair_send(&pair.a, 0, 3, 0, 100, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_true(fd_readable(fd));
	assert_ptr_equal(cm_expect_event(cm_b, ROCADE_CM_ESTABLISHED).id, b);
	assert_int_equal(pair.b.qp[0]->state, IBV_QPS_RTS);
	assert_true(cm_stat(cm_b, "resent") == 0 ||
		    pair_clock_ns() - begin > UINT64_C(4000000000));
	assert_false(fd_readable(fd));
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	send_both_ways(0);
	rocade_cm_release(a);
	cm_expect_event(cm_b, ROCADE_CM_DISCONNECTED);
	rocade_cm_release(b);
	cm_expect_no_event();
}

/* The descriptor is readable while there are events. */
TEST_WITH(fd_is_readable_while_events_are_queued, setup, cm_pair_close)
{
	int fd = rocade_cm_fd(cm_b);
	struct rocade_cm_id *a[2], *b[2];
	struct rocade_cm_event e;

	assert_int_equal(rocade_cm_fd(cm_b), fd);
	assert_false(fd_readable(fd));
	for (unsigned i = 0; i < 2; i++)
		a[i] = connect_request(i, CM_PORT, "");
	while (!fd_readable(fd))
		pair_poll(&pair);
	pair_drain(&pair);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(fd_readable(fd));
		b[i] = cm_expect_event(cm_b, ROCADE_CM_REQUEST).id;
	}
	assert_false(fd_readable(fd));
	assert_int_equal(rocade_cm_next_event(cm_b, &e), EAGAIN);
	for (unsigned i = 0; i < 2; i++)
		rocade_cm_release(a[i]);
	while (!fd_readable(fd))
		pair_poll(&pair);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(cm_expect_event(cm_b, ROCADE_CM_REJECTED).status, 4);
		rocade_cm_release(b[i]);
	}
	assert_false(fd_readable(fd));
	/* The descriptor becomes readable even if the application does not read it. */
	a[0] = connect_request(0, CM_PORT, "");
	while (!fd_readable(fd))
		pair_poll(&pair);
	assert_int_equal(rocade_cm_fd(cm_b), fd);
	assert_true(fd_readable(fd));
	rocade_cm_release(cm_expect_event(cm_b, ROCADE_CM_REQUEST).id);
	assert_int_equal(cm_expect_event(cm_a, ROCADE_CM_REJECTED).status, 28);
	rocade_cm_release(a[0]);
	cm_expect_no_event();
}

/* Destroys the QP that b has been accepted with, and then the connection. */
static void
accepted_qp_destroy(struct rocade_cm_id *a, struct rocade_cm_id *b)
{
	assert_int_equal(ibv_destroy_qp(pair.b.qp[0]), 0);
	pair.b.qp[0] = NULL;
	rocade_cm_release(b);
	pair_drain(&pair);
	/* The passive side accepted and released before A reads its event. */
	cm_expect_event(cm_a, ROCADE_CM_DISCONNECTED);
	rocade_cm_release(a);
}

/* The application destroys a QP before its connection. */
TEST_WITH(qp_destroyed_before_connection, setup, cm_pair_close)
{
	struct rocade_cm_id *a = connect_request(0, CM_PORT, ""),
			    *b = cm_expect_event(cm_b, ROCADE_CM_REQUEST).id;

	assert_int_equal(rocade_cm_accept(b, pair.b.qp[0], NULL, NULL), 0);
	accepted_qp_destroy(a, b);
}

/* A request is accepted once. A second call, with another QP, leaves both QPs as they are: the
 * first can be destroyed. */
TEST_WITH(accepted_once, setup, cm_pair_close)
{
	struct rocade_cm_id *a = connect_request(0, CM_PORT, ""),
			    *b = cm_expect_event(cm_b, ROCADE_CM_REQUEST).id;

	assert_int_equal(rocade_cm_accept(b, pair.b.qp[0], NULL, NULL), 0);
	assert_int_equal(rocade_cm_accept(b, pair.b.qp[1], NULL, NULL), ENOTCONN);
	assert_int_equal(pair.b.qp[1]->state, IBV_QPS_INIT);
	accepted_qp_destroy(a, b);
}

/* No REP was sent: the request can still be accepted. */
TEST_WITH(accepted_after_a_failure, setup, cm_pair_close)
{
	struct rocade_cm_param p = {.size = sizeof(p), .initiator_depth = 200};
	struct rocade_cm_id *a, *b;

	assert_int_equal(
		rocade_cm_connect(cm_a, pair.a.qp[0], &pair.b.gid, CM_PORT, &p, NULL, &a),
		0);
	b = cm_expect_event(cm_b, ROCADE_CM_REQUEST).id;
	p.initiator_depth = 0;
	p.responder_resources = 200; /* more than a QP has */
	assert_int_equal(rocade_cm_accept(b, pair.b.qp[0], &p, NULL), EINVAL);
	p.responder_resources = 1;
	assert_int_equal(rocade_cm_accept(b, pair.b.qp[0], &p, NULL), 0);
	rocade_cm_release(b);
	pair_drain(&pair);
	cm_expect_event(cm_a, ROCADE_CM_DISCONNECTED);
	rocade_cm_release(a);
}

TEST_WITH(two_connections_at_once, setup, cm_pair_close)
{
	struct rocade_cm_id *a[2], *b[2];

	for (unsigned i = 0; i < 2; i++)
		a[i] = connect_request(i, CM_PORT, i == 0 ? "0" : "1");
	for (unsigned i = 0; i < 2; i++) {
		struct rocade_cm_event e = cm_expect_event(cm_b, ROCADE_CM_REQUEST);
		unsigned which = ((const char *)e.private_data)[0] - '0';

		b[which] = e.id;
		assert_int_equal(rocade_cm_accept(e.id, pair.b.qp[which], NULL, NULL), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		cm_expect_event(cm_a, ROCADE_CM_ESTABLISHED);
		cm_expect_event(cm_b, ROCADE_CM_ESTABLISHED);
	}
	for (unsigned i = 0; i < 2; i++)
		send_both_ways(i);
	/* Releasing a connection disconnects it. */
	for (unsigned i = 0; i < 2; i++)
		rocade_cm_release(a[i]);
	for (unsigned i = 0; i < 2; i++) {
		cm_expect_event(cm_b, ROCADE_CM_DISCONNECTED);
		rocade_cm_release(b[i]);
	}
	cm_expect_no_event();
}

TEST_WITH(rejected_by_peer_or_closed_listener, setup, cm_pair_close)
{
	struct rocade_cm_id *a = connect_request(0, CM_PORT + 1, "");
	struct rocade_cm_event e = cm_expect_event(cm_a, ROCADE_CM_REJECTED);

	assert_int_equal(e.status, 8);
	rocade_cm_release(a);
	a = connect_request(0, CM_PORT, "x");
	e = cm_expect_event(cm_b, ROCADE_CM_REQUEST);
	assert_int_equal(rocade_cm_disconnect(e.id), ENOTCONN);
	assert_int_equal(rocade_cm_reject(e.id, "no", 2), 0);
	rocade_cm_release(e.id);
	e = cm_expect_event(cm_a, ROCADE_CM_REJECTED);
	assert_int_equal(e.status, 28);
	assert_memory_equal(e.private_data, "no\0", 3);
	rocade_cm_release(a);
	/* The listener closes before the request is read. */
	a = connect_request(0, CM_PORT, "x");
	pair_drain(&pair);
	rocade_cm_unlisten(listener);
	listener = NULL;
	assert_int_equal(cm_expect_event(cm_a, ROCADE_CM_REJECTED).status, 28);
	rocade_cm_release(a);
	cm_expect_no_event();
	assert_int_equal(pair.a.qp[0]->state, IBV_QPS_INIT);
}

/* The active QP is in ERR when the reply arrives: both sides get an event. */
TEST_WITH(active_qp_in_error_rejects, setup, cm_pair_close)
{
	struct rocade_cm_id *a = connect_request(0, CM_PORT, "");
	struct rocade_cm_event e = cm_expect_event(cm_b, ROCADE_CM_REQUEST);
	struct rocade_cm_id *b = e.id;

	pair_modify_state(pair.a.qp[0], IBV_QPS_ERR);
	assert_int_equal(rocade_cm_accept(b, pair.b.qp[0], NULL, NULL), 0);
	e = cm_expect_event(cm_a, ROCADE_CM_REJECTED);
	assert_int_equal(e.status, -EINVAL);
	/* reason 1: no QP */
	assert_int_equal(cm_expect_event(cm_b, ROCADE_CM_REJECTED).status, 1);
	rocade_cm_release(a);
	rocade_cm_release(b);
}

/* Events, counters and parameters of a program that was built with the header of another release. */
TEST_WITH(structures_of_other_releases, setup, cm_pair_close)
{
	struct {
		struct rocade_cm_param param;
		uint64_t more;
	} param = {.param = {.size = sizeof(param)}, .more = 1};
	struct {
		struct rocade_cm_event event;
		uint64_t more;
	} later = {.more = 1};
	struct {
		struct rocade_stat row;
		uint64_t more;
	} rows[3] = {{.more = 1}, {.more = 1}, {.more = 1}};
	struct rocade_cm_event event = {.port = 77};
	struct rocade_cm_id *id;

	assert_int_equal(rocade_cm_connect(cm_a, pair.a.qp[0], &pair.b.gid, CM_PORT,
				 &param.param, NULL, &id),
		EINVAL);
	param.more = 0;
	assert_int_equal(rocade_cm_connect(cm_a, pair.a.qp[0], &pair.b.gid, CM_PORT,
				 &param.param, NULL, &id),
		0);
	await_by(pair_poll(&pair),
		rocade_cm_next_event_sized(cm_b, &later.event, sizeof(later)) == 0);
	assert_int_equal(later.event.type, ROCADE_CM_REQUEST);
	assert_int_equal(later.more, 0);
	rocade_cm_release(later.event.id);
	await_by(pair_poll(&pair), rocade_cm_next_event_sized(cm_a, &event,
					   offsetof(struct rocade_cm_event, port)) == 0);
	assert_int_equal(event.type, ROCADE_CM_REJECTED);
	assert_ptr_equal(event.id, id);
	assert_int_equal(event.port, 77);
	rocade_cm_release(id);
	assert_true(rocade_cm_stats_sized(cm_a, &rows[0].row, 2, sizeof(rows[0])) > 2);
	assert_string_not_equal(rows[0].row.name, rows[1].row.name);
	assert_int_equal(rows[0].more + rows[1].more, 0);
	assert_int_equal(rows[2].more, 1);
}

/* A request goes to the manager of the port that got it, though another port of the program has the same
 * address. */
TEST_WITH(ports_with_the_same_address, setup, cm_pair_close)
{
	static struct verbs_pair other;
	struct rocade_cm *other_a, *other_b;
	struct rocade_cm_listener *other_listener;
	struct rocade_cm_id *id;
	struct rocade_cm_event e;

	pair_open(&other, &(struct verbs_pair_conf){.unconnected = true});
	assert_memory_equal(&other.a.gid, &pair.a.gid, 16);
	assert_memory_equal(&other.b.gid, &pair.b.gid, 16);
	pair_to_init(other.a.qp[0]);
	assert_int_equal(rocade_cm_open(other.a.context, &other_a), 0);
	assert_int_equal(rocade_cm_open(other.b.context, &other_b), 0);
	assert_int_equal(
		rocade_cm_listen(other_b, CM_PORT, 4, "other", &other_listener), 0);
	assert_int_equal(rocade_cm_connect(other_a, other.a.qp[0], &other.b.gid, CM_PORT,
				 NULL, NULL, &id),
		0);
	await_by(pair_poll(&other), rocade_cm_next_event(other_b, &e) == 0);
	assert_int_equal(e.type, ROCADE_CM_REQUEST);
	assert_string_equal(e.user, "other");
	cm_expect_no_event();
	rocade_cm_release(e.id);
	rocade_cm_release(id);
	rocade_cm_unlisten(other_listener);
	rocade_cm_close(other_a);
	rocade_cm_close(other_b);
	pair_close(&other);
}

TEST_WITH(invalid_calls_are_refused, setup, cm_pair_close)
{
	struct rocade_cm_param p = {.size = sizeof(p)};
	struct rocade_cm_listener *l;
	struct rocade_cm *cm;
	struct rocade_cm_id *id, *b;
	union ibv_gid v6 = {.raw = {0xfe, 0x80, [15] = 1}};
	char much[64] = {0};

	assert_int_equal(rocade_cm_open(pair.a.context, &cm), EBUSY);
	assert_int_equal(ibv_close_device(pair.a.context), -1);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(rocade_cm_listen(cm_b, CM_PORT, 1, NULL, &l), EADDRINUSE);
	assert_int_equal(rocade_cm_listen(cm_b, 0, 1, NULL, &l), EINVAL);
	assert_int_equal(rocade_cm_listen(cm_b, 1, 0, NULL, &l), EINVAL);
#define REFUSED(qp, gid, port)                                                           \
	assert_int_equal(rocade_cm_connect(cm_a, qp, gid, port, &p, NULL, &id), EINVAL)
	REFUSED(pair.a.qp[0], &pair.b.gid, 0);
	REFUSED(pair.b.qp[0], &pair.b.gid, CM_PORT);
	REFUSED(pair.a.qp[0], &v6, CM_PORT);
	p.sgid_index = 200;
	REFUSED(pair.a.qp[0], &pair.b.gid, CM_PORT);
	p = (struct rocade_cm_param){.size = 4};
	REFUSED(pair.a.qp[0], &pair.b.gid, CM_PORT);
	p = (struct rocade_cm_param){
		.size = sizeof(p), .private_data = much, .private_len = 57};
	REFUSED(pair.a.qp[0], &pair.b.gid, CM_PORT);
	p = (struct rocade_cm_param){.size = sizeof(p), .retry_count = 8};
	REFUSED(pair.a.qp[0], &pair.b.gid, CM_PORT);
	p = (struct rocade_cm_param){.size = sizeof(p), .path_mtu = 6};
	REFUSED(pair.a.qp[0], &pair.b.gid, CM_PORT);
	pair_modify_state(pair.a.qp[1], IBV_QPS_RESET);
	p = (struct rocade_cm_param){.size = sizeof(p)};
	REFUSED(pair.a.qp[1], &pair.b.gid, CM_PORT);
#undef REFUSED
	id = connect_request(0, CM_PORT, "");
	assert_int_equal(rocade_cm_accept(id, pair.a.qp[0], NULL, NULL), ENOTCONN);
	b = cm_expect_event(cm_b, ROCADE_CM_REQUEST).id;
	assert_int_equal(rocade_cm_accept(b, pair.a.qp[0], NULL, NULL), EINVAL);
	rocade_cm_release(id);
	/* The peer has given up: accepting fails. */
	assert_int_equal(cm_expect_event(cm_b, ROCADE_CM_REJECTED).status, 4);
	assert_int_equal(rocade_cm_accept(b, pair.b.qp[0], NULL, NULL), ENOTCONN);
	rocade_cm_release(b);
	assert_string_equal(
		rocade_cm_event_name((enum rocade_cm_event_type)77), "unknown");
}
