/* SPDX-License-Identifier: BSD-3-Clause */
/* The key table: validation of keys, bounds and access rights, reuse of indices, readers
 * concurrent with a writer. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "case.h"
#include "key_fixture.h"

#include "../rand.h"

#define ALL                                                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |     \
		IBV_ACCESS_REMOTE_ATOMIC)

static uint32_t
key_new(uint64_t va, void *host, uint64_t len)
{
	uint32_t key = 0;

	assert_int_equal(key_alloc(&table, 1, va, host, len, ALL, &key), 0);
	return key;
}

TEST_WITH(bounds_are_exact, table_setup, table_teardown)
{
	uint8_t mem[100];
	uint32_t key = key_new(1000, mem, 100);

	assert_ptr_equal(key_check(&table, key, 1, 1000, 100, ALL), mem);
	assert_ptr_equal(key_check(&table, key, 1, 1099, 1, 0), mem + 99);
	assert_ptr_equal(key_check(&table, key, 1, 1100, 0, 0), mem + 100);
	assert_null(key_check(&table, key, 1, 999, 1, 0));
	assert_null(key_check(&table, key, 1, 999, 0, 0));
	assert_null(key_check(&table, key, 1, 1000, 101, 0));
	assert_null(key_check(&table, key, 1, 1099, 2, 0));
	assert_null(key_check(&table, key, 1, 1101, 0, 0));
	assert_null(key_check(&table, key, 1, 1050, UINT64_MAX, 0));
	assert_null(key_check(&table, key, 1, 1050, UINT64_MAX - 49, 0));
	assert_null(key_check(&table, key, 2, 1000, 100, 0));
	assert_int_equal(key_free(&table, key), 0);
}

TEST_WITH(ranges_end_at_2_to_64, table_setup, table_teardown)
{
	const uint64_t top = UINT64_MAX - 4095;
	uint8_t mem[4096];
	uint32_t key, none = 7;

	assert_int_equal(key_alloc(&table, 1, top, mem, 4097, 0, &none), -EINVAL);
	assert_int_equal(key_alloc(&table, 1, 1, mem, UINT64_MAX, 0, &none), 0);
	assert_int_equal(key_free(&table, none), 0);
	none = 7;
	assert_int_equal(key_alloc(&table, 1, 2, mem, UINT64_MAX, 0, &none), -EINVAL);
	assert_int_equal(none, 7);

	key = key_new(top, mem, 4096);
	assert_ptr_equal(key_check(&table, key, 1, top, 4096, 0), mem);
	assert_ptr_equal(key_check(&table, key, 1, UINT64_MAX, 1, 0), mem + 4095);
	assert_null(key_check(&table, key, 1, UINT64_MAX, 2, 0));
	assert_null(key_check(&table, key, 1, top, 4097, 0));
	assert_null(key_check(&table, key, 1, 0, 0, 0));
	assert_null(key_check(&table, key, 1, 0, 1, 0));
	assert_int_equal(key_free(&table, key), 0);
}

TEST_WITH(access_is_checked, table_setup, table_teardown)
{
	uint8_t mem[8];
	uint32_t key = 7;

	assert_int_equal(
		key_alloc(&table, 1, 0, mem, 8, IBV_ACCESS_REMOTE_WRITE, &key), -EINVAL);
	assert_int_equal(
		key_alloc(&table, 1, 0, mem, 8, IBV_ACCESS_REMOTE_ATOMIC, &key), -EINVAL);
	assert_int_equal(key_alloc(&table, 1, 0, mem, 8, 0x200, &key), -EINVAL);
	assert_int_equal(key_alloc(&table, 1u << 24, 0, mem, 8, 0, &key), -EINVAL);
	assert_int_equal(key_alloc(&table, 1, 0, NULL, 8, 0, &key), -EINVAL);
	assert_int_equal(key, 7);

	assert_int_equal(
		key_alloc(&table, 1, 0, mem, 8,
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_RELAXED_ORDERING, &key),
		0);
	assert_non_null(key_check(&table, key, 1, 0, 8, 0));
	assert_non_null(key_check(&table, key, 1, 0, 8, IBV_ACCESS_REMOTE_READ));
	assert_null(key_check(&table, key, 1, 0, 8, IBV_ACCESS_LOCAL_WRITE));
	assert_null(key_check(
		&table, key, 1, 0, 8, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(key_free(&table, key), 0);
}

TEST_WITH(empty_regions_are_valid, table_setup, table_teardown)
{
	uint32_t key = key_new(0, NULL, 0);

	assert_non_null(key_check(&table, key, 1, 0, 0, 0));
	assert_null(key_check(&table, key, 1, 0, 1, 0));
	assert_int_equal(key_free(&table, key), 0);
}

TEST_WITH(invalid_keys_match_nothing, table_setup, table_teardown)
{
	uint8_t mem[8];
	uint32_t key;

	/* The table has no chunk, then the chunk of index 0. */
	assert_null(key_find(&table, 0));
	key = key_new(0, mem, 8);
	assert_null(key_find(&table, 0));
	assert_null(key_check(&table, 0, 0, 0, 0, 0));
	assert_null(key_find(&table, UINT32_MAX));
	assert_null(key_find(&table, KEY_MAX << 8 | (key & 0xFF)));
	assert_null(key_find(&table, (KEY_MAX - 1) << 8));
	for (uint32_t v = 1; v < 256; v++)
		assert_null(key_find(&table, key ^ v));
	assert_int_equal(key_free(&table, key ^ 1), -EINVAL);
	assert_int_equal(key_free(&table, 0), -EINVAL);
	assert_int_equal(key_free(&table, UINT32_MAX), -EINVAL);
	assert_int_equal(key_free(&table, key), 0);
	assert_null(key_find(&table, key));
	assert_int_equal(key_free(&table, key), -EINVAL);
}

