/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_RESULT_H
#define PERF_RESULT_H

#include <common/hist.h>

#include "link.h"

struct result {
	/* the end that counts: the server with --mode send, else the client */
	struct tally tally;
	struct tally client; /* counters of the client */
	struct tally server;
	struct hist hist; /* latency modes: nanoseconds */
};

/* Prints one line to stdout, and writes JSON if requested. Returns 0, or -1 with a
 * message in err: also if nothing was measured. */
int result_print(const struct conf *conf, const struct result *result, char err[ERR_MAX]);

/* raw.c: frames without RDMA. Returns an exit code and prints its own errors. */
int raw_run(const struct conf *conf, const struct plan *plan, int link,
	struct result *result);

#endif
