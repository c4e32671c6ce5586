/* SPDX-License-Identifier: BSD-3-Clause */
/* The result as JSON. docs/testpmd.md describes each field; a test compares. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "testpmd_parse.h"
#include "testpmd_report.h"

static json_t *
json_uint(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *
json_latency(bool there, uint64_t ns)
{
	return there ? json_uint(ns) : json_null();
}

static void
add_drops(json_t *out, const struct snapshot *stats)
{
	json_t *drops = json_object();

	for (unsigned i = 0; i < stats->n; i++) {
		if (strncmp(stats->rows[i].name, "drop_", 5) == 0 &&
			stats->rows[i].value != 0)
			json_object_set_new(drops, stats->rows[i].name + 5,
				json_uint(stats->rows[i].value));
	}
	json_object_set_new(out, "drops", drops);
}

static void
add_stats(json_t *out, const struct snapshot *stats)
{
	json_t *all = json_object();

	for (unsigned i = 0; i < stats->n; i++)
		json_object_set_new(
			all, stats->rows[i].name, json_uint(stats->rows[i].value));
	json_object_set_new(out, "stats", all);
}

static void
add_impair(json_t *out, struct host *host)
{
	struct rocade_impair_stats stats;
	json_t *impair = json_object();

	host_impaired_since(host, &host->base.impair, &stats);
	json_object_set_new(impair, "lost", json_uint(stats.lost));
	json_object_set_new(impair, "duplicated", json_uint(stats.duplicated));
	json_object_set_new(impair, "reordered", json_uint(stats.reordered));
	json_object_set_new(impair, "corrupted", json_uint(stats.corrupted));
	json_object_set_new(out, "impaired", impair);
}

/* The fields common to a core, a port and the whole run. */
static void
add_counts(json_t *out, const struct tally *tally, const struct result *result)
{
	json_object_set_new(out, "messages", json_uint(tally->messages));
	json_object_set_new(out, "bytes", json_uint(tally->bytes));
	json_object_set_new(out, "sent_messages", json_uint(tally->sent));
	json_object_set_new(out, "sent_bytes", json_uint(tally->sent_bytes));
	json_object_set_new(out, "seconds", json_real(result->seconds));
	json_object_set_new(out, "rate", json_real(result->rate));
	json_object_set_new(out, "gbps", json_real(result->gbps));
	json_object_set_new(
		out, "lat_min_ns", json_latency(result->has_latency, result->min_ns));
	json_object_set_new(
		out, "lat_p50_ns", json_latency(result->has_latency, result->p50_ns));
	json_object_set_new(
		out, "lat_p99_ns", json_latency(result->has_latency, result->p99_ns));
	json_object_set_new(
		out, "lat_p999_ns", json_latency(result->has_latency, result->p999_ns));
	json_object_set_new(
		out, "lat_p9999_ns", json_latency(result->has_latency, result->p9999_ns));
	json_object_set_new(
		out, "lat_max_ns", json_latency(result->has_latency, result->max_ns));
	json_object_set_new(out, "cq_events", json_uint(tally->cq_events));
	json_object_set_new(out, "limit_events", json_uint(tally->limit_events));
	json_object_set_new(out, "bytes_verified", json_uint(tally->verified_bytes));
	json_object_set_new(out, "bad_bytes", json_uint(tally->bad_bytes));
	json_object_set_new(out, "bad_messages", json_uint(tally->bad_messages));
	json_object_set_new(out, "refills", json_uint(tally->refills));
	json_object_set_new(out, "peer_restarts", json_uint(tally->restarts));
	json_object_set_new(out, "lost_messages", json_uint(tally->lost));
	json_object_set_new(out, "late_messages", json_uint(tally->late));
	json_object_set_new(out, "duplicate_messages", json_uint(tally->duplicates));
}

