/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine lock: which thread becomes the owner, what ends that, and that no two threads are
 * inside. Posts of the owner. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "engine/engine_lock.h"
#include "engine/sched.h"

#include "await.h"
#include "poll_fixture.h"

#define PASSES 64 /* before a thread first becomes the owner */
#define MOST 0x10000
#define RUN_NS NS_PER_MS /* a thousand times what it takes to see a free lock */

static struct engine *e; /* only its lock is used */

static int
setup(void **state)
{
	e = alloc_get(&alloc_plain, "engine", sizeof(*e));
	assert_non_null(e);
	engine_lock_init(e, true);
	return 0;
}

static int
teardown(void **state)
{
	alloc_put(&alloc_plain, e, sizeof(*e));
	return 0;
}

/* Runs n passes of the engine. Returns the number of the owner in the last one. */
static uint32_t
passes(uint64_t n)
{
	uint32_t owner = 0;

	while (n-- != 0) {
		owner = engine_enter(e);
		engine_leave(e, owner);
	}
	return owner;
}

static void *
passes_main(void *arg)
{
	*(uint64_t *)arg = passes(*(uint64_t *)arg);
	return NULL;
}

/* The same in a thread of its own. */
static uint32_t
passes_elsewhere(uint64_t n)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, passes_main, &n), 0);
	pthread_join(thread, NULL);
	return (uint32_t)n;
}

static void *
lock_main(void *arg)
{
	engine_lock(e);
	*(bool *)arg = e->owner != 0;
	engine_lock_release(e);
	return NULL;
}

/* Another thread takes the lock once. */
static void
lock_elsewhere(void)
{
	pthread_t thread;
	bool owned = true;

	assert_int_equal(pthread_create(&thread, NULL, lock_main, &owned), 0);
	pthread_join(thread, NULL);
	assert_false(owned);
}

TEST_WITH(thread_becomes_the_owner, setup, teardown)
{
	assert_int_equal(passes(PASSES - 1), 0);
	assert_int_equal(passes(1), 1);
	assert_int_equal(passes(1), 1);
	assert_int_equal(e->owner, 1);
	/* Its own control calls leave it the owner. */
	engine_lock(e);
	assert_int_equal(e->owner, 1);
	engine_lock_release(e);
	assert_true(engine_trylock(e));
	engine_lock_release(e);
	assert_int_equal(engine_owner_enter(e), 1);
	engine_owner_leave(e, 1);
}

/* The owner takes the lock once more, in a callback. No other thread may enter before it has left both
 * times. */
TEST_WITH(owner_stays_inside_after_a_nested_lock, setup, teardown)
{
	uint32_t owner;

	passes(PASSES);
	owner = engine_enter(e);
	assert_int_equal(owner, 1);
	engine_lock(e);
	engine_lock_release(e);
	assert_true(e->inside[owner]);
	assert_int_equal(passes(1), 0); /* it gets the ticket lock */
	assert_true(e->inside[owner]);
	engine_leave(e, owner);
	assert_false(e->inside[owner]);
	engine_lock(e);
	engine_lock_release(e);
	assert_false(e->inside[owner]);
}

TEST_WITH(engine_of_a_progress_thread_has_no_owner, setup, teardown)
{
	engine_lock_init(e, false);
	e->owner_passes = 0;
	assert_int_equal(passes(10 * PASSES), 0);
}

static void *
wait_main(void *arg)
{
	engine_lock(e);
	__atomic_store_n((bool *)arg, true, __ATOMIC_RELAXED);
	engine_lock_release(e);
	return NULL;
}

/* How long the thread has had a core. */
static uint64_t
thread_ran_ns(pthread_t thread)
{
	struct timespec t;
	clockid_t clock;

	assert_int_equal(pthread_getcpuclockid(thread, &clock), 0);
	assert_int_equal(clock_gettime(clock, &t), 0);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

TEST_WITH(other_thread_waits_for_the_owner, setup, teardown)
{
	pthread_t thread;
	bool got = false;
	uint32_t owner;
	uint64_t ran;

	passes(PASSES);
	owner = engine_enter(e);
	assert_int_equal(owner, 1);
	assert_int_equal(pthread_create(&thread, NULL, wait_main, &got), 0);
	/* The thread has ended the ownership, and gets a core to do wrong. */
	await(__atomic_load_n(&e->owner, __ATOMIC_RELAXED) == 0);
	ran = thread_ran_ns(thread);
	await(thread_ran_ns(thread) - ran >= RUN_NS);
	assert_false(__atomic_load_n(&got, __ATOMIC_RELAXED));
	engine_leave(e, owner);
	pthread_join(thread, NULL);
	assert_true(got);
}

/* Each time takes twice as many passes. */
TEST_WITH(other_thread_ends_the_ownership, setup, teardown)
{
	uint64_t wanted = PASSES;

	while (wanted < MOST) {
		assert_int_equal(passes(wanted - 1), 0);
		assert_int_equal(passes(1), 1);
		lock_elsewhere();
		assert_int_equal(engine_owner_enter(e), 0);
		wanted *= 2;
	}
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(passes(MOST - 1), 0);
		assert_int_equal(passes(1), 1);
		lock_elsewhere();
	}
}

