/* SPDX-License-Identifier: BSD-3-Clause */
/* --mode sink: receives, from the first message on. */
#include "testpmd_rx.h"

static void
sink_start(struct host *host)
{
	host->idle_since_ns = 0;
	rx_start(host);
}

static unsigned
sink_reap(struct host *host)
{
	unsigned n = rx_reap(host, NULL);

	if (host->exchange.mws)
		n += tx_reap(host); /* binds */
	if (host->exchange.on)
		n += exchange_poll(host);
	if (host->state == HOST_WAITING && host->tally.messages != 0)
		host_set_running(host);
	return n;
}

static unsigned
sink_push(struct host *host)
{
	(void)host;
	return 0;
}

/* Counts what has already arrived. The receives stay posted. */
static void
sink_stop(struct host *host)
{
	rx_drain(host);
	host_require_heard(host, false, clock_ns());
	if (host->state != HOST_FAILED)
		host_set_done(host);
}

static void
sink_tick(struct host *host, uint64_t now_ns)
{
	host_watch_restart(host, now_ns);
	exchange_watch(host, now_ns);
	if (host_active(host))
		host_tick_passive(host, now_ns);
}

const struct mode_ops sink_ops = {.receives = true,
	.start = sink_start,
	.reap = sink_reap,
	.push = sink_push,
	.stop = sink_stop,
	.tick = sink_tick};
