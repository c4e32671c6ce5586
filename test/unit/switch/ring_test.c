/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <sched.h>

#include "switch_fixture.h"

#define SLOTS 8

struct pair {
	uint32_t prod_shown, cons_shown;
	struct ring_desc desc[SLOTS];
	struct ring_prod prod;
	struct ring_cons cons;
};

static void
pair_init(struct pair *p)
{
	memset(p, 0, sizeof(*p));
	ring_prod_init(&p->prod, &p->prod_shown, &p->cons_shown, p->desc, SLOTS);
	ring_cons_init(&p->cons, &p->prod_shown, &p->cons_shown, p->desc, SLOTS);
}

static void
pair_put(struct pair *p, uint32_t value)
{
	struct ring_desc desc = {.buf = value, .qpn = ~value};

	ring_put(&p->prod, &desc);
}

TEST(descriptors_in_order_until_full)
{
	struct pair p;

	pair_init(&p);
	for (uint32_t round = 0; round < 5; round++) {
		assert_int_equal(ring_room(&p.prod), SLOTS);
		for (uint32_t i = 0; i < SLOTS; i++)
			pair_put(&p, round * SLOTS + i);
		assert_int_equal(ring_room(&p.prod), 0);
		assert_true(ring_cons_refresh(&p.cons));
		assert_int_equal(ring_count(&p.cons), 0); /* not published */
		ring_publish(&p.prod);
		assert_true(ring_cons_refresh(&p.cons));
		assert_int_equal(ring_count(&p.cons), SLOTS);
		for (uint32_t i = 0; i < SLOTS; i++) {
			struct ring_desc desc = ring_peek(&p.cons, i);

			assert_int_equal(desc.buf, round * SLOTS + i);
			assert_int_equal(desc.qpn, ~desc.buf);
		}
		assert_int_equal(ring_room(&p.prod), 0);
		ring_release(&p.cons, SLOTS);
		assert_true(ring_prod_refresh(&p.prod));
	}
}

TEST(corrupt_producer_index_is_detected)
{
	static const uint32_t lies[] = {SLOTS + 3, 1, 0, UINT32_MAX, 1u << 31};
	struct pair p;

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		pair_init(&p);
		pair_put(&p, 1);
		pair_put(&p, 2);
		ring_publish(&p.prod);
		assert_true(ring_cons_refresh(&p.cons));
		/* Too far ahead, or behind what was seen before. */
		p.prod_shown = lies[i];
		assert_false(ring_cons_refresh(&p.cons));
		assert_int_equal(ring_count(&p.cons), 2);
	}
}

TEST(corrupt_consumer_index_is_detected)
{
	static const uint32_t lies[] = {0, 4, UINT32_MAX, SLOTS, 1u << 31};
	struct pair p;

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		pair_init(&p);
		for (uint32_t n = 0; n < 3; n++)
			pair_put(&p, n);
		ring_publish(&p.prod);
		pair_put(&p, 3); /* not published: the consumer cannot have taken it */
		p.cons_shown = 1;
		assert_true(ring_prod_refresh(&p.prod));
		p.cons_shown = lies[i];
		assert_false(ring_prod_refresh(&p.prod));
		assert_int_equal(ring_room(&p.prod), SLOTS - 3);
	}
}

TEST(sleeper_is_woken_once)
{
	uint32_t asleep = 0, woken = 0;

	assert_false(asleep_wake_wanted(&asleep, &woken));
	asleep_set(&asleep);
	assert_true(asleep_is_set(&asleep));
	assert_true(asleep_wake_wanted(&asleep, &woken));
	assert_false(asleep_wake_wanted(&asleep, &woken));
	/* It sleeps again, and has not said that it was awake. */
	asleep_set(&asleep);
	assert_true(asleep_wake_wanted(&asleep, &woken));
	asleep_clear(&asleep);
	assert_false(asleep_is_set(&asleep));
	assert_false(asleep_wake_wanted(&asleep, &woken));
	asleep_set(&asleep);
	asleep_clear(&asleep);
	assert_false(asleep_wake_wanted(&asleep, &woken));
	for (unsigned i = 0; i < 5; i++) {
		asleep_set(&asleep);
		assert_true(asleep_wake_wanted(&asleep, &woken));
		asleep_clear(&asleep);
	}
}

