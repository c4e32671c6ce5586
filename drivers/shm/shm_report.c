/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics of this process for the daemon, written by the progress thread on
 * request. */
#include <string.h>

#include "engine/clock.h"
#include "engine/engine.h"
#include "qp/send_age.h"
#include "shm/shm.h"

#define CHUNK 64 /* QPs read before the engine locks are released once */

static void
srq_fill(const struct srq *srq, struct report_srq *row)
{
	*row = (struct report_srq){.srqn = srq->srqn,
		.fill = recv_ring_outstanding(&srq->ring),
		.size = srq->ring.max_wr,
		.limit = srq_limit(srq),
		.qps = srq->qps,
		.xrc = srq->xrcd != 0,
		.error = srq_failed(srq),
		.limit_events = __atomic_load_n(&srq->limit_fired, __ATOMIC_RELAXED)};
}

static void
qp_fill(struct qp *qp, struct report_qp *row, uint64_t now)
{
	struct send_ages ages;

	send_ages(qp, now, &ages);
	*row = (struct report_qp){.qpn = qp->qpn,
		.dest_qpn = qp->dest_qpn,
		.srqn = qp->srq != NULL ? qp->srq->srqn : 0,
		.sq_fill = sq_posted(&qp->sq) -
			   __atomic_load_n(&qp->sq.freed, __ATOMIC_RELAXED),
		.sq_size = qp->sq.max_wr,
		.type = qp->type,
		.state = qp->state,
		.sq_unacked_ns = ages.unacked_ns,
		.sq_unsignaled_ns = ages.unsignaled_ns,
		.stats = qp->stats};
	if (qp->rq != NULL) {
		row->rq_fill = recv_ring_outstanding(qp->rq);
		row->rq_size = qp->rq->max_wr;
	}
}

static uint32_t
srqs_fill(const struct dev *dev, struct report *report)
{
	const struct srq *srq;
	uint32_t n = 0;

	LIST_FOREACH(srq, &dev->srq_list, link)
	{
		if (n < REPORT_SRQS)
			srq_fill(srq, &report->srqs[n]);
		n++;
	}
	return n;
}

/* Releases the engine locks after each chunk, so that posts and polls are not delayed by
 * the whole scan. */
static uint32_t
qps_fill(struct dev *dev, struct report *report)
{
	uint32_t n = 0;
	uint64_t now;

	dev_engines_lock(dev);
	now = clock_now(); /* behind the lock: what is posted then was there */
	for (uint32_t i = 0; i <= dev->qps.pool.mask && n < dev->qps.count; i++) {
		if (dev->qps.slots[i] == NULL)
			continue;
		if (n < REPORT_QPS)
			qp_fill(dev->qps.slots[i], &report->qps[n], now);
		if (++n % CHUNK == 0) {
			dev_engines_unlock(dev);
			dev_engines_lock(dev);
			now = clock_now();
		}
	}
	dev_engines_unlock(dev);
	return n;
}

/* Fills the row at *arg, and advances to the next. */
static void
peer_fill(const struct peer_info *peer, void *arg)
{
	struct peer_info **next = arg;

	*(*next)++ = *peer;
}

void
report_flight_write(struct dev *dev, uint32_t qpn, uint32_t requested_gen,
	struct report_flight *flight)
{
	struct qp *qp;

	/* The device lock: no QP is destroyed. */
	pthread_mutex_lock(&dev->lock);
	qp = qp_table_get(&dev->qps, qpn);
	if (qp == NULL)
		flight->state = REPORT_FLIGHT_NO_QP;
	else if (dev_qp_events(qp, &flight->copy))
		flight->state = REPORT_FLIGHT_KEPT;
	else
		flight->state = REPORT_FLIGHT_OFF;
	pthread_mutex_unlock(&dev->lock);
	/* Pairs with the acquire in the daemon's flight_part(). */
	__atomic_store_n(&flight->written_gen, requested_gen, __ATOMIC_RELEASE);
}

void
report_write(struct dev *dev, uint32_t requested_gen, struct report *report)
{
	struct peer_info *peers = report->peers;

	/* The device lock: no QP and no SRQ is created or destroyed. */
	pthread_mutex_lock(&dev->lock);
	report->srq_count = srqs_fill(dev, report);
	report->qp_count = qps_fill(dev, report);
	pthread_mutex_unlock(&dev->lock);
	report->peer_count = dev_peers_each(dev, REPORT_PEERS, peer_fill, &peers);
	dev_stats(dev, &report->stats);
	(void)dev_slowest_begin(dev);
	/* Pairs with the acquire in the daemon's report_is_written(). */
	__atomic_store_n(&report->written_gen, requested_gen, __ATOMIC_RELEASE);
}
