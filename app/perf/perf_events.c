/* SPDX-License-Identifier: BSD-3-Clause */
/* --events: the receiving thread sleeps. Its engine is run by the worker lcore, or by the
 * library behind --device. */
#include <poll.h>
#include <sched.h>
#include <string.h>

#include <rte_lcore.h>

#include "perf_context.h"

#define WAIT_MS 1000

int
events_launch(struct bed *bed)
{
	unsigned lcore = rte_get_next_lcore(-1, 1, 0);

	if (lcore >= RTE_MAX_LCORE) {
		bed_blame(bed, "--events needs a worker lcore for the engine: start "
			       "EAL with --lcores 0@0,1@0");
		return -1;
	}
	if (rocade_engine_launch(rocade_port_engine(bed->port, 0), lcore) != 0) {
		bed_blame(bed, "--events: %s", rocade_error());
		return -1;
	}
	bed->lcore = lcore;
	return 0;
}

/* The engine may share a core with this thread, and a woken thread must not wait for the
 * engine's time slice to end. Raised only between opening and closing: control calls wait
 * for the engine, which must then be able to run. */
void
events_first(struct bed *bed, bool first)
{
	struct sched_param param = {.sched_priority = first ? 1 : 0};

	if (bed->lcore != 0 &&
		sched_setscheduler(0, first ? SCHED_FIFO : SCHED_OTHER, &param) != 0)
		bed_blame(bed, "--events needs permission to use SCHED_FIFO (run as "
			       "root)");
}

/* Arms the CQ and returns, so that the caller polls once more; the next call sleeps. */
bool
events_wait(struct bed *bed, struct msg *msg)
{
	struct pollfd fds[2] = {{.fd = bed->channel->fd, .events = POLLIN},
		{.fd = bed->link, .events = POLLIN}};
	struct ibv_cq *cq;
	void *context;

	if (!bed->armed) {
		bed->armed = ibv_req_notify_cq(bed->recv_cq, 0) == 0;
		return false;
	}
	if (poll(fds, 2, WAIT_MS) <= 0) {
		/* A failed request may be the reason that nothing arrives. */
		bed->gone |= bed_reap(bed) < 0;
		*msg = (struct msg){.kind = MSG_GONE};
		return bed->gone;
	}
	if (fds[0].revents != 0 && ibv_get_cq_event(bed->channel, &cq, &context) == 0) {
		ibv_ack_cq_events(cq, 1);
		bed->armed = false;
	}
	if (fds[1].revents == 0 || !link_poll(bed->link, msg))
		return false;
	bed->gone |= msg->kind == MSG_GONE;
	return true;
}
