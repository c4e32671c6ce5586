/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC by its API: domains, SRQs with a number, initiators, and targets that several
 * handles share. xrc_traffic_test.c covers messages. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "case.h"
#include "xrc_fixture.h"

#define REFUSED(call, err)                                                               \
	do {                                                                             \
		errno = 0;                                                               \
		assert_null(call);                                                       \
		assert_int_equal(errno, err);                                            \
	} while (0)

TEST_WITH(files_share_domains, xrc_setup, xrc_teardown)
{
	struct ibv_context *context = pair.a.context;
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1, .oflags = O_CREAT};
	int fd = xrc_file(), other = xrc_file(), again = dup(fd);
	struct ibv_xrcd *one, *two;

	REFUSED(ibv_open_xrcd(context, &attr), EINVAL);
	attr.comp_mask = IBV_XRCD_INIT_ATTR_OFLAGS;
	REFUSED(ibv_open_xrcd(context, &attr), EINVAL);
	attr.comp_mask = XRC_FD_FLAGS | IBV_XRCD_INIT_ATTR_RESERVED;
	REFUSED(ibv_open_xrcd(context, &attr), EOPNOTSUPP);
	REFUSED(xrc_domain_open(context, -1, O_CREAT | O_APPEND), EINVAL);
	REFUSED(xrc_domain_open(context, -1, 0), EINVAL);
	REFUSED(xrc_domain_open(context, 1000, O_CREAT), EBADF);
	REFUSED(xrc_domain_open(context, fd, 0), EAGAIN);
	REFUSED(xrc_domain_open(context, fd, O_EXCL), EAGAIN);

	one = xrc_domain_open(context, fd, O_CREAT | O_EXCL);
	assert_non_null(one);
	REFUSED(xrc_domain_open(context, again, O_CREAT | O_EXCL), EINVAL);
	REFUSED(xrc_domain_open(context, other, 0), EAGAIN);
	/* Domains are per device. */
	REFUSED(xrc_domain_open(pair.b.context, fd, 0), EAGAIN);
	two = xrc_domain_open(context, again, 0);
	assert_non_null(two);
	assert_int_equal(ibv_close_xrcd(one), 0);
	/* O_EXCL has no effect without O_CREAT */
	one = xrc_domain_open(context, fd, O_EXCL);
	assert_non_null(one);
	assert_int_equal(ibv_close_xrcd(one), 0);
	assert_int_equal(ibv_close_xrcd(two), 0);
	/* Closing the last reference removes the domain. */
	REFUSED(xrc_domain_open(context, fd, 0), EAGAIN);
	one = xrc_domain_open(context, -1, O_CREAT | O_EXCL);
	assert_non_null(one);
	assert_int_equal(ibv_close_xrcd(one), 0);
	close(fd);
	close(again);
	close(other);
}

TEST_WITH(device_reports_xrc, xrc_setup, xrc_teardown)
{
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(pair.a.context, NULL, &attr), 0);
	assert_true(attr.orig_attr.device_cap_flags & IBV_DEVICE_XRC);
	assert_true(attr.device_cap_flags_ex & IBV_DEVICE_XRC);
	assert_int_equal(attr.xrc_odp_caps, 0);
}

static void
srq_refused(struct ibv_srq_init_attr_ex attr, int err)
{
	REFUSED(ibv_create_srq_ex(pair.a.context, &attr), err);
}

