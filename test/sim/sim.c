/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "await.h"
#include "sim.h"

#define TRACE_LINES 4096
#define TRACE_SHOWN 120
#define SEED_TIMES 6 /* a seed that takes more CPU time counts as endless */

struct sim sim;

struct trace_line {
	const char *fmt;
	uint64_t now;
	uint64_t args[7];
};

static struct trace_line lines[TRACE_LINES];
static uint64_t line_count;

static void
line_print(FILE *to, const struct trace_line *line)
{
	const uint64_t *a = line->args;

	fprintf(to, "%12.3f us  ", (double)line->now / 1000);
	fprintf(to, line->fmt, a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
	fputc('\n', to);
}

void
trace_add(const char *fmt, const uint64_t args[7])
{
	struct trace_line *line = &lines[line_count++ % TRACE_LINES];

	line->fmt = fmt;
	line->now = sim.now;
	memcpy(line->args, args, sizeof(line->args));
	if (unlikely(sim.verbose))
		line_print(stdout, line);
}

void
trace_clear(void)
{
	line_count = 0;
	cpu_limit_begin(SEED_TIMES);
}

static void
replay_print(void)
{
	uint64_t first = line_count > TRACE_SHOWN ? line_count - TRACE_SHOWN : 0;

	if (!sim.verbose) {
		for (uint64_t i = first; i < line_count; i++)
			line_print(stderr, &lines[i % TRACE_LINES]);
	}
	fprintf(stderr,
		"seed %" PRIu64 ", operation %" PRIu64 "; to replay it with its trace:\n"
		"  sim --first %" PRIu64 " --seeds 1 --ops %u --verbose\n",
		sim.seed, sim.ops, sim.seed, sim.ops_asked);
}

void
sim_fail(const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	replay_print();
	fprintf(stderr, "FAILED: ");
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	fflush(stderr);
	_exit(1);
}

/* Not async-signal-safe. The process ends anyway, and in practice it works. */
static void
on_signal(int number)
{
	signal(number, SIG_DFL);
	fflush(stdout);
	replay_print();
	fprintf(stderr, "FAILED: %s\n",
		number == SIGPROF ? "the seed does not end" : strsignal(number));
	fflush(stderr);
	if (number == SIGPROF)
		_exit(1);
	raise(number);
}

void
sim_catch_signals(void)
{
	signal(SIGABRT, on_signal);
	signal(SIGPROF, on_signal);
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer prints a better report */
	signal(SIGSEGV, on_signal);
	signal(SIGBUS, on_signal);
	signal(SIGFPE, on_signal);
#endif
}
