/* SPDX-License-Identifier: BSD-3-Clause */
/* --mode pingpong: one message per QP is in flight. The end with the lower address sends
 * first. The other end (passive) replies. Latency is half of a round trip. */
#include <inttypes.h>

#include "testpmd_rx.h"

#define LOST_NS (2 * NS_PER_SECOND)

static void
pingpong_start(struct host *host)
{
	host->idle_since_ns = 0;
	host->path.resolve_rc = -1;
	host->n_replies_pending = 0;
	hist_clear(&host->hist);
	for (unsigned i = 0; i < host->n_conns; i++)
		host->conns[i].reply_pending = false;
	rx_start(host);
}

/* Sends the QP's message, or marks it as pending while the send queue is full: the ACK that
 * frees a slot may arrive after the message that is to be answered. */
static unsigned
pingpong_send(struct host *host, struct conn *conn)
{
	bool full = conn->posted - conn->acked >= host->tx.depth;

	if (full && host->conf->signal_every != 0) {
		host->n_replies_pending += !conn->reply_pending;
		conn->reply_pending = true;
		return 0;
	}
	host->n_replies_pending -= conn->reply_pending;
	conn->reply_pending = false;
	return tx_post(host, conn, 1);
}

static void
pingpong_taken(struct host *host, struct conn *conn)
{
	uint64_t now_ns;

	if (conn->failed)
		return;
	if (host->passive) {
		pingpong_send(host, conn);
		return;
	}
	now_ns = clock_ns();
	hist_add(&host->hist, elapsed_ns(now_ns, conn->sent_ns) / 2);
	conn->sent_ns = now_ns;
	if (host->tally.first_ns == 0)
		host->tally.first_ns = now_ns;
	host->tally.last_ns = now_ns;
	if (conn->posted < conn->limit && host->state != HOST_FAILED)
		pingpong_send(host, conn);
}

static unsigned
pingpong_reap(struct host *host)
{
	unsigned n = tx_reap(host) + rx_reap(host, pingpong_taken);

	if (host->passive && host->state == HOST_WAITING && host->tally.messages != 0)
		host_set_running(host);
	return n;
}

static unsigned
send_first_messages(struct host *host)
{
	unsigned moved = 0;

	for (unsigned i = 0; i < host->n_conns; i++) {
		struct conn *conn = &host->conns[i];

		if (conn->posted != 0 || conn->limit == 0 || conn->failed)
			continue;
		conn->sent_ns = clock_ns();
		moved += pingpong_send(host, conn);
	}
	return moved;
}

static unsigned
pingpong_push(struct host *host)
{
	unsigned moved = 0;

	for (unsigned i = 0; i < host->n_conns && host->n_replies_pending != 0; i++) {
		if (host->conns[i].reply_pending)
			moved += pingpong_send(host, &host->conns[i]);
	}
	if (!host->passive && host->state == HOST_WAITING && host->path.resolve_rc == 0)
		moved += send_first_messages(host);
	return moved;
}

/* Returns true if every message has come back. *any: some are in flight. *all_seen: every
 * QP has received one. */
static bool
all_returned(const struct host *host, bool *any, bool *all_seen)
{
	bool back = true;

	*any = false;
	*all_seen = true;
	for (unsigned i = 0; i < host->n_conns; i++) {
		const struct conn *conn = &host->conns[i];

		back &= conn->received == conn->limit;
		*any |= conn->posted > conn->received;
		*all_seen &= conn->received != 0 || conn->limit == 0;
	}
	return back;
}

static void
pingpong_stop(struct host *host)
{
	if (host->passive) {
		host_set_done(host);
		return;
	}
	if (host->state == HOST_WAITING) {
		host_fail(host, "stopped before %s answered", host_peer(host));
		return;
	}
	for (unsigned i = 0; i < host->n_conns; i++) {
		if (host->conns[i].posted < host->conns[i].limit)
			host->conns[i].limit = host->conns[i].posted;
	}
	host->state = HOST_DRAINING;
	host->idle_since_ns = 0;
}

static void
tick_initiator(struct host *host, uint64_t now_ns)
{
	bool any, all_seen, back = all_returned(host, &any, &all_seen);

	if (host->state == HOST_WAITING) {
		if (all_seen)
			host_set_running(host);
		else if (!host_wait_over(host, now_ns, "did not answer") &&
			 host_resolved(host, now_ns))
			host_retry(host);
		if (!all_seen)
			return;
	} else if (host_duration_over(host, now_ns)) {
		pingpong_stop(host);
		return;
	}
	if (back)
		host_set_done(host);
	else if (any && host_idle_for(host, host->tally.messages, now_ns) > LOST_NS)
		host_fail(host,
			"%s received a message and has not returned it for %u s: it "
			"was stopped or restarted (`start` reconnects)",
			host_peer(host), (unsigned)(LOST_NS / NS_PER_SECOND));
}

static void
tick_passive(struct host *host, uint64_t now_ns)
{
	host_watch_restart(host, now_ns);
	if (host->state == HOST_RUNNING && host_retry(host))
		host_log(host, "%s stopped answering: reconnected, waiting for it",
			host_peer(host));
	if (host_active(host))
		host_tick_passive(host, now_ns);
}

static void
pingpong_tick(struct host *host, uint64_t now_ns)
{
	if (host->passive)
		tick_passive(host, now_ns);
	else
		tick_initiator(host, now_ns);
}

const struct mode_ops pingpong_ops = {.sends = true,
	.receives = true,
	.start = pingpong_start,
	.reap = pingpong_reap,
	.push = pingpong_push,
	.stop = pingpong_stop,
	.tick = pingpong_tick};
