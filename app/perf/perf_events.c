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
events_engine_launch(struct perf_context *ctx)
{
	unsigned lcore = rte_get_next_lcore(-1, 1, 0);

	if (lcore >= RTE_MAX_LCORE)
		return perf_set_error(ctx,
			"--events needs a worker lcore for the engine: start "
			"EAL with --lcores 0@0,1@0");
	if (rocade_engine_launch(rocade_port_engine(ctx->port, 0), lcore) != 0)
		return perf_set_error(ctx, "--events: %s", rocade_error());
	ctx->lcore = lcore;
	return 0;
}

/* The engine may share a core with this thread, and a woken thread must not wait for the
 * engine's time slice to end. The priority is raised only between opening and closing:
 * control calls wait for the engine, which must then be able to run. */
int
events_set_priority(struct perf_context *ctx, bool first)
{
	struct sched_param param = {.sched_priority = first ? 1 : 0};

	if (ctx->lcore == 0 ||
		sched_setscheduler(0, first ? SCHED_FIFO : SCHED_OTHER, &param) == 0)
		return 0;
	ctx->code = EXIT_ENVIRONMENT;
	return perf_set_error(
		ctx, "--events needs permission to use SCHED_FIFO (run as root)");
}

void
events_engine_stop(struct perf_context *ctx)
{
	if (ctx->lcore == 0)
		return;
	/* The engine's thread has to run once more to see that it should stop. */
	(void)events_set_priority(ctx, false);
	rocade_engine_stop(rocade_port_engine(ctx->port, 0));
	ctx->lcore = 0;
}

/* Arms the CQ and returns, so that the caller polls once more; the next call sleeps. */
bool
events_sleep(struct perf_context *ctx, struct msg *msg)
{
	struct pollfd fds[2] = {{.fd = ctx->verbs.channel->fd, .events = POLLIN},
		{.fd = ctx->link, .events = POLLIN}};
	struct ibv_cq *cq;
	void *context;

	if (!ctx->armed) {
		ctx->armed = ibv_req_notify_cq(ctx->verbs.recv_cq, 0) == 0;
		return false;
	}
	if (poll(fds, 2, WAIT_MS) <= 0)
		return perf_check(ctx, msg);
	if (fds[0].revents != 0 &&
		ibv_get_cq_event(ctx->verbs.channel, &cq, &context) == 0) {
		ibv_ack_cq_events(cq, 1);
		ctx->armed = false;
	}
	if (fds[1].revents == 0 || !link_poll(ctx->link, msg))
		return false;
	ctx->disconnected |= msg->kind == MSG_DISCONNECTED;
	return true;
}
