/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of Rocade keep no process alive whose main thread has ended. Each test runs a child; its threads
 * are the child's program. */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

#include "await.h"
#include "base/own_thread.h"
#include "case.h"

#define OTHER_STATUS 9
#define JOINED 100
#define FILES 200
#define STARTS 100

/* A main thread that has ended leaves what it had allocated. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int
__lsan_is_turned_off(void)
{
	return 1;
}

static int to_parent[2];
static struct own_thread own;
static bool own_runs;

static void *
wait_for_ever(void *unused)
{
	__atomic_store_n(&own_runs, true, __ATOMIC_RELAXED);
	for (;;)
		pause();
	return unused;
}

static void *
end_at_once(void *unused)
{
	return unused;
}

/* The kernel closes the files of a thread behind the wake-up of pthread_join(3): with files of its own it
 * is a thread of the process for long enough to be seen. */
static void *
end_with_files(void *unused)
{
	if (unshare(CLONE_FILES) != 0)
		_exit(OTHER_STATUS);
	for (unsigned i = 0; i < FILES; i++)
		if (dup(to_parent[1]) < 0)
			_exit(OTHER_STATUS);
	return unused;
}

static void
own_start(void *(*main)(void *))
{
	own = (struct own_thread){.name = "own", .main = main};
	if (own_thread_start(&own) != 0)
		_exit(OTHER_STATUS);
}

static bool
main_has_ended(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256], state = 0;

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		(void)sscanf(line, "State: %c", &state);
	if (file != NULL)
		fclose(file);
	return state == 'Z';
}

static void
say(char what)
{
	if (write(to_parent[1], &what, 1) != 1)
		_exit(OTHER_STATUS);
}

static void
say_exit(void)
{
	say('x');
}

/* A thread of the program, which does something when the main thread has ended. */
static void *
worker(void *unused)
{
	if (!awaited(main_has_ended()))
		_exit(OTHER_STATUS);
	say(own_threads_are_alone() ? 'a' : 'w');
	return unused;
}

static void *
worker_that_starts(void *unused)
{
	if (!awaited(main_has_ended()))
		_exit(OTHER_STATUS);
	own_start(wait_for_ever);
	return worker(unused);
}

static void *
worker_that_exits(void *unused)
{
	if (!awaited(main_has_ended()))
		_exit(OTHER_STATUS);
	exit(7);
	return unused;
}

static pid_t
child_start(void (*child)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		atexit(say_exit);
		child();
		pthread_exit(NULL);
	}
	return pid;
}

/* Runs the child and returns its wait status. said: what it has said until it ended. */
static int
child_run(pid_t (*start)(void (*child)(void)), void (*child)(void), char said[8])
{
	size_t len = 0;
	ssize_t got;
	int status;
	pid_t pid;

	assert_int_equal(pipe(to_parent), 0);
	pid = start(child);
	assert_true(pid > 0);
	close(to_parent[1]);
	status = await_child(pid);
	while ((got = read(to_parent[0], said + len, 7 - len)) > 0)
		len += (size_t)got;
	said[len] = 0;
	close(to_parent[0]);
	return status;
}

static void
thread_start(void *(*main)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, main, NULL) != 0)
		_exit(OTHER_STATUS);
	pthread_detach(thread);
}

static void
own_then_worker(void)
{
	own_start(wait_for_ever);
	thread_start(worker);
}

/* The exit is that of exit(3): its functions run, behind the last thread of the program. */
TEST(process_ends_with_its_last_thread)
{
	char said[8];

	assert_int_equal(child_run(child_start, own_then_worker, said), 0);
	assert_string_equal(said, "wx");
}

static void
worker_starts_own(void)
{
	thread_start(worker_that_starts);
}

TEST(own_thread_may_begin_behind_the_main_thread)
{
	char said[8];

	assert_int_equal(child_run(child_start, worker_starts_own, said), 0);
	assert_string_equal(said, "wx");
}

static void
ended_own_then_worker(void)
{
	own_start(end_at_once);
	pthread_join(own.id, NULL);
	own_then_worker();
}

/* Else the program's worker would count as the one that has ended. */
TEST(ended_threads_do_not_count)
{
	char said[8];

	assert_int_equal(child_run(child_start, ended_own_then_worker, said), 0);
	assert_string_equal(said, "wx");
}

/* Of the program are only two threads, the main thread and the worker, whichever library is asked. */
static void
own_in_two_libraries(void)
{
	static struct own_thread other = {.name = "other", .main = wait_for_ever};
	int (*start)(struct own_thread *);
	void *copy = dlopen(COPY, RTLD_NOW);

	start = copy != NULL
			? (int (*)(struct own_thread *))dlsym(copy, "own_thread_start")
			: NULL;
	if (start == NULL || start == own_thread_start || start(&other) != 0)
		_exit(OTHER_STATUS);
	own_then_worker();
}

TEST(libraries_count_together)
{
	char said[8];

	assert_int_equal(child_run(child_start, own_in_two_libraries, said), 0);
	assert_string_equal(said, "wx");
}

