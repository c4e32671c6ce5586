/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "testpmd_parse.h"
#include "testpmd_report.h"

#define LABEL_WIDTH 24
#define COLUMN_WIDTH 20

/* 1234567 as 1,234,567. */
static const char *
format_grouped(uint64_t value, char buf[32])
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, value);
	char *out = buf;

	for (int i = 0; i < len; i++) {
		if (i != 0 && (len - i) % 3 == 0)
			*out++ = ',';
		*out++ = digits[i];
	}
	*out = '\0';
	return buf;
}

/* The sum of the copies that the hosts of a port have written last. The state is HOST_WAITING if all hosts
 * are in it. */
static struct host_view
port_view(struct host *head)
{
	struct host_view sum = {.state = HOST_WAITING};

	for (unsigned c = 0; c < head->n_hosts; c++) {
		const struct host_view *view = &host_at(head, c)->view;
		enum host_state state = __atomic_load_n(&view->state, __ATOMIC_RELAXED);

		sum.messages += __atomic_load_n(&view->messages, __ATOMIC_RELAXED);
		sum.bytes += __atomic_load_n(&view->bytes, __ATOMIC_RELAXED);
		sum.bad_bytes += __atomic_load_n(&view->bad_bytes, __ATOMIC_RELAXED);
		if (state != HOST_WAITING)
			sum.state = state;
	}
	return sum;
}

/* Whether nothing has come of this peer: all its hosts wait. */
static bool
peer_is_missing(struct host *head, unsigned peer)
{
	bool missing = true;

	for (unsigned i = 0; i < head->n_hosts; i++) {
		const struct host *host = host_at(head, i);

		missing &= host->peer != peer ||
			   __atomic_load_n(&host->view.state, __ATOMIC_RELAXED) ==
				   HOST_WAITING;
	}
	return missing;
}

/* Names the first missing peer, and says how many more there are. */
static void
print_missing(struct host *head, const char *before)
{
	unsigned missing = 0;
	const char *first = NULL;

	for (unsigned p = 0; p < port_peers(head->pc); p++) {
		if (!peer_is_missing(head, p))
			continue;
		first = missing++ == 0 ? head->pc->peers[p].addr : first;
	}
	if (missing != 0)
		printf("%swaiting for %s", before, first);
	if (missing > 1)
		printf(" and %u more", missing - 1);
}

/* The part of a line that is about this port. */
static void
report_port(struct run *run, unsigned i, double seconds)
{
	struct host *host = &run->hosts[i];
	uint64_t again = host_run_stat(host, "retransmitted");
	uint64_t rnr = host_run_stat(host, "rnr_nak_received") +
		       host_run_stat(host, "rnr_nak_sent");
	char text[32];

	for (unsigned c = 0; c < host->n_hosts && run->cores.n == 0; c++)
		host_publish(host_at(host, c));
	struct host_view view = port_view(host);
	double messages = (double)(view.messages - run->line_messages[i]);
	double bytes = (double)(view.bytes - run->line_bytes[i]);

	printf(" | port %" PRIu64 " %s", host->pc->port, mode_name(host->pc->mode));
	if (view.state == HOST_WAITING) {
		print_missing(host, ": ");
	} else {
		printf(": %.3f Mmsg/s %.3f Gb/s, %s messages", messages / seconds / 1e6,
			bytes * 8 / seconds / 1e9, format_grouped(view.messages, text));
		print_missing(host, ", ");
	}
	if (again != 0)
		printf(", %s retransmitted", format_grouped(again, text));
	if (rnr != 0)
		printf(", %s RNR", format_grouped(rnr, text));
	if (view.bad_bytes != 0)
		printf(", %s BAD BYTES", format_grouped(view.bad_bytes, text));
	run->line_messages[i] = view.messages;
	run->line_bytes[i] = view.bytes;
}

