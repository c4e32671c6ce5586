/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC as an application has it: domains, SRQs with a number, initiators, and targets that
 * several handles share. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pair.h"

#define FD_FLAGS (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)
#define SRQ_FLAGS                                                                        \
	(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |        \
		IBV_SRQ_INIT_ATTR_CQ)
#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_MASK                                                                         \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define REMOTE                                                                           \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define MSG 3000

static struct pair pair;

/* ---- Objects ---- */

static struct ibv_xrcd *
xrcd_open(struct ibv_context *context, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = FD_FLAGS, .fd = fd, .oflags = oflags};

	return ibv_open_xrcd(context, &attr);
}

static struct ibv_xrcd *
xrcd_of(struct pair_side *s)
{
	struct ibv_xrcd *xrcd = xrcd_open(s->context, -1, O_CREAT);

	assert_non_null(xrcd);
	assert_ptr_equal(xrcd->context, s->context);
	return xrcd;
}

static struct ibv_srq_init_attr_ex
srq_attr(struct pair_side *s, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = {.max_wr = 100, .max_sge = 2},
		.comp_mask = SRQ_FLAGS,
		.srq_type = IBV_SRQT_XRC,
		.pd = s->pd,
		.xrcd = xrcd,
		.cq = cq,
	};
}

static struct ibv_srq *
srq_of(struct pair_side *s, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex attr = srq_attr(s, xrcd, cq);
	struct ibv_srq *srq = ibv_create_srq_ex(s->context, &attr);

	assert_non_null(srq);
	assert_true(attr.attr.max_wr >= 100);
	return srq;
}

static uint32_t
number_of(struct ibv_srq *srq)
{
	uint32_t n;

	assert_int_equal(ibv_get_srq_num(srq, &n), 0);
	return n;
}

static struct ibv_qp *
target_of(struct ibv_context *context, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd};
	struct ibv_qp *qp = ibv_create_qp_ex(context, &attr);

	assert_non_null(qp);
	return qp;
}

static struct ibv_qp *
initiator_of(struct pair_side *s, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = s->send_cq,
		.cap = {.max_send_wr = 64, .max_send_sge = 1, .max_inline_data = 64},
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (ops != 0 ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.send_ops_flags = ops,
		.pd = s->pd};
	struct ibv_qp *qp = ibv_create_qp_ex(s->context, &attr);

	assert_non_null(qp);
	return qp;
}

static void
modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
}

/* As ibv_xsrq_pingpong does it, mask for mask. */
static void
connect_one(struct ibv_qp *qp, const union ibv_gid *peer, uint32_t peer_qpn)
{
	bool target = qp->qp_type == IBV_QPT_XRC_RECV;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = target ? REMOTE : 0};

	modify(qp, attr, INIT_MASK);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer_qpn,
		.rq_psn = 0xFFFFF0,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};
	attr.ah_attr.grh.dgid = *peer;
	modify(qp, attr,
		RTR_MASK |
			(target ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = 0xFFFFF0,
		.max_rd_atomic = 4};
	modify(qp, attr,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN |
			(target ? 0
				: IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						IBV_QP_MAX_QP_RD_ATOMIC));
}

static void
connect_both(struct pair_side *from, struct ibv_qp *initiator, struct pair_side *to,
	struct ibv_qp *target)
{
	connect_one(initiator, &to->gid, target->qp_num);
	connect_one(target, &from->gid, initiator->qp_num);
}

static void
recv_post(struct pair_side *s, struct ibv_srq *srq, uint64_t wr_id, size_t offset)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)s->mem + offset, .length = 4096, .lkey = s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

static int
send_try(struct pair_side *s, struct ibv_qp *qp, uint32_t srqn, uint64_t wr_id,
	size_t offset, uint32_t len)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)s->mem + offset, .length = len, .lkey = s->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = wr_id,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
					 .qp_type.xrc.remote_srqn = srqn};

	return ibv_post_send(qp, &wr, &bad);
}

static void
send_post(struct pair_side *s, struct ibv_qp *qp, uint32_t srqn, uint64_t wr_id,
	size_t offset, uint32_t len)
{
	assert_int_equal(send_try(s, qp, srqn, wr_id, offset, len), 0);
}

