/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qp/counting.h"
#include "qp/flight.h"
#include "qp/qp_state.h"
#include "qp/req.h"
#include "qp/resp.h"

static_assert(
	offsetof(struct qp, req) % LINE_SIZE == 0, "the requester has its own lines");
static_assert(
	offsetof(struct qp, resp) % LINE_SIZE == 0, "the responder has its own lines");
static_assert(sizeof(struct qp) <= 768, "idle QPs are many");

static bool
type_known(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_UD ||
	       type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

static uint8_t
op_base_of(enum ibv_qp_type type)
{
	unsigned service = SERVICE_RC;

	if (type == IBV_QPT_UC)
		service = SERVICE_UC;
	else if (type == IBV_QPT_UD)
		service = SERVICE_UD;
	else if (type != IBV_QPT_RC)
		service = SERVICE_XRC;
	return (uint8_t)(service << OP_SERVICE_SHIFT);
}

/* Clears what the QP type does not have (annex A14). */
static struct qp_conf
conf_normalise(const struct qp_conf *given)
{
	struct qp_conf c = *given;

	if (c.type == IBV_QPT_XRC_RECV) {
		c.send_cq = NULL;
		c.max_send_wr = c.max_send_sge = c.max_inline = 0;
		c.pd = 0;
	} else {
		c.xrcd = 0;
		c.listener = NULL;
	}
	if (c.type == IBV_QPT_XRC_RECV || c.type == IBV_QPT_XRC_SEND) {
		c.recv_cq = NULL;
		c.srq = NULL;
		c.max_recv_wr = c.max_recv_sge = 0;
	}
	return c;
}

static bool
cqs_given(const struct qp_conf *c)
{
	if (c->type == IBV_QPT_XRC_RECV)
		return true;
	return c->send_cq != NULL && (c->recv_cq != NULL || c->type == IBV_QPT_XRC_SEND);
}

static int
qp_conf_check(const struct qp_conf *c)
{
	if (!type_known(c->type))
		return -EOPNOTSUPP;
	if (!cqs_given(c) || (c->type == IBV_QPT_XRC_RECV && c->xrcd == 0))
		return -EINVAL;
	if (c->max_send_wr > SQ_MAX_WR || c->max_send_sge > SEND_MAX_SGE ||
		c->max_inline > SEND_MAX_INLINE)
		return -EINVAL;
	if (c->srq == NULL &&
		(c->max_recv_wr > SQ_MAX_WR || c->max_recv_sge > RECV_MAX_SGE))
		return -EINVAL;
	/* A CQ of a thread domain is cleaned while its poller may have a completion. */
	if (srq_has_mbufs(c->srq) && (c->type != IBV_QPT_RC || c->recv_cq->unlocked))
		return -EINVAL;
	return 0;
}

/* An SQ or RQ of 0 requests is legal. Its ring then has one slot. */
static int
rings_init(struct qp *qp, const struct qp_conf *c, const struct alloc *mem)
{
	uint32_t send_wr = RTE_MAX(c->max_send_wr, 1u);
	int rc = sq_init(&qp->sq, mem, send_wr, c->max_send_sge, c->max_inline,
		c->type == IBV_QPT_UD);

	if (rc != 0)
		return rc;
	qp->sq.unlocked = c->unlocked;
	qp->srq = c->srq;
	if (c->srq != NULL || c->type == IBV_QPT_XRC_SEND || c->type == IBV_QPT_XRC_RECV)
		return 0;
	qp->rq = alloc_get(mem, "rq", sizeof(*qp->rq));
	if (qp->rq != NULL) {
		rc = recv_ring_init(
			qp->rq, mem, RTE_MAX(c->max_recv_wr, 1u), c->max_recv_sge);
		if (rc == 0) {
			qp->rq->unlocked = c->unlocked;
			return 0;
		}
		alloc_put(mem, qp->rq, sizeof(*qp->rq));
		qp->rq = NULL;
	}
	sq_fini(&qp->sq);
	return -ENOMEM;
}

static size_t
wqe_bytes(uint32_t max_sge)
{
	/* recv_ring_take() copies one SGE even of a receive without any. */
	return offsetof(struct recv_wqe, sge) + RTE_MAX(max_sge, 1u) * sizeof(struct sge);
}

static void
wqe_free(struct qp *qp)
{
	if (qp->wqe_sges > 1)
		alloc_put(qp->sq.mem, qp->wqe, wqe_bytes(qp->wqe_sges));
}

static int
recv_wqe_alloc(struct qp *qp, uint32_t sges)
{
	struct recv_wqe *wqe = (struct recv_wqe *)qp->wqe_one;

	if (sges == 0)
		return 0;
	if (sges > 1) {
		wqe = alloc_get(qp->sq.mem, "receive", wqe_bytes(sges));
		if (wqe == NULL)
			return -ENOMEM;
	}
	qp->wqe = wqe;
	qp->wqe_sges = (uint8_t)sges;
	return 0;
}

static void
rings_fini(struct qp *qp)
{
	const struct alloc *mem = qp->sq.mem;

	wqe_free(qp);
	sq_fini(&qp->sq);
	if (qp->rq != NULL) {
		recv_ring_fini(qp->rq);
		alloc_put(mem, qp->rq, sizeof(*qp->rq));
	}
}

/* SGEs of the largest receive that the QP may take. */
static uint32_t
receive_sges(const struct qp *qp)
{
	if (qp->type == IBV_QPT_XRC_RECV)
		return RECV_MAX_SGE; /* of any SRQ of its domain */
	if (qp->srq != NULL)
		return RTE_MAX(qp->srq->ring.max_sge, 1u);
	return qp->rq != NULL ? RTE_MAX(qp->rq->max_sge, 1u) : 0;
}

int
qp_init(struct qp *qp, uint32_t qpn, const struct qp_conf *given, const struct alloc *mem,
	struct event_queue *events, void *object)
{
	const struct qp_conf normal = conf_normalise(given), *conf = &normal;
	int rc = qp_conf_check(conf);

	if (rc != 0)
		return rc;
	memset(qp, 0, sizeof(*qp));
	qp->qpn = qpn;
	qp->type = (uint8_t)conf->type;
	qp->op_base = op_base_of(conf->type);
	qp->state = IBV_QPS_RESET;
	qp->pkey = PKEY_DEFAULT;
	qp->untimed = 1; /* the first request is measured */
	qp->pd = conf->pd;
	qp->xrcd = conf->xrcd;
	qp->send_cq = conf->send_cq;
	qp->recv_cq = conf->recv_cq;
	rc = rings_init(qp, conf, mem);
	if (rc != 0)
		return rc;
	qp->sq.always = conf->sq_sig_all ? IBV_SEND_SIGNALED : 0;
	rc = recv_wqe_alloc(qp, receive_sges(qp));
	if (rc != 0) {
		rings_fini(qp);
		return rc;
	}
	async_event_init(&qp->events, events, object);
	if (conf->listener != NULL)
		LIST_INSERT_HEAD(&qp->listeners, conf->listener, link);
	wheel_timer_init(&qp->sched.timer);
	qp_attr_default(qp);
	req_reset(qp, 0);
	resp_reset(qp, 0);
	return 0;
}

void
qp_fini(struct qp *qp)
{
	assert(!qp->sched.on_ready && !qp->sched.on_blocked &&
		!wheel_timer_armed(&qp->sched.timer));
	resp_set_depth(qp, 0);
	qp_counting_end(qp);
	flight_destroy(qp);
	rings_fini(qp);
}
