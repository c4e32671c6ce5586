/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * futex_pingpong SECONDS: two processes wake each other in turn by a futex in shared
 * memory. A round trip is two wake-ups, with nothing between them: what any exchange
 * between two processes that sleep costs at least on this machine. Prints the round trips
 * a second and percentiles of a round trip in microseconds.
 */
#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAMPLES_MAX (1u << 20) /* the percentiles are of the last ones */

/* One word for each direction, in a cache line of its own. */
struct word {
	_Alignas(64) uint32_t value;
};

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
word_set(struct word *w, uint32_t value)
{
	__atomic_store_n(&w->value, value, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &w->value, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void
word_await(struct word *w, uint32_t value)
{
	uint32_t seen;

	while ((seen = __atomic_load_n(&w->value, __ATOMIC_SEQ_CST)) != value)
		syscall(SYS_futex, &w->value, FUTEX_WAIT, seen, NULL, NULL, 0);
}

static int
compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void
answer(struct word *words)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uint32_t i = 1;; i++) {
		word_await(&words[0], i);
		word_set(&words[1], i);
	}
}

int
main(int argc, char **argv)
{
	double seconds = argc == 2 ? atof(argv[1]) : 0;
	uint32_t *trips, n = 0, kept;
	uint64_t begin, before, now;
	struct word *words;
	pid_t child;

	if (seconds <= 0 || seconds > 3600) {
		fprintf(stderr, "usage: futex_pingpong SECONDS (up to 3600)\n");
		return 2;
	}
	words = mmap(NULL, 2 * sizeof(*words), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	trips = calloc(SAMPLES_MAX, sizeof(*trips));
	if (words == MAP_FAILED || trips == NULL || (child = fork()) < 0) {
		perror("futex_pingpong");
		return 1;
	}
	if (child == 0)
		answer(words);
	begin = before = now_ns();
	do {
		word_set(&words[0], ++n);
		word_await(&words[1], n);
		now = now_ns();
		trips[(n - 1) % SAMPLES_MAX] =
			(uint32_t)(now - before > UINT32_MAX ? UINT32_MAX : now - before);
		before = now;
	} while (now - begin < seconds * 1e9);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	kept = n < SAMPLES_MAX ? n : SAMPLES_MAX;
	qsort(trips, kept, sizeof(*trips), compare);
	printf("trips_per_s %.1f mean %.3f p50 %.3f p99 %.3f\n",
		n / ((now - begin) / 1e9), (now - begin) / 1e3 / n, trips[kept / 2] / 1e3,
		trips[kept * 99ull / 100] / 1e3);
	return 0;
}
