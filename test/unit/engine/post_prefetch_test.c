/* SPDX-License-Identifier: BSD-3-Clause */
/* The post prefetch: an engine learns which QP is posted to after which, and prefetches
 * the send queue slot of the expected next request. */
#include <stdlib.h>
#include <sys/mman.h>

#include "../rand.h"
#include "engine/engine_state.h"
#include "engine_link.h"

#define QPS (POST_PREFETCH_MIN_QPS + 2)
#define ROUNDS 40
#define THREADS 4
#define RINGS 30000

static struct engine_link fixture;
static struct link_qp q[QPS];
static unsigned count;

static const struct link_qp_conf small = {.wr = 64};

static struct engine *
engine(void)
{
	return fixture.a.dev->engines[0];
}

/* The QPs are not connected: a request stays in its queue until its QP is destroyed. */
static void
init(unsigned qps)
{
	struct engine_link_conf conf = {.max_qp = 256};

	engine_link_init(&fixture, &conf);
	for (count = 0; count < qps; count++)
		link_qp_create(&fixture.a, &q[count], &small);
}

static void
fini(void)
{
	for (unsigned i = 0; i < count; i++)
		link_qp_destroy(&q[i]);
	engine_link_fini(&fixture);
}

static void
post(unsigned i)
{
	assert_int_equal(link_qp_send(&q[i], 0, 0, 8, 0), 0);
}

static struct post_prefetch_hint *
hint_of(unsigned i)
{
	return &engine()->post_prefetch.hints[q[i].qp->sq.doorbell];
}

/* The slot of the QP's next request, as a posting thread computes it. */
static const void *
next_slot(unsigned i)
{
	return sq_next(&q[i].qp->sq, q[i].qp->sq.prod);
}

static bool
hint_is(unsigned i, unsigned to)
{
	return hint_of(i)->qp == q[to].qp && hint_of(i)->slot == next_slot(to);
}

static bool
hints_nothing(unsigned i)
{
	return hint_of(i)->qp == NULL && hint_of(i)->slot == NULL;
}

/* The hint of the QP posted to POST_PREFETCH_DISTANCE posts earlier names this QP and the
 * slot of its next request. */
static void
hint_names_later_post_and_its_slot(void **state)
{
	init(QPS);
	for (unsigned i = 0; i < POST_PREFETCH_DISTANCE; i++)
		post(10 * i + 7);
	for (unsigned i = 0; i < POST_PREFETCH_DISTANCE; i++)
		assert_true(hints_nothing(10 * i + 7));
	for (unsigned i = 0; i < POST_PREFETCH_DISTANCE; i++) {
		post(10 * i + 3);
		assert_true(hint_is(10 * i + 7, 10 * i + 3));
		assert_true(hints_nothing(10 * i + 3));
	}
	assert_true(hint_is(7, 3));
	/* A hint may name its own QP. The newest successor replaces the older one. */
	for (unsigned i = 0; i <= POST_PREFETCH_DISTANCE; i++)
		post(QPS - 1);
	assert_true(hint_is(QPS - 1, QPS - 1));
	for (unsigned i = 0; i < POST_PREFETCH_DISTANCE; i++)
		post(i);
	assert_true(hint_is(QPS - 1, POST_PREFETCH_DISTANCE - 1));
	assert_int_equal(engine()->post_prefetch.posts, 4 * POST_PREFETCH_DISTANCE + 1);
	fini();
}

/* An order that repeats: each hint names the QP and the slot of the post
 * POST_PREFETCH_DISTANCE later. */
static void
repeated_order_is_learned(void **state)
{
	uint64_t seed = 0xa4ead, rand = seed;
	unsigned order[QPS];

	init(QPS);
	for (unsigned i = 0; i < QPS; i++) {
		unsigned j = (unsigned)rand_below(&rand, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < QPS; i++) {
			unsigned before = order[(i + QPS - POST_PREFETCH_DISTANCE) % QPS];

			/* The hints of a round's first QPs are learned at the end of the
			 * round before. */
			if (round > 1 || (round == 1 && i >= POST_PREFETCH_DISTANCE))
				assert_true(hint_is(before, order[i]));
			post(order[i]);
		}
	}
	/* Another order is learned within one round. */
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = QPS; i-- > 0;) {
			if (round == 2)
				assert_true(
					hint_is((i + POST_PREFETCH_DISTANCE) % QPS, i));
			post(i);
		}
	}
	fini();
}

/* Posts that were foreseen, and others, are counted when the engine drains doorbells. */
static void
foreseen_posts_are_counted(void **state)
{
	const struct port_stats *stats;

	init(QPS);
	stats = &engine()->stats;
	for (unsigned i = 0; i < QPS; i++)
		post(i);
	assert_int_equal(stats->post_prefetch_misses, 0);
	engine_run(engine(), fixture.now);
	assert_int_equal(stats->post_prefetch_hits, 0);
	assert_int_equal(stats->post_prefetch_misses, QPS);
	/* The hints of the first posts are wrong: nothing was posted behind the last. */
	for (unsigned i = 0; i < QPS; i++)
		post(i);
	engine_run(engine(), fixture.now);
	assert_int_equal(stats->post_prefetch_hits, QPS - POST_PREFETCH_DISTANCE);
	assert_int_equal(stats->post_prefetch_misses, QPS + POST_PREFETCH_DISTANCE);
	for (unsigned i = 0; i < QPS; i++)
		post(i);
	engine_run(engine(), fixture.now);
	assert_int_equal(stats->post_prefetch_hits, 2 * QPS - POST_PREFETCH_DISTANCE);
	fini();
}

