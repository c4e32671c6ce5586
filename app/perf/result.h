/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_RESULT_H
#define PERF_RESULT_H

#include <common/hist.h>

#include "link.h"

struct result {
	struct tally tally;  /* of the end that counts */
	struct tally client; /* for its counters */
	struct tally server;
	struct hist hist; /* latency modes: nanoseconds */
};

/* One line on stdout, and JSON if asked for. 0, or -1 with a sentence. */
int
result_print(const struct conf *conf, const struct result *result, char err[ERR_MAX]);

/* raw.c: frames without RDMA. Exit code; says what was wrong. */
int
raw_run(const struct conf *conf, const struct plan *plan, int link,
	struct result *result);

#endif
