/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTPMD_REPORT_H
#define TESTPMD_REPORT_H

#include "run.h"

/* Prints a line with the rates since the previous one. */
void report_line(struct run *run);
/* Prints the table at the end of a run, and writes the JSON file. */
void report_final(struct run *run);

/* json.c: returns 0, or -1 after printing an error. */
int json_write(struct run *run);

/* The result of a run of one port, or of one core of it. */
struct result {
	struct tally tally;
	double seconds;
	double rate; /* messages per second */
	double gbps; /* 10^9 bits of payload per second */
	bool has_latency;
	uint64_t p50_ns, p99_ns, p999_ns, p9999_ns, min_ns, max_ns;
	struct snapshot stats; /* counters of this run */
};
/* testpmd_stats.c */
void result_of(struct host *head, struct result *result);
/* Of one core, of one peer, or of all (ALL_HOSTS), without the counters of the port; and their QPs. */
void result_of_share(struct host *head, int core, int peer, struct result *result);
unsigned qps_of_share(struct host *head, int core, int peer);
/* Jain's fairness index of the messages of the peers. */
double port_fairness(struct host *head);
/* The latencies of the port, of an operation or (OP_KINDS) of all. Valid until the next call. */
const struct hist *port_hist(struct host *head, unsigned op);
/* Messages that were due and not posted at the end. */
uint64_t port_behind(struct host *head);

#endif