/* The fields common to a port and the whole run. */
static void
add_result(json_t *out, const struct tally *tally, const struct result *result)
{
	const struct snapshot *stats = &result->stats;

	add_counts(out, tally, result);
	json_object_set_new(
		out, "cqes_saved", json_uint(snapshot_value(stats, "cqe_saved")));
	json_object_set_new(out, "rnr_naks",
		json_uint(snapshot_value(stats, "rnr_nak_sent") +
			  snapshot_value(stats, "rnr_nak_received")));
	json_object_set_new(
		out, "retransmits", json_uint(snapshot_value(stats, "retransmitted")));
	add_drops(out, stats);
}
/* The messages of each operation. */
static void
add_operations(json_t *out, const struct host *host, const struct tally *tally)
{
	uint64_t messages = host->ops == &both_ops ? tally->sent : tally->messages;
	json_t *operations = json_object();

	for (unsigned i = 0; i < OP_KINDS && host->ops->sends && !host->passive; i++) {
		if (mix_has(&host->conf->mix, i))
			json_object_set_new(operations, op_rows[i].name,
				json_uint(conf_exchanges(host->conf) ? tally->of_op[i]
								     : messages));
	}
	json_object_set_new(out, "operations", operations);
}

/* --rate: the rate that was asked for, and the latencies of each operation. */
static void
add_rate(json_t *out, struct host *host)
{
	json_t *latency = json_object();

	for (unsigned i = 0; i < OP_KINDS && host->rate.on; i++) {
		const struct hist *hist = port_hist(host, i);

		if (hist->count == 0)
			continue;
		json_object_set_new(latency, op_rows[i].name,
			json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "count",
				(json_int_t)hist->count, "min_ns",
				(json_int_t)hist->min_ns, "p50_ns",
				(json_int_t)hist_quantile(hist, 500), "p90_ns",
				(json_int_t)hist_quantile(hist, 900), "p99_ns",
				(json_int_t)hist_quantile(hist, 990), "p999_ns",
				(json_int_t)hist_quantile(hist, 999), "p9999_ns",
				(json_int_t)hist_quantile_fine(hist, 9999), "max_ns",
				(json_int_t)hist->max_ns));
	}
	json_object_set_new(out, "latency", latency);
	json_object_set_new(out, "rate_asked", json_real(host->rate.asked));
	json_object_set_new(out, "behind", json_uint(port_behind(host)));
}

/* The share of each core. */
static void
add_cores(json_t *out, const struct run *run, struct host *head)
{
	json_t *list = json_array();

	for (unsigned c = 0; c < conf_cores(head->conf); c++) {
		json_t *core = json_object();
		struct result result;

		result_of_share(head, (int)c, ALL_HOSTS, &result);
		json_object_set_new(core, "core", json_uint(c));
		json_object_set_new(core, "lcore",
			run->cores.n != 0 ? json_uint(run->cores.lcore[c]) : json_null());
		json_object_set_new(
			core, "qps", json_uint(qps_of_share(head, (int)c, ALL_HOSTS)));
		add_counts(core, &result.tally, &result);
		json_array_append_new(list, core);
	}
	json_object_set_new(out, "cores", list);
}

/* Which lcore runs each engine. */
static void
add_engines(json_t *out, const struct host *head)
{
	json_t *list = json_array();

	for (unsigned e = 0; e < head->n_engines; e++)
		json_array_append_new(
			list, json_pack("{s:I,s:o}", "engine", (json_int_t)e, "lcore",
				      head->runner != ENGINES_BY_MAIN
					      ? json_uint(head->engine_lcores[e])
					      : json_null()));
	json_object_set_new(out, "engines", list);
}

/* The share of each peer. */
static void
add_peers(json_t *out, struct host *head)
{
	json_t *list = json_array();

	for (unsigned p = 0; p < port_peers(head->pc); p++) {
		json_t *peer = json_object();
		struct result result;

		result_of_share(head, ALL_HOSTS, (int)p, &result);
		json_object_set_new(peer, "peer", json_string(head->pc->peers[p].addr));
		json_object_set_new(
			peer, "qps", json_uint(qps_of_share(head, ALL_HOSTS, (int)p)));
		add_counts(peer, &result.tally, &result);
		json_array_append_new(list, peer);
	}
	json_object_set_new(out, "peers", list);
	json_object_set_new(out, "fairness",
		port_fairness(head) > 0 ? json_real(port_fairness(head)) : json_null());
}

