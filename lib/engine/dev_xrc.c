/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Control calls of XRC: SRQs that packets name by number, target QPs with several
 * handles. */
#include <errno.h>

#include "engine/dev_control.h"
#include "engine/engine_state.h"

uint32_t
dev_xrcd_number(struct dev *dev)
{
	uint32_t n;

	pthread_mutex_lock(&dev->lock);
	n = ++dev->next_xrcd;
	pthread_mutex_unlock(&dev->lock);
	return n;
}

/* Any target QP of the domain may receive from the SRQ, whatever its engine. */
static void
srq_cq_attach(struct dev *dev, struct srq *srq)
{
	srq->shared = dev->engine_count > 1;
	srq->taken_list = &dev->engines[0]->taken_srqs;
	for (unsigned i = 0; i < dev->engine_count; i++)
		cq_attach(srq->cq, i);
}

int
dev_srq_publish(struct dev *dev, struct srq *srq)
{
	int rc;

	pthread_mutex_lock(&dev->lock);
	dev_engines_lock(dev);
	rc = srq_table_put(&dev->srqs, srq);
	if (rc == 0)
		srq_cq_attach(dev, srq);
	dev_engines_unlock(dev);
	pthread_mutex_unlock(&dev->lock);
	return rc == 0 ? 0 : -ENOMEM;
}

void
dev_srq_withdraw(struct dev *dev, struct srq *srq)
{
	pthread_mutex_lock(&dev->lock);
	dev_engines_lock(dev);
	srq_table_remove(&dev->srqs, srq);
	for (uint32_t i = 0; i <= dev->qps.pool.mask; i++) {
		if (dev->qps.slots[i] != NULL)
			qp_forget_srq(dev->qps.slots[i], srq);
	}
	for (unsigned i = 0; i < dev->engine_count; i++)
		cq_detach(srq->cq, i);
	dev_engines_unlock(dev);
	pthread_mutex_unlock(&dev->lock);
}

int
dev_qp_share(struct dev *dev, uint32_t qpn, uint32_t xrcd, struct qp_listener *listener,
	struct qp **out)
{
	struct qp *qp;
	int rc = -EINVAL;

	pthread_mutex_lock(&dev->lock);
	dev_engines_lock(dev);
	qp = qp_table_get(&dev->qps, qpn);
	if (qp != NULL && qp->type == IBV_QPT_XRC_RECV && qp->xrcd == xrcd) {
		LIST_INSERT_HEAD(&qp->listeners, listener, link);
		*out = qp;
		rc = 0;
	}
	dev_engines_unlock(dev);
	pthread_mutex_unlock(&dev->lock);
	return rc;
}

bool
dev_qp_unshare(struct dev *dev, struct qp *qp, struct qp_listener *listener, uint64_t now)
{
	bool last;

	pthread_mutex_lock(&dev->lock);
	dev_engines_lock(dev);
	LIST_REMOVE(listener, link);
	last = LIST_EMPTY(&qp->listeners);
	if (last)
		dev_qp_remove(dev, qp, now);
	dev_engines_unlock(dev);
	pthread_mutex_unlock(&dev->lock);
	return last;
}