TEST(flag_of_another_thread_stays)
{
	uint32_t asleep = 0, number = asleep_set_how(&asleep, 0);

	asleep_set_how(&asleep, ASLEEP_FUTEX);
	assert_false(asleep_clear_number(&asleep, number));
	assert_true(asleep_is_set_by_futex(&asleep));
	number = asleep_set_how(&asleep, 0);
	assert_int_equal(number, asleep);
	asleep_set(&asleep); /* so of a thread that has armed a CQ */
	assert_false(asleep_clear_number(&asleep, number));
	assert_true(asleep_is_set(&asleep));
	assert_true(asleep_clear_number(&asleep, asleep));
	assert_false(asleep_is_set(&asleep));
	asleep_set_how(&asleep, ASLEEP_FUTEX);
	asleep_clear(&asleep);
	assert_false(asleep_is_set_by_futex(&asleep));
}

TEST(sleep_tells_how_to_wake)
{
	uint32_t asleep = 0, woken = 0;

	for (unsigned i = 0; i < 9; i++) {
		bool futex = i % 3 == 1;

		asleep_set_how(&asleep, futex ? ASLEEP_FUTEX : 0);
		assert_int_equal(asleep_is_set_by_futex(&asleep), futex);
		assert_true(asleep_wake_wanted(&asleep, &woken));
		assert_int_equal(asleep_by_futex(woken), futex);
		if (i % 2)
			asleep_clear(&asleep);
		assert_int_equal(asleep_is_set_by_futex(&asleep), futex && i % 2 == 0);
	}
}

#define SLEEPS 100000

static pthread_barrier_t both;

static void *
asleep_set_often(void *arg)
{
	pthread_barrier_wait(&both);
	for (unsigned i = 0; i < SLEEPS; i++)
		asleep_set(arg);
	return NULL;
}

/* The waker would take two sleeps of one number for one. */
TEST(threads_set_different_numbers)
{
	uint32_t asleep = 0;
	pthread_t thread;

	pthread_barrier_init(&both, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, asleep_set_often, &asleep), 0);
	asleep_set_often(&asleep);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&both);
	assert_int_equal(asleep, 4 * (2 * SLEEPS) + 1);
}

/* Beside other load each wake-up may take a time slice. */
#define MESSAGES 20000

struct wakeup_talk {
	struct pair p;
	uint32_t asleep, woken;
	uint32_t wake_flag;
};

static void *
talker(void *arg)
{
	struct wakeup_talk *t = arg;

	for (uint32_t i = 0; i < MESSAGES;) {
		if (ring_room(&t->p.prod) == 0) {
			assert(ring_prod_refresh(&t->p.prod));
			sched_yield();
			continue;
		}
		pair_put(&t->p, i++);
		ring_publish(&t->p.prod);
		if (asleep_wake_wanted(&t->asleep, &t->woken))
			__atomic_store_n(&t->wake_flag, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* The consumer sleeps whenever the ring is empty: no wake-up is lost. */
TEST(two_threads_and_no_lost_wakeup)
{
	struct wakeup_talk *t = calloc(1, sizeof(*t) + 64);
	struct wakeup_talk *at =
		(struct wakeup_talk *)(((uintptr_t)t + 63) & ~(uintptr_t)63);
	pthread_t thread;
	uint32_t next = 0;

	pair_init(&at->p);
	assert_int_equal(pthread_create(&thread, NULL, talker, at), 0);
	while (next < MESSAGES) {
		assert_true(ring_cons_refresh(&at->p.cons));
		if (ring_count(&at->p.cons) == 0) {
			asleep_set(&at->asleep);
			assert_true(ring_cons_refresh(&at->p.cons));
			if (ring_count(&at->p.cons) != 0) {
				asleep_clear(&at->asleep);
				__atomic_store_n(&at->wake_flag, 0, __ATOMIC_RELAXED);
				continue;
			}
			while (!__atomic_exchange_n(&at->wake_flag, 0, __ATOMIC_ACQUIRE))
				sched_yield();
			continue;
		}
		assert_int_equal(ring_peek(&at->p.cons, 0).buf, next++);
		ring_release(&at->p.cons, 1);
	}
	pthread_join(thread, NULL);
	free(t);
}