static void
complete_one(
	struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status, struct ibv_wc *wc)
{
	pair_complete(&pair, cq, wc, 1);
	assert_int_equal(wc->status, status);
	assert_int_equal(wc->wr_id, wr_id);
}

/* ---- Domains ---- */

#define REFUSED(call, err)                                                               \
	do {                                                                             \
		errno = 0;                                                               \
		assert_null(call);                                                       \
		assert_int_equal(errno, err);                                            \
	} while (0)

static int
file_new(void)
{
	char name[] = "/tmp/xrc_test.XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	unlink(name);
	return fd;
}

static void
test_domains(void **state)
{
	struct ibv_context *context = pair.a.context;
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1, .oflags = O_CREAT};
	int fd = file_new(), other = file_new(), again = dup(fd);
	struct ibv_xrcd *one, *two;

	(void)state;
	REFUSED(ibv_open_xrcd(context, &attr), EINVAL);
	attr.comp_mask = IBV_XRCD_INIT_ATTR_OFLAGS;
	REFUSED(ibv_open_xrcd(context, &attr), EINVAL);
	attr.comp_mask = FD_FLAGS | IBV_XRCD_INIT_ATTR_RESERVED;
	REFUSED(ibv_open_xrcd(context, &attr), EOPNOTSUPP);
	REFUSED(xrcd_open(context, -1, O_CREAT | O_APPEND), EINVAL);
	REFUSED(xrcd_open(context, -1, 0), EINVAL);
	REFUSED(xrcd_open(context, 1000, O_CREAT), EBADF);
	REFUSED(xrcd_open(context, fd, 0), EAGAIN);
	REFUSED(xrcd_open(context, fd, O_EXCL), EAGAIN);

	one = xrcd_open(context, fd, O_CREAT | O_EXCL);
	assert_non_null(one);
	REFUSED(xrcd_open(context, again, O_CREAT | O_EXCL), EINVAL);
	REFUSED(xrcd_open(context, other, 0), EAGAIN);
	/* Another device knows nothing of it. */
	REFUSED(xrcd_open(pair.b.context, fd, 0), EAGAIN);
	two = xrcd_open(context, again, 0);
	assert_non_null(two);
	assert_int_equal(ibv_close_xrcd(one), 0);
	one = xrcd_open(context, fd, O_EXCL); /* nothing without O_CREAT */
	assert_non_null(one);
	assert_int_equal(ibv_close_xrcd(one), 0);
	assert_int_equal(ibv_close_xrcd(two), 0);
	/* The last is closed: it is gone. */
	REFUSED(xrcd_open(context, fd, 0), EAGAIN);
	one = xrcd_open(context, -1, O_CREAT | O_EXCL);
	assert_non_null(one);
	assert_int_equal(ibv_close_xrcd(one), 0);
	close(fd);
	close(again);
	close(other);
}

static void
test_device(void **state)
{
	struct ibv_device_attr_ex attr;

	(void)state;
	assert_int_equal(ibv_query_device_ex(pair.a.context, NULL, &attr), 0);
	assert_true(attr.orig_attr.device_cap_flags & IBV_DEVICE_XRC);
	assert_true(attr.device_cap_flags_ex & IBV_DEVICE_XRC);
	assert_int_equal(attr.xrc_odp_caps, 0);
}

/* ---- SRQs ---- */

static void
srq_refused(struct ibv_srq_init_attr_ex attr, int err)
{
	REFUSED(ibv_create_srq_ex(pair.a.context, &attr), err);
}

