/* SPDX-License-Identifier: BSD-3-Clause */
/* The process key: one in a process, another one in each child. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"
#include "shm/process_key.h"

#define THREADS 8

struct key {
	uint8_t bytes[SW_PROCESS_KEY];
};

static pthread_barrier_t barrier;

static void *
key_read(void *arg)
{
	struct key *key = arg;

	pthread_barrier_wait(&barrier);
	return process_key_get(key->bytes) == 0 ? arg : NULL;
}

/* The first calls of the process come at once. */
TEST(threads_have_one_key)
{
	static const struct key none;
	struct key keys[THREADS] = {{{0}}};
	pthread_t threads[THREADS];
	void *got;

	assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, key_read, &keys[i]), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &got), 0);
		assert_ptr_equal(got, &keys[i]);
	}
	assert_memory_not_equal(&keys[0], &none, sizeof(none));
	for (unsigned i = 1; i < THREADS; i++)
		assert_memory_equal(&keys[i], &keys[0], sizeof(keys[0]));
	pthread_barrier_destroy(&barrier);
}

/* Two calls of the child return one key. */
static void
child_run(int end)
{
	struct key keys[2];

	for (unsigned i = 0; i < 2; i++) {
		if (process_key_get(keys[i].bytes) != 0)
			_exit(1);
	}
	_exit(write(end, keys, sizeof(keys)) == sizeof(keys) ? 0 : 1);
}

/* Returns the key of a child. handlers: those of pthread_atfork() run. */
static struct key
child_key(bool handlers)
{
	struct key keys[2];
	int ends[2], status;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = handlers ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	assert_true(child >= 0);
	if (child == 0)
		child_run(ends[1]);
	assert_int_equal(read(ends[0], keys, sizeof(keys)), sizeof(keys));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ends[0]);
	close(ends[1]);
	assert_memory_equal(&keys[0], &keys[1], sizeof(keys[0]));
	return keys[0];
}

TEST(a_child_has_another_key)
{
	struct key own, again, children[3];

	assert_int_equal(process_key_get(own.bytes), 0);
	for (unsigned i = 0; i < 3; i++) {
		children[i] = child_key(i != 1);
		assert_memory_not_equal(&children[i], &own, sizeof(own));
	}
	assert_memory_not_equal(&children[0], &children[1], sizeof(own));
	assert_memory_not_equal(&children[0], &children[2], sizeof(own));
	assert_int_equal(process_key_get(again.bytes), 0);
	assert_memory_equal(&again, &own, sizeof(own));
}
