/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

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

void
port_tally(struct host *head, struct tally *sum)
{
	*sum = head->tally;
	for (unsigned c = 1; c < conf_cores(head->conf); c++) {
		const struct tally *more = &host_of_core(head, c)->tally;

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
		/* Each core notices the same restart. */
		if (more->restarts > sum->restarts)
			sum->restarts = more->restarts;
		if (sum->first_ns == 0 ||
			(more->first_ns != 0 && more->first_ns < sum->first_ns))
			sum->first_ns = more->first_ns;
		if (more->last_ns > sum->last_ns)
			sum->last_ns = more->last_ns;
	}
}

const char *
port_reason(struct host *head)
{
	const struct host *teller = __atomic_load_n(&head->teller, __ATOMIC_RELAXED);

	return teller != NULL ? teller->reason : NULL;
}

bool
port_active(struct host *head)
{
	bool active = false;

	for (unsigned c = 0; c < conf_cores(head->conf); c++)
		active |= host_active(host_of_core(head, c));
	return active;
}

/* The histogram of a host, of all operations or (op) of one. */
static const struct hist *
host_hist(const struct host *host, unsigned op)
{
	return op == OP_KINDS ? &host->hist : &host->rate.of_op[op];
}

const struct hist *
port_hist(struct host *head, unsigned op)
{
	static struct hist sum;

	if (conf_cores(head->conf) == 1)
		return host_hist(head, op);
	hist_clear(&sum);
	for (unsigned c = 0; c < conf_cores(head->conf); c++)
		hist_merge(&sum, host_hist(host_of_core(head, c), op));
	return &sum;
}

uint64_t
port_behind(struct host *head)
{
	uint64_t behind = 0;

	for (unsigned c = 0; c < conf_cores(head->conf); c++)
		behind += host_of_core(head, c)->rate.behind;
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
result_of_core(struct host *host, struct result *result)
{
	*result = (struct result){.tally = host->tally};
	result_fill(result, host, &host->hist);
}

void
result_of(struct host *head, struct result *result)
{
	*result = (struct result){0};
	port_tally(head, &result->tally);
	result_fill(result, head, port_hist(head, OP_KINDS));
	host_snapshot(head, -1, &result->stats);
	for (unsigned i = 0; i < result->stats.n; i++)
		result->stats.rows[i].value -= head->base.run.rows[i].value;
}
