/* SPDX-License-Identifier: BSD-3-Clause */
/* Control calls beside engines that run: for which of them a deregistration waits, that it stops none, that
 * no thread uses memory that is free, and which engines a change of a QP needs. */
#include <pthread.h>
#include <string.h>

#include "engine/engine_lock.h"
#include "engine/grace.h"

#include "await.h"
#include "engine_link.h"

#define ENGINES 2
#define PASSES 200 /* more than make a thread the owner */
#define ROUNDS 300
#define BYTES 64

static struct engine_link fixture;
static uint8_t memory[BYTES];
static uint32_t key;

static struct key_table *
keys(void)
{
	return &fixture.a.dev->keys;
}

static struct engine *
engine_of(unsigned i)
{
	return fixture.a.dev->engines[i];
}

static void
key_new(void)
{
	uint32_t new;

	assert_int_equal(key_alloc(keys(), 1, 0, memory, BYTES, 0, &new), 0);
	__atomic_store_n(&key, new, __ATOMIC_RELAXED);
}

static int
setup(void **state)
{
	engine_link_init(&fixture, &(struct engine_link_conf){.engines = {ENGINES, 1}});
	key_new();
	return 0;
}

static int
teardown(void **state)
{
	engine_link_fini(&fixture);
	return 0;
}

/* Enters and leaves an engine n times. */
static void
passes(struct engine *e, unsigned n)
{
	while (n-- != 0)
		engine_leave(e, engine_enter(e));
}

static void *
free_main(void *arg)
{
	*(int *)arg = key_free(keys(), key);
	return NULL;
}

static void *
passes_main(void *arg)
{
	passes(arg, PASSES);
	return NULL;
}

/* A thread is inside one engine, and may copy through the region. */
TEST_WITH(only_the_engine_that_is_inside_is_waited_for, setup, teardown)
{
	uint32_t regions = keys()->regions, owner;
	pthread_t caller, other;
	int rc = -1;

	passes(engine_of(1), PASSES);
	owner = engine_enter(engine_of(1));
	assert_ptr_equal(key_check(keys(), key, 1, 0, BYTES, 0), memory);
	assert_int_equal(pthread_create(&caller, NULL, free_main, &rc), 0);
	await(key_find(keys(), key) == NULL);
	/* The other engine goes on meanwhile, with a thread that becomes its owner. */
	assert_int_equal(pthread_create(&other, NULL, passes_main, engine_of(0)), 0);
	pthread_join(other, NULL);
	assert_int_not_equal(engine_of(0)->owner, 0);
	rte_spinlock_lock(&keys()->lock);
	assert_int_equal(keys()->regions, regions);
	rte_spinlock_unlock(&keys()->lock);
	engine_leave(engine_of(1), owner);
	pthread_join(caller, NULL);
	assert_int_equal(rc, 0);
	assert_int_equal(keys()->regions, regions - 1);
}

TEST_WITH(engines_that_sleep_count_as_passed, setup, teardown)
{
	uint32_t first = key;

	passes(engine_of(0), PASSES); /* an owner that polls no more */
	assert_int_equal(key_free(keys(), first), 0);
	assert_null(key_find(keys(), first));
}

/* In a callback of its pass. */
TEST_WITH(thread_that_is_inside_does_not_wait_for_itself, setup, teardown)
{
	uint32_t owner;

	passes(engine_of(0), PASSES);
	owner = engine_enter(engine_of(0));
	assert_int_not_equal(owner, 0);
	assert_int_equal(key_free(keys(), key), 0);
	assert_true(engine_of(0)->inside[owner]);
	engine_leave(engine_of(0), owner);
}

