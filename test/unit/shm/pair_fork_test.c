/* SPDX-License-Identifier: BSD-3-Clause */
/* A program forks while a pair begins or ends in another thread. The child keeps nothing of it. */
#include <sys/wait.h>

#include "await.h"
#include "pair_fixture.h"
#include "verbs/device_source.h"

static struct pair_fixture f;
static bool forks; /* the next pass finds another thread in fork() */
static pid_t forker, child;
static int left; /* parts that the child has mapped */

/* In place of those of the list of devices. */
void
devices_fork_prepare(void)
{
}

void
devices_fork_done(bool in_child)
{
	(void)in_child;
}

static void *
fork_run(void *unused)
{
	pid_t pid;

	__atomic_store_n(&forker, gettid(), __ATOMIC_RELEASE);
	pid = fork();
	if (pid == 0)
		_exit((int)parts_mapped());
	__atomic_store_n(&child, pid, __ATOMIC_RELEASE);
	return unused;
}

static pthread_t thread;

/* The engine's, which is called while an event is served. */
unsigned __wrap_engine_request_pass(struct engine *e);

unsigned
__wrap_engine_request_pass(struct engine *e)
{
	(void)e;
	if (!forks)
		return 0;
	forks = false;
	forker = child = 0;
	assert_int_equal(pthread_create(&thread, NULL, fork_run, NULL), 0);
	await(__atomic_load_n(&child, __ATOMIC_ACQUIRE) != 0 ||
		(__atomic_load_n(&forker, __ATOMIC_ACQUIRE) != 0 &&
			thread_sleeps(forker)));
	assert_int_equal(__atomic_load_n(&child, __ATOMIC_ACQUIRE), 0);
	return 0;
}

/* The fork() that has waited. */
static void
fork_ends(void)
{
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(child > 0);
	left = await_child(child);
	assert_true(WIFEXITED(left));
	assert_int_equal(WEXITSTATUS(left), 0);
}

static void
port_open(void)
{
	clients_open(&f);
	f.a.dev->engine_count = f.b.dev->engine_count = 1;
	shm_list_add(f.a.shm);
	shm_list_add(f.b.shm);
	side_register(&f.a, QP_1, f.b.id, true);
	parts_open(&f);
}

TEST(child_keeps_nothing_of_a_pair_that_begins)
{
	port_open();
	forks = true;
	assert_int_equal(side_event(&f.a, SW_PAIR_PEER, f.b.id, f.b.part), SW_PAIR_PEER);
	assert_false(forks);
	fork_ends();
	assert_true(parts_mapped() != 0);
	shm_list_remove(f.a.shm);
	shm_list_remove(f.b.shm);
	fixture_close(&f);
}

TEST(child_keeps_nothing_of_a_pair_that_ends)
{
	port_open();
	assert_int_equal(side_event(&f.a, SW_PAIR_PEER, f.b.id, f.b.part), SW_PAIR_PEER);
	assert_int_equal(side_event(&f.b, SW_PAIR_PEER, f.a.id, f.a.part), SW_PAIR_PEER);
	side_register(&f.b, QP_1, f.a.id, true);
	side_expect(&f.a, 0, 0);
	side_expect(&f.b, 0, 0);
	assert_int_equal(side_send(&f.b, QP_1, 1, 0), 1);
	forks = true; /* while the last packets are taken */
	assert_int_equal(side_event(&f.a, SW_PAIR_END, f.b.id, -1), SW_PAIR_END);
	assert_false(forks);
	fork_ends();
	shm_list_remove(f.a.shm);
	shm_list_remove(f.b.shm);
	fixture_close(&f);
}
