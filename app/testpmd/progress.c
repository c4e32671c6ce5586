/* SPDX-License-Identifier: BSD-3-Clause */
/* From `start` to the end of a run: common to all modes. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "host.h"

#define RESOLVE_EVERY_NS (NS_PER_SECOND / 100)
#define QUIET_NS NS_PER_SECOND
#define LINK_NS (2 * NS_PER_SECOND) /* a port may be down for a moment */
#define TAIL_NS (10 * NS_PER_SECOND)

void
host_set_running(struct host *host)
{
	host->state = HOST_RUNNING;
	if (host->tally.first_ns == 0)
		host->tally.first_ns = clock_ns();
}

void
host_set_done(struct host *host)
{
	host->state = HOST_DONE;
	if (host->tally.last_ns == 0)
		host->tally.last_ns = clock_ns();
}

static const char *
wait_hint(const struct host *host)
{
	int rc = host->path.resolve_rc;

	if (host->passive)
		return "";
	if (rc ==
		-1) /* QPs were connected again, and the address was not asked for since */
		rc = rocade_port_resolve(host->port, &host->path.peer);
	if (!rocade_port_link_up(host->port))
		return ": the link is down";
	switch (rc) {
	case 0:
		return ": the host is reachable, but no rocade-testpmd receives with "
		       "the same --type, --qpn-base, --psn, --nb-cores and --qps for each peer, or "
		       "its --peer has this end at another place than @N says";
	case ENETUNREACH:
		return ": it is in no network of --addr, and there is no gateway";
	default:
		return ": no ARP or ND answer for this address";
	}
}

/* Returns --wait, 0: no limit. An interactive receiver without --wait has no limit, as
 * its user still has to start the other end. */
static uint64_t
wait_limit_s(const struct host *host)
{
	const struct conf *conf = host->conf;

	return conf->interactive && host->passive && !conf->wait_given ? 0 : conf->wait_s;
}

bool
host_wait_over(struct host *host, uint64_t now_ns, const char *what)
{
	uint64_t wait_s = wait_limit_s(host);

	if (wait_s == 0 ||
		elapsed_ns(now_ns, host->tally.start_ns) < wait_s * NS_PER_SECOND)
		return false;
	host_fail(host, "%s %s within %" PRIu64 " s (--wait)%s", host_peer(host), what,
		wait_s, wait_hint(host));
	return true;
}

bool
host_resolved(struct host *host, uint64_t now_ns)
{
	if (host->path.resolve_rc == 0)
		return true;
	if (now_ns < host->path.resolve_ns)
		return false;
	host->path.resolve_ns = now_ns + RESOLVE_EVERY_NS;
	host->path.resolve_rc = rocade_port_resolve(host->port, &host->path.peer);
	if (host->path.resolve_rc == ENETUNREACH || host->path.resolve_rc == EINVAL)
		host_fail(host, "cannot reach --peer %s%s", host_peer(host),
			wait_hint(host));
	return host->path.resolve_rc == 0;
}

bool
host_duration_over(const struct host *host, uint64_t now_ns)
{
	uint64_t duration_s = host->conf->duration_s;

	return duration_s != 0 && host->state == HOST_RUNNING &&
	       elapsed_ns(now_ns, host->tally.first_ns) >= duration_s * NS_PER_SECOND;
}

uint64_t
host_idle_for(struct host *host, uint64_t mark, uint64_t now_ns)
{
	if (mark != host->idle_mark || host->idle_since_ns == 0) {
		host->idle_mark = mark;
		host->idle_since_ns = now_ns;
	}
	return elapsed_ns(now_ns, host->idle_since_ns);
}

/* A receiver lingers because its last ACKs may be lost: if it left at once, the sender
 * would retry in vain. After a few timeouts without a packet the sender has them. */
void
host_linger(struct host *host, uint64_t now_ns)
{
	uint64_t enough_ns = HOST_QUIET_NS(host);
	struct snapshot stats;

	/* So is the answer to END, for which the sender asks again. */
	if (host->exchange.on && enough_ns < EXCHANGE_REPEATS * EXCHANGE_AGAIN_NS)
		enough_ns = EXCHANGE_REPEATS * EXCHANGE_AGAIN_NS;
	if (enough_ns > QUIET_NS)
		enough_ns = QUIET_NS;
	host_snapshot(host, -1, &stats);
	if (host_idle_for(host, snapshot_value(&stats, "rx_roce"), now_ns) >= enough_ns ||
		elapsed_ns(now_ns, host->drain_ns) >= TAIL_NS)
		host->state = HOST_DONE;
}

