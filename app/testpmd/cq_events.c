/* SPDX-License-Identifier: BSD-3-Clause */
/* --events: a CQ is polled only after its completion event, until it is empty. */
#include <errno.h>
#include <fcntl.h>

#include "host.h"

struct ibv_comp_channel *
cq_channel_open(struct ibv_context *ctx)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);

	if (channel != NULL)
		fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
	return channel;
}

/* Notes which CQs have events. The context of a CQ is its flag. */
static void
events_take(struct host *host)
{
	struct ibv_cq *cq;
	void *ready;

	while (ibv_get_cq_event(host->verbs.channel, &cq, &ready) == 0) {
		*(bool *)ready = true;
		host->tally.cq_events++;
		ibv_ack_cq_events(cq, 1);
	}
}

int
host_poll_ready(struct host *host, struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	bool *ready = cq->cq_context;
	int polled;

	if (!*ready)
		events_take(host);
	/* A drain is for what has completed, whether its event has come or not. */
	if (!*ready && !host->drains)
		return 0;
	polled = ibv_poll_cq(cq, n, wc);
	if (polled != 0)
		return polled;
	/* A completion that comes before the CQ is armed raises no event. */
	*ready = false;
	if (ibv_req_notify_cq(cq, 0) != 0)
		return -1;
	polled = ibv_poll_cq(cq, n, wc);
	*ready = polled > 0;
	return polled;
}
