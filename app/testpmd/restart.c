/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that was restarted sends from its first PSN again. Its packets are then
 * duplicates, or (more than 2^23 packets later) out of sequence, and bring no progress. A
 * QP that shows this in STALLED_CHECKS checks without progress goes through ERR and RESET
 * back to its first PSN. The peer's next retry is then the first message of a new
 * connection. Checks between two retries show nothing, if the ACK timeout of the peer is
 * longer than CHECK_NS, and do not count.
 */
#include <inttypes.h>
#include <string.h>

#include "host.h"

#define CHECK_NS (NS_PER_SECOND / 10)
#define STALLED_CHECKS 6
#define LOG_NS (2 * NS_PER_SECOND)

bool
conn_has_failed(const struct conn *conn)
{
	return conn->failed;
}

static uint64_t
qp_stat_value(const struct rocade_stat *rows, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].value;
	}
	return 0;
}

/* Whether duplicates or sequence errors came since the last check, and no progress. */
static bool
conn_is_stalled(struct conn *conn)
{
	struct rocade_stat rows[QP_STATS_MAX];
	struct rocade_qp_info info;
	unsigned n = rocade_qp_stats(conn->qp, rows, QP_STATS_MAX);
	uint64_t duplicates = qp_stat_value(rows, n, "duplicates");
	uint64_t naks = qp_stat_value(rows, n, "seq_nak_sent");
	bool seen = false;

	if (rocade_qp_info(conn->qp, &info) != 0)
		return false;
	if (info.rq_psn != conn->seen_psn) {
		conn->unheard = false;
		conn->stalled_checks = 0;
		conn->seen_psn = info.rq_psn;
		conn->seen_naks = naks;
	} else {
		/* A sequence error is NAKed once, however often its packets come.
		 * host_watch_restart() calls only when such packets still arrive. */
		seen = duplicates != conn->seen_duplicates || naks != conn->seen_naks;
	}
	conn->seen_duplicates = duplicates;
	return seen;
}

/* A QP that received no more than its first message need not be reset: it acknowledges
 * the repeated message as a duplicate, and expects the message after it. It must not be
 * reset either: a peer that repeats only this message is alive, and waits for its other
 * QPs. */
static bool
past_first_message(const struct host *host, const struct conn *conn)
{
	uint64_t mtu = UINT64_C(128) << host->path.mtu;
	uint64_t packets = (host->conf->sizes[0] + mtu - 1) / mtu;
	uint32_t ahead = (conn->seen_psn - (uint32_t)host->conf->psn) & 0xffffff;

	return ahead > (packets == 0 ? 1 : packets);
}

static unsigned
conns_check(struct host *host, uint64_t now_ns)
{
	unsigned found = 0;

	for (unsigned i = 0; i < host->n_conns; i++) {
		struct conn *conn = &host->conns[i];

		if (!conn_is_stalled(conn))
			continue;
		conn->repeated_ns = now_ns;
		if (++conn->stalled_checks < STALLED_CHECKS) {
			continue;
		} else if (past_first_message(host, conn)) {
			conn->failed = true;
			found++;
		} else {
			conn->unheard = true;
		}
	}
	return found;
}

/* Whether the sender has gone on: it sends no second message before the first one of each of its QPs is
 * acknowledged. */
static bool
sender_went_on(const struct host *host)
{
	bool second = false;

	for (unsigned i = 0; i < host->n_conns; i++)
		second |= host->conns[i].received > 1;
	return second;
}

/* Whether the sender is in this process (--loop), and its run is good. */
static bool
sender_is_done(const struct host *host)
{
	struct host *head = host->head, *sender;
	bool done = host->conf->loop;

	if (!done)
		return false;
	sender = head->index == 0 ? head + 1 : head - 1;
	for (unsigned h = 0; h < sender->n_hosts; h++)
		done &= host_at(sender, h)->state == HOST_DONE;
	return done;
}

/* A sender that is not acknowledged repeats each time that its ACK timeout is over. */
static bool
conn_repeats(const struct host *host, struct conn *conn, uint64_t now_ns)
{
	return conn_is_stalled(conn) ||
	       elapsed_ns(now_ns, conn->repeated_ns) < HOST_QUIET_NS(host);
}

void
host_require_heard(struct host *host, bool fails, uint64_t now_ns)
{
	if (sender_went_on(host) || sender_is_done(host))
		return;
	for (unsigned i = 0; i < host->n_conns; i++) {
		struct conn *conn = &host->conns[i];

		bool repeats = conn->unheard && conn_repeats(host, conn, now_ns);

		if (!conn->unheard || !(fails || repeats))
			continue;
		host_fail(host,
			"%s repeats its first message to QP 0x%x, as it gets no acknowledgement: "
			"expected the same --qpn-base and --qps for each peer on both ends, and "
			"behind this --peer @N, if this end is its peer number N",
			host_peer(host), conn->qpn);
		return;
	}
}

void
host_watch_restart(struct host *host, uint64_t now_ns)
{
	struct snapshot stats;

	/* With RDMA-CM a restarted peer connects again itself. One that says HELLO tells that it
	 * was restarted. */
	if (host->by_cm || host->exchange.on || now_ns < host->restart.check_ns ||
		(host->state != HOST_WAITING && host->state != HOST_RUNNING))
		return;
	host->restart.check_ns = now_ns + CHECK_NS;
	host_snapshot(host, -1, &stats);
	uint64_t mark = snapshot_value(&stats, "duplicates") +
			snapshot_value(&stats, "drop_psn_gap") +
			snapshot_value(&stats, "seq_nak_sent");

	if (mark == host->restart.mark)
		return; /* the usual case costs one call, whatever the number of QPs */
	host->restart.mark = mark;
	unsigned found = conns_check(host, now_ns);

	if (found == 0 || host_connect(host, conn_has_failed) != 0)
		return;
	host->tally.restarts++;
	if (elapsed_ns(now_ns, host->restart.logged_ns) > LOG_NS ||
		host->restart.logged_ns == 0)
		host_log(host,
			"%s was restarted: it sends from its first PSN again; "
			"reconnected",
			host_peer(host));
	host->restart.logged_ns = now_ns;
}
