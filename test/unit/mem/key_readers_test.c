/* SPDX-License-Identifier: BSD-3-Clause */
/* For which readers a change of the key table waits, and what others find meanwhile. */
#include <errno.h>

#include "case.h"
#include "key_fixture.h"

static uint32_t
key_new(void *host, uint64_t len)
{
	uint32_t key = 0;

	assert_int_equal(
		key_alloc(&table, 1, 0, host, len, IBV_ACCESS_LOCAL_WRITE, &key), 0);
	return key;
}

/* A lookup while the readers of before are waited for. */
static uint8_t *found_meanwhile;
static unsigned waits;

static void
reader_looks(void *arg)
{
	found_meanwhile = key_check(&table, *(const uint32_t *)arg, 1, 0, 32, 0);
	assert_null(key_check(
		&table, *(const uint32_t *)arg, 1, 0, 32, IBV_ACCESS_LOCAL_WRITE));
	waits++;
}

TEST_WITH(readers_are_waited_for, table_setup, table_teardown)
{
	uint8_t mem[64], other[64];
	uint32_t key = key_new(mem, 64), old = key;
	struct key_change to = {.pd = 1, .host = other, .len = 32};

	waits = 0;
	table.readers = (struct key_readers){reader_looks, &old};
	assert_int_equal(key_change(&table, &key, IBV_REREG_MR_CHANGE_ACCESS, &to), 0);
	assert_ptr_equal(found_meanwhile, mem);
	assert_int_equal(
		key_change(&table, &key, IBV_REREG_MR_CHANGE_TRANSLATION, &to), 0);
	assert_null(found_meanwhile);
	assert_ptr_equal(key_check(&table, key, 1, 0, 32, 0), other);
	old = key;
	/* A refused change waits for nothing. */
	to.pd = KEY_PD_INVALIDATED;
	assert_int_equal(key_change(&table, &key, IBV_REREG_MR_CHANGE_PD, &to), -EINVAL);
	assert_int_equal(waits, 2);
	assert_int_equal(key_free(&table, key), 0);
	assert_null(found_meanwhile);
	assert_int_equal(waits, 3);
	table.readers.await = NULL;
}

/* The memory of the region is gone: a reader of before runs into that while it is waited for. */
static void
reader_faults(void *arg)
{
	assert_true(key_invalidate_at(&table, arg));
	waits++;
}

TEST_WITH(fault_of_a_reader_that_is_waited_for_is_known, table_setup, table_teardown)
{
	uint8_t mem[64], other[64];
	uint32_t key = key_new(mem, 64), old = key;
	struct key_change to = {.pd = 2, .host = other, .len = 32};

	waits = 0;
	table.readers = (struct key_readers){reader_faults, mem};
	/* The region that stays has lost its memory: it can be deregistered, no more. */
	assert_int_equal(key_change(&table, &key, IBV_REREG_MR_CHANGE_PD, &to), -EFAULT);
	assert_int_equal(key, old);
	assert_non_null(key_find(&table, key));
	assert_null(key_check(&table, key, 1, 0, 1, 0));
	assert_null(key_check(&table, key, 2, 0, 1, 0));
	assert_int_equal(*key_mw_count(&table, key), 0);
	assert_int_equal(key_free(&table, key), 0);
	assert_false(key_invalidate_at(&table, mem));
	/* One that moves to other memory does not need it. */
	key = key_new(mem, 64);
	assert_int_equal(
		key_change(&table, &key, IBV_REREG_MR_CHANGE_TRANSLATION, &to), 0);
	assert_ptr_equal(key_check(&table, key, 1, 0, 32, 0), other);
	assert_false(key_invalidate_at(&table, mem));
	table.readers.await = NULL;
	assert_int_equal(key_free(&table, key), 0);
	assert_int_equal(waits, 3);
}
