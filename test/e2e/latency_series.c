/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "flow_end.h"
#include "latency.h"

#define MOST_TIMES (1u << 20)
#define MOST_WAITS 8

void
series_init(struct series *s, const char *name)
{
	*s = (struct series){.name = name, .us = malloc(MOST_TIMES * sizeof(*s->us))};
	if (s->us == NULL)
		die("malloc");
}

static int waits[MOST_WAITS];
static unsigned wait_count;

void
waits_add(int pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	if (wait_count == MOST_WAITS ||
		(waits[wait_count++] = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		die(path);
}

struct moment
moment_now(void)
{
	struct moment m = {.ns = now_ns()};

	for (unsigned i = 0; i < wait_count; i++) {
		unsigned long long ran, waited;
		char text[80];
		ssize_t n = pread(waits[i], text, sizeof(text) - 1, 0);

		text[n > 0 ? n : 0] = '\0';
		if (sscanf(text, "%llu %llu", &ran, &waited) != 2)
			die("schedstat of a process that has ended");
		m.waited_ns += waited;
	}
	return m;
}

void
series_add(struct series *s, const struct moment *start)
{
	struct moment end = moment_now();
	uint64_t us = (end.ns - start->ns) / 1000;
	uint64_t waited_us = (end.waited_ns - start->waited_ns) / 1000;

	s->longest_us = us > s->longest_us ? us : s->longest_us;
	if (s->count < MOST_TIMES)
		s->us[s->count++] = (uint32_t)(us > waited_us ? us - waited_us : 0);
}

static int
us_order(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void
series_print(struct series *s, bool first)
{
	uint64_t n = s->count;

	qsort(s->us, n, sizeof(*s->us), us_order);
	printf("%s\"%s\": {\"count\": %llu, \"lost\": %llu, \"p50\": %u, \"p999\": %u, "
	       "\"pause\": %u, \"longest\": %llu}",
		first ? "" : ", ", s->name, (unsigned long long)n,
		(unsigned long long)s->lost, n != 0 ? s->us[n / 2] : 0,
		n != 0 ? s->us[n * 999 / 1000] : 0, n != 0 ? s->us[n - 1] : 0,
		(unsigned long long)s->longest_us);
	s->count = s->lost = s->longest_us = 0;
}

bool
rows_serve(struct series *s, unsigned count, int wait_us)
{
	const struct timespec most = {.tv_nsec = wait_us * 1000l};
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char c;

	while (ppoll(&in, 1, &most, NULL) > 0) {
		if (read(STDIN_FILENO, &c, 1) <= 0)
			return false;
		if (c != '\n')
			continue;
		printf("{");
		for (unsigned i = 0; i < count; i++)
			series_print(&s[i], i == 0);
		printf("}\n");
		fflush(stdout);
	}
	return true;
}