void
report_line(struct run *run)
{
	double seconds =
		(double)(run->now_ns - run->line_last_ns) / (double)NS_PER_SECOND;

	printf("%5.0f s", (double)(run->now_ns - run->hosts[0].tally.start_ns) /
				  (double)NS_PER_SECOND);
	for (unsigned i = 0; i < run->n_hosts; i++)
		report_port(run, i, seconds);
	printf("\n");
	run->line_last_ns = run->now_ns;
	run->line_ns += run->conf.stats_period * NS_PER_SECOND;
	if (run->line_ns <= run->now_ns)
		run->line_ns = run->now_ns + run->conf.stats_period * NS_PER_SECOND;
}

static void
print_count(const char *label, const uint64_t *values, unsigned n)
{
	char text[32];

	printf("  %-*s", LABEL_WIDTH, label);
	for (unsigned i = 0; i < n; i++)
		printf("%*s", COLUMN_WIDTH, format_grouped(values[i], text));
	printf("\n");
}

static void
print_real(const char *label, const double *values, unsigned n, int digits)
{
	printf("  %-*s", LABEL_WIDTH, label);
	for (unsigned i = 0; i < n; i++)
		printf("%*.*f", COLUMN_WIDTH, digits, values[i]);
	printf("\n");
}

static void
print_latency(const char *label, const struct result *results, size_t offset, unsigned n)
{
	bool any = false;

	for (unsigned i = 0; i < n; i++)
		any |= results[i].has_latency;
	if (!any)
		return;
	printf("  %-*s", LABEL_WIDTH, label);
	for (unsigned i = 0; i < n; i++) {
		uint64_t ns = *(const uint64_t *)((const char *)&results[i] + offset);

		if (results[i].has_latency)
			printf("%*.3f", COLUMN_WIDTH, (double)ns / 1000);
		else
			printf("%*s", COLUMN_WIDTH, "-");
	}
	printf("\n");
}

#define COLLECT(values, n, expression)                                                   \
	for (unsigned i = 0; i < (n); i++) {                                             \
		struct host *host = &run->hosts[i];                                      \
		struct result *result = &results[i];                                     \
		(void)host;                                                              \
		(void)result;                                                            \
		(values)[i] = (expression);                                              \
	}

/* The messages of each operation, which only a sender counts. */
static void
print_operations(const struct run *run, const struct result *results)
{
	bool counts = false;
	char text[32];

	for (unsigned i = 0; i < run->n_hosts; i++)
		counts |= conf_exchanges(&run->conf) && !run->hosts[i].passive;
	for (unsigned op = 0; op < OP_KINDS && counts; op++) {
		if (!mix_has(&run->conf.mix, op))
			continue;
		printf("  %-*s", LABEL_WIDTH, op_rows[op].name);
		for (unsigned i = 0; i < run->n_hosts; i++)
			printf("%*s", COLUMN_WIDTH,
				run->hosts[i].passive
					? "-"
					: format_grouped(
						  results[i].tally.of_op[op], text));
		printf("\n");
	}
}

static bool
any_sends_and_receives(const struct run *run)
{
	bool any = false;

	for (unsigned i = 0; i < run->n_hosts; i++)
		any |= run->hosts[i].ops == &both_ops;
	return any;
}

