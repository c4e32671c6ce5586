/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <dirent.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/no_cancel.h"
#include "base/own_thread.h"

#define CHANGE (UINT64_C(1) << 32)
#define TASK_EXITING 0x4 /* PF_EXITING, in the flags of proc(5) */

/* Of the process. librocade and librocade-verbs have a copy of this file each: the dynamic linker gives all
 * copies in a process the same variable. Weak: several definitions are meant, which AddressSanitizer would
 * report otherwise. */
__attribute__((weak, visibility("default"))) struct {
	/* In the low half how many run, in the upper half how often that has changed. A thread counts
	 * itself: the kernel knows it before it is counted, and until after it is no longer. */
	uint64_t running;
	bool main_has_ended, looks;
} rocade_own_threads;

static pthread_key_t key; /* its value in the main thread is not NULL */
static bool key_exists;

static void
thread_begins(void)
{
	__atomic_fetch_add(&rocade_own_threads.running, CHANGE + 1, __ATOMIC_SEQ_CST);
}

static void
thread_ends(void *unused)
{
	(void)unused;
	__atomic_fetch_add(&rocade_own_threads.running, CHANGE - 1, __ATOMIC_SEQ_CST);
}

/* Asks the kernel whether the main thread has ended, and how many threads the process has, the main one
 * included. Returns false if that is unknown. */
static bool
threads_read(bool *main_ended, unsigned *count)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256], state = 0;

	*count = 0;
	if (file == NULL)
		return false;
	while (fgets(line, sizeof(line), file) != NULL) {
		(void)sscanf(line, "State: %c", &state);
		(void)sscanf(line, "Threads: %u", count);
	}
	fclose(file);
	*main_ended = state == 'Z';
	return state != 0 && *count != 0;
}

bool
own_threads_are_alone(void)
{
	uint64_t before = __atomic_load_n(&rocade_own_threads.running, __ATOMIC_SEQ_CST);
	bool main_ended;
	unsigned count;

	if (!threads_read(&main_ended, &count) || !main_ended)
		return false;
	/* Otherwise the one number may be of other threads than the other. */
	return count == 1 + (uint32_t)before &&
	       __atomic_load_n(&rocade_own_threads.running, __ATOMIC_SEQ_CST) == before;
}

/* Returns whether the thread runs, and is not about to end: pthread_join(3) returns before the kernel has
 * forgotten a thread. */
static bool
thread_goes_on(const char *tid)
{
	char path[64], line[512];
	const char *rest;
	unsigned flags = TASK_EXITING;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", tid);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	/* The name may have blanks and parentheses. */
	if (fgets(line, sizeof(line), file) != NULL &&
		(rest = strrchr(line, ')')) != NULL)
		(void)sscanf(rest, ") %*c %*d %*d %*d %*d %*d %u", &flags);
	fclose(file);
	return (flags & TASK_EXITING) == 0;
}

bool
own_threads_and_main_only(void)
{
	uint64_t before = __atomic_load_n(&rocade_own_threads.running, __ATOMIC_SEQ_CST);
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	bool main_goes_on = false;
	unsigned count = 0;

	while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
		if (entry->d_name[0] == '.' || !thread_goes_on(entry->d_name))
			continue;
		count++;
		main_goes_on |= atoi(entry->d_name) == getpid();
	}
	if (tasks != NULL)
		closedir(tasks);
	/* As above. */
	return main_goes_on && count == 1 + (uint32_t)before &&
	       __atomic_load_n(&rocade_own_threads.running, __ATOMIC_SEQ_CST) == before;
}

static void *
look_main(void *unused)
{
	const struct timespec pause = {.tv_nsec = OWN_THREAD_LOOK_MS * 1000000L};

	while (!own_threads_are_alone())
		(void)nanosleep(&pause, NULL);
	exit(0); /* as libc does in the last thread */
	return unused;
}

/* Called behind the end of the main thread and behind the begin of each thread: one of the two calls sees
 * both. */
static void
look_if_due(void)
{
	static struct own_thread thread = {
		.name = "rocade-last", .main = look_main, .detached = true};

	if (!__atomic_load_n(&rocade_own_threads.main_has_ended, __ATOMIC_SEQ_CST) ||
		(uint32_t)__atomic_load_n(
			&rocade_own_threads.running, __ATOMIC_SEQ_CST) == 0 ||
		__atomic_exchange_n(&rocade_own_threads.looks, true, __ATOMIC_SEQ_CST))
		return;
	if (own_thread_start(&thread) != 0)
		__atomic_store_n(&rocade_own_threads.looks, false, __ATOMIC_SEQ_CST);
}

/* Of a start, until the thread has made the system calls of its start. */
struct start {
	const struct own_thread *thread;
	sem_t has_begun;
};

static void *
thread_main(void *arg)
{
	struct start *start = arg;
	const struct own_thread *t = start->thread;
	void *result;

	thread_begins();
	pthread_cleanup_push(thread_ends, NULL);
	pthread_setname_np(pthread_self(), t->name);
	look_if_due();
	sem_post(&start->has_begun);
	result = t->main(t->arg);
	pthread_cleanup_pop(1);
	return result;
}

int
own_thread_start(struct own_thread *t)
{
	struct start start = {.thread = t};
	pthread_attr_t attr;
	bool detached = t->detached;
	sigset_t all, old;
	pthread_t id;
	int err, state;

	pthread_attr_init(&attr);
	if (detached)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	if (t->takes_faults) {
		sigdelset(&all, SIGSEGV);
		sigdelset(&all, SIGBUS);
	}
	pthread_sigmask(SIG_SETMASK, &all, &old);
	sem_init(&start.has_begun, 0, 0);
	err = pthread_create(&id, &attr, thread_main, &start);
	/* A program may forbid these calls to all its threads as soon as this one returns (seccomp(2)). No
	 * signal handler runs here. */
	state = no_cancel_begin();
	while (err == 0 && sem_wait(&start.has_begun) != 0)
		;
	no_cancel_end(state);
	sem_destroy(&start.has_begun);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	/* A detached one may have freed t. */
	if (err == 0 && !detached)
		t->id = id;
	return err;
}

/* The main thread ends, by pthread_exit(3) or pthread_cancel(3), not by exit(3). */
static void
main_ends(void *unused)
{
	(void)unused;
	__atomic_store_n(&rocade_own_threads.main_has_ended, true, __ATOMIC_SEQ_CST);
	look_if_due();
}

/* The caller is the main thread of the process. */
static void
main_mark(void)
{
	if (key_exists)
		(void)pthread_setspecific(key, &key);
}

/* The thread that forks is the main thread of the child, which has no other. */
static void
own_thread_fork_child(void)
{
	int state = no_cancel_begin();

	rocade_own_threads.running = 0;
	rocade_own_threads.main_has_ended = rocade_own_threads.looks = false;
	main_mark();
	no_cancel_end(state);
}

/* When the library is loaded, which is in the main thread unless it is loaded by dlopen(3). */
static __attribute__((constructor)) void
main_thread_watch(void)
{
	key_exists = pthread_key_create(&key, main_ends) == 0;
	if (getpid() == gettid())
		main_mark();
	(void)pthread_atfork(NULL, NULL, own_thread_fork_child);
}

/* The function is no longer there behind dlclose(3). */
static __attribute__((destructor)) void
main_thread_leave(void)
{
	if (key_exists)
		pthread_key_delete(key);
}
