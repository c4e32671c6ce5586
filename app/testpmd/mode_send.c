/* SPDX-License-Identifier: BSD-3-Clause */
/* --mode send. First sends one signaled message on every QP, repeated until the peer
 * acknowledges it (--wait). Then posts one list per QP, round robin. */
#include <inttypes.h>

#include "mode_send.h"
#include "tx_op.h"

void
send_start(struct host *host)
{
	host->n_answered = 0;
	host->path.resolve_rc = -1;
	host->idle_since_ns = 0;
	tx_op_start(host);
	for (unsigned i = 0; i < host->n_conns; i++) {
		struct conn *conn = &host->conns[i];
		uint64_t share = host_share(host, conn);

		conn->answered = share == 0;
		host->n_answered += conn->answered;
		conn->limit = share == UINT64_MAX ? UINT64_MAX : conn->posted + share;
	}
}

static unsigned
send_reap(struct host *host)
{
	unsigned n = tx_reap(host);

	if (host->exchange.on)
		n += exchange_poll(host);
	host->tally.messages = host->tally.sent;
	host->tally.bytes = host->tally.sent_bytes;
	return n;
}

/* The first message. It is signaled, as it is the last one below the temporary limit. */
static unsigned
first_message_send(struct host *host, struct conn *conn)
{
	uint64_t limit = conn->limit;

	if (conn->posted != conn->acked || conn->answered || conn->failed)
		return 0;
	if (host->follows && conn->received == 0)
		return 0;
	conn->limit = conn->posted + 1;
	unsigned n = tx_post(host, conn, 1);
	conn->limit = limit;
	return n;
}

unsigned
send_push(struct host *host)
{
	unsigned moved = 0;

	if (host->state == HOST_WAITING && host->exchange.on) {
		return 0; /* an answer to HELLO begins the run */
	} else if (host->state == HOST_WAITING && host->path.resolve_rc == 0) {
		for (unsigned i = 0; i < host->n_conns; i++)
			moved += first_message_send(host, &host->conns[i]);
		if (host->n_answered == host->n_conns)
			host_set_running(host);
	} else if (host->rate.on && host->state == HOST_RUNNING) {
		moved = rate_push(host);
	} else if (host->state == HOST_RUNNING || host->state == HOST_DRAINING) {
		for (unsigned i = 0; i < host->n_conns; i++)
			moved += tx_post_burst(host, &host->conns[i]);
	}
	return moved;
}

/* Where the last message is not signaled, sends one more that is: its completion is the
 * only evidence that those before it arrived. */
void
send_stop(struct host *host)
{
	if (host->state == HOST_WAITING) {
		host_fail(host, "stopped before %s answered", host_peer(host));
		return;
	}
	for (unsigned i = 0; i < host->n_conns; i++) {
		struct conn *conn = &host->conns[i];
		uint64_t limit = conn->posted + (conn->unsignaled != 0);

		if (limit < conn->limit)
			conn->limit = limit;
	}
	rate_stop(host);
	host->state = HOST_DRAINING;
	host->drain_ns = clock_ns();
}

static bool
send_all_acked(const struct host *host)
{
	for (unsigned i = 0; i < host->n_conns; i++) {
		if (host->conns[i].acked != host->conns[i].limit)
			return false;
	}
	return true;
}

bool
send_finished(struct host *host, uint64_t now_ns)
{
	if (!send_all_acked(host))
		return false;
	if (!host->exchange.on)
		return true;
	if (host->tally.last_ns == 0)
		host->tally.last_ns = now_ns;
	if (host->state == HOST_RUNNING) {
		host->state = HOST_DRAINING;
		host->drain_ns = now_ns;
	}
	return exchange_finish(host, now_ns);
}

void
send_drain_fail(struct host *host)
{
	uint64_t missing = 0;

	for (unsigned i = 0; i < host->n_conns; i++)
		missing += host->conns[i].posted - host->conns[i].acked;
	if (missing == 0) {
		host_fail(host,
			"%s has not told for %u s whether it has received all right",
			host_peer(host), (unsigned)(DRAIN_NS / NS_PER_SECOND));
		return;
	}
	host_fail(host,
		"%" PRIu64 " messages to %s are not acknowledged %u s after the last "
		"post: %s",
		missing, host_peer(host), (unsigned)(DRAIN_NS / NS_PER_SECOND),
		host->conf->signal_every == 0
			? "with --signal-every 0 no request is signaled"
			: "the peer has no receive posted for them");
}

static void
send_wait(struct host *host, uint64_t now_ns)
{
	if (host_wait_over(host, now_ns, "did not answer") ||
		!host_resolved(host, now_ns))
		return;
	if (!host->exchange.on)
		host_retry(host);
	else if (!host->follows || host->exchange.asked.agreed)
		exchange_hello(host, now_ns);
}

bool
send_step(struct host *host, uint64_t now_ns)
{
	if (host->state == HOST_WAITING)
		send_wait(host, now_ns);
	else if (host_duration_over(host, now_ns))
		send_stop(host);
	if (host->state != HOST_RUNNING && host->state != HOST_DRAINING)
		return false;
	host_watch_link(host, now_ns);
	return host->state != HOST_FAILED;
}

static void
send_tick(struct host *host, uint64_t now_ns)
{
	if (!send_step(host, now_ns))
		return;
	if (host->exchange.on)
		exchange_tick(host, now_ns);
	if (host->state == HOST_FAILED)
		return;
	if (send_finished(host, now_ns))
		host_set_done(host);
	else if (host->state == HOST_DRAINING &&
		 elapsed_ns(now_ns, host->drain_ns) > DRAIN_NS)
		send_drain_fail(host);
}

const struct mode_ops send_ops = {.sends = true,
	.paced = true,
	.start = send_start,
	.reap = send_reap,
	.push = send_push,
	.stop = send_stop,
	.tick = send_tick};