static void
test_srq_create(void **state)
{
	struct pair_side *s = &pair.a;
	struct ibv_xrcd *xrcd = xrcd_of(s), *foreign = xrcd_of(&pair.b);
	struct ibv_srq_init_attr_ex attr = srq_attr(s, xrcd, s->recv_cq);
	struct ibv_srq *srq, *next;
	uint32_t n;

	(void)state;
#define WITHOUT(flag)                                                                    \
	do {                                                                             \
		attr.comp_mask = SRQ_FLAGS & ~(uint32_t)(flag);                          \
		srq_refused(attr, EINVAL);                                               \
		attr.comp_mask = SRQ_FLAGS;                                              \
	} while (0)
	WITHOUT(IBV_SRQ_INIT_ATTR_PD);
	WITHOUT(IBV_SRQ_INIT_ATTR_XRCD);
	WITHOUT(IBV_SRQ_INIT_ATTR_CQ);
	attr.xrcd = NULL;
	srq_refused(attr, EINVAL);
	attr.xrcd = foreign;
	srq_refused(attr, EINVAL);
	attr = srq_attr(s, xrcd, pair.b.recv_cq);
	srq_refused(attr, EINVAL);
	attr = srq_attr(s, xrcd, s->recv_cq);
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
	attr.comp_mask = SRQ_FLAGS;
	attr.attr.max_wr = 0;
	srq_refused(attr, EINVAL);

	/* Each has its own number; a basic one has none, however it was made. */
	srq = srq_of(s, xrcd, s->recv_cq);
	next = srq_of(s, xrcd, s->recv_cq);
	assert_int_not_equal(number_of(srq), number_of(next));
	assert_true(number_of(srq) > 0 && number_of(srq) <= 0xFFFFFE);
	assert_int_equal(ibv_destroy_srq(next), 0);
	attr = srq_attr(s, xrcd, s->recv_cq);
	attr.srq_type = IBV_SRQT_BASIC;
	attr.srq_context = &attr;
	next = ibv_create_srq_ex(s->context, &attr);
	assert_non_null(next);
	assert_ptr_equal(next->srq_context, &attr);
	assert_int_equal(ibv_get_srq_num(next, &n), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_srq(next), 0);

	/* It is for targets alone. */
	REFUSED(ibv_create_qp(s->pd, &(struct ibv_qp_init_attr){.qp_type = IBV_QPT_RC,
					     .send_cq = s->send_cq,
					     .recv_cq = s->recv_cq,
					     .srq = srq}),
		EINVAL);
	assert_int_equal(ibv_close_xrcd(foreign), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

/* Nothing goes away under what uses it. */
static void
test_lifetimes(void **state)
{
	struct pair_side *s = &pair.a;
	struct ibv_cq *cq = ibv_create_cq(s->context, 16, NULL, NULL, 0);
	struct ibv_pd *pd = ibv_alloc_pd(s->context);
	struct ibv_xrcd *xrcd = xrcd_of(s);
	struct ibv_srq_init_attr_ex attr = srq_attr(s, xrcd, cq);
	struct ibv_srq *srq;
	struct ibv_qp *target;

	(void)state;
	attr.pd = pd;
	srq = ibv_create_srq_ex(s->context, &attr);
	assert_non_null(srq);
	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
	target = target_of(s->context, xrcd);
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

/* ---- QPs ---- */

static void
qp_refused(struct ibv_qp_init_attr_ex attr, int err)
{
	REFUSED(ibv_create_qp_ex(pair.a.context, &attr), err);
}

static void
test_qp_create(void **state)
{
	struct pair_side *s = &pair.a;
	struct ibv_xrcd *xrcd = xrcd_of(s), *foreign = xrcd_of(&pair.b);
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = s->pd};
	struct ibv_qp *qp;

	(void)state;
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

	/* Queues that it does not have are not looked at. */
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

/* What a type has not cannot be posted to; the number has 24 bits. */
static void
test_posting(void **state)
{
	struct pair_side *a = &pair.a, *b = &pair.b;
	struct ibv_xrcd *xrcd = xrcd_of(b);
	struct ibv_qp *initiator = initiator_of(a, 0);
	struct ibv_qp *target = target_of(b->context, xrcd);
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad = NULL;
	uint64_t word = 5;
	struct ibv_sge sge = {(uintptr_t)&word, sizeof(word), 0};
	struct ibv_send_wr *bad_send,
		send = {.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_INLINE};

	(void)state;
	connect_both(a, initiator, b, target);
	assert_int_equal(send_try(b, target, 1, 1, 0, 8), EINVAL);
	assert_int_equal(send_try(a, initiator, 0x1000000, 1, 0, 8), EINVAL);
	/* RC alone has it. */
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

static void
test_query(void **state)
{
	struct pair_side *a = &pair.a, *b = &pair.b;
	struct ibv_xrcd *xrcd = xrcd_of(b);
	struct ibv_qp *initiator = initiator_of(a, 0);
	struct ibv_qp *target = target_of(b->context, xrcd);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	(void)state;
	connect_both(a, initiator, b, target);
	assert_int_equal(ibv_query_qp(target, &attr, 0x1FFFFF, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.dest_qp_num, initiator->qp_num);
	assert_int_equal(attr.qp_access_flags, REMOTE);
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

/* ---- Traffic ---- */

/* Every opcode, by ibv_post_send() and by ibv_wr_post(). */
static void
operations(struct ibv_qp *initiator, bool built)
{
	struct pair_side *a = &pair.a, *b = &pair.b;
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct ibv_xrcd *xrcd = xrcd_of(b);
	struct ibv_srq *srq = srq_of(b, xrcd, b->recv_cq);
	struct ibv_qp *target = target_of(b->context, xrcd);
	struct ibv_qp_ex *ex = built ? ibv_qp_to_qp_ex(initiator) : NULL;
	struct ibv_mr *mr = ibv_reg_mr(
		b->pd, b->mem, pair.conf.bytes, IBV_ACCESS_LOCAL_WRITE | REMOTE);
	uint64_t word = 7, got;
	struct ibv_wc wc;

	assert_non_null(mr);
	connect_both(a, initiator, b, target);
	for (unsigned i = 0; i < 3; i++)
		recv_post(b, srq, i, 0x20000 + i * 4096);
	memset(a->mem, 0xA5, MSG);
	memcpy(b->mem + 0x10000, &word, 8);
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		uint64_t remote = (uintptr_t)b->mem + (i < 5 ? 0x8000 : 0x10000);
		struct ibv_sge sge = {
			(uintptr_t)a->mem + (i < 4 ? 0 : 0x8000), MSG, a->mr->lkey};
		struct ibv_send_wr *bad, wr = {.wr_id = i,
						 .sg_list = &sge,
						 .num_sge = 1,
						 .opcode = ops[i],
						 .send_flags = IBV_SEND_SIGNALED,
						 .imm_data = 0x12345678};

		sge.length = i < 5 ? MSG : 8;
		wr.qp_type.xrc.remote_srqn = number_of(srq);
		if (i >= 5) {
			wr.wr.atomic.remote_addr = remote;
			wr.wr.atomic.rkey = mr->rkey;
			wr.wr.atomic.compare_add = i == 5 ? 7 : 100;
			wr.wr.atomic.swap = 50;
		} else {
			wr.wr.rdma.remote_addr = remote;
			wr.wr.rdma.rkey = mr->rkey;
		}
		if (!built) {
			assert_int_equal(ibv_post_send(initiator, &wr, &bad), 0);
		} else {
			ibv_wr_start(ex);
			ex->wr_id = i;
			ex->wr_flags = IBV_SEND_SIGNALED;
			switch (i) {
			case 0:
				ibv_wr_send(ex);
				break;
			case 1:
				ibv_wr_send_imm(ex, 0x12345678);
				break;
			case 2:
				ibv_wr_rdma_write(ex, mr->rkey, remote);
				break;
			case 3:
				ibv_wr_rdma_write_imm(ex, mr->rkey, remote, 0x12345678);
				break;
			case 4:
				ibv_wr_rdma_read(ex, mr->rkey, remote);
				break;
			case 5:
				ibv_wr_atomic_cmp_swp(ex, mr->rkey, remote, 7, 50);
				break;
			default:
				ibv_wr_atomic_fetch_add(ex, mr->rkey, remote, 100);
				break;
			}
			ibv_wr_set_xrc_srqn(ex, number_of(srq));
			ibv_wr_set_sge(ex, sge.lkey, sge.addr, sge.length);
			assert_int_equal(ibv_wr_complete(ex), 0);
		}
		complete_one(a->send_cq, i, IBV_WC_SUCCESS, &wc);
	}
	for (unsigned i = 0; i < 3; i++) {
		complete_one(b->recv_cq, i, IBV_WC_SUCCESS, &wc);
		assert_int_equal(wc.qp_num, target->qp_num);
		assert_int_equal(wc.byte_len, MSG);
		assert_int_equal(
			wc.opcode, i < 2 ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(wc.wc_flags, i == 0 ? 0 : IBV_WC_WITH_IMM);
		if (i != 0)
			assert_int_equal(wc.imm_data, 0x12345678);
	}
	assert_memory_equal(b->mem + 0x20000, a->mem, MSG);
	assert_memory_equal(b->mem + 0x8000, a->mem, MSG);
	memcpy(&got, a->mem + 0x8000, 8);
	assert_int_equal(got, 50); /* what the swap left */
	assert_memory_equal(a->mem + 0x8008, a->mem + 8, MSG - 8);
	memcpy(&got, b->mem + 0x10000, 8);
	assert_int_equal(got, 150);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_qp(initiator), 0);
	assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void
test_operations(void **state)
{
	(void)state;
	operations(initiator_of(&pair.a, 0), false);
}

static void
test_wr(void **state)
{
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;

	(void)state;
	operations(
		initiator_of(&pair.a, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
					      IBV_QP_EX_WITH_RDMA_WRITE |
					      IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
					      IBV_QP_EX_WITH_RDMA_READ |
					      IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
					      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD),
		true);
	/* Each request says for which SRQ it is. */
	qp = initiator_of(&pair.a, IBV_QP_EX_WITH_SEND);
	connect_one(qp, &pair.b.gid, 99);
	ex = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, pair.a.mr->lkey, (uintptr_t)pair.a.mem, 8);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_xrc_srqn(ex, 0x1000000);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* An SRQ that is not there: both ends fail, and the target says so by events. */
static void
test_unknown_srq(void **state)
{
	struct pair_side *a = &pair.a, *b = &pair.b;
	struct ibv_xrcd *xrcd = xrcd_of(b), *other = xrcd_of(b);
	struct ibv_srq *srq = srq_of(b, other, b->recv_cq);
	struct ibv_qp *initiator = initiator_of(a, 0);
	struct ibv_qp *target = target_of(b->context, xrcd);
	struct ibv_async_event event;
	struct ibv_wc wc;

	(void)state;
	connect_both(a, initiator, b, target);
	recv_post(b, srq, 1, 0x8000);
	send_post(a, initiator, number_of(srq), 5, 0, 8); /* of another domain */
	complete_one(a->send_cq, 5, IBV_WC_REM_INV_REQ_ERR, &wc);
	event = pair_event(&pair, b);
	assert_int_equal(event.event_type, IBV_EVENT_QP_REQ_ERR);
	assert_ptr_equal(event.element.qp, target);
	event = pair_event(&pair, b);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_qp(initiator), 0);
	assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	assert_int_equal(ibv_close_xrcd(other), 0);
}

/* Destroyed while a message is on its way to it. */
static void
test_srq_destroyed(void **state)
{
	struct pair_side *a = &pair.a, *b = &pair.b;
	struct ibv_xrcd *xrcd = xrcd_of(b);
	struct ibv_srq *srq = srq_of(b, xrcd, b->recv_cq);
	struct ibv_qp *initiator = initiator_of(a, 0);
	struct ibv_qp *target = target_of(b->context, xrcd);
	struct ibv_wc wc;

	(void)state;
	connect_both(a, initiator, b, target);
	recv_post(b, srq, 1, 0x8000);
	send_post(a, initiator, number_of(srq), 5, 0, 4096);
	send_post(a, initiator, number_of(srq), 6, 0, 8); /* finds no receive: waits */
	complete_one(a->send_cq, 5, IBV_WC_SUCCESS, &wc);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	/* What was received is the application's still. */
	complete_one(b->recv_cq, 1, IBV_WC_SUCCESS, &wc);
	complete_one(a->send_cq, 6, IBV_WC_REM_INV_REQ_ERR, &wc);
	assert_int_equal(pair_event(&pair, b).event_type, IBV_EVENT_QP_REQ_ERR);
	assert_int_equal(pair_event(&pair, b).event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
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

static void
test_open_refused(void **state)
{
	struct pair_side *b = &pair.b;
	struct ibv_xrcd *xrcd = xrcd_of(b), *other = xrcd_of(b),
			*foreign = xrcd_of(&pair.a);
	struct ibv_qp *target = target_of(b->context, xrcd);
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD,
		.qp_num = target->qp_num,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV};

	(void)state;
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
	REFUSED(qp_open(b->context, xrcd, b->qp[0]->qp_num, NULL), EINVAL); /* RC */
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
	struct pair_side side = {.context = context};

	return pair_event(&pair, &side);
}

/* A second context opens the domain by its file, and a target of it by its number: one QP
 * with two handles. It lives as long as one of them. */
static void
test_open(void **state)
{
	struct pair_side *a = &pair.a, *b = &pair.b;
	struct ibv_context *second = ibv_open_device(b->context->device);
	int fd = file_new();
	struct ibv_xrcd *xrcd = xrcd_open(b->context, fd, O_CREAT);
	struct ibv_xrcd *same = xrcd_open(second, fd, 0);
	struct ibv_srq *srq = srq_of(b, xrcd, b->recv_cq);
	struct ibv_qp *initiator = initiator_of(a, 0), *target, *opened;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	(void)state;
	assert_non_null(xrcd);
	assert_non_null(same);
	target = target_of(b->context, xrcd);
	connect_both(a, initiator, b, target);
	opened = qp_open(second, same, target->qp_num, &fd);
	assert_non_null(opened);
	assert_int_equal(opened->qp_num, target->qp_num);
	assert_ptr_equal(opened->context, second);
	assert_int_equal(opened->state, IBV_QPS_RTS);
	assert_int_equal(ibv_query_qp(opened, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.dest_qp_num, initiator->qp_num);
	assert_ptr_equal(init.qp_context, &fd);
	assert_int_equal(ibv_close_xrcd(same), EBUSY);

	/* The one who created it goes; messages go on. */
	assert_int_equal(ibv_destroy_qp(target), 0);
	recv_post(b, srq, 1, 0x8000);
	send_post(a, initiator, number_of(srq), 5, 0, MSG);
	complete_one(a->send_cq, 5, IBV_WC_SUCCESS, &wc);
	complete_one(b->recv_cq, 1, IBV_WC_SUCCESS, &wc);
	assert_int_equal(wc.qp_num, opened->qp_num);

	/* Both handles hear of it. */
	target = qp_open(b->context, xrcd, opened->qp_num, NULL);
	assert_non_null(target);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_ERR};
	modify(opened, attr, IBV_QP_STATE);
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

static int
setup(void **state)
{
	(void)state;
	pair_open(&pair, &(struct pair_conf){.qps = 1});
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	pair_close(&pair);
	return 0;
}

/* ---- Many ---- */

#define QPS 12
#define SRQS 3
#define MESSAGES 2000

/* QPs on two engines and several SRQs, each QP into all of them, with threads. */
static void
test_many(void **state)
{
	struct pair_side *a = &pair.a, *b = &pair.b;
	struct ibv_qp *initiator[QPS], *target[QPS];
	unsigned left = MESSAGES, sent = 0, done = 0, got[SRQS] = {0}, from[QPS] = {0};
	struct ibv_cq *cq[SRQS];
	struct ibv_srq *srq[SRQS];
	struct ibv_xrcd *xrcd;
	struct ibv_wc wc;

	(void)state;
	pair_open(&pair, &(struct pair_conf){.engines = 2, .qps = 2});
	xrcd = xrcd_of(b);
	for (unsigned i = 0; i < SRQS; i++) {
		cq[i] = ibv_create_cq(b->context, 256, NULL, NULL, 0);
		assert_non_null(cq[i]);
		srq[i] = srq_of(b, xrcd, cq[i]);
		for (unsigned j = 0; j < 20; j++)
			recv_post(b, srq[i], j, (i * 20 + j) * 4096);
	}
	for (unsigned i = 0; i < QPS; i++) {
		initiator[i] = initiator_of(a, 0);
		target[i] = target_of(b->context, xrcd);
		connect_both(a, initiator[i], b, target[i]);
	}
	for (unsigned i = 0; i < MESSAGES; i++)
		memcpy(a->mem + i * 8, &i, sizeof(i));
	pair_run(&pair);
	while (left != 0) {
		if (sent < MESSAGES && sent - done < 200) {
			unsigned i = sent % QPS;
			int err = send_try(a, initiator[i],
				number_of(srq[sent / QPS % SRQS]), sent, sent * 8,
				8 + sent % MSG);

			/* One that waits for receives may be full. */
			assert_true(err == 0 || err == ENOMEM);
			sent += err == 0;
		}
		while (ibv_poll_cq(a->send_cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			done++;
		}
		for (unsigned i = 0; i < SRQS; i++) {
			while (ibv_poll_cq(cq[i], 1, &wc) == 1) {
				size_t at = (i * 20 + wc.wr_id) * 4096;
				unsigned n, q = 0;

				assert_int_equal(wc.status, IBV_WC_SUCCESS);
				memcpy(&n, b->mem + at, sizeof(n));
				assert_int_equal(n / QPS % SRQS, i);
				assert_int_equal(wc.byte_len, 8 + n % MSG);
				while (target[q]->qp_num != wc.qp_num)
					q++;
				assert_int_equal(n % QPS, q);
				/* In order for each QP and SRQ is what RC promises. */
				from[q]++;
				got[i]++;
				left--;
				recv_post(b, srq[i], wc.wr_id, at);
			}
		}
	}
	while (done < MESSAGES) {
		pair_complete(&pair, a->send_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		done++;
	}
	pair_halt(&pair);
	for (unsigned i = 0; i < SRQS; i++)
		assert_true(got[i] > MESSAGES / SRQS - QPS);
	for (unsigned i = 0; i < QPS; i++) {
		assert_true(from[i] >= MESSAGES / QPS);
		assert_int_equal(ibv_destroy_qp(initiator[i]), 0);
		assert_int_equal(ibv_destroy_qp(target[i]), 0);
	}
	for (unsigned i = 0; i < SRQS; i++) {
		assert_int_equal(ibv_destroy_srq(srq[i]), 0);
		assert_int_equal(ibv_destroy_cq(cq[i]), 0);
	}
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	pair_close(&pair);
}

/* What ibv_xsrq_pingpong does: each side has an SRQ, a target and an initiator, and
 * answers on the initiator beside the target that wc.qp_num names. */
static void
test_pingpong(void **state)
{
	struct pair_side *side[2] = {&pair.a, &pair.b};
	struct ibv_qp *send_qp[2], *recv_qp[2];
	struct ibv_xrcd *xrcd[2];
	struct ibv_srq *srq[2];
	struct ibv_cq *cq[2];
	struct ibv_wc wc[2];
	int fd = file_new();

	(void)state;
	for (int i = 0; i < 2; i++) {
		xrcd[i] = xrcd_open(side[i]->context, fd, O_CREAT);
		assert_non_null(xrcd[i]);
		cq[i] = ibv_create_cq(side[i]->context, 64, NULL, NULL, 0);
		srq[i] = srq_of(side[i], xrcd[i], cq[i]);
		recv_qp[i] = target_of(side[i]->context, xrcd[i]);
		send_qp[i] = initiator_of(side[i], 0);
	}
	for (int i = 0; i < 2; i++)
		connect_both(side[i], send_qp[i], side[!i], recv_qp[!i]);
	for (int i = 0; i < 2; i++)
		recv_post(side[i], srq[i], 1, 0x8000);
	send_post(side[0], send_qp[0], number_of(srq[1]), 2, 0, MSG);
	for (int i = 0; i < 100; i++) {
		int at = !(i & 1);

		complete_one(cq[at], 1, IBV_WC_SUCCESS, &wc[0]);
		assert_int_equal(wc[0].qp_num, recv_qp[at]->qp_num);
		assert_int_equal(wc[0].opcode, IBV_WC_RECV);
		complete_one(side[!at]->send_cq, 2, IBV_WC_SUCCESS, &wc[1]);
		recv_post(side[at], srq[at], 1, 0x8000);
		send_post(side[at], send_qp[at], number_of(srq[!at]), 2, 0, MSG);
	}
	pair_settle(&pair);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibv_destroy_qp(send_qp[i]), 0);
		assert_int_equal(ibv_destroy_qp(recv_qp[i]), 0);
		assert_int_equal(ibv_destroy_srq(srq[i]), 0);
		assert_int_equal(ibv_destroy_cq(cq[i]), 0);
		assert_int_equal(ibv_close_xrcd(xrcd[i]), 0);
	}
	close(fd);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_domains),
		CASE(test_device),
		CASE(test_srq_create),
		CASE(test_lifetimes),
		CASE(test_qp_create),
		CASE(test_posting),
		CASE(test_query),
		CASE(test_operations),
		CASE(test_wr),
		CASE(test_unknown_srq),
		CASE(test_srq_destroyed),
		CASE(test_open_refused),
		CASE(test_open),
		CASE(test_pingpong),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests_name("xrc", tests, NULL, NULL);
}
