/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a row: builds its fabric and its flows, lets the time pass, measures. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "load.h"
#include "measure.h"
#include "random.h"
#include "tcp.h"

#define CORES 2 /* of a host whose threads take turns */
#define TIME_SLICE_US 3000u
#define START (200 * PS_PER_US) /* MACs are resolved before */

uint64_t random_state;

static unsigned
or_else(unsigned value, unsigned standard)
{
	return value != 0 ? value : standard;
}

/* Threads that take turns on the cores: each runs for a time slice, and then waits for those of
 * the others. The port's queues go on. */
static struct turns
turns_of(const struct row *row)
{
	unsigned others = row->threads > CORES ? row->threads - CORES : 0;
	uint64_t wait = TIME_SLICE_US * others / CORES * PS_PER_US;
	struct turns t = {
		.min = or_else(row->turn_min_ns, 1000) * PS_PER_NS,
		.max = or_else(row->turn_max_ns, 3000) * PS_PER_NS,
		.stall = row->stall_us * PS_PER_US,
		.stall_every = or_else(row->stall_every_us, 1000) * PS_PER_US,
	};

	if (others != 0) {
		t.stall = wait;
		t.stall_every = wait + TIME_SLICE_US * PS_PER_US;
	}
	return t;
}

static struct fabric_conf
fabric_conf_of(const struct row *row)
{
	struct fabric_conf c = {
		.shape = row->load == LOAD_CHAIN ? SHAPE_CHAIN
			 : row->spines != 0      ? SHAPE_CLOS
						 : SHAPE_STAR,
		.hosts = load_hosts(row),
		.leaves = row->leaves,
		.spines = row->spines,
		.dead_spines = row->dead_spines,
		.link_ps_per_byte = row->mbit_per_s != 0
					    ? ps_per_byte(1) * 1000 / row->mbit_per_s
					    : ps_per_byte(or_else(row->gbit_per_s, 100)),
		.delay = or_else(row->delay_ns, 2000) * PS_PER_NS,
		.shared_bytes = row->shared_kb * UINT64_C(1000),
		.alpha = 1,
		.loss = row->loss,
		.police_mbit_per_s = row->police_mbit_per_s,
		.police_burst = row->police_kb * 1000,
		.nic_frames = row->nic_frames,
		.turns = turns_of(row),
		.greedy = row->greedy,
		.no_hold = row->no_hold,
		.no_sack = row->no_sack || row->no_hold,
		.paths = row->paths,
		.max_qp = row->load == LOAD_MIX ? 2048 : 256,
	};

	c.trunk_ps_per_byte = row->trunk_gbit_per_s != 0
				      ? ps_per_byte(row->trunk_gbit_per_s)
				      : c.link_ps_per_byte;
	if (c.shared_bytes == 0)
		c.port_bytes = or_else(row->port_kb, 1000) * UINT64_C(1000);
	if (row->ecn) /* as hardware's DCQCN is used at 100 Gb/s */
		c.red = (struct red){400000, 1600000, 0.2};
	return c;
}

static double
cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Lets time pass, in steps of a sample, until `end` or until all messages are complete. */
static void
pass_time(struct measure *m, uint64_t end)
{
	while (clock_ps < end && !measure_is_done(m)) {
		events_run(RTE_MIN(clock_ps + MEASURE_STEP, end));
		measure_sample(m);
	}
}

void
row_run(const struct row *row, const struct cc_conf *cc, uint64_t seed, double scale,
	struct plot *plot, struct result *result)
{
	double began = cpu_seconds();
	struct fabric_conf conf = fabric_conf_of(row);
	uint64_t warm = (uint64_t)(row->warm_us * scale) * PS_PER_US;
	uint64_t length = (uint64_t)(row->us * scale) * PS_PER_US;
	struct fabric fabric;
	struct load_flows flows;
	struct measure m;

	conf.cc = *cc;
	conf.cc.delay_unknown |= row->client;
	random_state = seed;
	clock_reset(NS_PER_SEC * PS_PER_NS); /* engines' clocks do not begin at 0 */
	fabric_init(&fabric, &conf);
	load_init(&flows, row, &fabric, clock_ps + START, warm + length);
	events_run(clock_ps + START);
	measure_init(&m, row, &fabric, &flows, plot);
	pass_time(&m, clock_ps + warm);
	measure_begin(&m);
	pass_time(&m, clock_ps + length);
	measure_end(&m, result);
	result->virtual_s = (double)(clock_ps - m.started) / 1e12;
	load_fini(&flows);
	fabric_fini(&fabric);
	clock_reset(0);
	result->cpu_s = cpu_seconds() - began;
}

void
row_reference(
	const struct row *row, uint64_t seed, double scale, struct tcp_result *result)
{
	struct fabric_conf conf = fabric_conf_of(row);

	tcp_run(&conf, seed, (uint64_t)(row->warm_us * scale) * PS_PER_US,
		(uint64_t)(row->us * scale) * PS_PER_US, result);
}
