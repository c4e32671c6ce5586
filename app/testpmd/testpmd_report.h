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

/* The result of a run of one host. */
struct result {
	double seconds;
	double rate; /* messages per second */
	double gbps; /* 10^9 bits of payload per second */
	bool has_latency;
	uint64_t p50_ns, p99_ns, p999_ns, p9999_ns, min_ns, max_ns;
	struct snapshot stats; /* counters of this run */
};
/* testpmd_stats.c */
void result_of(struct host *host, struct result *result);

#endif
