/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "await.h"

#define NS_PER_S UINT64_C(1000000000)
#define WAKE_UPS 1000
#define YIELDS 100 /* before the first sleep: most conditions hold soon */
#define SLEEP_US 100
#define LOOK_MS 1000 /* at the limit, while nothing happens */

static uint64_t
clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* ---- The fixed piece of work ---- */

struct echo {
	int there[2], back[2];
};

static void *
echo_main(void *arg)
{
	const struct echo *e = arg;
	char byte;

	while (read(e->there[0], &byte, 1) == 1 && write(e->back[1], &byte, 1) == 1)
		;
	return NULL;
}

/* Each round wakes both threads once. */
static void
wake_ups_make(void)
{
	struct echo e;
	pthread_t thread;
	char byte = 0;

	if (pipe2(e.there, O_CLOEXEC) != 0 || pipe2(e.back, O_CLOEXEC) != 0 ||
		pthread_create(&thread, NULL, echo_main, &e) != 0)
		abort();
	for (unsigned i = 0; i < WAKE_UPS / 2; i++) {
		if (write(e.there[1], &byte, 1) != 1 || read(e.back[0], &byte, 1) != 1)
			abort();
	}
	close(e.there[1]);
	pthread_join(thread, NULL);
	close(e.there[0]);
	close(e.back[0]);
	close(e.back[1]);
}

static uint64_t
machine_work_ns(void)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), cpu;

	wake_ups_make();
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu < NS_PER_S)
		;
	return clock_ns(CLOCK_MONOTONIC) - begin;
}

/* ---- Waiting ---- */

void
others_run_us(unsigned us)
{
	nanosleep(&(struct timespec){.tv_sec = us / 1000000,
			  .tv_nsec = (long)(us % 1000000) * 1000},
		NULL);
}

void
others_run(void)
{
	others_run_us(SLEEP_US);
}

int
others_run_until(struct pollfd *fds, unsigned count, int ms)
{
	return poll(fds, count, ms);
}

bool
await_goes_on(struct await *a)
{
	uint64_t ns = clock_ns(CLOCK_MONOTONIC);

	if (a->begin_ns == 0)
		a->begin_ns = ns;
	if (a->limit_ns == 0)
		a->limit_ns = AWAIT_TIMES * NS_PER_S;
	if (ns - a->begin_ns < a->limit_ns)
		return true;
	a->limit_ns = AWAIT_TIMES * (a->work_ns != NULL ? a->work_ns : machine_work_ns)();
	return ns - a->begin_ns < a->limit_ns;
}

bool
await_pause(struct await *a)
{
	if (a->pauses++ < YIELDS)
		sched_yield();
	else
		others_run();
	return await_goes_on(a);
}

bool
await_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct await a = {.pauses = 0};

	while (poll(&p, 1, LOOK_MS) != 1) {
		if (!await_goes_on(&a))
			return poll(&p, 1, 0) == 1;
	}
	return true;
}

static void *
guard_main(void *arg)
{
	const struct await_guard *guard = arg;

	if (!await_readable(guard->ends[0])) {
		fprintf(stderr, "the calls did not come to an end\n");
		abort();
	}
	return NULL;
}

void
await_guard_begin(struct await_guard *guard)
{
	if (pipe2(guard->ends, O_CLOEXEC) != 0 ||
		pthread_create(&guard->thread, NULL, guard_main, guard) != 0)
		abort();
}

void
await_guard_end(struct await_guard *guard)
{
	close(guard->ends[1]);
	pthread_join(guard->thread, NULL);
	close(guard->ends[0]);
}

void
cpu_limit_begin(unsigned times)
{
	const struct itimerval after = {.it_value.tv_sec = AWAIT_TIMES * times};

	if (setitimer(ITIMER_PROF, &after, NULL) != 0)
		abort();
}

int
await_child(pid_t child)
{
	int status = -1;

	if (!awaited(waitpid(child, &status, WNOHANG) != 0)) {
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
	}
	return status;
}

/* ---- Threads ---- */

/* What /proc tells of threads at one time. */
struct look {
	bool asleep; /* all of them */
	uint64_t threads, tids;
	uint64_t sleeps, preemptions;
};

static uint64_t
number_behind(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at != NULL ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* It allocates nothing: another thread may be about to fork. */
static void
thread_look(struct look *look, pid_t tid)
{
	char path[64], text[4096];
	const char *state;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	text[len > 0 ? len : 0] = '\0';
	state = strstr(text, "\nState:\t");
	look->asleep &= state != NULL && state[8] == 'S';
	look->threads++;
	look->tids += (uint64_t)tid;
	look->sleeps += number_behind(text, "\nvoluntary_ctxt_switches:");
	look->preemptions += number_behind(text, "\nnonvoluntary_ctxt_switches:");
}

/* The state alone does not tell: a thread has the state S for a moment before it sleeps, too. */
static bool
stayed_asleep(const struct look *one, const struct look *two)
{
	return one->asleep && two->asleep && one->threads == two->threads &&
	       one->tids == two->tids && one->sleeps == two->sleeps &&
	       one->preemptions == two->preemptions;
}

uint64_t
thread_sleep_count(pid_t tid)
{
	struct look look = {.asleep = true};

	thread_look(&look, tid);
	return look.sleeps;
}

bool
thread_sleeps(pid_t tid)
{
	struct look one = {.asleep = true}, two = {.asleep = true};

	thread_look(&one, tid);
	thread_look(&two, tid);
	return stayed_asleep(&one, &two);
}

static struct look
others_look(void)
{
	struct look look = {.asleep = true};
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;

	if (dir == NULL)
		abort();
	while ((entry = readdir(dir)) != NULL) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid != 0 && tid != gettid())
			thread_look(&look, tid);
	}
	closedir(dir);
	return look;
}

bool
threads_asleep(void)
{
	struct look one = others_look(), two;

	two = others_look();
	return stayed_asleep(&one, &two);
}

bool
threads_asleep_await(void)
{
	bool asleep;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	asleep = awaited(threads_asleep());
	pthread_setcancelstate(state, NULL);
	return asleep;
}
