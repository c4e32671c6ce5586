/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/*
 * Threads that Rocade adds to a process. They leave signals to the application's threads. They keep no
 * process alive: a process whose main thread has ended by pthread_exit(3) exits with 0 when its last thread
 * ends, and these do not count. From the end of the main thread on, one more thread looks ten times a second
 * whether others than these are left. Where /proc is not mounted, the process goes on. The threads of other
 * libraries are the application's.
 */
#ifndef ROCADE_BASE_OWN_THREAD_H
#define ROCADE_BASE_OWN_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#define OWN_THREAD_LOOK_MS 100

/* Of the caller, who sets all but the ID. It has to last until main() is called. */
struct own_thread {
	pthread_t id;
	const char *name; /* at most 15 characters */
	void *(*main)(void *arg);
	void *arg;
	bool detached;
	bool takes_faults; /* SIGSEGV and SIGBUS are not blocked, so that their handlers run */
};

/* Returns 0 or errno of pthread_create(3). On 0 the thread has made the system calls of its start: a program
 * that forbids such calls afterwards (seccomp(2)) does not end by them. */
int own_thread_start(struct own_thread *t);

/* Whether the main thread has ended and no other thread is left but those that were started by
 * own_thread_start(). */
bool own_threads_are_alone(void);
/* Whether the main thread lives, and is the only thread of the program. */
bool own_threads_and_main_only(void);

#endif
