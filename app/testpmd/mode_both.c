/* SPDX-License-Identifier: BSD-3-Clause */
/* --mode both: each end sends as --mode send does, and receives. The end with the lower address begins on
 * each QP: it resets QPs until the peer answers, which would lose what it has received. An end whose
 * messages are acknowledged goes on to receive until it has all (--count) or, where the ends tell each other
 * more, until the peer has told the end of its run, and until the peer has been silent for a moment. */
#include <inttypes.h>

#include "mode_send.h"
#include "testpmd_rx.h"

#define STOP_TAIL_NS NS_PER_SECOND /* a peer that is not stopped goes on to send */

static void
both_start(struct host *host)
{
	host->stopping = false;
	send_start(host);
	rx_start(host);
}

static unsigned
both_reap(struct host *host)
{
	unsigned n = tx_reap(host) + rx_reap(host, NULL);

	return n + (host->exchange.on ? exchange_poll(host) : 0);
}

static void
both_stop(struct host *host)
{
	host->stopping = true;
	if (host->state == HOST_WAITING || host->state == HOST_RUNNING)
		send_stop(host);
}

/* Whether all messages of the peer have come. Fails the host if none has for --wait seconds. */
static bool
all_received(struct host *host, uint64_t now_ns)
{
	const struct conf *conf = host->conf;
	uint64_t idle_ns = host_idle_for(host, host->tally.messages, now_ns);

	if (conf->count == 0)
		return false;
	if (host->tally.messages >= host_count(host))
		return true;
	if (conf->wait_s != 0 && idle_ns > conf->wait_s * NS_PER_SECOND)
		host_fail(host,
			"%s sent nothing more for %" PRIu64 " s: %" PRIu64 " of %" PRIu64
			" messages arrived",
			host_peer(host), conf->wait_s, host->tally.messages,
			host_count(host));
	return false;
}

/* Whether the peer has told the end of its run, or this end has been stopped. Fails the host if the peer is
 * silent, or goes on for long after --duration. */
static bool
peer_has_ended(struct host *host, uint64_t now_ns)
{
	const struct exchange_asked *asked = &host->exchange.asked;

	if (asked->ended || host->stopping)
		return true;
	if (elapsed_ns(now_ns, asked->heard_ns) > DRAIN_NS ||
		(host->conf->duration_s != 0 &&
			elapsed_ns(now_ns, host->drain_ns) > DRAIN_NS))
		host_fail(host, "%s has not told the end of its run", host_peer(host));
	return false;
}

static bool
both_finished(struct host *host, uint64_t now_ns)
{
	if (!send_finished(host, now_ns))
		return false;
	if (host->exchange.on)
		return peer_has_ended(host, now_ns);
	return host->state != HOST_RUNNING || all_received(host, now_ns);
}

static void
both_linger(struct host *host, uint64_t now_ns)
{
	/* The rate is that of the time in which messages came. */
	if (host->tally.messages != host->lingered) {
		host->lingered = host->tally.messages;
		host->tally.last_ns = now_ns;
	}
	host_linger(host, now_ns);
	if (host->state != HOST_DONE && host->stopping &&
		elapsed_ns(now_ns, host->drain_ns) >= STOP_TAIL_NS)
		host->state = HOST_DONE;
	if (host->state == HOST_DONE)
		rx_drain(host);
}

static void
both_tick(struct host *host, uint64_t now_ns)
{
	if (host->state == HOST_LINGERING) {
		both_linger(host, now_ns);
		return;
	}
	exchange_watch(host, now_ns);
	if (!host_active(host) || !send_step(host, now_ns))
		return;
	if (host->exchange.on)
		exchange_tick(host, now_ns);
	if (host->state == HOST_FAILED)
		return;
	if (both_finished(host, now_ns)) {
		host->tally.last_ns = now_ns;
		host->lingered = host->tally.messages;
		host->state = HOST_LINGERING;
		host->drain_ns = now_ns;
		host->idle_since_ns = 0;
	} else if (host->state == HOST_DRAINING && !host->exchange.ended &&
		   elapsed_ns(now_ns, host->drain_ns) > DRAIN_NS) {
		send_drain_fail(host);
	}
}

const struct mode_ops both_ops = {.sends = true,
	.receives = true,
	.paced = true,
	.start = both_start,
	.reap = both_reap,
	.push = send_push,
	.stop = both_stop,
	.tick = both_tick};
