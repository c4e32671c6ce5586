/* SPDX-License-Identifier: BSD-3-Clause */
/* sim --seeds N --first S --ops N [--jobs N] [--verbose] [--coverage]: see usage(). */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cover.h"
#include "run.h"
#include "wire/icrc_copy.h"

#define JOBS_MAX 64
#define BLOCK 100        /* seeds that make one TAP case */
#define COVER_SEEDS 2000 /* from this number on, full coverage is required */

static struct options {
	uint64_t first, seeds;
	unsigned ops, jobs;
	bool coverage;
} opt = {1, 200, 1000, 1, false};

static void
usage(FILE *to)
{
	fprintf(to,
		"Usage: sim [--seeds N] [--first S] [--ops N] [--jobs N] [--verbose] "
		"[--coverage]\n"
		"Runs the seeds S to S+N-1 of the simulation. Prints TAP, a case for "
		"each %d\n"
		"seeds.\n"
		"  --seeds N   number of seeds (200)\n"
		"  --first S   first seed (1)\n"
		"  --ops N     operations per seed (1000)\n"
		"  --jobs N    number of processes (1)\n"
		"  --verbose   print the trace\n"
		"  --coverage  print the coverage counters\n"
		"Exit status: 0 success; 1 a seed failed (the command that replays it is "
		"printed),\n"
		"or a coverage counter is 0 after %d seeds or more; 2 invalid option\n",
		BLOCK, COVER_SEEDS);
}

static uint64_t
number_parse(const char *name, const char *text, uint64_t least)
{
	char *end;
	uint64_t value = strtoull(text, &end, 0);

	if (*text == '\0' || *end != '\0' || value < least) {
		fprintf(stderr,
			"sim: invalid value '%s' for --%s: expected a number from "
			"%" PRIu64 " on\n",
			text, name, least);
		exit(2);
	}
	return value;
}

static void
options_read(int argc, char **argv)
{
	static const struct option names[] = {{"seeds", 1, NULL, 's'},
		{"first", 1, NULL, 'f'}, {"ops", 1, NULL, 'o'}, {"jobs", 1, NULL, 'j'},
		{"verbose", 0, NULL, 'v'}, {"coverage", 0, NULL, 'c'},
		{"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int c, index;

	while ((c = getopt_long(argc, argv, "", names, &index)) != -1) {
		switch (c) {
		case 's':
			opt.seeds = number_parse("seeds", optarg, 1);
			break;
		case 'f':
			opt.first = number_parse("first", optarg, 0);
			break;
		case 'o':
			opt.ops = (unsigned)number_parse("ops", optarg, 0);
			break;
		case 'j':
			opt.jobs = (unsigned)RTE_MIN(
				number_parse("jobs", optarg, 1), (uint64_t)JOBS_MAX);
			break;
		case 'v':
			sim.verbose = true;
			break;
		case 'c':
			opt.coverage = true;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (optind != argc) {
		usage(stderr);
		exit(2);
	}
	sim.ops_asked = opt.ops;
}

/* ---- Workers ---- */

struct worker {
	pid_t pid;
	int pipe;
};

/* Runs every opt.jobs-th block of seeds, and reports the coverage after each. */
static void
worker_run(uint64_t first, int to)
{
	uint64_t blocks = (opt.seeds + BLOCK - 1) / BLOCK;

	sim_catch_signals();
	for (uint64_t b = first; b < blocks; b += opt.jobs) {
		uint64_t end = RTE_MIN((b + 1) * BLOCK, opt.seeds);

		memset(&cover, 0, sizeof(cover));
		for (uint64_t s = b * BLOCK; s < end; s++)
			seed_run(opt.first + s, opt.ops);
		if (write(to, &cover, sizeof(cover)) != sizeof(cover))
			_exit(1);
	}
	_exit(0);
}

static void
worker_start(struct worker *w, uint64_t block)
{
	int ends[2];

	fflush(stdout);
	if (pipe(ends) != 0) {
		perror("sim: pipe");
		exit(1);
	}
	w->pid = fork();
	if (w->pid < 0) {
		perror("sim: fork");
		exit(1);
	}
	if (w->pid == 0) {
		close(ends[0]);
		worker_run(block, ends[1]);
	}
	close(ends[1]);
	w->pipe = ends[0];
}

/* Reads the result of this worker's next block. Returns false if the worker has died. */
static bool
worker_read(struct worker *w, struct cover *sum)
{
	struct cover one;
	size_t got = 0;

	while (got < sizeof(one)) {
		ssize_t n = read(w->pipe, (uint8_t *)&one + got, sizeof(one) - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	cover_add(sum, &one);
	return true;
}

static unsigned
blocks_run(struct cover *sum, uint64_t blocks)
{
	struct worker workers[JOBS_MAX] = {{0}};
	unsigned failed = 0;

	for (unsigned i = 0; i < opt.jobs; i++)
		worker_start(&workers[i], i);
	for (uint64_t b = 0; b < blocks; b++) {
		struct worker *w = &workers[b % opt.jobs];
		bool good = worker_read(w, sum);

		if (!good) { /* a new worker continues behind the failed block */
			failed++;
			waitpid(w->pid, NULL, 0);
			close(w->pipe);
			worker_start(w, b + opt.jobs);
		}
		printf("%sok %" PRIu64 " - seeds %" PRIu64 " to %" PRIu64 "\n",
			good ? "" : "not ", b + 1, opt.first + b * BLOCK,
			opt.first + RTE_MIN((b + 1) * BLOCK, opt.seeds) - 1);
		fflush(stdout);
	}
	for (unsigned i = 0; i < opt.jobs; i++) {
		int status;

		if (waitpid(workers[i].pid, &status, 0) == workers[i].pid &&
			status != 0 && failed == 0)
			failed++;
	}
	return failed;
}

static double
clock_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int
main(int argc, char **argv)
{
	double start = clock_s(), took;
	struct cover sum = {0};
	uint64_t blocks;
	unsigned failed, never = 0;
	bool must;

	options_read(argc, argv);
	icrc_copy_min = ICRC_COPY_MIN; /* direct placement, on every CPU */
	blocks = (opt.seeds + BLOCK - 1) / BLOCK;
	must = opt.seeds >= COVER_SEEDS;
	printf("1..%" PRIu64 "\n", blocks + must);
	failed = blocks_run(&sum, blocks);
	took = clock_s() - start;
	if (must || opt.coverage)
		never = cover_print(&sum, opt.coverage);
	if (must)
		printf("%sok %" PRIu64 " - full coverage\n", never != 0 ? "not " : "",
			blocks + 1);
	printf("# %" PRIu64 " seeds, %" PRIu64 " requests, %" PRIu64 " frames, %" PRIu64
	       " lost, %.1f s of virtual time, in %.1f s\n",
		sum.seeds, sum.ops, sum.frames, sum.lost, (double)sum.virtual_ns / 1e9,
		took);
	return failed != 0 || (must && never != 0);
}
