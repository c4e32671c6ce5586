/* SPDX-License-Identifier: BSD-3-Clause */
/* test/lib/await.h, by which the unit tests wait. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "await.h"
#include "case.h"

#define NS_PER_S UINT64_C(1000000000)

TEST(condition_is_awaited)
{
	unsigned looks = 0;

	await(++looks == 1000);
	assert_int_equal(looks, 1000); /* none after the one that held */
}

/* ---- The limit ---- */

static uint64_t work_s;
static unsigned measured;

static uint64_t
pretended_work(void)
{
	measured++;
	return work_s * NS_PER_S;
}

/* Returns a wait that began s seconds ago. */
static struct await
wait_since(uint64_t s)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	measured = 0;
	return (struct await){.work_ns = pretended_work,
		.begin_ns = ((uint64_t)t.tv_sec - s) * NS_PER_S};
}

TEST(limit_is_measured_when_it_is_reached)
{
	struct await a = wait_since(AWAIT_TIMES - 10);

	assert_true(await_pause(&a));
	assert_int_equal(measured, 0);
	/* A machine on which the work takes 100 times as long. */
	work_s = 100;
	a = wait_since(AWAIT_TIMES + 10);
	assert_true(await_pause(&a));
	assert_true(await_pause(&a));
	assert_int_equal(measured, 1);
	/* It is no longer busy: the measurement is made anew. */
	work_s = 1;
	a.begin_ns -= 100 * AWAIT_TIMES * NS_PER_S;
	assert_false(await_pause(&a));
	assert_int_equal(measured, 2);
}

TEST(wait_in_vain_ends)
{
	struct await a = wait_since(AWAIT_TIMES * 1000000);

	a.work_ns = NULL;
	assert_false(await_pause(&a));
	assert_true(a.limit_ns >= AWAIT_TIMES * NS_PER_S);
}

/* ---- Children ---- */

TEST(end_of_a_child_is_awaited)
{
	pid_t child = fork();

	if (child == 0)
		_exit(7);
	assert_int_equal(WEXITSTATUS(await_child(child)), 7);
	child = fork();
	if (child == 0)
		raise(SIGKILL);
	assert_int_equal(WTERMSIG(await_child(child)), SIGKILL);
	assert_int_equal(await_child(child), -1);
}

/* ---- Threads ---- */

struct sleeper {
	pthread_t thread;
	pid_t tid;
	int ends[2];
	bool runs, stop;
};

/* Sleeps until a byte comes, then runs until it is stopped. */
static void *
sleeper_main(void *arg)
{
	struct sleeper *s = arg;
	char byte;

	__atomic_store_n(&s->tid, gettid(), __ATOMIC_RELEASE);
	if (read(s->ends[0], &byte, 1) != 1)
		return (void *)1;
	__atomic_store_n(&s->runs, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED))
		;
	return NULL;
}

static void
sleeper_start(struct sleeper *s)
{
	*s = (struct sleeper){.tid = 0};
	assert_int_equal(pipe(s->ends), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, sleeper_main, s), 0);
}

static void
sleeper_run(struct sleeper *s)
{
	assert_int_equal(write(s->ends[1], "", 1), 1);
	await(__atomic_load_n(&s->runs, __ATOMIC_ACQUIRE));
}

static void
sleeper_stop(struct sleeper *s)
{
	void *failed;

	__atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(s->thread, &failed), 0);
	assert_null(failed);
	close(s->ends[0]);
	close(s->ends[1]);
}

TEST(sleep_of_a_thread_is_seen)
{
	struct sleeper s;

	sleeper_start(&s);
	await(__atomic_load_n(&s.tid, __ATOMIC_ACQUIRE) != 0);
	await(thread_sleeps(s.tid));
	sleeper_run(&s);
	for (unsigned i = 0; i < 100; i++)
		assert_false(thread_sleeps(s.tid));
	sleeper_stop(&s);
	assert_false(thread_sleeps(s.tid)); /* nor does one that has ended */
}

static void *
threads_await(void *arg)
{
	bool asleep = threads_asleep_await();

	__atomic_store_n((bool *)arg, true, __ATOMIC_RELEASE);
	return (void *)(uintptr_t)asleep;
}

TEST(sleep_of_all_threads_is_awaited)
{
	struct sleeper s[2];
	pthread_t waiter;
	bool returned = false;
	void *asleep;

	assert_true(threads_asleep_await()); /* there is none */
	for (unsigned i = 0; i < 2; i++)
		sleeper_start(&s[i]);
	assert_true(threads_asleep_await());
	for (unsigned i = 0; i < 2; i++)
		assert_true(thread_sleeps(__atomic_load_n(&s[i].tid, __ATOMIC_ACQUIRE)));
	/* One of them runs, and this one sleeps in the join only. */
	sleeper_run(&s[1]);
	assert_int_equal(pthread_create(&waiter, NULL, threads_await, &returned), 0);
	for (unsigned i = 0; i < 300; i++) {
		struct await a = {.pauses = 0};

		assert_true(await_pause(&a));
		assert_false(__atomic_load_n(&returned, __ATOMIC_ACQUIRE));
	}
	sleeper_stop(&s[1]);
	assert_int_equal(pthread_join(waiter, &asleep), 0);
	assert_non_null(asleep);
	sleeper_run(&s[0]);
	sleeper_stop(&s[0]);
}