/* Passes of two threads in turn count for neither. */
TEST_WITH(threads_in_turn, setup, teardown)
{
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(passes(PASSES - 1), 0);
		assert_int_equal(passes_elsewhere(1), 0);
	}
	assert_int_equal(passes(PASSES), 1);
	assert_int_equal(passes_elsewhere(1), 0);
	assert_int_equal(passes_elsewhere(2 * PASSES), 2);
	assert_int_equal(passes(1), 0);
	assert_int_equal(passes(4 * PASSES), 1);
}

static void *
owners_main(void *arg)
{
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	pthread_barrier_t *barrier = arg;
	uint32_t owner;

	pthread_mutex_lock(&one);
	owner = passes(MOST);
	pthread_mutex_unlock(&one);
	/* None ends before: its number would be that of the next thread. */
	pthread_barrier_wait(barrier);
	return (void *)(uintptr_t)(owner != 0);
}

/* The threads without a mark of their own go on with the ticket lock. */
TEST_WITH(more_threads_than_marks, setup, teardown)
{
	pthread_t thread[ENGINE_OWNERS + 2];
	pthread_barrier_t barrier;
	unsigned owners = 0;

	pthread_barrier_init(&barrier, NULL, ENGINE_OWNERS + 2);
	for (unsigned i = 0; i < ENGINE_OWNERS + 2; i++)
		assert_int_equal(
			pthread_create(&thread[i], NULL, owners_main, &barrier), 0);
	for (unsigned i = 0; i < ENGINE_OWNERS + 2; i++) {
		void *owner;

		pthread_join(thread[i], &owner);
		owners += owner != NULL;
	}
	pthread_barrier_destroy(&barrier);
	assert_int_equal(owners, ENGINE_OWNERS);
	assert_int_equal(passes(MOST), 0);
}

/* A call from inside does not enter once more. */
TEST_WITH(owner_does_not_enter_twice, setup, teardown)
{
	uint32_t owner;

	assert_int_equal(passes(PASSES), 1);
	owner = engine_enter(e);
	assert_int_equal(engine_owner_enter(e), 0);
	engine_leave(e, owner);
	engine_lock(e);
	assert_int_equal(engine_owner_enter(e), 0);
	engine_lock_release(e);
	assert_int_equal(engine_owner_enter(e), 1);
	engine_owner_leave(e, 1);
}

/* ---- Threads that poll in turn, one that makes control calls, one that tries ---- */

#define ROUNDS 400
#define STORES_BYTES (8u << 20)
#define FEW 4 /* passes that make an owner: many are made, and few passes are between */

static bool busy, failed;
static uint64_t inside_count;

/* With the lock held. busy is not atomic: ThreadSanitizer sees each pair that is not ordered. */
static void
inside_run(void)
{
	uint64_t count;

	if (busy)
		__atomic_store_n(&failed, true, __ATOMIC_RELAXED);
	busy = true;
	count = inside_count;
	for (unsigned i = 0; i < 20; i++)
		rte_pause();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	inside_count = count + 1;
	busy = false;
	e->owner_passes = FEW;
}

/* Stores to memory that is not in the cache. The store by which the owner says that it is inside waits
 * behind them, so another thread that does not call membarrier(2) misses it. */
static void
stores_delay(uint8_t *memory)
{
	static __thread uint32_t at;

	for (unsigned i = 0; i < 16; i++) {
		at = (at + 4096 + 64) % STORES_BYTES;
		__atomic_store_n(&memory[at], 1, __ATOMIC_RELAXED);
	}
}

static void *
poll_main(void *arg)
{
	uint8_t *memory = calloc(1, STORES_BYTES);

	for (unsigned i = 0; memory != NULL && i < ROUNDS * 10; i++) {
		uint32_t owner;

		stores_delay(memory);
		owner = engine_enter(e);
		inside_run();
		engine_leave(e, owner);
	}
	free(memory);
	return arg;
}