/* Freed indices are reused in the order of their release, with another variant, as soon
 * as enough of them are free. */
TEST_WITH(oldest_is_reused_first, table_setup, table_teardown)
{
	enum { KEYS = KEY_CHUNK + 200, REUSED = 201 };
	uint32_t *keys = calloc(KEYS, sizeof(*keys));
	uint64_t seed = 11;
	uint8_t mem[8];
	uint32_t key;

	for (unsigned i = 0; i < KEYS; i++)
		keys[i] = key_new(0, mem, 8);
	for (unsigned i = KEYS - 1; i > 0; i--) {
		unsigned j = rand_below(&seed, i + 1);
		uint32_t swap = keys[i];

		keys[i] = keys[j];
		keys[j] = swap;
	}
	for (unsigned i = 0; i < KEYS; i++)
		assert_int_equal(key_free(&table, keys[i]), 0);
	for (unsigned i = 0; i < REUSED; i++) {
		key = key_new(0, mem, 8);
		assert_int_equal(key >> 8, keys[i] >> 8);
		assert_int_not_equal(key, keys[i]);
		keys[i] = key;
	}
	/* The other free indices are not reused: the next one is new. */
	key = key_new(0, mem, 8);
	for (unsigned i = 0; i < KEYS; i++)
		assert_int_not_equal(key >> 8, keys[i] >> 8);
	assert_int_equal(key_free(&table, key), 0);
	for (unsigned i = 0; i < REUSED; i++)
		assert_int_equal(key_free(&table, keys[i]), 0);
	free(keys);
}

/* A key of 32 bits has 8 of a variant: each variant of an index comes once before one
 * comes again. */
TEST_WITH(variants_come_round, table_setup, table_teardown)
{
	bool seen[256] = {false};
	struct key_change to = {.pd = 1};
	uint32_t key, first;
	uint8_t mem[8];

	first = key = key_new(0, mem, 8);
	for (unsigned i = 0; i < 256; i++) {
		assert_false(seen[key & 0xFF]);
		seen[key & 0xFF] = true;
		assert_int_equal(
			key_change(&table, &key, IBV_REREG_MR_CHANGE_PD, &to), 0);
	}
	assert_int_equal(key, first);
	assert_int_equal(key_free(&table, key), 0);
}

