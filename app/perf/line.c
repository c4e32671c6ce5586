/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-line: what it takes to bring a cache line from one core to another. A hypervisor
 * may move a virtual machine's cores nearer to or further from each other while it runs,
 * so tools/bench.sh watches that while it measures. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <common/number.h>

#define PROGRAM "rocade-line"
/* A reading is so short that it does not matter to what it interrupts: 50 us where a
 * transfer takes 28 ns. */
#define STRETCHES 3
#define ROUND_TRIPS 300 /* of a stretch */
#define READINGS 51     /* for one number */
#define SEC_NS UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)

enum exit_code { EXIT_OK, EXIT_USAGE = 2, EXIT_ENVIRONMENT };

struct conf {
	uint64_t cores[2];
	uint64_t every_ms; /* 0: one number */
	bool help;
};

/* Alone in its line, and in the one that is fetched along with it. */
static struct {
	_Alignas(128) uint64_t value;
	uint64_t next_ns; /* when the ends meet again; 0: at once */
	bool last;        /* reading */
} ball;

static uint64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SEC_NS + (uint64_t)now.tv_nsec;
}

static void
sleep_until(uint64_t ns)
{
	struct timespec until = {
		.tv_sec = (time_t)(ns / SEC_NS), .tv_nsec = (long)(ns % SEC_NS)};

	if (ns != 0)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* An end writes only what the other one waits for: its release pairs with this acquire.
 * No pause between two looks, for a hypervisor may trap it. */
static uint64_t
ball_await(uint64_t other_than)
{
	uint64_t value;

	do
		value = __atomic_load_n(&ball.value, __ATOMIC_ACQUIRE);
	while (value == other_than);
	return value;
}

static void
ball_throw(uint64_t value)
{
	__atomic_store_n(&ball.value, value, __ATOMIC_RELEASE);
}

/* The other end: an even number comes back as the odd one behind it. */
static void *
balls_return(void *unused)
{
	uint64_t value = 0, next_ns = 0;
	bool last = false;

	(void)unused;
	while (!last) {
		for (unsigned i = 0; i < STRETCHES * ROUND_TRIPS; i++) {
			value = ball_await(value);
			next_ns = ball.next_ns;
			last = ball.last;
			ball_throw(++value);
		}
		sleep_until(next_ns);
	}
	return NULL;
}

static int
compare(const void *a, const void *b)
{
	const double *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

/* One in which a core was taken away does not matter. */
static double
median(double *numbers, unsigned n)
{
	qsort(numbers, n, sizeof(numbers[0]), compare);
	return numbers[n / 2];
}

static double
reading_take(uint64_t next_ns, bool last)
{
	uint64_t value = ball.value, since;
	double stretch[STRETCHES];

	ball.next_ns = next_ns;
	ball.last = last;
	value += value % 2; /* even */
	for (unsigned k = 0; k < STRETCHES; k++) {
		since = now_ns();
		for (unsigned i = 0; i < ROUND_TRIPS; i++) {
			value += 2;
			ball_throw(value);
			ball_await(value);
		}
		stretch[k] = (double)(now_ns() - since) / (2 * ROUND_TRIPS);
	}
	return median(stretch, STRETCHES);
}

static double
number_take(void)
{
	double readings[READINGS];

	for (unsigned i = 0; i < READINGS; i++)
		readings[i] = reading_take(0, i + 1 == READINGS);
	return median(readings, READINGS);
}

/* Until nobody reads it any more, or a signal comes. */
static void
watch(uint64_t every_ns)
{
	uint64_t next_ns;
	double transfer_ns;

	do {
		next_ns = now_ns() + every_ns;
		transfer_ns = reading_take(next_ns, false);
		printf("%.3f %.1f\n", (double)now_ns() / SEC_NS, transfer_ns);
		sleep_until(next_ns);
	} while (fflush(stdout) == 0);
}

/* What watches comes in between what is watched, on both cores at a time. */
static int
other_start(const struct conf *conf, pthread_t *other)
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
	rc = pthread_attr_init(&attr); /* the policy is inherited */
	if (rc != 0)
		return -1;
	CPU_ZERO(&set);
	CPU_SET(conf->cores[1], &set);
	rc = pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	if (rc == 0)
		rc = pthread_create(other, &attr, balls_return, NULL);
	pthread_attr_destroy(&attr);
	return rc == 0 ? 0 : -1;
}

static bool
options_parse(struct conf *conf, int argc, char **argv)
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

	if (!options_parse(&conf, argc, argv)) {
		fprintf(stderr, PROGRAM ": --help says what can be given\n");
		return EXIT_USAGE;
	}
	if (conf.help) {
		printf("Usage: " PROGRAM " [--every-ms MS] [CORE CORE]\n\n"
		       "Prints how many nanoseconds a cache line takes from one core to "
		       "the other (0\nand 1). With --every-ms it goes on, with the "
		       "monotonic clock's seconds in front.\n");
		return EXIT_OK;
	}
	if (other_start(&conf, &other) != 0) {
		fprintf(stderr,
			PROGRAM ": cores %u and %u are not both there, or --every-ms "
				"without the right to SCHED_FIFO\n",
			(unsigned)conf.cores[0], (unsigned)conf.cores[1]);
		return EXIT_ENVIRONMENT;
	}
	if (conf.every_ms != 0) {
		watch(conf.every_ms * MS_NS);
		return EXIT_OK; /* the other end sleeps, or waits for a ball */
	}
	printf("%.1f\n", number_take());
	pthread_join(other, NULL);
	return EXIT_OK;
}