/* A pass within a pass does not report that the outer one is over. */
TEST_WITH(nested_pass_reports_nothing, setup, teardown)
{
	struct engine *e = engine_of(0);
	uint32_t owner, before;

	passes(e, PASSES);
	owner = engine_enter(e);
	before = e->grace_passed;
	__atomic_fetch_add(&e->grace_asked, 1, __ATOMIC_RELAXED);
	passes(e, 1);
	assert_int_equal(e->grace_passed, before);
	engine_leave(e, owner);
	assert_int_equal(e->grace_passed, before + 1);
	assert_int_equal(key_free(keys(), key), 0);
}

static bool entered, leave;

/* Stays inside an engine until it is told to leave. */
static void *
inside_main(void *arg)
{
	uint32_t owner;

	passes(arg, PASSES);
	owner = engine_enter(arg);
	__atomic_store_n(&entered, true, __ATOMIC_RELAXED);
	(void)awaited(__atomic_load_n(&leave, __ATOMIC_RELAXED));
	engine_leave(arg, owner);
	return NULL;
}

/* A QP of the other engine is created, connected and reset meanwhile, and its CQ resized. */
TEST_WITH(control_calls_need_the_engines_of_their_object, setup, teardown)
{
	static struct link_qp a, b;
	struct await_guard guard;
	pthread_t other;

	entered = leave = false;
	assert_int_equal(pthread_create(&other, NULL, inside_main, engine_of(1)), 0);
	await(__atomic_load_n(&entered, __ATOMIC_RELAXED));
	await_guard_begin(&guard);
	link_qp_create(&fixture.a, &a, &(struct link_qp_conf){.engine = 0, .srq = true});
	link_qp_create(&fixture.b, &b, &(struct link_qp_conf){.engine = 0});
	link_qp_connect(&a, &b, &(struct link_qp_conf){.engine = 0, .srq = true});
	assert_int_equal(dev_cq_resize(fixture.a.dev, &a.send_cq, 1000, fixture.now), 0);
	assert_int_equal(link_qp_modify(&a, IBV_QPS_ERR), 0);
	assert_int_equal(link_qp_modify(&a, IBV_QPS_RESET), 0);
	await_guard_end(&guard);
	__atomic_store_n(&leave, true, __ATOMIC_RELAXED);
	pthread_join(other, NULL);
	link_qp_destroy(&a);
	link_qp_destroy(&b);
	assert_int_equal(key_free(keys(), key), 0);
}

static bool stop;
static uint64_t wrong, read_count;

/* Reads the region inside the engine. The stores of the main thread are not atomic: ThreadSanitizer
 * sees each that is not ordered. */
static void *
reader_main(void *arg)
{
	struct engine *e = arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		uint32_t owner = engine_enter(e);
		const uint8_t *bytes = key_check(
			keys(), __atomic_load_n(&key, __ATOMIC_RELAXED), 1, 0, BYTES, 0);

		for (unsigned i = 0; bytes != NULL && i < BYTES; i++) {
			if (bytes[i] != 0)
				__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
		}
		if (bytes != NULL)
			__atomic_fetch_add(&read_count, 1, __ATOMIC_RELAXED);
		engine_leave(e, owner);
	}
	return NULL;
}

TEST_WITH(no_thread_uses_memory_that_is_free, setup, teardown)
{
	pthread_t readers[ENGINES];

	stop = false;
	wrong = read_count = 0;
	for (unsigned i = 0; i < ENGINES; i++)
		assert_int_equal(
			pthread_create(&readers[i], NULL, reader_main, engine_of(i)), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t before = __atomic_load_n(&read_count, __ATOMIC_RELAXED);

		await_by(sched_yield(),
			__atomic_load_n(&read_count, __ATOMIC_RELAXED) != before);
		assert_int_equal(key_free(keys(), key), 0);
		memset(memory, 1, BYTES); /* it is another's now */
		memset(memory, 0, BYTES);
		key_new();
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < ENGINES; i++)
		pthread_join(readers[i], NULL);
	assert_int_equal(wrong, 0);
	assert_int_equal(key_free(keys(), key), 0);
}
