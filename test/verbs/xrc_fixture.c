/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "case.h"
#include "xrc_fixture.h"

#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_MASK                                                                         \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)

struct verbs_pair pair;

struct ibv_xrcd *
xrc_domain_open(struct ibv_context *context, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = XRC_FD_FLAGS, .fd = fd, .oflags = oflags};

	return ibv_open_xrcd(context, &attr);
}

struct ibv_xrcd *
xrc_domain(struct verbs_side *s)
{
	struct ibv_xrcd *xrcd = xrc_domain_open(s->context, -1, O_CREAT);

	assert_non_null(xrcd);
	assert_ptr_equal(xrcd->context, s->context);
	return xrcd;
}

struct ibv_srq_init_attr_ex
xrc_srq_attr(struct verbs_side *s, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = {.max_wr = 100, .max_sge = 2},
		.comp_mask = XRC_SRQ_FLAGS,
		.srq_type = IBV_SRQT_XRC,
		.pd = s->pd,
		.xrcd = xrcd,
		.cq = cq,
	};
}

struct ibv_srq *
xrc_srq(struct verbs_side *s, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex attr = xrc_srq_attr(s, xrcd, cq);
	struct ibv_srq *srq = ibv_create_srq_ex(s->context, &attr);

	assert_non_null(srq);
	assert_true(attr.attr.max_wr >= 100);
	return srq;
}

uint32_t
xrc_srqn(struct ibv_srq *srq)
{
	uint32_t n;

	assert_int_equal(ibv_get_srq_num(srq, &n), 0);
	return n;
}

struct ibv_qp *
xrc_target(struct ibv_context *context, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd};
	struct ibv_qp *qp = ibv_create_qp_ex(context, &attr);

	assert_non_null(qp);
	return qp;
}

struct ibv_qp *
xrc_initiator(struct verbs_side *s, uint64_t ops)
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

/* The masks name attributes that only one of the two QP types has, as perftest's do. */
void
xrc_connect_one(struct ibv_qp *qp, const union ibv_gid *peer, uint32_t peer_qpn)
{
	bool target = qp->qp_type == IBV_QPT_XRC_RECV;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = target ? XRC_REMOTE : 0};

	modify(qp, attr, INIT_MASK);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer_qpn,
		.rq_psn = 0xFFFFF0,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};
	attr.ah_attr.grh.dgid = *peer;
	modify(qp, attr, RTR_MASK | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = 0xFFFFF0,
		.max_rd_atomic = 4};
	modify(qp, attr,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

void
xrc_connect(struct verbs_side *from, struct ibv_qp *initiator, struct verbs_side *to,
	struct ibv_qp *target)
{
	xrc_connect_one(initiator, &to->gid, target->qp_num);
	xrc_connect_one(target, &from->gid, initiator->qp_num);
}

void
xrc_recv(struct verbs_side *s, struct ibv_srq *srq, uint64_t wr_id, size_t offset)
{
	struct ibv_sge sge = pair_sge(s, offset, 4096);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

int
xrc_send_try(struct verbs_side *s, struct ibv_qp *qp, uint32_t srqn, uint64_t wr_id,
	size_t offset, uint32_t len)
{
	struct ibv_sge sge = pair_sge(s, offset, len);
	struct ibv_send_wr *bad, wr = {.wr_id = wr_id,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
					 .qp_type.xrc.remote_srqn = srqn};

	return ibv_post_send(qp, &wr, &bad);
}

void
xrc_send(struct verbs_side *s, struct ibv_qp *qp, uint32_t srqn, uint64_t wr_id,
	size_t offset, uint32_t len)
{
	assert_int_equal(xrc_send_try(s, qp, srqn, wr_id, offset, len), 0);
}

void
xrc_complete(
	struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status, struct ibv_wc *wc)
{
	pair_poll_cq(&pair, cq, wc, 1);
	assert_int_equal(wc->status, status);
	assert_int_equal(wc->wr_id, wr_id);
}

int
xrc_file(void)
{
	char name[] = "/tmp/xrc_test.XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	unlink(name);
	return fd;
}

int
xrc_setup(void **state)
{
	pair_open(&pair, &(struct verbs_pair_conf){.qps = 1});
	return 0;
}

int
xrc_teardown(void **state)
{
	pair_close(&pair);
	return 0;
}