static void
print_table(struct run *run, struct result *results)
{
	unsigned n = run->n_hosts;
	uint64_t counts[PORTS_MAX] = {0};
	double reals[PORTS_MAX] = {0};

	COLLECT(counts, n, result->tally.messages)
	print_count("messages", counts, n);
	COLLECT(counts, n, result->tally.bytes)
	print_count("bytes", counts, n);
	if (any_sends_and_receives(run)) {
		COLLECT(counts, n, result->tally.sent)
		print_count("messages sent", counts, n);
		COLLECT(counts, n, result->tally.sent_bytes)
		print_count("bytes sent", counts, n);
	}
	print_operations(run, results);
	COLLECT(reals, n, result->seconds)
	print_real("seconds", reals, n, 3);
	COLLECT(reals, n, result->rate / 1e6)
	print_real("Mmsg/s", reals, n, 3);
	COLLECT(reals, n, result->gbps)
	print_real("Gb/s", reals, n, 3);
	print_latency("latency p50, us", results, offsetof(struct result, p50_ns), n);
	print_latency("latency p99, us", results, offsetof(struct result, p99_ns), n);
	print_latency("latency p99.9, us", results, offsetof(struct result, p999_ns), n);
	print_latency(
		"latency p99.99, us", results, offsetof(struct result, p9999_ns), n);
	print_latency("latency max, us", results, offsetof(struct result, max_ns), n);
	COLLECT(counts, n, snapshot_value(&result->stats, "cqe_saved"))
	print_count("completions saved", counts, n);
	COLLECT(counts, n, result->tally.cq_events)
	if (run->conf.events)
		print_count("completion events", counts, n);
	COLLECT(counts, n, result->tally.limit_events)
	print_count("SRQ limit events", counts, n);
	COLLECT(counts, n,
		snapshot_value(&result->stats, "rnr_nak_sent") +
			snapshot_value(&result->stats, "rnr_nak_received"))
	print_count("RNR NAKs", counts, n);
	COLLECT(counts, n, snapshot_value(&result->stats, "retransmitted"))
	print_count("retransmitted packets", counts, n);
	COLLECT(counts, n, result->tally.verified_bytes)
	print_count("bytes verified", counts, n);
	COLLECT(counts, n, result->tally.bad_bytes)
	print_count("bad bytes", counts, n);
	if (!type_is_lossy(run->conf.type))
		return;
	COLLECT(counts, n, result->tally.lost)
	print_count("lost messages", counts, n);
	COLLECT(counts, n, result->tally.late)
	print_count("late messages", counts, n);
	COLLECT(counts, n, result->tally.duplicates)
	print_count("duplicate messages", counts, n);
}

/* The latencies of each operation of a run with --rate. */
static void
print_op_latencies(struct host *host, const struct result *result)
{
	uint64_t behind = port_behind(host);

	if (!host->rate.on || !result->has_latency)
		return;
	printf("  port %" PRIu64 ", us from due:%12s%12s%12s%12s%12s%12s\n",
		host->pc->port, "p50", "p90", "p99", "p99.9", "p99.99", "max");
	for (unsigned i = 0; i < OP_KINDS; i++) {
		const struct hist *hist = port_hist(host, i);

		if (hist->count == 0)
			continue;
		printf("    %-19s%12.3f%12.3f%12.3f%12.3f%12.3f%12.3f\n", op_rows[i].name,
			(double)hist_quantile(hist, 500) / 1e3,
			(double)hist_quantile(hist, 900) / 1e3,
			(double)hist_quantile(hist, 990) / 1e3,
			(double)hist_quantile(hist, 999) / 1e3,
			(double)hist_quantile_fine(hist, 9999) / 1e3,
			(double)hist->max_ns / 1e3);
	}
	if (behind != 0)
		printf("    %" PRIu64 " messages were due and not posted at the end\n",
			behind);
}

/* The share of a core or of a peer, behind its name. */
static void
print_share(struct host *head, int core, int peer)
{
	struct result result;
	char text[32];

	result_of_share(head, core, peer, &result);
	printf("%7u%16s%12.3f%12.3f", qps_of_share(head, core, peer),
		format_grouped(result.tally.messages, text), result.rate / 1e6,
		result.gbps);
	if (result.has_latency)
		printf("%12.3f%12.3f", (double)result.p50_ns / 1e3,
			(double)result.p99_ns / 1e3);
	else
		printf("%12s%12s", "-", "-");
	printf("%12s\n", format_grouped(result.tally.bad_bytes, text));
}

#define SHARE_HEADS "%7s%16s%12s%12s%12s%12s%12s\n"
#define SHARE_NAMES "QPs", "messages", "Mmsg/s", "Gb/s", "p50, us", "p99, us", "bad bytes"

/* Which lcores run the engines, while others post and poll. */
static void
print_engines(const struct host *head)
{
	if (head->runner != ENGINES_BY_LCORE)
		return;
	printf("  port %" PRIu64 ", engines:", head->pc->port);
	for (unsigned e = 0; e < head->n_engines; e++)
		printf("%s engine %u on lcore %u", e != 0 ? "," : "", e,
			head->engine_lcores[e]);
	printf("\n");
}