static json_t *
port_object(const struct run *run, struct host *host, const struct result *result)
{
	json_t *out = json_object();
	const char *reason = port_reason(host);

	json_object_set_new(out, "port", json_uint(host->pc->port));
	json_object_set_new(out, "mode", json_string(mode_name(host->pc->mode)));
	json_object_set_new(out, "addr", json_string(host->pc->addr));
	json_object_set_new(out, "peer", json_string(host->pc->peer));
	json_object_set_new(out, "path_mtu", json_uint(UINT64_C(128) << host->path.mtu));
	json_object_set_new(out, "type", json_string(qp_type_name(host->conf->type)));
	json_object_set_new(out, "qps", json_uint(host->conf->qps));
	json_object_set_new(
		out, "reason", reason != NULL ? json_string(reason) : json_null());
	add_result(out, &result->tally, result);
	add_operations(out, host, &result->tally);
	add_rate(out, host);
	add_impair(out, host);
	add_cores(out, run, host);
	add_engines(out, host);
	add_peers(out, host);
	add_stats(out, &result->stats);
	return out;
}

/* The rates of the first initiator (host that is not passive), and the counters of all
 * ports together. */
static void
add_whole(json_t *out, struct run *run, const struct result *results)
{
	unsigned initiator = 0;
	struct result whole;
	struct tally tally;

	for (unsigned i = run->n_hosts; i-- > 0;) {
		if (!run->hosts[i].passive)
			initiator = i;
	}
	whole = results[initiator];
	tally = results[initiator].tally;
	for (unsigned i = 0; i < run->n_hosts; i++) {
		const struct tally *other = &results[i].tally;

		if (i == initiator)
			continue;
		tally.verified_bytes += other->verified_bytes;
		tally.bad_bytes += other->bad_bytes;
		tally.bad_messages += other->bad_messages;
		tally.limit_events += other->limit_events;
		tally.cq_events += other->cq_events;
		tally.refills += other->refills;
		tally.restarts += other->restarts;
		tally.lost += other->lost;
		tally.late += other->late;
		tally.duplicates += other->duplicates;
		for (unsigned row = 0; row < whole.stats.n; row++)
			whole.stats.rows[row].value += results[i].stats.rows[row].value;
	}
	add_result(out, &tally, &whole);
}

int
json_write(struct run *run)
{
	struct result results[PORTS_MAX];
	const char *path = run->conf.json_file, *reason = NULL;
	json_t *out, *ports;

	if (path == NULL)
		return 0;
	out = json_object();
	ports = json_array();
	for (unsigned i = 0; i < run->n_hosts; i++) {
		result_of(&run->hosts[i], &results[i]);
		json_array_append_new(
			ports, port_object(run, &run->hosts[i], &results[i]));
		if (reason == NULL)
			reason = port_reason(&run->hosts[i]);
	}
	json_object_set_new(out, "version", json_string(rocade_version()));
	json_object_set_new(out, "result", json_string(reason == NULL ? "pass" : "fail"));
	json_object_set_new(
		out, "reason", reason != NULL ? json_string(reason) : json_null());
	add_whole(out, run, results);
	json_object_set_new(out, "ports", ports);

	size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
	int rc = strcmp(path, "-") == 0 ? json_dumpf(out, stdout, flags)
					: json_dump_file(out, path, flags);
	if (strcmp(path, "-") == 0)
		printf("\n");
	json_decref(out);
	if (rc != 0)
		fprintf(stderr, "cannot write --json file '%s': %s\n", path,
			strerror(errno));
	return rc;
}
