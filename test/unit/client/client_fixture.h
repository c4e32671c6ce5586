/* SPDX-License-Identifier: BSD-3-Clause */
/* A daemon without a port, which a thread of the test runs. The test itself is a client:
 * it links librocade-verbs, with the verbs and the libc functions that it replaces. */
#ifndef ROCADE_TEST_CLIENT_FIXTURE_H
#define ROCADE_TEST_CLIENT_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rocade/daemon.h>
#include <rocade/rocade.h>
#include <rocade/status.h>

#include "await.h"
#include "case.h"

struct client_fixture {
	struct rocade_daemon *d;
	pthread_t thread;
	char dir[32];
	char path[64];
};

static void *
daemon_serve(void *d)
{
	return (void *)(intptr_t)rocade_daemon_run(d);
}

static inline void
thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
	assert_int_equal(pthread_create(thread, NULL, fn, arg), 0);
}

/* Lets the daemon serve. (ThreadSanitizer supports no thread in a child of a process with
 * threads, so these tests are not in test/tsan/tests.) */
static inline void
daemon_resume(struct client_fixture *f)
{
	thread_start(&f->thread, daemon_serve, f->d);
}

/* Makes the daemon serve no longer; it keeps its clients. */
static inline void
daemon_pause(struct client_fixture *f)
{
	rocade_daemon_stop(f->d);
	assert_int_equal(pthread_join(f->thread, NULL), 0);
}

/* conf: NULL, or all but size, socket and addresses. */
static inline void
daemon_begin(struct client_fixture *f, const struct rocade_daemon_conf *more)
{
	struct rocade_daemon_conf conf = {.size = 0};

	if (more != NULL)
		conf = *more;
	conf.size = sizeof(conf);
	conf.socket = f->path;
	conf.addresses = "192.0.2.1/24";
	assert_int_equal(rocade_daemon_create(&conf, &f->d), 0);
	daemon_resume(f);
}

static inline void
daemon_end(struct client_fixture *f)
{
	daemon_pause(f);
	rocade_daemon_destroy(f->d);
	f->d = NULL;
}

/* The directory and the environment; no daemon yet. */
static inline void
fixture_open(struct client_fixture *f)
{
	memset(f, 0, sizeof(*f));
	strcpy(f->dir, "/tmp/rocade-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/socket", f->dir);
	setenv("ROCADE_SOCKET", f->path, 1);
}

static inline void
fixture_close(struct client_fixture *f)
{
	if (f->d != NULL)
		daemon_end(f);
	assert_int_equal(rmdir(f->dir), 0);
}

/* fork() while no other thread runs. The daemon's thread is joined, because it wakes by itself; no call
 * joins the threads that close descriptors (server/passed_fds.h). */
static inline pid_t
daemon_fork(struct client_fixture *f)
{
	pid_t pid;

	daemon_pause(f);
	assert_true(threads_asleep_await());
	fflush(NULL);
	pid = fork();
	if (pid != 0)
		daemon_resume(f);
	assert_true(pid >= 0);
	return pid;
}

/* Runs check in a forked child, where it returns 0 or the line that failed. */
static inline void
check_in_child(struct client_fixture *f, int (*check)(void *arg), void *arg)
{
	pid_t pid = daemon_fork(f);

	if (pid == 0)
		exit(check(arg) != 0 ? 1 : 0);
	assert_int_equal(await_child(pid), 0);
}

/* In a child, where an assertion would continue with the next test. */
#define CHILD_CHECK(condition)                                                           \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
			return __LINE__;                                                 \
		}                                                                        \
	} while (0)

#endif
