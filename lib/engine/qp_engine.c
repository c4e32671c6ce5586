/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <string.h>

#include "engine/sched.h"
#include "engine/pass.h"
#include "engine/qp_engine.h"
#include "port/rss.h"
#include "wire/build.h"
#include "wire/hdr.h"

/* Tells the QP's queues which engine uses them. */
static void
queues_attach(struct qp *qp, struct engine *e)
{
	if (qp->type == IBV_QPT_XRC_RECV)
		/* dev_srq_publish() has attached the CQs of its SRQs to every engine */
		return;
	cq_attach(qp->send_cq, e->index);
	if (qp->recv_cq != NULL)
		cq_attach(qp->recv_cq, e->index);
	if (qp->srq != NULL)
		srq_attach(qp->srq, e->index, &e->taken_srqs);
}

static void
queues_detach(struct qp *qp, unsigned engine)
{
	if (qp->type == IBV_QPT_XRC_RECV)
		return;
	cq_detach(qp->send_cq, engine);
	if (qp->recv_cq != NULL)
		cq_detach(qp->recv_cq, engine);
	if (qp->srq != NULL)
		srq_detach(qp->srq, engine);
}

uint32_t
qp_queue_engines(const struct qp *qp)
{
	uint32_t engines;

	if (qp->type == IBV_QPT_XRC_RECV)
		return 0;
	engines = cq_engines(qp->send_cq);
	if (qp->recv_cq != NULL)
		engines |= cq_engines(qp->recv_cq);
	if (qp->srq != NULL)
		engines |= srq_engines(qp->srq);
	return engines;
}

void
engine_attach(struct engine *e, struct qp *qp)
{
	/* dev_qp_lock() reads it without a lock. */
	__atomic_store_n(&qp->sched.engine, e, __ATOMIC_RELAXED);
	qp->shared = &e->shared;
	queues_attach(qp, e);
	multipath_attach(qp);
	doorbells_enable(&e->doorbells, qp->sq.doorbell);
}

void
engine_detach(struct qp *qp)
{
	struct engine *e = qp->sched.engine;

	engine_forget(e, qp);
	queues_detach(qp, e->index);
	multipath_detach(qp);
}

/* Returns the queue that receives the packets of this connection, or -1. */
static int
connection_queue(const struct dev *dev, const struct qp *qp, const struct qp_attr *attr)
{
	struct port_flow flow = {
		/* The rule is symmetric: it is the port of the peer's packets, too. RDMA-CM gives
		 * both ends one flow label. */
		.sport = roce_udp_sport(attr->path.flow_label, attr->dest_qpn, qp->qpn),
		.dport = ROCE_UDP_PORT,
	};

	memcpy(flow.src, attr->path.dgid, sizeof(flow.src));
	memcpy(flow.dst, attr->path.sgid, sizeof(flow.dst));
	return dev->port.ops->flow_queue(dev->port.drv, &flow);
}

struct engine *
engine_steer_choose(
	const struct dev *dev, const struct qp *qp, const struct qp_attr *attr, int mask)
{
	int queue;

	if (dev->engine_count == 1 || dev->port.ops->flow_queue == NULL ||
		qp_state(qp) != IBV_QPS_INIT || !(mask & IBV_QP_STATE) ||
		attr->state != IBV_QPS_RTR || qp->type == IBV_QPT_UD ||
		qp->sched.engine_chosen)
		return NULL;
	queue = connection_queue(dev, qp, attr);
	if (queue < 0 || (unsigned)queue >= dev->engine_count)
		return NULL;
	return dev->engines[queue];
}

bool
engine_steer(struct dev *dev, struct qp *qp, struct engine *to,
	const struct qp_attr *attr, int mask)
{
	if (qp_modify_check(qp, attr, mask, dev->active_mtu) != 0)
		return false;
	if (qp->sched.engine != to) {
		engine_detach(qp);
		engine_attach(to, qp);
	}
	return true;
}
