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
result_of(struct host *host, struct result *result)
{
	const struct tally *tally = &host->tally;
	const struct hist *hist = &host->hist;

	*result = (struct result){0};
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
	host_snapshot(host, -1, &result->stats);
	for (unsigned i = 0; i < result->stats.n; i++)
		result->stats.rows[i].value -= host->base.run.rows[i].value;
}
