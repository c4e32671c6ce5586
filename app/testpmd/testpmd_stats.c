/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "peers.h"
#include "testpmd_report.h"

void
host_snapshot(struct host *host, int engine, struct snapshot *snapshot)
{
	unsigned n = rocade_port_stats(host->port, engine, snapshot->rows, STATS_MAX);

	snapshot->n = n < STATS_MAX ? n : STATS_MAX;
}

uint64_t
snapshot_value(const struct snapshot *snapshot, const char *name)
{
	for (unsigned i = 0; i < snapshot->n; i++) {
		if (strcmp(snapshot->rows[i].name, name) == 0)
			return snapshot->rows[i].value;
	}
	return 0;
}

uint64_t
host_run_stat(struct host *host, const char *name)
{
	struct snapshot now;

	host_snapshot(host, -1, &now);
	return snapshot_value(&now, name) - snapshot_value(&host->base.run, name);
}

void
host_impaired_since(struct host *host, const struct rocade_impair_stats *base,
	struct rocade_impair_stats *stats)
{
	(void)rocade_port_impair_stats(host->port, stats); /* always 0 */
	stats->lost -= base->lost;
	stats->duplicated -= base->duplicated;
	stats->reordered -= base->reordered;
	stats->corrupted -= base->corrupted;
}

static bool
is_one_of(const struct host *host, int core, int peer)
{
	return (core == ALL_HOSTS || host->core == (unsigned)core) &&
	       (peer == ALL_HOSTS || host->peer == (unsigned)peer);
}

void
port_tally(struct host *head, int core, int peer, struct tally *sum)
{
	uint64_t restarts[PEERS_MAX] = {0};

	*sum = (struct tally){.start_ns = head->tally.start_ns};
	for (unsigned c = 0; c < head->n_hosts; c++) {
		const struct host *host = host_at(head, c);
		const struct tally *more = &host->tally;

		if (!is_one_of(host, core, peer))
			continue;
		sum->messages += more->messages;
		sum->bytes += more->bytes;
		sum->sent += more->sent;
		sum->sent_bytes += more->sent_bytes;
		for (unsigned op = 0; op < OP_KINDS; op++)
			sum->of_op[op] += more->of_op[op];
		sum->verified_bytes += more->verified_bytes;
		sum->bad_bytes += more->bad_bytes;
		sum->bad_messages += more->bad_messages;
		sum->lost += more->lost;
		sum->late += more->late;
		sum->duplicates += more->duplicates;
		sum->refills += more->refills;
		sum->limit_events += more->limit_events;
		sum->cq_events += more->cq_events;
		/* Each core notices the same restart of a peer. */
		if (more->restarts > restarts[host->peer])
			restarts[host->peer] = more->restarts;
		if (sum->first_ns == 0 ||
			(more->first_ns != 0 && more->first_ns < sum->first_ns))
			sum->first_ns = more->first_ns;
		if (more->last_ns > sum->last_ns)
			sum->last_ns = more->last_ns;
	}
	for (unsigned p = 0; p < PEERS_MAX; p++)
		sum->restarts += restarts[p];
}

const char *
port_reason(struct host *head)
{
	const struct host *teller = __atomic_load_n(&head->teller, __ATOMIC_RELAXED);

	return teller != NULL ? teller->reason : NULL;
}

struct host *
port_failed(struct host *head, int peer)
{
	for (unsigned h = 0; h < head->n_hosts; h++) {
		struct host *host = host_at(head, h);

		if (host->state == HOST_FAILED &&
			(peer == ALL_HOSTS || host->peer == (unsigned)peer))
			return host;
	}
	return NULL;
}

bool
port_active(struct host *head)
{
	bool active = false;

	for (unsigned c = 0; c < head->n_hosts; c++)
		active |= host_active(host_at(head, c));
	return active;
}

/* The histogram of a host, of all operations or (op) of one. */
static const struct hist *
host_hist(const struct host *host, unsigned op)
{
	return op == OP_KINDS ? &host->hist : &host->rate.of_op[op];
}

/* Valid until the next call. */
static const struct hist *
hosts_hist(struct host *head, int core, int peer, unsigned op)
{
	static struct hist sum;

	if (head->n_hosts == 1)
		return host_hist(head, op);
	hist_clear(&sum);
	for (unsigned c = 0; c < head->n_hosts; c++) {
		if (is_one_of(host_at(head, c), core, peer))
			hist_merge(&sum, host_hist(host_at(head, c), op));
	}
	return &sum;
}

const struct hist *
port_hist(struct host *head, unsigned op)
{
	return hosts_hist(head, ALL_HOSTS, ALL_HOSTS, op);
}

uint64_t
port_behind(struct host *head)
{
	uint64_t behind = 0;

	for (unsigned c = 0; c < head->n_hosts; c++)
		behind += host_at(head, c)->rate.behind;
	return behind;
}

static void
result_fill(struct result *result, const struct host *host, const struct hist *hist)
{
	const struct tally *tally = &result->tally;

	if (tally->first_ns != 0 && tally->last_ns > tally->first_ns) {
		result->seconds = (double)(tally->last_ns - tally->first_ns) /
				  (double)NS_PER_SECOND;
		result->rate = (double)tally->messages / result->seconds;
		result->gbps = (double)tally->bytes * 8 / result->seconds / 1e9;
	}
	if ((host->rate.on || (host->ops == &pingpong_ops && !host->passive)) &&
		hist->count != 0) {
		result->has_latency = true;
		result->p50_ns = hist_quantile(hist, 500);
		result->p99_ns = hist_quantile(hist, 990);
		result->p999_ns = hist_quantile(hist, 999);
		result->p9999_ns = hist_quantile_fine(hist, 9999);
		result->min_ns = hist->min_ns;
		result->max_ns = hist->max_ns;
	}
}

void
result_of_share(struct host *head, int core, int peer, struct result *result)
{
	*result = (struct result){0};
	port_tally(head, core, peer, &result->tally);
	result_fill(result, head, hosts_hist(head, core, peer, OP_KINDS));
}

unsigned
qps_of_share(struct host *head, int core, int peer)
{
	unsigned qps = 0;

	for (unsigned i = 0; i < head->n_hosts; i++)
		qps += is_one_of(host_at(head, i), core, peer) ? host_at(head, i)->n_conns
							       : 0;
	return qps;
}

double
port_fairness(struct host *head)
{
	unsigned n = port_peers(head->pc);
	uint64_t messages[PEERS_MAX];

	for (unsigned p = 0; p < n; p++) {
		struct tally tally;

		port_tally(head, ALL_HOSTS, (int)p, &tally);
		messages[p] = tally.messages;
	}
	return peers_fairness(messages, n);
}

void
result_of(struct host *head, struct result *result)
{
	result_of_share(head, ALL_HOSTS, ALL_HOSTS, result);
	host_snapshot(head, -1, &result->stats);
	for (unsigned i = 0; i < result->stats.n; i++)
		result->stats.rows[i].value -= head->base.run.rows[i].value;
}
