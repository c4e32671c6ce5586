/* SPDX-License-Identifier: BSD-3-Clause */
/* Doorbells: each one that was rung is drained once, in index order, with several threads
 * that ring. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "../rand.h"
#include "case.h"
#include "engine/doorbell.h"

#define COUNT 5000

static struct doorbells doorbells;

static int
setup(void **state)
{
	assert_int_equal(doorbells_init(&doorbells, COUNT), 0);
	return 0;
}

static int
teardown(void **state)
{
	assert_false(doorbells_pending(&doorbells));
	doorbells_fini(&doorbells);
	return 0;
}

/* Drains all pending doorbells; got lists them in the order in which they came. */
static unsigned
drain_all(uint32_t *got)
{
	uint32_t at = 0, some[DOORBELLS_GROUP];
	unsigned total = 0, n;

	while ((n = doorbells_drain(&doorbells, &at, some)) != 0) {
		assert_in_range(n, 1, DOORBELLS_GROUP);
		assert_in_range(total + n, 1, COUNT);
		for (unsigned i = 0; i < n; i++)
			got[total++] = some[i];
	}
	return total;
}

TEST_WITH(drain_is_in_index_order, setup, teardown)
{
	static const uint32_t ringing[] = {4999, 0, 63, 64, 64, 511, 512, 4095, 4096, 7};
	static const uint32_t want[] = {0, 7, 63, 64, 511, 512, 4095, 4096, 4999};
	uint32_t got[COUNT];

	assert_int_equal(doorbells.groups * DOORBELLS_GROUP, 0);
	doorbells_enable(&doorbells, COUNT - 1);
	assert_int_equal(doorbells.groups * DOORBELLS_GROUP,
		RTE_ALIGN_CEIL(COUNT, DOORBELLS_GROUP));
	doorbells_enable(&doorbells, 7);
	assert_int_equal(doorbells.groups * DOORBELLS_GROUP,
		RTE_ALIGN_CEIL(COUNT, DOORBELLS_GROUP));
	assert_int_equal(drain_all(got), 0);
	for (unsigned i = 0; i < sizeof(ringing) / sizeof(ringing[0]); i++)
		doorbells_ring(&doorbells, ringing[i]);
	assert_true(doorbells_pending(&doorbells));
	assert_int_equal(drain_all(got), sizeof(want) / sizeof(want[0]));
	assert_memory_equal(got, want, sizeof(want));
	assert_false(doorbells_pending(&doorbells));
	assert_int_equal(drain_all(got), 0);
}

/* Random sets of doorbells are drained exactly as they were rung. */
TEST_WITH(random_sets_are_drained, setup, teardown)
{
	uint64_t rand = 1;
	bool rings[COUNT] = {false};
	uint32_t got[COUNT];

	doorbells_enable(&doorbells, COUNT - 1);
	for (unsigned round = 0; round < 200; round++) {
		unsigned ringing = (unsigned)rand_below(&rand, 300), expected = 0, n;

		for (unsigned i = 0; i < ringing; i++) {
			uint32_t index = (uint32_t)rand_below(&rand, COUNT);

			expected += !rings[index];
			rings[index] = true;
			doorbells_ring(&doorbells, index);
		}
		n = drain_all(got);
		assert_int_equal(n, expected);
		for (unsigned i = 0; i < n; i++) {
			assert_true(rings[got[i]]);
			rings[got[i]] = false;
		}
	}
}

#define RINGERS 3
#define RINGS 20000

static uint32_t posted[RINGERS * 2];
static unsigned over;

/* Rings two doorbells in different words in turn. As a post does, publishes a value
 * before each ring. */
static void *
ringer(void *arg)
{
	uintptr_t me = (uintptr_t)arg;

	for (uint32_t i = 1; i <= RINGS; i++) {
		unsigned which = (unsigned)(2 * me + i % 2);

		__atomic_store_n(&posted[which], i, __ATOMIC_RELEASE);
		doorbells_ring(&doorbells, which * 700);
	}
	__atomic_fetch_add(&over, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* A drain sees all that was published before the ring; at the end, every value. */
TEST_WITH(concurrent_rings_are_not_lost, setup, teardown)
{
	uint32_t seen[RINGERS * 2] = {0}, got[COUNT];
	pthread_t threads[RINGERS];
	bool last;

	over = 0;
	doorbells_enable(&doorbells, COUNT - 1);
	for (uintptr_t i = 0; i < RINGERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ringer, (void *)i), 0);
	do {
		unsigned n;

		last = __atomic_load_n(&over, __ATOMIC_ACQUIRE) == RINGERS;
		n = drain_all(got);
		for (unsigned i = 0; i < n; i++) {
			unsigned which = got[i] / 700;

			assert_int_equal(got[i] % 700, 0);
			seen[which] = __atomic_load_n(&posted[which], __ATOMIC_ACQUIRE);
		}
	} while (!last);
	for (unsigned i = 0; i < RINGERS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < RINGERS * 2; i++)
		assert_int_equal(seen[i], i % 2 == RINGS % 2 ? RINGS : RINGS - 1);
}
