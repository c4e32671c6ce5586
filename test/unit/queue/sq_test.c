/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "case.h"
#include "queue/sq.h"

#include "../rand.h"
#include "fixture.h"

static struct sq sq;

static void
sq_open(uint32_t max_wr, uint32_t max_sge, uint32_t max_inline)
{
	assert_int_equal(
		sq_init(&sq, &alloc_counting, max_wr, max_sge, max_inline, false), 0);
}

static void
sq_close(void)
{
	sq_fini(&sq);
	assert_int_equal(counting.bytes, 0);
}

TEST(sizes_are_rounded_up)
{
	static const struct {
		uint32_t max_wr, max_sge, max_inline;
		uint32_t got_wr, got_inline, stride;
	} rows[] = {
		{0, 0, 0, 1, 16, 64},
		{1, 1, 0, 1, 16, 64},
		{3, 1, 16, 4, 16, 64},
		{5, 1, 17, 8, 80, 128},
		{64, 2, 0, 64, 80, 128},
		{65, 16, 0, 128, 272, 320},
		{2, 16, 512, 2, 512, 576},
		{SQ_MAX_WR, 1, 0, SQ_MAX_WR, 16, 64},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		sq_open(rows[i].max_wr, rows[i].max_sge, rows[i].max_inline);
		assert_int_equal(sq.max_wr, rows[i].got_wr);
		assert_int_equal(sq.max_sge, rows[i].max_sge);
		assert_int_equal(sq.max_inline, rows[i].got_inline);
		assert_int_equal(sq.ring.stride, rows[i].stride);
		assert_int_equal((uintptr_t)sq_slot(&sq, 0) % LINE_SIZE, 0);
		sq_close();
	}
}

TEST(failed_init_leaks_nothing)
{
	counting_refuse(0);
	assert_int_equal(sq_init(&sq, &alloc_counting, 8, 1, 0, false), -ENOMEM);
	counting_grant();
	assert_int_equal(counting.bytes, 0);
}

/* What READs need is allocated once, and freed with the queue. */
TEST(reads_are_allowed_once)
{
	size_t before;

	sq_open(8, 1, 0);
	before = counting.bytes;
	counting_refuse(0);
	assert_int_equal(sq_allow_reads(&sq), -ENOMEM);
	counting_grant();
	assert_int_equal(counting.bytes, before);
	assert_int_equal(sq_allow_reads(&sq), 0);
	assert_int_equal(counting.bytes, before + sizeof(struct read_bits));
	counting_refuse(0);
	assert_int_equal(sq_allow_reads(&sq), 0);
	counting_grant();
	sq_close();
}

/* Slots and PSN ranges do not share bytes, up to the last byte of each. */
TEST(slots_do_not_overlap)
{
	sq_open(4, 3, 100);
	for (uint32_t i = 0; i < 4; i++) {
		memset(sq_slot(&sq, i), (int)i + 1, sq.ring.stride);
		memset(sq_slot(&sq, i)->inline_data, (int)i + 1, sq.max_inline);
		memset(sq_psn_range(&sq, i), (int)i + 0x81, sizeof(struct psn_range));
	}
	for (uint32_t i = 0; i < 4; i++) {
		const uint8_t *slot = (const uint8_t *)sq_slot(&sq, i + 4);
		const uint8_t *range = (const uint8_t *)sq_psn_range(&sq, i - 4);

		for (uint32_t j = 0; j < sq.ring.stride; j++)
			assert_int_equal(slot[j], i + 1);
		for (uint32_t j = 0; j < sizeof(struct psn_range); j++)
			assert_int_equal(range[j], i + 0x81);
	}
	sq_close();
}

/* Only sq_free() makes room, up to its index, across the wrap of the indices. */
TEST(only_free_gives_room)
{
	uint32_t prod = UINT32_MAX - 5, freed = UINT32_MAX - 5;

	sq_open(8, 1, 0);
	sq.prod = sq.freed = prod;
	for (unsigned round = 0; round < 20; round++) {
		while (prod - freed < 8) {
			assert_ptr_equal(sq_next(&sq, prod), sq_slot(&sq, prod));
			prod++;
		}
		assert_null(sq_next(&sq, prod));
		assert_int_not_equal(sq_posted(&sq), prod);
		sq_publish(&sq, prod);
		assert_int_equal(sq_posted(&sq), prod);
		assert_null(sq_next(&sq, prod));
		freed += 1 + round % 8;
		sq_free(&sq, freed);
	}
	sq_close();
}

TEST(clear_starts_anew)
{
	sq_open(4, 1, 0);
	sq_publish(&sq, 3);
	sq_free(&sq, 1);
	sq_clear(&sq);
	assert_int_equal(sq_posted(&sq), 0);
	assert_int_equal(sq.freed, 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_ptr_equal(sq_next(&sq, i), sq_slot(&sq, i));
	assert_null(sq_next(&sq, 4));
	sq_close();
}

/* ---- Two posting threads, an engine that reads, a poller that frees ---- */

#define REQUESTS 500000

static uint32_t completed; /* from the engine to the poller */
static uint64_t posted;    /* under the lock */

static void *
poster_main(void *arg)
{
	uint64_t rand = (uintptr_t)arg;
	bool more = true;

	while (more) {
		unsigned want = 1 + rand_below(&rand, 8);
		uint32_t prod, before;

		sq_lock(&sq);
		before = prod = sq.prod;
		for (; want != 0 && posted < REQUESTS; want--) {
			struct send_wqe *wqe = sq_next(&sq, prod);

			if (wqe == NULL)
				break;
			wqe->wr_id = posted++;
			wqe->remote_va = ~wqe->wr_id;
			wqe->sge[0].addr = wqe->wr_id * 3;
			prod++;
		}
		sq_publish(&sq, prod);
		more = posted < REQUESTS;
		sq_unlock(&sq);
		if (prod == before)
			sched_yield();
	}
	return NULL;
}

static void *
engine_main(void *arg)
{
	uint32_t idx = 0;

	(void)arg;
	while (idx != REQUESTS) {
		uint32_t end = sq_posted(&sq);

		THREAD_CHECK(
			end - __atomic_load_n(&sq.freed, __ATOMIC_RELAXED) <= sq.max_wr);
		if (idx == end)
			sched_yield();
		for (; idx != end; idx++) {
			const struct send_wqe *wqe = sq_slot(&sq, idx);

			THREAD_CHECK(wqe->wr_id == idx);
			THREAD_CHECK(wqe->remote_va == ~(uint64_t)idx);
			THREAD_CHECK(wqe->sge[0].addr == (uint64_t)idx * 3);
		}
		__atomic_store_n(&completed, idx, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void *
poller_main(void *arg)
{
	uint32_t end, seen = 0;

	(void)arg;
	do {
		end = __atomic_load_n(&completed, __ATOMIC_ACQUIRE);
		if (end == seen)
			sched_yield();
		seen = end;
		sq_free(&sq, end);
	} while (end != REQUESTS);
	return NULL;
}

TEST(threads_see_whole_requests)
{
	pthread_t threads[4];

	thread_failure = NULL;
	sq_open(32, 1, 0);
	pthread_create(&threads[0], NULL, poster_main, (void *)1);
	pthread_create(&threads[1], NULL, poster_main, (void *)2);
	pthread_create(&threads[2], NULL, engine_main, NULL);
	pthread_create(&threads[3], NULL, poller_main, NULL);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	if (thread_failure != NULL)
		fail_msg("failed: %s", thread_failure);
	assert_int_equal(sq_posted(&sq), REQUESTS);
	assert_int_equal(sq.freed, REQUESTS);
	sq_close();
}
