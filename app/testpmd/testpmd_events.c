/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "host.h"

static void
limit_reached(struct host *host)
{
	struct rxq *rxq = &host->rxqs[0];
	struct ibv_srq_attr attr = {.srq_limit = (uint32_t)host->conf->srq_limit};

	host->tally.limit_events++;
	if (!rxq->refill_on_limit)
		return;
	int rc = rxq_post(rxq);
	/* `set srq-limit 0`: no event will come any more */
	rxq->refill_on_limit = attr.srq_limit != 0;
	if (rc == 0 && rxq->refill_on_limit)
		rc = ibv_modify_srq(host->verbs.srq, &attr, IBV_SRQ_LIMIT);
	if (rc != 0)
		host_fail(host, "cannot refill and arm the SRQ: %s", strerror(rc));
	host->tally.refills++;
}

/* Hosts share contexts (lender()), so that one may get the event of the QP or SRQ of another one. */
static struct host *
host_of_qp(struct host *host, uint32_t qpn)
{
	for (unsigned i = 0; i < host->head->n_hosts; i++) {
		if (host_conn(host_at(host->head, i), qpn) != NULL)
			return host_at(host->head, i);
	}
	return host;
}

/* The one that all that receive through the SRQ borrow it of is the first. */
static struct host *
host_of_srq(struct host *host, const struct ibv_srq *srq)
{
	for (unsigned i = 0; i < host->head->n_hosts; i++) {
		if (host_at(host->head, i)->verbs.srq == srq)
			return host_at(host->head, i);
	}
	return host;
}

static void
event_handle(struct host *host, const struct ibv_async_event *event)
{
	struct conn *conn;
	struct host *of;

	switch (event->event_type) {
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		limit_reached(host_of_srq(host, event->element.srq));
		break;
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		of = host_of_qp(host, event->element.qp->qp_num);
		conn = host_conn(of, event->element.qp->qp_num);
		/* pairs with conn_is_flushed(): its completions are in the CQ */
		if (conn != NULL)
			__atomic_store_n(&conn->last_wqe, true, __ATOMIC_RELEASE);
		break;
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		of = host_of_qp(host, event->element.qp->qp_num);
		/* Another core uses its own hosts. */
		host_fail(of->core == host->core ? of : host, "QP 0x%x: %s",
			event->element.qp->qp_num, ibv_event_type_str(event->event_type));
		break;
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_DEVICE_FATAL:
		host_fail(host, "%s", ibv_event_type_str(event->event_type));
		break;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_GID_CHANGE:
		/* On stderr, apart from the results: a link may come up after the
		 * start. Each context gets it. */
		if (lender(host) != host->head)
			break;
		fprintf(stderr, "port %" PRIu64 ": %s\n", host->pc->port,
			ibv_event_type_str(event->event_type));
		break;
	default:
		host_log(host, "%s", ibv_event_type_str(event->event_type));
	}
}

void
host_events(struct host *host)
{
	struct ibv_async_event event;

	/* async_fd does not block. Stops after a limit event: while consumed receives are
	 * not polled yet, there is nothing to refill the SRQ with, and the limit that the
	 * handler armed again fires at once. Only polling the receive CQ, in the next
	 * pass, ends that. */
	while (ibv_get_async_event(host->verbs.ctx, &event) == 0) {
		struct ibv_async_event copy = event;

		/* Acknowledged before it is handled, so that no call of the handler can
		 * wait for the acknowledgement. Only port_close() destroys the objects,
		 * so that the event's stays valid. */
		ibv_ack_async_event(&event);
		event_handle(host, &copy);
		if (copy.event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
			break;
	}
}
