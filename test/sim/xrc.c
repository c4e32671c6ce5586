/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "xrc.h"

void
xrc_open(struct end *e)
{
	struct recv_model *m = &e->rq;
	struct ibv_srq_init_attr_ex attr = {
		.srq_context = m,
		.attr = {.max_wr = 1 + (uint32_t)draw(32),
			.max_sge = 1 + (uint32_t)draw(4)},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = e->host->pd[e->pd],
		.xrcd = e->xrcd,
		.cq = e->rcq->cq,
	};

	m->srq = ibv_create_srq_ex(e->host->ctx, &attr);
	CHECK(m->srq != NULL, "ibv_create_srq_ex: %s", strerror(errno));
	CHECK(ibv_get_srq_num(m->srq, &e->srqn) == 0, "ibv_get_srq_num");
	m->max_wr = attr.attr.max_wr;
	m->max_sge = attr.attr.max_sge;
}

void
xrc_close(struct end *e)
{
	CHECK(ibv_close_xrcd(e->xrcd) == EBUSY, "a domain goes from under its SRQ");
	CHECK(ibv_destroy_srq(e->rq.srq) == 0, "ibv_destroy_srq");
	CHECK(ibv_close_xrcd(e->xrcd) == 0, "ibv_close_xrcd");
	e->rq.srq = NULL;
}

struct ibv_qp *
xrc_target_create(struct end *e, struct ibv_qp_init_attr *attr)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT};
	struct ibv_qp_init_attr_ex ex = {.qp_context = e,
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD};

	e->xrcd = ibv_open_xrcd(e->host->ctx, &domain);
	CHECK(e->xrcd != NULL, "ibv_open_xrcd: %s", strerror(errno));
	ex.xrcd = e->xrcd;
	memset(&attr->cap, 0, sizeof(attr->cap));
	return ibv_create_qp_ex(e->host->ctx, &ex);
}
