/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "xrc.h"

static struct ibv_xrcd *
domain_open(struct host *h)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(h->ctx, &attr);

	CHECK(xrcd != NULL, "ibv_open_xrcd: %s", strerror(errno));
	return xrcd;
}

static void
srq_open(struct recv_model *m, struct cq_model *cq, uint32_t wrs)
{
	struct ibv_srq_init_attr_ex attr = {
		.srq_context = m,
		.attr = {.max_wr = 1 + (uint32_t)draw(wrs),
			.max_sge = 1 + (uint32_t)draw(4)},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = m->host->pd[m->pd],
		.xrcd = m->xrcd,
		.cq = cq->cq,
	};

	m->srq = ibv_create_srq_ex(m->host->ctx, &attr);
	CHECK(m->srq != NULL, "ibv_create_srq_ex: %s", strerror(errno));
	CHECK(ibv_get_srq_num(m->srq, &m->srqn) == 0, "ibv_get_srq_num");
	m->max_wr = attr.attr.max_wr;
	m->max_sge = attr.attr.max_sge;
}

void
xrc_open(struct end *e)
{
	srq_open(&e->rq, e->rcq, 32);
}

static void
domain_busy(const struct recv_model *m)
{
	CHECK(ibv_close_xrcd(m->xrcd) == EBUSY, "a domain with an SRQ was closed");
}

void
xrc_close(struct end *e)
{
	domain_busy(&e->rq);
	CHECK(ibv_destroy_srq(e->rq.srq) == 0, "ibv_destroy_srq");
	CHECK(ibv_close_xrcd(e->rq.xrcd) == 0, "ibv_close_xrcd");
	e->rq.srq = NULL;
}

struct ibv_qp *
xrc_target_create(struct end *e, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {.qp_context = e,
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD};

	if (is_alone(e))
		e->rq.xrcd = domain_open(e->host);
	ex.xrcd = e->recv->xrcd;
	memset(&attr->cap, 0, sizeof(attr->cap));
	return ibv_create_qp_ex(e->host->ctx, &ex);
}

/* The shared SRQ */

void
xrc_shared_plan(struct host *h)
{
	struct recv_model *m = &h->srq[HOST_XRC];

	m->host = h;
	m->number = HOST_XRC;
	m->pd = (unsigned)draw(HOST_PDS);
	m->cq = &h->cq[draw(h->conf.cqs)];
	m->bound = 160;
	m->cap = 300 + (uint32_t)draw(12000);
}

void
xrc_shared_open(struct host *h)
{
	struct recv_model *m = &h->srq[HOST_XRC];

	m->xrcd = domain_open(h);
	srq_open(m, m->cq, 100);
	recv_open(m, RECV_RING_SRQ);
}

void
xrc_shared_close(struct host *h)
{
	struct recv_model *m = &h->srq[HOST_XRC];

	domain_busy(m);
	recv_close_srq(m);
	CHECK(ibv_close_xrcd(m->xrcd) == 0, "ibv_close_xrcd");
}

void
xrc_share(struct end *e)
{
	e->recv = &e->host->srq[HOST_XRC];
	e->rcq = e->recv->cq;
	e->pd = e->recv->pd; /* the SRQ's PD is the one that keys are checked against */
}
