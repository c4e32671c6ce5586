/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "sweep.h"

#define LONG_TIMES 20 /* a long run has this many times the seeds */

/* Seeds with faults. */
static const struct sweep_listed listed[] = {
#define STARVED SWEEP_STARVED
#define RESENDS SWEEP_RESENDS
#define FULL SWEEP_FULL
#define UNUSED SWEEP_UNUSED
#define SEED(seed, faults) {seed, faults},
#include "sweep.def"
#undef SEED
};

static const struct {
	enum sweep_fault fault;
	const char *name; /* in sweep.def */
	const char *text;
} faults[] = {{SWEEP_STARVED, "STARVED", "a flow starves"},
	{SWEEP_RESENDS, "RESENDS", "too many resends"},
	{SWEEP_FULL, "FULL", "the queue stays full"},
	{SWEEP_UNUSED, "UNUSED", "the link is not used"}};

static const char *const loads[] = {
	[LOAD_INCAST] = "incast",
	[LOAD_DUPLEX] = "duplex",
	[LOAD_CHAIN] = "chain",
	[LOAD_PAIRS] = "pairs",
	[LOAD_FANOUT] = "fan-out",
	[LOAD_ALL] = "all to all",
};

static void
network_print(const struct drawn *d, uint64_t seed)
{
	const struct row *row = &d->row;

	printf("# seed %llu: %s of %u, %u Mb/s, links of %u ns, MTU %u, %u %s, messages %u x %u",
		(unsigned long long)seed, loads[row->load], row->n, row->mbit_per_s,
		row->delay_ns, row->mtu,
		row->shared_kb != 0 ? row->shared_kb : row->port_kb,
		row->shared_kb != 0 ? "KB shared" : "KB", row->depth, row->message);
	if (row->loss != 0)
		printf(", loss %u ppm", row->loss);
	if (row->police_mbit_per_s != 0)
		printf(", flows of %u Mb/s and %u KB", row->police_mbit_per_s,
			row->police_kb);
	if (row->threads != 0)
		printf(", %u threads", row->threads);
	printf("%s%s%s\n", row->read ? ", READ" : "", row->client ? ", clients" : "",
		row->hello != 0 ? ", warm" : "");
}

static void
result_line(const struct drawn *d, const struct result *r)
{
	printf("#   least flow %.1f%% of fair, goodput %.1f%% of %.1f%%, jain %.3f, resends "
	       "%.1f%% of %.1f%%, queue %.0f of %.0f us (%.2f s of CPU)\n",
		100 * r->least / d->fair, r->value[METRIC_goodput], 100 * d->allowed,
		r->value[METRIC_jain], r->value[METRIC_resends], d->resends,
		r->value[METRIC_queue_p50], d->buffer_us, r->cpu_s);
}

/* The faults in words, and as they stand in sweep.def. */
static void
faults_print(uint64_t seed, unsigned found, unsigned gone)
{
	const char *between = "";

	for (unsigned i = 0; i < RTE_DIM(faults); i++) {
		if ((found & faults[i].fault) != 0)
			printf("# %s\n", faults[i].text);
		if ((gone & faults[i].fault) != 0)
			printf("# seed %llu has not the fault %s: remove it from sweep.def\n",
				(unsigned long long)seed, faults[i].name);
	}
	if (found == 0)
		return;
	printf("# SEED(%llu, ", (unsigned long long)seed);
	for (unsigned i = 0; i < RTE_DIM(faults); i++) {
		if ((found & faults[i].fault) == 0)
			continue;
		printf("%s%s", between, faults[i].name);
		between = " | ";
	}
	printf(")\n");
}

/* Returns whether the seed has no fault, or only those that are listed with it. */
static bool
seed_run(unsigned number, uint64_t seed)
{
	struct cc_conf cc = {.on = true};
	struct result result;
	struct sweep_verdict verdict;
	struct drawn d;
	unsigned found;
	bool good;

	sweep_draw(&d, seed);
	network_print(&d, seed);
	row_run(&d.row, &cc, seed, 1, NULL, &result);
	result_line(&d, &result);
	found = sweep_judge(&d, &result);
	verdict = sweep_compare(listed, RTE_DIM(listed), seed, found);
	good = verdict.fresh == 0;
	faults_print(seed, found, verdict.gone);
	printf("%sok %u - sweep, seed %llu%s\n", good ? "" : "not ", number,
		(unsigned long long)seed, found != 0 && good ? ", listed" : "");
	fflush(stdout);
	return good;
}

int
sweep_run(uint64_t first, unsigned count)
{
	unsigned failed = 0;

	if (getenv("ROCADE_TEST_LONG") != NULL)
		count *= LONG_TIMES;
	printf("1..%u\n", count);
	for (unsigned i = 0; i < count; i++)
		failed += !seed_run(i + 1, first + i);
	return failed != 0;
}
