/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a host, its error, and asynchronous events. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "host.h"

void
host_log(const struct host *host, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("port %" PRIu64 ": ", host->pc->port);
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

static void
error_record(struct host *host, const char *format, va_list args)
{
	if (host->reason[0] != '\0')
		return;
	vsnprintf(host->reason, sizeof(host->reason), format, args);
	fflush(stdout);
	fprintf(stderr, "port %" PRIu64 ": %s\n", host->pc->port, host->reason);
}

void
host_set_error(struct host *host, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	error_record(host, format, args);
	va_end(args);
}

void
host_fail(struct host *host, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	error_record(host, format, args);
	va_end(args);
	host->reconnect = true;
	if (host->state != HOST_FAILED)
		host->tally.last_ns = clock_ns();
	host->state = HOST_FAILED;
}

/* Returns the connection of the QP that an event names. */
static struct conn *
conn_of_qp(struct host *host, const struct ibv_qp *qp)
{
	return host_conn(host, qp->qp_num);
}

static void
limit_reached(struct host *host)
{
	struct rxq *rxq = &host->rxqs[0];
	struct ibv_srq_attr attr = {.srq_limit = (uint32_t)host->conf->srq_limit};

	host->tally.limit_events++;
	if (!rxq->refill_on_limit)
		return;
	int rc = rxq_post(rxq);
	if (rc == 0)
		rc = ibv_modify_srq(host->srq, &attr, IBV_SRQ_LIMIT);
	if (rc != 0)
		host_fail(host, "cannot refill and arm the SRQ: %s", strerror(rc));
	host->tally.refills++;
}

static void
event_handle(struct host *host, const struct ibv_async_event *event)
{
	struct conn *conn;

	switch (event->event_type) {
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		limit_reached(host);
		break;
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		conn = conn_of_qp(host, event->element.qp);
		if (conn != NULL)
			conn->last_wqe = true;
		break;
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		host_fail(host, "QP 0x%x: %s", event->element.qp->qp_num,
			ibv_event_type_str(event->event_type));
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
		 * start. */
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
	while (ibv_get_async_event(host->ctx, &event) == 0) {
		struct ibv_async_event copy = event;

		/* Acknowledged before it is handled, so that no call of the handler can
		 * wait for the acknowledgement. Only host_close() destroys the objects,
		 * so that the event's stays valid. */
		ibv_ack_async_event(&event);
		event_handle(host, &copy);
		if (copy.event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
			break;
	}
}