static void
print_cores(struct run *run, struct host *head)
{
	printf("  port %" PRIu64 ", by core:%10s" SHARE_HEADS, head->pc->port, "lcore",
		SHARE_NAMES);
	for (unsigned c = 0; c < run->cores.n; c++) {
		printf("    core %-9u%10u", c, run->cores.lcore[c]);
		print_share(head, (int)c, ALL_HOSTS);
	}
}

/* With --mode both the messages that were received. */
static void
print_peers(struct host *head)
{
	printf("  port %" PRIu64 ", by peer:%10s" SHARE_HEADS, head->pc->port, "",
		SHARE_NAMES);
	for (unsigned p = 0; p < port_peers(head->pc); p++) {
		printf("    %-24s", head->pc->peers[p].addr);
		print_share(head, ALL_HOSTS, (int)p);
	}
	if (port_fairness(head) > 0)
		printf("    Jain's index of the peers' messages: %.3f\n",
			port_fairness(head));
	else
		printf("    Jain's index of the peers' messages: none, as there were none\n");
}

/* Printed only if there were impaired frames. */
static void
print_impaired(struct run *run)
{
	uint64_t counts[PORTS_MAX] = {0}, sum = 0;

	for (unsigned i = 0; i < run->n_hosts; i++) {
		struct rocade_impair_stats stats;

		host_impaired_since(&run->hosts[i], &run->hosts[i].base.impair, &stats);
		counts[i] =
			stats.lost + stats.duplicated + stats.reordered + stats.corrupted;
		sum += counts[i];
	}
	if (sum != 0)
		print_count("impaired on purpose", counts, run->n_hosts);
}

/* Prints the drop counters that are not 0. */
static void
print_drops(struct run *run, struct result *results)
{
	const struct snapshot *first = &results[0].stats;

	for (unsigned row = 0; row < first->n; row++) {
		uint64_t counts[PORTS_MAX], sum = 0;

		if (strncmp(first->rows[row].name, "drop_", 5) != 0)
			continue;
		for (unsigned i = 0; i < run->n_hosts; i++) {
			counts[i] =
				snapshot_value(&results[i].stats, first->rows[row].name);
			sum += counts[i];
		}
		if (sum != 0)
			print_count(first->rows[row].name, counts, run->n_hosts);
	}
}

void
report_final(struct run *run)
{
	struct result results[PORTS_MAX];
	const char *reason = NULL;

	for (unsigned i = 0; i < run->n_hosts; i++) {
		result_of(&run->hosts[i], &results[i]);
		if (reason == NULL)
			reason = port_reason(&run->hosts[i]);
	}
	printf("  %-*s", LABEL_WIDTH, "");
	for (unsigned i = 0; i < run->n_hosts; i++) {
		char head[COLUMN_WIDTH];

		snprintf(head, sizeof(head), "port %u %s",
			(unsigned)run->hosts[i].pc->port,
			mode_name(run->hosts[i].pc->mode));
		printf("%*s", COLUMN_WIDTH, head);
	}
	printf("\n");
	print_table(run, results);
	for (unsigned i = 0; i < run->n_hosts; i++)
		print_op_latencies(&run->hosts[i], &results[i]);
	for (unsigned i = 0; i < run->n_hosts && run->cores.n != 0; i++)
		print_cores(run, &run->hosts[i]);
	for (unsigned i = 0; i < run->n_hosts; i++)
		print_engines(&run->hosts[i]);
	for (unsigned i = 0; i < run->n_hosts; i++) {
		if (port_peers(run->hosts[i].pc) > 1)
			print_peers(&run->hosts[i]);
	}
	print_impaired(run);
	print_drops(run, results);
	fflush(stdout);
	/* The file is written before the verdict is printed, so that a reader of the
	 * verdict finds it. */
	if (json_write(run) != 0)
		run->failed = true;
	if (reason != NULL)
		printf("FAIL: %s\n", reason);
	else
		printf("PASS\n");
}