/* A peer was given one key of a process, and guesses the next ones: those beside it, with
 * its variant or the next one, and those at the same distance as two keys that it knows. */
TEST_WITH(known_keys_do_not_reveal_others, table_setup, table_teardown)
{
	enum { KEYS = 256, NEAR = 16 };
	uint32_t keys[KEYS];
	unsigned beside = 0, same_variant = 0, guessed = 0, chunks = 0;
	uint8_t mem[8];

	for (unsigned i = 0; i < KEYS; i++)
		keys[i] = key_new(0, mem, 8);
	for (unsigned i = 2; i < KEYS; i++) {
		int32_t distance = (int32_t)(keys[i] >> 8) - (int32_t)(keys[i - 1] >> 8);
		uint32_t step = keys[i - 1] - keys[i - 2];

		beside += abs(distance) <= NEAR;
		same_variant += (uint8_t)(keys[i] - keys[i - 1]) <= 1;
		guessed += key_find(&table, keys[i - 1] + step) != NULL;
	}
	for (unsigned i = 0; i < KEY_CHUNKS; i++)
		chunks += table.chunks[i] != NULL;
	assert_in_range(beside, 0, 4);
	assert_in_range(same_variant, 0, 16);
	assert_in_range(guessed, 0, 1);
	/* They lie in all of one group, and in no other. */
	assert_in_range(chunks, 32, 1u << (KEY_GROUP_BITS - KEY_CHUNK_BITS));
	for (unsigned i = 0; i < KEYS; i++)
		assert_int_equal(key_free(&table, keys[i]), 0);
}

/* Another process, or the same program at its next start, has other keys. */
TEST_WITH(keys_of_processes_differ, table_setup, table_teardown)
{
	enum { KEYS = 256 };
	struct key_table other;
	uint8_t mem[8];
	uint32_t keys[KEYS], key[KEYS];
	unsigned known = 0, same_index = 0;

	key_table_init(&other, &(struct random_key){{0x7E, 2}});
	for (unsigned i = 0; i < KEYS; i++) {
		keys[i] = key_new(0, mem, 8);
		assert_int_equal(key_alloc(&other, 1, 0, mem, 8, ALL, &key[i]), 0);
	}
	for (unsigned i = 0; i < KEYS; i++) {
		known += key_find(&other, keys[i]) != NULL;
		same_index += keys[i] >> 8 == key[i] >> 8;
	}
	assert_in_range(known, 0, 1);
	assert_in_range(same_index, 0, 1);
	for (unsigned i = 0; i < KEYS; i++) {
		assert_int_equal(key_free(&table, keys[i]), 0);
		assert_int_equal(key_free(&other, key[i]), 0);
	}
	key_table_fini(&other);
}

TEST_WITH(stale_keys_stay_stale, table_setup, table_teardown)
{
	uint8_t mem[8];
	uint32_t first = key_new(0, mem, 8);
	uint32_t key = first;

	for (uint32_t i = 0; i < KEY_CHUNK * 255; i++) {
		assert_int_equal(key_free(&table, key), 0);
		key = key_new(0, mem, 8);
		if (key == first)
			fail_msg("the first key is back after %" PRIu32, i);
	}
	assert_null(key_find(&table, first));
	assert_int_equal(key_free(&table, key), 0);
}