/* Whether other cores of the port receive messages of the same peer, and are active: by what they have
 * published. */
static void
others_see(const struct host *host, bool *receive, bool *are_active)
{
	*receive = *are_active = false;
	for (unsigned c = 0; c < host->head->n_hosts; c++) {
		const struct host *other = host_at(host->head, c);
		enum host_state state =
			__atomic_load_n(&other->view.state, __ATOMIC_RELAXED);

		if (other == host || other->peer != host->peer ||
			__atomic_load_n(&other->view.messages, __ATOMIC_RELAXED) == 0)
			continue;
		*receive = true;
		*are_active |= state >= HOST_WAITING && state <= HOST_LINGERING;
	}
}

/* Before the first message. The sender may have fewer QPs, or messages, than there are cores: a core that
 * gets none waits for as long as others of the port receive. */
static void
first_await(struct host *host, uint64_t now_ns)
{
	const struct conf *conf = host->conf;
	bool others_receive, others_are_active;

	if (host->exchange.on) {
		host_wait_over(host, now_ns, "sent nothing");
		return;
	}
	others_see(host, &others_receive, &others_are_active);
	if ((conf->count != 0 && host_count(host) == 0) ||
		(others_receive && !others_are_active))
		host_set_done(host);
	else if (!others_receive)
		host_wait_over(host, now_ns, "sent nothing");
}

void
host_tick_passive(struct host *host, uint64_t now_ns)
{
	const struct conf *conf = host->conf;
	struct tally *tally = &host->tally;

	if (host->state == HOST_LINGERING) {
		host_linger(host, now_ns);
		return;
	}
	if (host->state == HOST_WAITING) {
		first_await(host, now_ns);
		return;
	}
	const struct exchange *ex = &host->exchange;
	uint64_t idle_since_ns =
		host_idle_for(host, tally->messages + ex->asked.heard, now_ns);

	tally->last_ns = host->idle_since_ns;
	if (conf->count != 0 && wait_limit_s(host) != 0 &&
		idle_since_ns > wait_limit_s(host) * NS_PER_SECOND) {
		host_require_heard(host, true, now_ns);
		host_fail(host,
			"%s sent nothing more for %" PRIu64 " s: %" PRIu64 " of %" PRIu64
			" messages arrived",
			host_peer(host), wait_limit_s(host), tally->messages,
			host_count(host));
		return;
	}
	if (ex->on ? ex->asked.ended && (conf->count | conf->duration_s) != 0
		   : conf->count != 0 && tally->messages >= host_count(host)) {
		host->state = HOST_LINGERING;
		host->drain_ns = now_ns;
		host->idle_since_ns = 0;
	} else if (host_duration_over(host, now_ns) &&
		   (idle_since_ns >= QUIET_NS ||
			   elapsed_ns(now_ns, tally->first_ns) >=
				   conf->duration_s * NS_PER_SECOND + TAIL_NS)) {
		/* The sender's duration began later, and its last messages are in flight:
		 * wait until nothing arrives for QUIET_NS, or TAIL_NS at most. */
		if (ex->on)
			host_fail(host, "%s has not told the end of its run",
				host_peer(host));
		else
			host->state = HOST_DONE;
		host_require_heard(host, false, now_ns);
	}
}

bool
host_retry(struct host *host)
{
	bool any = false;

	for (unsigned i = 0; i < host->n_conns; i++)
		any |= host->conns[i].failed;
	if (!any)
		return false;
	host->path.resolve_rc = -1;
	return host_connect(host, conn_has_failed) == 0;
}

void
host_watch_link(struct host *host, uint64_t now_ns)
{
	if (host_idle_for(host, host->tally.messages, now_ns) > LINK_NS &&
		!rocade_port_link_up(host->port))
		host_fail(host,
			"the link to %s is down: the peer stopped or was restarted "
			"(`start` reconnects)",
			host_peer(host));
}
