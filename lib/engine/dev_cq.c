/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Control calls on CQs. */
#include "engine/dev_control.h"
#include "engine/pass.h"
#include "engine/sched.h"

/* Sends what was posted before to QPs whose requests complete when they are sent: an
 * adapter has done so by then, and its completions count against a smaller CQ. */
static void
cq_sends_finish(struct dev *dev, const struct cq *cq, uint64_t now)
{
	for (uint32_t i = 0; i <= dev->qps.pool.mask; i++) {
		struct qp *qp = dev->qps.slots[i];

		if (qp != NULL && qp->send_cq == cq && !qp_reliable(qp))
			engine_finish_qp(qp->sched.engine, qp, now);
	}
}

int
dev_cq_resize(struct dev *dev, struct cq *cq, uint32_t cqe, uint64_t now)
{
	struct app_locks locks = {.count = 0};
	uint32_t engines;
	struct cq other;
	int rc;

	pthread_mutex_lock(&dev->lock); /* excludes another resize */
	rc = cq_init_like(cq, cqe, &other);
	pthread_mutex_unlock(&dev->lock);
	if (rc != 0)
		return rc;
	cq_add_lock(cq, &locks);
	dev_lock_with(dev, &locks);
	engines = cq_engines(cq);
	dev_engines_lock_of(dev, engines);
	if (cqe < cq->size)
		cq_sends_finish(dev, cq, now);
	rc = cq_replace(cq, &other, cqe);
	dev_engines_unlock_of(dev, engines);
	dev_unlock_with(dev, &locks);
	cq_fini(&other);
	return rc;
}

void
dev_cq_moderate(struct dev *dev, struct cq *cq, uint16_t count, uint16_t period_us)
{
	dev_engines_lock(dev);
	cq_moderate(cq, count, period_us);
	dev_engines_unlock(dev);
}

void
dev_cq_fail(struct dev *dev, struct cq *cq)
{
	pthread_mutex_lock(&dev->lock);
	dev_engines_lock(dev);
	for (uint32_t i = 0; i <= dev->qps.pool.mask; i++) {
		struct qp *qp = dev->qps.slots[i];

		if (qp == NULL || (qp->send_cq != cq && qp->recv_cq != cq) ||
			qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_ERR)
			continue;
		qp_fail(qp);
		engine_schedule(qp->sched.engine, qp);
	}
	dev_engines_unlock(dev);
	pthread_mutex_unlock(&dev->lock);
}