static void *
child_start_here(void *child)
{
	pid_t *pid = malloc(sizeof(*pid));

	*pid = child_start(*(void (**)(void))child);
	return pid;
}

static pid_t
child_start_in_thread(void (*child)(void))
{
	pthread_t thread;
	void *result;
	pid_t pid;

	assert_int_equal(pthread_create(&thread, NULL, child_start_here, &child), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	pid = *(pid_t *)result;
	free(result);
	return pid;
}

/* It is the main thread of the child. */
TEST(any_thread_may_fork)
{
	char said[8];

	assert_int_equal(child_run(child_start_in_thread, own_then_worker, said), 0);
	assert_string_equal(said, "wx");
}

static void
own_only(void)
{
	own_start(wait_for_ever);
}

TEST(main_thread_may_be_the_last)
{
	char said[8];

	assert_int_equal(child_run(child_start, own_only, said), 0);
	assert_string_equal(said, "x");
}

static void
own_then_exit(void)
{
	own_start(wait_for_ever);
	thread_start(worker_that_exits);
}

TEST(status_of_the_program_stays)
{
	char said[8];
	int status = child_run(child_start, own_then_exit, said);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void
alone_beside_main(void)
{
	own_start(wait_for_ever);
	if (!awaited(__atomic_load_n(&own_runs, __ATOMIC_RELAXED)))
		_exit(OTHER_STATUS);
	/* The main thread is of the program. */
	say(own_threads_are_alone() ? 'a' : 'w');
	_exit(0);
}

TEST(main_thread_counts_while_it_lives)
{
	char said[8];

	assert_int_equal(child_run(child_start, alone_beside_main, said), 0);
	assert_string_equal(said, "w");
}

static void
main_beside_own(void)
{
	say(own_threads_and_main_only() ? 'm' : 'w');
	own_start(wait_for_ever);
	if (!awaited(__atomic_load_n(&own_runs, __ATOMIC_RELAXED)))
		_exit(OTHER_STATUS);
	say(own_threads_and_main_only() ? 'm' : 'w');
	/* The kernel may count a thread for a moment that has been joined. */
	for (unsigned i = 0; i < JOINED; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, end_with_files, NULL) != 0 ||
			pthread_join(thread, NULL) != 0)
			_exit(OTHER_STATUS);
		if (!own_threads_and_main_only())
			say('j');
	}
	thread_start(wait_for_ever);
	say(own_threads_and_main_only() ? 'm' : 'w');
	_exit(0);
}

/* No other thread of the program can do what it waits for. */
TEST(main_thread_is_known_to_be_the_only_one)
{
	char said[8];

	assert_int_equal(child_run(child_start, main_beside_own, said), 0);
	assert_string_equal(said, "mmw");
}

static void *
worker_beside_the_ended_main(void *unused)
{
	if (!awaited(main_has_ended()))
		_exit(OTHER_STATUS);
	say(own_threads_and_main_only() ? 'm' : 'w');
	_exit(0);
	return unused;
}

static void
worker_only(void)
{
	thread_start(worker_beside_the_ended_main);
}

TEST(ended_main_thread_is_not_the_only_one)
{
	char said[8];

	assert_int_equal(child_run(child_start, worker_only, said), 0);
	assert_string_equal(said, "w");
}

/* ---- Signals ---- */

static sigset_t blocked;

static void *
mask_read(void *unused)
{
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	return unused;
}

TEST(signals_are_left_to_the_program)
{
	struct own_thread t = {.name = "own", .main = mask_read};

	assert_int_equal(own_thread_start(&t), 0);
	pthread_join(t.id, NULL);
	assert_int_equal(sigismember(&blocked, SIGTERM), 1);
	assert_int_equal(sigismember(&blocked, SIGSEGV), 1);
	t.takes_faults = true;
	assert_int_equal(own_thread_start(&t), 0);
	pthread_join(t.id, NULL);
	assert_int_equal(sigismember(&blocked, SIGTERM), 1);
	assert_int_equal(sigismember(&blocked, SIGSEGV), 0);
	assert_int_equal(sigismember(&blocked, SIGBUS), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	assert_int_equal(sigismember(&blocked, SIGTERM), 0);
}

/* ---- System calls ---- */

static void *
wait_for_post(void *sem)
{
	while (sem_wait(sem) != 0)
		;
	return NULL;
}

/* A program may allow its threads no further calls once a device is open. Without a wait the new thread has
 * its name in few of STARTS starts. */
TEST(calls_of_a_start_are_made_when_it_returns)
{
	for (int i = 0; i < STARTS; i++) {
		char name[16];
		sem_t end;
		struct own_thread t = {.name = "own", .main = wait_for_post, .arg = &end};

		assert_int_equal(sem_init(&end, 0, 0), 0);
		assert_int_equal(own_thread_start(&t), 0);
		assert_int_equal(pthread_getname_np(t.id, name, sizeof(name)), 0);
		assert_string_equal(name, "own");
		sem_post(&end);
		pthread_join(t.id, NULL);
		sem_destroy(&end);
	}
}
