/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-line: how long a cache line takes from one core to another. A hypervisor may
 * move a virtual machine's cores nearer to or further from each other while it runs, so
 * tools/bench.sh records this while it measures. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <common/number.h>

#include "core_state.h"

#define PROGRAM "rocade-line"
/* A reading takes 50 us where a transfer takes 28 ns: too short to matter to the program
 * that it interrupts. */
#define RUNS 3
#define ROUND_TRIPS 300 /* per run */
#define READINGS 51     /* per printed number */
#define NS_PER_SEC UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)

enum exit_code { EXIT_OK, EXIT_USAGE = 2, EXIT_ENVIRONMENT };

struct conf {
	uint64_t cores[2];
	uint64_t every_ms; /* 0: one number */
	bool state;        /* three numbers */
	bool help;
};

/* Alone in its cache line, and in the adjacent line that is prefetched with it. */
static struct {
	_Alignas(128) uint64_t value;
	uint64_t next_ns; /* when both threads begin the next reading; 0: at once */
	bool last;        /* this is the last reading */
} line;

static void
sleep_until(uint64_t ns)
{
	struct timespec until = {
		.tv_sec = (time_t)(ns / NS_PER_SEC), .tv_nsec = (long)(ns % NS_PER_SEC)};

	if (ns != 0)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* Each thread writes only the value that the other one waits for. This acquire pairs with
 * the release in line_store(). No pause instruction between two loads: a hypervisor may
 * trap it. */
static uint64_t
line_await(uint64_t other_than)
{
	uint64_t value;

	do
		value = __atomic_load_n(&line.value, __ATOMIC_ACQUIRE);
	while (value == other_than);
	return value;
}

static void
line_store(uint64_t value)
{
	__atomic_store_n(&line.value, value, __ATOMIC_RELEASE);
}

/* The second thread: answers each even number with the next odd one. */
static void *
echo_thread(void *unused)
{
	uint64_t value = 0, next_ns = 0;
	bool last = false;

	(void)unused;
	while (!last) {
		for (unsigned i = 0; i < RUNS * ROUND_TRIPS; i++) {
			value = line_await(value);
			next_ns = line.next_ns;
			last = line.last;
			line_store(++value);
		}
		sleep_until(next_ns);
	}
	return NULL;
}

static double
reading_take(uint64_t next_ns, bool last)
{
	uint64_t value = line.value, since;
	double run_ns[RUNS];

	line.next_ns = next_ns;
	line.last = last;
	value += value % 2; /* even */
	for (unsigned k = 0; k < RUNS; k++) {
		since = line_now_ns();
		for (unsigned i = 0; i < ROUND_TRIPS; i++) {
			value += 2;
			line_store(value);
			line_await(value);
		}
		run_ns[k] = (double)(line_now_ns() - since) / (2 * ROUND_TRIPS);
	}
	return line_median(run_ns, RUNS);
}

static double
transfer_measure(void)
{
	double readings[READINGS];

	for (unsigned i = 0; i < READINGS; i++)
		readings[i] = reading_take(0, i + 1 == READINGS);
	return line_median(readings, READINGS);
}

/* Runs until stdout fails or a signal arrives. */
static void
readings_print(uint64_t every_ns)
{
	uint64_t next_ns;
	double transfer_ns;

	do {
		next_ns = line_now_ns() + every_ns;
		transfer_ns = reading_take(next_ns, false);
		printf("%.3f %.1f\n", (double)line_now_ns() / NS_PER_SEC, transfer_ns);
		sleep_until(next_ns);
	} while (fflush(stdout) == 0);
}

/* Pins this thread to the first core and starts the second thread on the other. With
 * --every-ms both run under SCHED_FIFO, so that they preempt the measured programs on
 * both cores at the same time. */
static int
echo_thread_start(const struct conf *conf, pthread_t *other)
{
	struct sched_param param = {.sched_priority = 10};
	pthread_attr_t attr;
	cpu_set_t set;
	int rc;

	CPU_ZERO(&set);
	CPU_SET(conf->cores[0], &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0 ||
		(conf->every_ms != 0 && sched_setscheduler(0, SCHED_FIFO, &param) != 0))
		return -1;
	rc = pthread_attr_init(&attr); /* inherits the scheduling policy */
	if (rc != 0)
		return -1;
	CPU_ZERO(&set);
	CPU_SET(conf->cores[1], &set);
	rc = pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	if (rc == 0)
		rc = pthread_create(other, &attr, echo_thread, NULL);
	pthread_attr_destroy(&attr);
	return rc == 0 ? 0 : -1;
}

static bool
probe_options_parse(struct conf *conf, int argc, char **argv)
{
	int i = 1;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		conf->help = true;
		return true;
	}
	if (argc >= 3 && strcmp(argv[1], "--every-ms") == 0) {
		if (!parse_number(argv[2], 1, 60000, &conf->every_ms))
			return false;
		i = 3;
	} else if (argc >= 2 && strcmp(argv[1], "--state") == 0) {
		conf->state = true;
		i = 2;
	}
	return i == argc ||
	       (i + 2 == argc &&
		       parse_number(argv[i], 0, CPU_SETSIZE - 1, &conf->cores[0]) &&
		       parse_number(argv[i + 1], 0, CPU_SETSIZE - 1, &conf->cores[1]) &&
		       conf->cores[0] != conf->cores[1]);
}

int
main(int argc, char **argv)
{
	struct conf conf = {.cores = {0, 1}};
	pthread_t other;

	if (!probe_options_parse(&conf, argc, argv)) {
		fprintf(stderr, PROGRAM
			": invalid arguments: expected [--every-ms MS] with 1 to "
			"60000 ms, or --state, and two different cores or none (see --help)\n");
		return EXIT_USAGE;
	}
	if (conf.help) {
		printf("Usage: " PROGRAM " [--every-ms MS | --state] [CORE CORE]\n"
		       "\n"
		       "Prints how many nanoseconds a cache line takes from one core "
		       "to another (default: 0 and 1).\n"
		       "With --every-ms, repeats this until killed; each line begins "
		       "with the monotonic clock in\n"
		       "seconds.\n"
		       "With --state, prints two more numbers on the same line: how many times as "
		       "long the first core\n"
		       "takes for a piece of work while the second one does the same (1: they are two "
		       "cores), and\n"
		       "cycles of the first core in a tick of the TSC.\n");
		return EXIT_OK;
	}
	if (echo_thread_start(&conf, &other) != 0) {
		fprintf(stderr,
			PROGRAM ": cannot run on cores %u and %u, or (--every-ms) not "
				"permitted to use SCHED_FIFO\n",
			(unsigned)conf.cores[0], (unsigned)conf.cores[1]);
		return EXIT_ENVIRONMENT;
	}
	if (conf.every_ms != 0) {
		readings_print(conf.every_ms * MS_NS);
		return EXIT_OK; /* the second thread sleeps or spins */
	}
	printf("%.1f", transfer_measure());
	pthread_join(other, NULL);
	if (conf.state) {
		const unsigned cores[2] = {
			(unsigned)conf.cores[0], (unsigned)conf.cores[1]};
		struct core_state state;

		if (core_state_measure(cores, &state) != 0) {
			fprintf(stderr, "\n" PROGRAM ": cannot run on cores %u and %u\n",
				cores[0], cores[1]);
			return EXIT_ENVIRONMENT;
		}
		printf(" %.2f %.2f", state.beside, state.cycles_a_tick);
	}
	printf("\n");
	return EXIT_OK;
}