TEST_WITH(xrc_srq_create, xrc_setup, xrc_teardown)
{
	struct verbs_side *s = &pair.a;
	struct ibv_xrcd *xrcd = xrc_domain(s), *foreign = xrc_domain(&pair.b);
	struct ibv_srq_init_attr_ex attr = xrc_srq_attr(s, xrcd, s->recv_cq);
	struct ibv_srq *srq, *next;
	uint32_t n;

#define WITHOUT(flag)                                                                    \
	do {                                                                             \
		attr.comp_mask = XRC_SRQ_FLAGS & ~(uint32_t)(flag);                      \
		srq_refused(attr, EINVAL);                                               \
		attr.comp_mask = XRC_SRQ_FLAGS;                                          \
	} while (0)
	WITHOUT(IBV_SRQ_INIT_ATTR_PD);
	WITHOUT(IBV_SRQ_INIT_ATTR_XRCD);
	WITHOUT(IBV_SRQ_INIT_ATTR_CQ);
	attr.xrcd = NULL;
	srq_refused(attr, EINVAL);
	attr.xrcd = foreign;
	srq_refused(attr, EINVAL);
	attr = xrc_srq_attr(s, xrcd, pair.b.recv_cq);
	srq_refused(attr, EINVAL);
	attr = xrc_srq_attr(s, xrcd, s->recv_cq);
	attr.pd = pair.b.pd;
	srq_refused(attr, EINVAL);
	attr.pd = s->pd;
	attr.srq_type = (enum ibv_srq_type)7;
	srq_refused(attr, EINVAL);
	attr.srq_type = IBV_SRQT_TM;
	srq_refused(attr, EOPNOTSUPP);
	attr.srq_type = IBV_SRQT_XRC;
	attr.comp_mask |= IBV_SRQ_INIT_ATTR_RESERVED;
	srq_refused(attr, EOPNOTSUPP);
	attr.comp_mask = XRC_SRQ_FLAGS;
	attr.attr.max_wr = 0;
	srq_refused(attr, EINVAL);

	/* Each SRQ has its own number. */
	srq = xrc_srq(s, xrcd, s->recv_cq);
	next = xrc_srq(s, xrcd, s->recv_cq);
	assert_int_not_equal(xrc_srqn(srq), xrc_srqn(next));
	assert_true(xrc_srqn(srq) > 0 && xrc_srqn(srq) <= 0xFFFFFE);
	assert_int_equal(ibv_destroy_srq(next), 0);
	attr = xrc_srq_attr(s, xrcd, s->recv_cq);
	attr.srq_type = IBV_SRQT_BASIC;
	attr.srq_context = &attr;
	next = ibv_create_srq_ex(s->context, &attr);
	assert_non_null(next);
	assert_ptr_equal(next->srq_context, &attr);
	assert_int_equal(ibv_get_srq_num(next, &n), 0);
	assert_int_not_equal(n, xrc_srqn(srq));
	assert_int_equal(ibv_destroy_srq(next), 0);

	/* Only XRC targets may use an XRC SRQ. */
	REFUSED(ibv_create_qp(s->pd, &(struct ibv_qp_init_attr){.qp_type = IBV_QPT_RC,
					     .send_cq = s->send_cq,
					     .recv_cq = s->recv_cq,
					     .srq = srq}),
		EINVAL);
	assert_int_equal(ibv_close_xrcd(foreign), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

/* An object in use cannot be freed. */
TEST_WITH(objects_in_use_are_ebusy, xrc_setup, xrc_teardown)
{
	struct verbs_side *s = &pair.a;
	struct ibv_cq *cq = ibv_create_cq(s->context, 16, NULL, NULL, 0);
	struct ibv_pd *pd = ibv_alloc_pd(s->context);
	struct ibv_xrcd *xrcd = xrc_domain(s);
	struct ibv_srq_init_attr_ex attr = xrc_srq_attr(s, xrcd, cq);
	struct ibv_srq *srq;
	struct ibv_qp *target;

	attr.pd = pd;
	srq = ibv_create_srq_ex(s->context, &attr);
	assert_non_null(srq);
	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
	target = xrc_target(s->context, xrcd);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
	assert_int_equal(ibv_destroy_qp(target), 0);
	errno = 0;
	assert_int_equal(ibv_close_device(s->context), -1);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void
qp_refused(struct ibv_qp_init_attr_ex attr, int err)
{
	REFUSED(ibv_create_qp_ex(pair.a.context, &attr), err);
}

TEST_WITH(qp_create_checks_domain_and_type, xrc_setup, xrc_teardown)
{
	struct verbs_side *s = &pair.a;
	struct ibv_xrcd *xrcd = xrc_domain(s), *foreign = xrc_domain(&pair.b);
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = s->pd};
	struct ibv_qp *qp;

	qp_refused(attr, EINVAL); /* no domain */
	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	qp_refused(attr, EINVAL);
	attr.xrcd = foreign;
	qp_refused(attr, EINVAL);
	attr.xrcd = xrcd;
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	qp_refused(attr, EOPNOTSUPP);
	attr.comp_mask |= IBV_QP_INIT_ATTR_RX_HASH;
	qp_refused(attr, EOPNOTSUPP);
	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	qp_refused(attr, EOPNOTSUPP);

	/* Capacities and CQs of queues that the type does not have are ignored. */
	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	attr.cap = (struct ibv_qp_cap){.max_send_wr = UINT32_MAX, .max_recv_wr = 9};
	attr.send_cq = attr.recv_cq = pair.b.send_cq;
	qp = ibv_create_qp_ex(s->context, &attr);
	assert_non_null(qp);
	assert_null(qp->send_cq);
	assert_null(qp->recv_cq);
	assert_null(qp->pd);
	assert_int_equal(attr.cap.max_send_wr, 0);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	/* The PD is stored in the handle: librdmacm reads it there. */
	attr.comp_mask |= IBV_QP_INIT_ATTR_PD;
	qp = ibv_create_qp_ex(s->context, &attr);
	assert_non_null(qp);
	assert_ptr_equal(qp->pd, s->pd);
	assert_int_equal(ibv_destroy_qp(qp), 0);

	attr = (struct ibv_qp_init_attr_ex){.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = s->pd,
		.cap = {.max_send_wr = 3, .max_recv_wr = UINT32_MAX}};
	qp_refused(attr, EINVAL); /* no send CQ */
	attr.send_cq = pair.b.send_cq;
	qp_refused(attr, EINVAL);
	attr.send_cq = s->send_cq;
	attr.recv_cq = pair.b.send_cq;
	qp = ibv_create_qp_ex(s->context, &attr);
	assert_non_null(qp);
	assert_null(qp->recv_cq);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	assert_true(attr.cap.max_send_wr >= 3);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	assert_int_equal(ibv_close_xrcd(foreign), 0);
}

/* Posts to a queue that the QP type does not have are refused. SRQ numbers have 24
 * bits. */
TEST_WITH(posts_to_absent_queues_are_refused, xrc_setup, xrc_teardown)
{
	struct verbs_side *a = &pair.a, *b = &pair.b;
	struct ibv_xrcd *xrcd = xrc_domain(b);
	struct ibv_qp *initiator = xrc_initiator(a, 0);
	struct ibv_qp *target = xrc_target(b->context, xrcd);
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad = NULL;
	uint64_t word = 5;
	struct ibv_sge sge = {(uintptr_t)&word, sizeof(word), 0};
	struct ibv_send_wr *bad_send,
		send = {.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_INLINE};

	xrc_connect(a, initiator, b, target);
	assert_int_equal(xrc_send_try(b, target, 1, 1, 0, 8), EINVAL);
	assert_int_equal(xrc_send_try(a, initiator, 0x1000000, 1, 0, 8), EINVAL);
	/* ATOMIC_WRITE is for RC only. */
	send.opcode = IBV_WR_ATOMIC_WRITE;
	assert_int_equal(ibv_post_send(initiator, &send, &bad_send), EINVAL);
	REFUSED(ibv_create_qp_ex(a->context,
			&(struct ibv_qp_init_attr_ex){.qp_type = IBV_QPT_XRC_SEND,
				.send_cq = a->send_cq,
				.comp_mask = IBV_QP_INIT_ATTR_PD |
					     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
				.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE,
				.pd = a->pd}),
		EOPNOTSUPP);
	assert_int_equal(ibv_post_recv(initiator, &recv, &bad), EINVAL);
	assert_ptr_equal(bad, &recv);
	assert_int_equal(ibv_post_recv(target, &recv, &bad), EINVAL);
	assert_int_equal(ibv_destroy_qp(initiator), 0);
	assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

TEST_WITH(query_returns_target_attributes, xrc_setup, xrc_teardown)
{
	struct verbs_side *a = &pair.a, *b = &pair.b;
	struct ibv_xrcd *xrcd = xrc_domain(b);
	struct ibv_qp *initiator = xrc_initiator(a, 0);
	struct ibv_qp *target = xrc_target(b->context, xrcd);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	xrc_connect(a, initiator, b, target);
	assert_int_equal(ibv_query_qp(target, &attr, 0x1FFFFF, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.dest_qp_num, initiator->qp_num);
	assert_int_equal(attr.qp_access_flags, XRC_REMOTE);
	assert_int_equal(attr.max_dest_rd_atomic, 4);
	assert_int_equal(attr.min_rnr_timer, 1);
	assert_int_equal(attr.timeout, 14);
	assert_int_equal(attr.rq_psn, 0xFFFFF0);
	assert_int_equal(attr.cap.max_send_wr, 0);
	assert_int_equal(attr.cap.max_inline_data, 0);
	assert_int_equal(init.qp_type, IBV_QPT_XRC_RECV);
	assert_null(init.send_cq);
	assert_null(init.recv_cq);
	assert_null(init.srq);
	assert_int_equal(ibv_query_qp(initiator, &attr, 0x1FFFFF, &init), 0);
	assert_int_equal(attr.dest_qp_num, target->qp_num);
	assert_int_equal(attr.max_rd_atomic, 4);
	assert_int_equal(attr.retry_cnt, 7);
	assert_true(attr.cap.max_send_wr >= 64);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	assert_int_equal(init.qp_type, IBV_QPT_XRC_SEND);
	assert_ptr_equal(init.send_cq, a->send_cq);
	assert_null(init.recv_cq);
	assert_int_equal(ibv_destroy_qp(initiator), 0);
	assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

/* ---- Shared targets ---- */

static struct ibv_qp *
qp_open(struct ibv_context *context, struct ibv_xrcd *xrcd, uint32_t qpn,
	void *qp_context)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE | IBV_QP_OPEN_ATTR_CONTEXT,
		.qp_num = qpn,
		.xrcd = xrcd,
		.qp_context = qp_context,
		.qp_type = IBV_QPT_XRC_RECV};

	return ibv_open_qp(context, &attr);
}

TEST_WITH(invalid_open_is_refused, xrc_setup, xrc_teardown)
{
	struct verbs_side *b = &pair.b;
	struct ibv_xrcd *xrcd = xrc_domain(b), *other = xrc_domain(b),
			*foreign = xrc_domain(&pair.a);
	struct ibv_qp *target = xrc_target(b->context, xrcd);
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD,
		.qp_num = target->qp_num,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV};

	REFUSED(ibv_open_qp(b->context, &attr), EINVAL); /* no type */
	attr.comp_mask |= IBV_QP_OPEN_ATTR_TYPE;
	attr.qp_type = IBV_QPT_XRC_SEND;
	REFUSED(ibv_open_qp(b->context, &attr), EINVAL);
	attr.qp_type = IBV_QPT_XRC_RECV;
	attr.comp_mask |= IBV_QP_OPEN_ATTR_RESERVED;
	REFUSED(ibv_open_qp(b->context, &attr), EOPNOTSUPP);
	REFUSED(qp_open(b->context, NULL, target->qp_num, NULL), EINVAL);
	REFUSED(qp_open(b->context, other, target->qp_num, NULL), EINVAL);
	REFUSED(qp_open(b->context, foreign, target->qp_num, NULL), EINVAL);
	REFUSED(qp_open(b->context, xrcd, b->qp[0]->qp_num, NULL), EINVAL); /* an RC QP */
	REFUSED(qp_open(b->context, xrcd, target->qp_num + 1, NULL), EINVAL);
	assert_int_equal(ibv_destroy_qp(target), 0);
	REFUSED(qp_open(b->context, xrcd, attr.qp_num, NULL), EINVAL);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	assert_int_equal(ibv_close_xrcd(other), 0);
	assert_int_equal(ibv_close_xrcd(foreign), 0);
}

static struct ibv_async_event
event_of(struct ibv_context *context)
{
	struct verbs_side side = {.context = context};

	return pair_event(&pair, &side);
}

/* A second context opens the domain by its file and the target by its QPN: one QP with
 * two handles, which exists as long as one of them. */
TEST_WITH(target_with_two_handles, xrc_setup, xrc_teardown)
{
	struct verbs_side *a = &pair.a, *b = &pair.b;
	struct ibv_context *second = ibv_open_device(b->context->device);
	int fd = xrc_file();
	struct ibv_xrcd *xrcd = xrc_domain_open(b->context, fd, O_CREAT);
	struct ibv_xrcd *same = xrc_domain_open(second, fd, 0);
	struct ibv_srq *srq = xrc_srq(b, xrcd, b->recv_cq);
	struct ibv_qp *initiator = xrc_initiator(a, 0), *target, *opened;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	assert_non_null(xrcd);
	assert_non_null(same);
	target = xrc_target(b->context, xrcd);
	xrc_connect(a, initiator, b, target);
	opened = qp_open(second, same, target->qp_num, &fd);
	assert_non_null(opened);
	assert_int_equal(opened->qp_num, target->qp_num);
	assert_ptr_equal(opened->context, second);
	/* as in libibverbs: other handles change it */
	assert_int_equal(opened->state, IBV_QPS_UNKNOWN);
	assert_int_equal(ibv_query_qp(opened, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(opened->state, IBV_QPS_RTS);
	assert_int_equal(attr.dest_qp_num, initiator->qp_num);
	assert_ptr_equal(init.qp_context, &fd);
	assert_int_equal(ibv_close_xrcd(same), EBUSY);

	/* The handle that created the target is destroyed; messages still arrive. */
	assert_int_equal(ibv_destroy_qp(target), 0);
	xrc_recv(b, srq, 1, 0x8000);
	xrc_send(a, initiator, xrc_srqn(srq), 5, 0, XRC_MSG);
	xrc_complete(a->send_cq, 5, IBV_WC_SUCCESS, &wc);
	xrc_complete(b->recv_cq, 1, IBV_WC_SUCCESS, &wc);
	assert_int_equal(wc.qp_num, opened->qp_num);

	/* Both handles get the event. */
	target = qp_open(b->context, xrcd, opened->qp_num, NULL);
	assert_non_null(target);
	pair_modify_state(opened, IBV_QPS_ERR);
	assert_ptr_equal(event_of(b->context).element.qp, target);
	assert_ptr_equal(event_of(second).element.qp, opened);
	assert_int_equal(ibv_query_qp(target, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	assert_int_equal(ibv_destroy_qp(opened), 0);
	assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_destroy_qp(initiator), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(same), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	assert_int_equal(ibv_close_device(second), 0);
	close(fd);
}

/* No handle of a target sends, in any QP state. */
TEST_WITH(target_handles_cannot_send, xrc_setup, xrc_teardown)
{
	struct verbs_side *a = &pair.a, *b = &pair.b;
	struct ibv_xrcd *xrcd = xrc_domain(b);
	struct ibv_qp *initiator = xrc_initiator(a, 0);
	struct ibv_qp *target = xrc_target(b->context, xrcd);
	struct ibv_qp *handles[] = {
		target, qp_open(b->context, xrcd, target->qp_num, NULL)};
	struct ibv_send_wr second = {.wr_id = 2},
			   first = {.wr_id = 1, .next = &second, .opcode = IBV_WR_SEND};

	assert_non_null(handles[1]);
	for (unsigned connected = 0; connected < 2; connected++) {
		for (unsigned i = 0; i < 2; i++) {
			struct ibv_send_wr *bad = NULL;

			assert_int_equal(ibv_post_send(handles[i], &first, &bad), EINVAL);
			assert_ptr_equal(bad, &first);
			assert_int_equal(
				ibv_post_send(handles[i], &second, &bad), EINVAL);
			assert_ptr_equal(bad, &second);
		}
		if (!connected)
			xrc_connect(a, initiator, b, target);
	}
	assert_int_equal(ibv_destroy_qp(handles[1]), 0);
	assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_destroy_qp(initiator), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}
