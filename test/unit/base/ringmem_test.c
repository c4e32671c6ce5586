/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdlib.h>

#include "base/base_alloc.h"
#include "base/ringmem.h"
#include "../rand.h"
#include "case.h"

struct item {
	uint64_t number;
	uint64_t twice;
};

static struct rte_ring *
ring_make(uint32_t count, size_t esize)
{
	struct rte_ring *r = alloc_get(&alloc_plain, "ring", ringmem_size(count, esize));

	assert_non_null(r);
	assert_int_equal(ringmem_init(r, count), 0);
	return r;
}

static void
ring_drop(struct rte_ring *r, uint32_t count, size_t esize)
{
	alloc_put(&alloc_plain, r, ringmem_size(count, esize));
}

TEST(impossible_rings_are_refused)
{
	struct rte_ring *r = ring_make(4, 8);

	assert_int_equal(ringmem_size(0, 8), 0);
	assert_int_equal(ringmem_size(RINGMEM_MAX_COUNT + 1, 8), 0);
	assert_int_equal(ringmem_size(8, 0), 0);
	assert_int_equal(ringmem_size(8, 6), 0);
	assert_int_equal(ringmem_init(NULL, 8), -EINVAL);
	assert_int_equal(ringmem_init(r, 0), -EINVAL);
	assert_int_equal(ringmem_init(r, RINGMEM_MAX_COUNT + 1), -EINVAL);
	assert_int_equal(ringmem_init((void *)((char *)r + 4), 8), -EINVAL);
	ring_drop(r, 4, 8);
}

/* A ring holds exactly count elements, whatever count is. The memory has the length of
 * ringmem_size(); the address sanitizer reports an access beyond it. */
TEST(holds_exactly_count)
{
	static const uint32_t counts[] = {1, 2, 3, 4, 7, 8, 255, 256, 1000, 1024};

	for (size_t i = 0; i < RTE_DIM(counts); i++) {
		uint32_t count = counts[i];
		struct rte_ring *r = ring_make(count, sizeof(struct item));
		struct item in = {0}, out;

		for (unsigned round = 0; round < 5; round++) {
			for (uint32_t n = 0; n < count; n++) {
				in.number = n;
				assert_int_equal(
					rte_ring_enqueue_elem(r, &in, sizeof(in)), 0);
				assert_int_equal(rte_ring_count(r), n + 1);
			}
			assert_int_equal(
				rte_ring_enqueue_elem(r, &in, sizeof(in)), -ENOBUFS);
			assert_true(rte_ring_full(r));
			for (uint32_t n = 0; n < count; n++) {
				assert_int_equal(
					rte_ring_dequeue_elem(r, &out, sizeof(out)), 0);
				assert_int_equal(out.number, n);
			}
			assert_true(rte_ring_empty(r));
			assert_int_equal(
				rte_ring_dequeue_elem(r, &out, sizeof(out)), -ENOENT);
		}
		ring_drop(r, count, sizeof(struct item));
	}
}

TEST(bursts_match_a_counter_model)
{
	for (uint64_t seed = 1; seed <= 50; seed++) {
		uint64_t rand = seed, put = 0, got = 0;
		uint32_t count = 1 + rand_below(&rand, 100);
		struct rte_ring *r = ring_make(count, 8);

		for (unsigned step = 0; step < 2000; step++) {
			uint64_t burst[40];
			unsigned want = rand_below(&rand, RTE_DIM(burst) + 1);
			unsigned may, n;

			if (rand_below(&rand, 2) == 0) {
				for (unsigned i = 0; i < want; i++)
					burst[i] = put + i;
				n = rte_ring_enqueue_burst_elem(r, burst, 8, want, NULL);
				may = RTE_MIN((uint64_t)want, count - (put - got));
				put += n;
			} else {
				n = rte_ring_dequeue_burst_elem(r, burst, 8, want, NULL);
				may = RTE_MIN((uint64_t)want, put - got);
				for (unsigned i = 0; i < n; i++)
					if (burst[i] != got + i)
						fail_msg("seed %lu: order", seed);
				got += n;
			}
			if (n != may)
				fail_msg("seed %lu step %u: %u moved, not %u", seed, step,
					n, may);
		}
		ring_drop(r, count, 8);
	}
}

#define TRAFFIC UINT64_C(200000)

static void *
produce(void *arg)
{
	struct rte_ring *r = arg;

	for (uint64_t n = 0; n < TRAFFIC;) {
		struct item item = {.number = n, .twice = 2 * n};

		if (rte_ring_enqueue_elem(r, &item, sizeof(item)) == 0)
			n++;
		else
			sched_yield();
	}
	return NULL;
}

/* The elements arrive intact and in order. */
TEST(threads_lose_nothing)
{
	struct rte_ring *r = ring_make(64, sizeof(struct item));
	uint64_t next = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, produce, r), 0);
	while (next < TRAFFIC) {
		struct item items[8];
		unsigned got = rte_ring_dequeue_burst_elem(
			r, items, sizeof(items[0]), RTE_DIM(items), NULL);

		if (got == 0)
			sched_yield();
		for (unsigned i = 0; i < got; i++) {
			assert_int_equal(items[i].number, next++);
			assert_int_equal(items[i].twice, 2 * items[i].number);
		}
	}
	pthread_join(thread, NULL);
	assert_true(rte_ring_empty(r));
	ring_drop(r, 64, sizeof(struct item));
}
