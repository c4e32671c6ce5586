/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/slab.h"

#include "../rand.h"
#include "case.h"

static struct slab slab;
static struct alloc mem;
static size_t parent_bytes;
static unsigned parent_gets, parent_grants;

static void *
parent_get(void *ctx, const char *name, size_t len)
{
	uint8_t *got;

	(void)ctx;
	if (parent_gets == parent_grants)
		return NULL;
	got = alloc_get(&alloc_plain, name, len);
	parent_gets++;
	parent_bytes += len;
	return got;
}

static void
parent_put(void *ctx, void *piece, size_t len)
{
	(void)ctx;
	parent_bytes -= len;
	alloc_put(&alloc_plain, piece, len);
}

static const struct alloc parent = {.get = parent_get, .put = parent_put};

static int
setup(void **state)
{
	parent_gets = 0;
	parent_grants = UINT32_MAX;
	slab_init(&slab, &parent, SLAB_PIECE_MAX);
	mem = slab_alloc(&slab);
	return 0;
}

static int
teardown(void **state)
{
	slab_fini(&slab);
	assert_int_equal(parent_bytes, 0);
	return 0;
}

static void
assert_zero(const uint8_t *piece, size_t len)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(piece[i], 0);
}

/* A thousand pieces of one length take at most 2 % more memory than their sum, and one
 * block. */
TEST_WITH(many_pieces_have_little_overhead, setup, teardown)
{
	static void *pieces[1000];
	static const size_t lens[] = {192, 768, 1024, 4608, 9216};

	for (unsigned l = 0; l < RTE_DIM(lens); l++) {
		size_t before = parent_bytes;
		size_t all = 1000 * lens[l];
		size_t block = LINE_SIZE + RTE_MAX(SLAB_BLOCK_LEN, 16 * lens[l]);

		for (unsigned i = 0; i < 1000; i++) {
			pieces[i] = alloc_get(&mem, "test", lens[l]);
			assert_int_equal((uintptr_t)pieces[i] % LINE_SIZE, 0);
		}
		assert_in_range(parent_bytes - before, all, all + all / 50 + block);
		for (unsigned i = 0; i < 1000; i++)
			alloc_put(&mem, pieces[i], lens[l]);
		/* One block of each length may stay. */
		assert_in_range(parent_bytes - before, 0, block);
	}
}

/* The first piece of a length takes its length and one line of memory. */
TEST_WITH(first_piece_takes_its_own_size, setup, teardown)
{
	void *piece;

	piece = alloc_get(&mem, "test", 768);
	assert_int_equal(parent_bytes, 768 + LINE_SIZE);
	alloc_put(&mem, piece, 768);
	for (unsigned i = 0; i < 10; i++)
		alloc_put(&mem, alloc_get(&mem, "test", 768), 768);
	assert_int_equal(parent_gets, 1);
}

TEST_WITH(long_pieces_come_from_parent, setup, teardown)
{
	void *piece;

	piece = alloc_get(&mem, "test", SLAB_PIECE_MAX + 1);
	assert_int_equal(parent_bytes, SLAB_PIECE_MAX + 1);
	alloc_put(&mem, piece, SLAB_PIECE_MAX + 1);
	assert_int_equal(parent_bytes, 0);
	parent_grants = parent_gets;
	assert_null(alloc_get(&mem, "test", SIZE_MAX));
}

TEST_WITH(limit_of_zero_passes_all_on, setup, teardown)
{
	void *piece;

	slab_fini(&slab);
	slab_init(&slab, &parent, 0);
	piece = alloc_get(&mem, "test", 1);
	assert_int_equal(parent_bytes, 1);
	alloc_put(&mem, piece, 1);
	assert_int_equal(parent_bytes, 0);
	alloc_put(&mem, alloc_get(&mem, "test", 0), 0);
}

TEST_WITH(failed_parent_returns_null, setup, teardown)
{
	void *piece;

	parent_grants = 1;
	piece = alloc_get(&mem, "test", 100);
	assert_non_null(piece);
	assert_null(alloc_get(&mem, "test", 100));
	assert_null(alloc_get(&mem, "test", 200));
	alloc_put(&mem, piece, 100);
	assert_ptr_equal(alloc_get(&mem, "test", 128), piece); /* also two lines long */
	alloc_put(&mem, piece, 128);
}

/* Random gets and puts: pieces are zeroed and do not overlap. */
static void
sweep(uint64_t seed)
{
	static struct {
		uint8_t *at;
		size_t len;
		uint8_t mark;
	} held[300];
	uint64_t rand = seed;

	memset(held, 0, sizeof(held));
	for (unsigned i = 0; i < 20000; i++) {
		unsigned n = (unsigned)rand_below(&rand, RTE_DIM(held));

		if (held[n].at != NULL) {
			for (size_t b = 0; b < held[n].len; b++)
				assert_int_equal(held[n].at[b], held[n].mark);
			alloc_put(&mem, held[n].at, held[n].len);
			held[n].at = NULL;
			/* the last 1000 steps of 4000 mostly put pieces back */
		} else if (i % 4000 < 3000) {
			held[n].len = rand_below(&rand, 8) * 60;
			held[n].mark = (uint8_t)i;
			held[n].at = alloc_get(&mem, "test", held[n].len);
			assert_non_null(held[n].at);
			assert_zero(held[n].at, held[n].len);
			memset(held[n].at, held[n].mark, held[n].len);
		}
	}
	for (unsigned n = 0; n < RTE_DIM(held); n++)
		if (held[n].at != NULL)
			alloc_put(&mem, held[n].at, held[n].len);
}

TEST_WITH(pieces_do_not_overlap, setup, teardown)
{
	const char *only = getenv("ROCADE_SEED");
	uint64_t first = only != NULL ? strtoull(only, NULL, 0) : 1;

	for (uint64_t seed = first; seed < first + (only != NULL ? 1 : 10); seed++) {
		print_message("# ROCADE_SEED=%lu\n", (unsigned long)seed);
		sweep(seed);
	}
}