static void
environment_turns_it_off(void **state)
{
	setenv("ROCADE_POST_PREFETCH", "0", 1);
	init(QPS);
	unsetenv("ROCADE_POST_PREFETCH");
	for (unsigned i = 0; i < QPS; i++)
		post(i);
	engine_run(engine(), fixture.now);
	assert_null(engine()->post_prefetch.hints);
	assert_int_equal(engine()->post_prefetch.posts, 0);
	assert_int_equal(engine()->stats.post_prefetch_misses, 0);
	fini();
}

/* The slots of few QPs stay in the CPU caches, so the engine learns no hints for them. */
static void
few_qps_learn_no_hints(void **state)
{
	init(POST_PREFETCH_MIN_QPS);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < POST_PREFETCH_MIN_QPS; i++)
			post(i);
	}
	assert_int_equal(engine()->post_prefetch.posts, 0);
	for (unsigned i = 0; i < POST_PREFETCH_MIN_QPS; i++)
		assert_true(hints_nothing(i));
	link_qp_create(&fixture.a, &q[count++], &small);
	for (unsigned i = 0; i <= POST_PREFETCH_DISTANCE; i++)
		post(i);
	assert_true(hint_is(0, POST_PREFETCH_DISTANCE));
	fini();
}

/* A hint of a destroyed QP is only prefetched: its addresses may be unmapped or
 * reused. */
static void
hint_of_destroyed_qp_is_harmless(void **state)
{
	void *none = mmap(NULL, 1u << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct qp *gone;

	assert_true(none != MAP_FAILED);
	init(QPS);
	for (unsigned i = 0; i < QPS; i++)
		post(i);
	gone = q[QPS - 1].qp;
	link_qp_destroy(&q[--count]);
	assert_ptr_equal(hint_of(QPS - 1 - POST_PREFETCH_DISTANCE)->qp, gone);
	post(QPS - 1 - POST_PREFETCH_DISTANCE);
	/* Unmapped addresses. */
	*hint_of(5) = (struct post_prefetch_hint){none, none};
	post(5);
	*hint_of(6) = (struct post_prefetch_hint){none, (const uint8_t *)none + 5};
	post(6);
	engine_run(engine(), fixture.now);
	/* A new QP with the same QPN takes over the hint. */
	link_qp_create(&fixture.a, &q[count++], &small);
	post(4);
	for (unsigned i = 1; i < POST_PREFETCH_DISTANCE; i++)
		post(7 + i);
	post(QPS - 1);
	assert_true(hint_is(4, QPS - 1));
	fini();
	munmap(none, 1u << 16);
}

/* ---- Threads ---- */

static unsigned done;

static void *
ringer_run(void *arg)
{
	uint64_t rand = (uintptr_t)arg + 1;

	for (unsigned i = 0; i < RINGS; i++)
		engine_doorbell(q[rand_below(&rand, POST_PREFETCH_MIN_QPS)].qp);
	__atomic_fetch_add(&done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static bool
is_live_qp(const struct post_prefetch_hint *hint)
{
	for (unsigned i = 0; i < QPS; i++) {
		if (hint->qp == q[i].qp)
			return true;
	}
	return false;
}

/* Concurrent posts mix the orders that are learned, but every hint names a live QP, while
 * another QP is created and destroyed. */
static void
concurrent_posts_leave_hints_of_live_qps(void **state)
{
	pthread_t threads[THREADS];
	struct post_prefetch *post_prefetch;
	unsigned hints = 0;

	init(QPS);
	done = 0;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, ringer_run, (void *)i), 0);
	while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) != THREADS) {
		link_qp_destroy(&q[--count]);
		engine_run(engine(), fixture.now);
		link_qp_create(&fixture.a, &q[count++], &small);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	post_prefetch = &engine()->post_prefetch;
	for (unsigned i = 0; i < POST_PREFETCH_DISTANCE; i++)
		assert_true(post_prefetch->recent[i] < POST_PREFETCH_MIN_QPS);
	for (unsigned i = 0; i < post_prefetch->count; i++) {
		if (post_prefetch->hints[i].qp == NULL)
			continue;
		assert_true(is_live_qp(&post_prefetch->hints[i]));
		hints++;
	}
	assert_int_equal(hints, POST_PREFETCH_MIN_QPS);
	fini();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hint_names_later_post_and_its_slot),
		cmocka_unit_test(repeated_order_is_learned),
		cmocka_unit_test(foreseen_posts_are_counted),
		cmocka_unit_test(environment_turns_it_off),
		cmocka_unit_test(few_qps_learn_no_hints),
		cmocka_unit_test(hint_of_destroyed_qp_is_harmless),
		cmocka_unit_test(concurrent_posts_leave_hints_of_live_qps),
	};

	return cmocka_run_group_tests_name("engine post_prefetch", tests, NULL, NULL);
}
