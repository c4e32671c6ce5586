/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "qp/req_time.h"
#include "qp/wr_row.h"

static_assert(LATENCY_OP_send == 0 && LATENCY_OP_read == WR_READ - WR_SEND &&
		      LATENCY_OP_flush == WR_FLUSH - WR_SEND,
	"operations are in the order of enum wr_kind");

static inline uint64_t *
since_of(const struct qp *qp)
{
	return &qp->shared->times->since_ns[qp->qpn % REQ_TIMES];
}

static inline enum latency_type
type_of(const struct qp *qp)
{
	return qp->type == IBV_QPT_RC   ? LATENCY_TYPE_RC
	       : qp->type == IBV_QPT_UC ? LATENCY_TYPE_UC
					: LATENCY_TYPE_XRC;
}

uint32_t
req_time_start(struct qp *qp)
{
	uint64_t *since;

	qp->untimed = REQ_TIME_EVERY;
	if (unlikely(qp->shared->times == NULL))
		return 0;
	since = since_of(qp);
	/* that of this QP, too */
	if (*since != 0)
		return 0;
	*since = RTE_MAX(qp->shared->now, UINT64_C(1));
	qp->timed = true;
	return PSN_RANGE_TIMED;
}

void
req_time_end(struct qp *qp)
{
	const struct send_wqe *wqe = sq_slot(&qp->sq, qp->req.una_idx);
	unsigned op = wr_row(wqe)->kind - (unsigned)WR_SEND;
	uint64_t *since = since_of(qp);
	uint64_t now = qp->shared->now;

	assert(op < LATENCY_OPS);
	/* The pass of a post may begin before an earlier one that read the clock later. */
	latency_count(&qp->shared->times->latencies->of[type_of(qp)][op],
		likely(now > *since) ? now - *since : 0);
	*since = 0;
	qp->timed = false;
}

void
req_time_drop(struct qp *qp)
{
	qp->untimed = 1;
	if (!qp->timed)
		return;
	*since_of(qp) = 0;
	qp->timed = false;
}

bool
req_times_idle(const struct req_times *times)
{
	for (unsigned i = 0; i < REQ_TIMES; i++)
		if (times->since_ns[i] != 0)
			return false;
	return true;
}
