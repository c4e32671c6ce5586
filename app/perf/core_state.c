/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <rte_cycles.h>

#include "core_state.h"

#define NS_PER_SEC UINT64_C(1000000000)
#define READINGS 9 /* of each: the median counts */
/* About 1 ms: shorter than a time slice, longer than what a core needs to reach its clock. */
#define WORK_STEPS 1000000
#define CHAIN_STEPS 3000000

/* Four sums that do not wait for each other fill the units of a core, so that a second hardware thread of that
 * core has to take some of them. */
static uint64_t
work_run(void)
{
	uint64_t a = 1, b = 2, c = 3, d = 4;

	for (unsigned i = 0; i < WORK_STEPS; i++) {
		a += b ^ i;
		b ^= a >> 1;
		c += d ^ i;
		d ^= c >> 1;
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
	}
	return a + b + c + d;
}

/* Each step is an exclusive or of two registers, which waits for the one before it: one cycle. */
static void
chain_run(void)
{
	uint64_t value = 1, other = 3;

#define CHAIN_STEP                                                                       \
	do {                                                                             \
		value ^= other;                                                          \
		/* the compiler must neither join steps nor take them out */             \
		__asm__ volatile("" : "+r"(value), "+r"(other));                         \
	} while (0)
	for (unsigned i = 0; i < CHAIN_STEPS / 8; i++) {
		CHAIN_STEP;
		CHAIN_STEP;
		CHAIN_STEP;
		CHAIN_STEP;
		CHAIN_STEP;
		CHAIN_STEP;
		CHAIN_STEP;
		CHAIN_STEP;
	}
#undef CHAIN_STEP
}

uint64_t
line_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
}

static double
work_ns(void)
{
	uint64_t since = line_now_ns();

	work_run();
	return (double)(line_now_ns() - since);
}

static double
chain_cycles_a_tick(void)
{
	uint64_t since = rte_rdtsc();

	chain_run();
	return CHAIN_STEPS / (double)(rte_rdtsc() - since);
}

static int
double_compare(const void *a, const void *b)
{
	const double *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

double
line_median(double *numbers, unsigned n)
{
	qsort(numbers, n, sizeof(numbers[0]), double_compare);
	return numbers[n / 2];
}

/* Between the threads of the two cores. */
struct neighbour {
	bool works; /* written by the thread on the second core, when it has begun */
	bool ends;  /* written by the one on the first core */
};

static void *
neighbour_thread(void *arg)
{
	struct neighbour *neighbour = arg;

	do {
		work_run();
		/* pairs with the acquire in beside_measure() */
		__atomic_store_n(&neighbour->works, true, __ATOMIC_RELEASE);
	} while (!__atomic_load_n(&neighbour->ends, __ATOMIC_RELAXED));
	return NULL;
}

/* Starts and ends the neighbour, so that readings alone and beside it take turns: a state may change meanwhile. */
static int
beside_measure(const pthread_attr_t *attr, double *ns)
{
	struct neighbour neighbour = {0};
	pthread_t thread;
	int rc = pthread_create(&thread, attr, neighbour_thread, &neighbour);

	if (rc != 0)
		return rc;
	while (!__atomic_load_n(&neighbour.works, __ATOMIC_ACQUIRE))
		sched_yield();
	*ns = work_ns();
	__atomic_store_n(&neighbour.ends, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	return 0;
}

static int
readings_take(const pthread_attr_t *attr, struct core_state *state)
{
	double factors[READINGS], ticks[READINGS], beside;
	int rc;

	for (unsigned i = 0; i < READINGS; i++) {
		double alone = work_ns();

		rc = beside_measure(attr, &beside);
		if (rc != 0)
			return rc;
		factors[i] = beside / alone;
		ticks[i] = chain_cycles_a_tick();
	}
	state->beside = line_median(factors, READINGS);
	state->cycles_a_tick = line_median(ticks, READINGS);
	return 0;
}

int
core_state_measure(const unsigned cores[2], struct core_state *state)
{
	pthread_attr_t attr;
	cpu_set_t set;
	int rc;

	CPU_ZERO(&set);
	CPU_SET(cores[0], &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		return -1;
	rc = pthread_attr_init(&attr);
	if (rc == 0) {
		CPU_ZERO(&set);
		CPU_SET(cores[1], &set);
		rc = pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
		if (rc == 0)
			rc = readings_take(&attr, state);
		pthread_attr_destroy(&attr);
	}
	errno = rc;
	return rc == 0 ? 0 : -1;
}