TEST_WITH(full_table_is_refused, table_setup, table_teardown)
{
	uint32_t *keys = calloc(KEY_MAX, sizeof(*keys));
	uint32_t none = 7;
	uint8_t mem[8];

	for (uint32_t i = 1; i < KEY_MAX; i++)
		keys[i] = key_new(i, mem, 8);
	assert_int_equal(key_alloc(&table, 1, 0, mem, 8, 0, &none), -ENOMEM);
	assert_int_equal(none, 7);
	/* Without unused indices the only free one is reused at once. */
	assert_int_equal(key_free(&table, keys[77777]), 0);
	none = key_new(5, mem, 8);
	assert_int_equal(none >> 8, keys[77777] >> 8);
	assert_int_not_equal(none, keys[77777]);
	keys[77777] = none;
	assert_int_equal(key_alloc(&table, 1, 0, mem, 8, 0, &none), -ENOMEM);
	for (uint32_t i = 1; i < KEY_MAX; i++)
		assert_int_equal(key_free(&table, keys[i]), 0);
	free(keys);
}

/* Reserved windows do not count as regions. */
TEST_WITH(regions_max_is_enforced, table_setup, table_teardown)
{
	uint32_t a, b, none = 7, mw_key;
	uint8_t mem[8];

	table.regions_max = 2;
	a = key_new(1, mem, 8);
	assert_int_equal(key_reserve(&table, mem, &mw_key), 0);
	b = key_new(1, mem, 8);
	assert_int_equal(key_alloc(&table, 1, 0, mem, 8, 0, &none), -ENOMEM);
	assert_int_equal(none, 7);
	key_release(&table, mw_key);
	assert_int_equal(key_alloc(&table, 1, 0, mem, 8, 0, &none), -ENOMEM);
	assert_int_equal(key_free(&table, a), 0);
	a = key_new(1, mem, 8);
	assert_int_equal(key_free(&table, a), 0);
	assert_int_equal(key_free(&table, b), 0);
	table.regions_max = KEY_MAX - 1;
}

/* ---- A reader concurrent with registrations finds complete entries. ---- */

#define PUBLISHED 100000

static uint32_t newest;
static uint32_t reader_failures;

static void *
reader_main(void *arg)
{
	uint32_t key = 0, last = 0;
	const struct key_entry *e;
	uint8_t *host;

	while (last != *(const uint32_t *)arg) {
		key = __atomic_load_n(&newest, __ATOMIC_RELAXED);
		if (key == last)
			continue;
		/* The region of index i: PD i & 0xFF, address i, length i, host address
		 * i. */
		e = key_find(&table, key);
		if (e == NULL)
			continue; /* not visible yet: retry */
		host = key_check(&table, key, key >> 8 & 0xFF, key >> 8, key >> 8, ALL);
		if (host != (uint8_t *)(uintptr_t)(key >> 8))
			reader_failures++;
		last = key;
	}
	return NULL;
}

TEST_WITH(readers_see_whole_entries, table_setup, table_teardown)
{
	uint32_t *keys = calloc(PUBLISHED, sizeof(*keys));
	struct key_table twin; /* tells which key comes next */
	pthread_t reader;
	uint8_t mem[8];

	key_table_init(&twin, &table_random);
	for (uint32_t i = 0; i < PUBLISHED; i++)
		assert_int_equal(key_alloc(&twin, 1, 0, mem, 8, ALL, &keys[i]), 0);
	newest = 0;
	assert_int_equal(
		pthread_create(&reader, NULL, reader_main, &keys[PUBLISHED - 1]), 0);
	for (uint32_t i = 0; i < PUBLISHED; i++) {
		uint32_t index = keys[i] >> 8, key;

		assert_int_equal(key_alloc(&table, index & 0xFF, index,
					 (void *)(uintptr_t)index, index, ALL, &key),
			0);
		assert_int_equal(key, keys[i]);
		/* Relaxed: only the table orders what the reader sees. */
		__atomic_store_n(&newest, key, __ATOMIC_RELAXED);
	}
	assert_int_equal(pthread_join(reader, NULL), 0);
	assert_int_equal(reader_failures, 0);
	for (uint32_t i = 0; i < PUBLISHED; i++) {
		assert_int_equal(key_free(&table, keys[i]), 0);
		assert_int_equal(key_free(&twin, keys[i]), 0);
	}
	key_table_fini(&twin);
	free(keys);
}

