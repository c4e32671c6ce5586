/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the counters of the port. With --device there are none. */
#include <stdio.h>
#include <string.h>

#include "perf_context.h"

#define STATS_MAX 128
#define CYCLES "cycles_"

static unsigned
rows_read(struct bed *bed, struct rocade_stat rows[STATS_MAX])
{
	unsigned n;

	if (bed->port == NULL)
		return 0;
	n = rocade_port_stats(bed->port, -1, rows, STATS_MAX);
	return n < STATS_MAX ? n : STATS_MAX;
}

static uint64_t
row_value(const struct rocade_stat *rows, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].value;
	}
	return 0;
}

static void
call_print(struct bed *bed, const char *call, uint64_t cycles, uint64_t messages)
{
	if (cycles != 0)
		fprintf(stderr, "%s: %s: %.1f cycles a message\n",
			bed->conf->server ? "server" : "client", call,
			(double)cycles / (double)(messages | 1));
}

void
bed_cycles(struct bed *bed)
{
	struct rocade_stat rows[STATS_MAX];
	uint64_t posted = 0;
	unsigned n = rows_read(bed, rows);

	for (unsigned i = 0; i < n; i++) {
		const char *stage = rows[i].name + strlen(CYCLES);
		const char *packets = "rx_packets";

		if (strncmp(rows[i].name, CYCLES, strlen(CYCLES)) != 0)
			continue;
		if (strncmp(stage, "tx", 2) == 0 || strcmp(stage, "build") == 0)
			packets = "tx_packets";
		fprintf(stderr, "%s: %s: %.1f cycles a packet\n",
			bed->conf->server ? "server" : "client", stage,
			(double)rows[i].value /
				(double)(row_value(rows, n, packets) | 1));
	}
	for (uint64_t i = 0; i < bed->plan.qps; i++)
		posted += bed->flows[i].posted;
	call_print(bed, "post", bed->post_cycles, posted);
	call_print(bed, "poll", bed->poll_cycles, bed->progress);
	call_print(bed, "repost", bed->repost_cycles, bed->progress);
}

void
bed_tally(struct bed *bed, struct tally *tally)
{
	struct rocade_stat rows[STATS_MAX];
	unsigned n = rows_read(bed, rows);

	tally->memory = bed->memory;
	tally->qp_memory = bed->qp_memory;
	tally->srq_memory = bed->srq_memory;
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(rows[i].name, "retransmitted") == 0)
			tally->retransmitted = rows[i].value;
		else if (strcmp(rows[i].name, "rnr_nak_sent") == 0)
			tally->rnr_naks = rows[i].value;
		else if (strncmp(rows[i].name, "drop_", 5) == 0)
			tally->dropped += rows[i].value;
	}
}
