/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of the port, for the report. With --device there is no port and there are
 * none. */
#include <stdio.h>
#include <string.h>

#include "perf_context.h"

#define STATS_MAX 128
#define CYCLES "cycles_"

static unsigned
stats_read(struct perf_context *ctx, struct rocade_stat rows[STATS_MAX])
{
	unsigned n;

	if (ctx->port == NULL)
		return 0;
	n = rocade_port_stats(ctx->port, -1, rows, STATS_MAX);
	return n < STATS_MAX ? n : STATS_MAX;
}

static uint64_t
stat_value(const struct rocade_stat *rows, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].value;
	}
	return 0;
}

static void
call_cycles_print(
	struct perf_context *ctx, const char *call, uint64_t cycles, uint64_t messages)
{
	if (cycles != 0)
		fprintf(stderr, "%s: %s: %.1f cycles a message\n",
			ctx->conf->server ? "server" : "client", call,
			(double)cycles / (double)(messages | 1));
}

void
perf_print_cycles(struct perf_context *ctx)
{
	struct rocade_stat rows[STATS_MAX];
	uint64_t posted = 0;
	unsigned n = stats_read(ctx, rows);

	for (unsigned i = 0; i < n; i++) {
		const char *stage = rows[i].name + strlen(CYCLES);
		const char *packets = "rx_packets";

		if (strncmp(rows[i].name, CYCLES, strlen(CYCLES)) != 0)
			continue;
		if (strncmp(stage, "tx", 2) == 0 || strcmp(stage, "build") == 0)
			packets = "tx_packets";
		fprintf(stderr, "%s: %s: %.1f cycles a packet\n",
			ctx->conf->server ? "server" : "client", stage,
			(double)rows[i].value /
				(double)(stat_value(rows, n, packets) | 1));
	}
	for (uint64_t i = 0; i < ctx->plan.qps; i++)
		posted += ctx->conns[i].posted;
	call_cycles_print(ctx, "post", ctx->post_cycles, posted);
	call_cycles_print(ctx, "poll", ctx->poll_cycles, ctx->watch.progress);
	call_cycles_print(ctx, "repost", ctx->repost_cycles, ctx->watch.progress);
}

int
perf_send_tally(struct perf_context *ctx, struct tally *tally)
{
	struct msg msg = {.kind = MSG_TALLY};

	events_engine_stop(ctx);
	perf_fill_tally(ctx, tally);
	msg.tally = *tally;
	return link_send(ctx->link, &msg);
}

void
perf_fill_tally(struct perf_context *ctx, struct tally *tally)
{
	struct rocade_stat rows[STATS_MAX];
	unsigned n = stats_read(ctx, rows);

	tally->memory = ctx->used.memory;
	tally->qp_memory = ctx->used.qp_memory;
	tally->srq_memory = ctx->used.srq_memory;
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(rows[i].name, "retransmitted") == 0)
			tally->retransmitted = rows[i].value;
		else if (strcmp(rows[i].name, "rnr_nak_sent") == 0)
			tally->rnr_naks = rows[i].value;
		else if (strncmp(rows[i].name, "drop_", 5) == 0)
			tally->dropped += rows[i].value;
	}
}