/* key_change() changes what the flags name and nothing else. The key changes with the
 * translation and with the PD. */
TEST_WITH(changed_region_keeps_the_rest, table_setup, table_teardown)
{
	uint8_t mem[64], other[64];
	uint32_t key = key_new(1000, mem, 64), old = key, moved;
	struct key_change to = {
		.pd = 2, .access = 0, .va = 500, .host = other, .len = 32};

	assert_int_equal(key_change(&table, &key, IBV_REREG_MR_CHANGE_ACCESS, &to), 0);
	assert_int_equal(key, old);
	assert_non_null(key_check(&table, key, 1, 1000, 64, 0));
	assert_null(key_check(&table, key, 1, 1000, 64, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(
		key_change(&table, &key, IBV_REREG_MR_CHANGE_TRANSLATION, &to), 0);
	assert_int_not_equal(key, old);
	assert_int_equal(key >> 8, old >> 8);
	assert_null(key_check(&table, old, 1, 1000, 1, 0));
	assert_null(key_check(&table, old, 1, 500, 1, 0));
	assert_ptr_equal(key_check(&table, key, 1, 500, 32, 0), other);
	assert_null(key_check(&table, key, 1, 500, 33, 0));
	moved = key;
	assert_int_equal(key_change(&table, &key, IBV_REREG_MR_CHANGE_PD, &to), 0);
	assert_int_not_equal(key, old);
	assert_int_not_equal(key, moved);
	assert_null(key_check(&table, key, 1, 500, 1, 0));
	assert_non_null(key_check(&table, key, 2, 500, 1, 0));
	/* A refused change changes nothing. */
	to = (struct key_change){.pd = 3,
		.access = IBV_ACCESS_REMOTE_WRITE,
		.va = 500,
		.host = other,
		.len = 32};
	old = key;
	assert_int_equal(
		key_change(&table, &key, IBV_REREG_MR_FLAGS_SUPPORTED, &to), -EINVAL);
	to.access = 0;
	to.va = UINT64_MAX;
	assert_int_equal(
		key_change(&table, &key, IBV_REREG_MR_FLAGS_SUPPORTED, &to), -EINVAL);
	to.va = 500;
	to.pd = KEY_PD_INVALIDATED;
	assert_int_equal(
		key_change(&table, &key, IBV_REREG_MR_FLAGS_SUPPORTED, &to), -EINVAL);
	assert_int_equal(key, old);
	assert_non_null(key_check(&table, key, 2, 500, 32, 0));
	key ^= 1;
	assert_int_equal(key_change(&table, &key, IBV_REREG_MR_CHANGE_PD, &to), -EINVAL);
	assert_int_equal(key_free(&table, old), 0);
}

/* Invalidation of an address affects every region that contains it, and no other. */
TEST_WITH(invalidated_memory_denies_access, table_setup, table_teardown)
{
	uint8_t mem[64];
	uint32_t whole = key_new(0, mem, 64), half = key_new(0, mem + 32, 32);
	struct key_change to = {.pd = 1};

	assert_false(key_invalidate_at(&table, mem + 64));
	assert_true(key_invalidate_at(&table, mem + 31));
	assert_null(key_check(&table, whole, 1, 0, 1, 0));
	assert_null(key_check(&table, whole, KEY_PD_INVALIDATED, 0, 1, ALL));
	assert_non_null(key_check(&table, half, 1, 0, 32, ALL));
	assert_true(key_invalidate_at(&table, mem + 63));
	assert_null(key_check(&table, half, 1, 0, 1, 0));
	/* no error if the regions are invalid already */
	assert_true(key_invalidate_at(&table, mem));
	assert_int_equal(key_change(&table, &half, IBV_REREG_MR_CHANGE_PD, &to), -EFAULT);
	assert_int_equal(key_free(&table, whole), 0);
	assert_int_equal(key_free(&table, half), 0);
	assert_false(key_invalidate_at(&table, mem));
}
