/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"
#include "cover.h"
#include "event.h"

static void
qp_event_seen(struct end *e, enum ibv_event_type type)
{
	end_sync(e);
	switch (type) {
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		e->last_wqe_got++;
		CHECK(e->last_wqe_got <= e->last_wqe,
			"end %u: a LAST_WQE_REACHED too many", e->number);
		break;
	case IBV_EVENT_SQ_DRAINED:
		CHECK(e->drain_wanted && !e->drained,
			"end %u: SQ_DRAINED, which was not requested", e->number);
		e->drained = true;
		break;
	case IBV_EVENT_COMM_EST:
		CHECK(e->state >= IBV_QPS_RTR, "end %u: COMM_EST in state %u", e->number,
			e->state);
		break;
	default:
		CHECK(e->conn->fault || e->scq->broken || e->rcq->broken,
			"end %u: %s without a cause", e->number,
			ibv_event_type_str(type));
		break;
	}
}

void
event_seen(struct host *h, const struct ibv_async_event *event)
{
	TRACE("host %" PRIu64 ": event %s", h->index,
		TRACE_S(ibv_event_type_str(event->event_type)));
	cover.event[(unsigned)event->event_type % COVER_EVENTS]++;
	switch (event->event_type) {
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		((struct recv_model *)event->element.srq->srq_context)->limit_events++;
		break;
	case IBV_EVENT_CQ_ERR:
		((struct cq_model *)event->element.cq->cq_context)->broken = true;
		break;
	case IBV_EVENT_SRQ_ERR:
		sim_fail("host %u: SRQ_ERR", h->index);
	default:
		/* A victim of the adversary may get any event. */
		if (end_of_qp(event->element.qp) != NULL)
			qp_event_seen(end_of_qp(event->element.qp), event->event_type);
		break;
	}
}