static void *
control_main(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		engine_lock(e);
		inside_run();
		engine_lock_release(e);
		if (i % 16 == 0)
			sched_yield();
	}
	return arg;
}

static void *
try_main(void *arg)
{
	uint64_t *got = arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		if (engine_trylock(e)) {
			inside_run();
			engine_lock_release(e);
			*got += 1;
		}
		sched_yield();
	}
	return arg;
}

TEST_WITH(one_thread_is_inside, setup, teardown)
{
	void *(*const mains[])(void *) = {poll_main, control_main, poll_main, try_main};
	pthread_t thread[4];
	uint64_t got = 0;

	busy = failed = false;
	inside_count = 0;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, mains[i], &got), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	assert_false(failed);
	assert_int_equal(inside_count, 21 * ROUNDS + got);
}

/* ---- Posts of the owner ---- */

#define MANY (ENGINE_POSTED + 8)

static void
links_begin(struct link_qp *pa, struct link_qp *pb, unsigned qps)
{
	static const struct link_qp_conf plain = {.wr = 64};
	struct engine_link_conf conf = {.max_qp = 256, .mem_bytes = 1 << 20};

	engine_link_init(&fixture, &conf);
	test_clock = &fixture.now;
	link_qps_create(&fixture, pa, pb, qps, &plain);
	for (unsigned i = 0; i < qps; i++) {
		assert_int_equal(link_qp_recv(&pb[i], 0, 0, 8), 0);
		assert_int_equal(link_qp_send(&pa[i], 0, 0, 8, IBV_SEND_SIGNALED), 0);
		engine_link_drain(&fixture);
		link_qp_expect_sent(&pa[i], 0, 1, IBV_WC_SUCCESS);
		link_qp_expect_received(&pb[i], 0, 1);
	}
	for (unsigned i = 0; i < PASSES; i++)
		poll();
	assert_int_not_equal(engine()->owner, 0);
	engine()->tx_thread = 0;
}

static void
links_end(struct link_qp *pa, struct link_qp *pb, unsigned qps)
{
	link_qps_fini(&fixture, pa, pb, qps);
}

/* More QPs than one list of posts has room for, each posted to twice. No doorbell rings. */
TEST(owner_posts_to_many_qps)
{
	static struct link_qp from[MANY], to[MANY];

	links_begin(from, to, MANY);
	for (unsigned i = 0; i < 2 * MANY; i++) {
		assert_int_equal(link_qp_recv(&to[i % MANY], i, 0, 8), 0);
		assert_int_equal(
			link_qp_send(&from[i % MANY], i, 0, 8, IBV_SEND_SIGNALED), 0);
		assert_false(doorbells_pending(&engine()->doorbells));
	}
	assert_int_equal(engine_deadline(engine()), 0);
	engine_link_drain(&fixture);
	for (unsigned i = 0; i < MANY; i++) {
		link_qp_expect_sent(&from[i], i, 1, IBV_WC_SUCCESS);
		link_qp_expect_sent(&from[i], i + MANY, 1, IBV_WC_SUCCESS);
	}
	for (unsigned i = 0; i < 2 * MANY; i++)
		link_qp_expect_received(&to[i % MANY], i, 1);
	links_end(from, to, MANY);
}

/* The engine has nothing else to do, and knows of the post. */
TEST(post_of_the_owner_is_work)
{
	links_begin(a, b, 1);
	assert_int_not_equal(engine_deadline(engine()), 0);
	assert_int_equal(link_qp_recv(&b[0], 1, 0, 8), 0);
	assert_int_equal(link_qp_send(&a[0], 1, 0, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(engine()->posted_count, 1);
	assert_int_equal(engine_deadline(engine()), 0);
	assert_int_equal(poll(), 1);
	assert_int_equal(engine()->posted_count, 0);
	engine_link_drain(&fixture);
	link_qp_expect_sent(&a[0], 1, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(&b[0], 1, 1);
	links_end(a, b, 1);
}

/* A QP that was posted to is reset before the next pass: the list does not keep it. */
TEST(qp_ends_after_the_post)
{
	links_begin(a, b, 2);
	fixture.a.deaf = true;
	assert_int_equal(link_qp_send(&a[0], 1, 0, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(link_qp_send(&a[1], 1, 0, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(engine()->posted_count, 2);
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_RESET), 0);
	assert_int_equal(engine()->posted_count, 0);
	assert_false(a[0].qp->sched.on_ready);
	assert_true(a[1].qp->sched.on_ready);
	links_end(a, b, 2);
}
