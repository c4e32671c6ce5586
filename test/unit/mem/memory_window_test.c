/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows (IBA 10.6.7): what can be bound, which QPs a window admits, and that a
 * reader concurrent with a bind never gets the memory of one bind through the key of
 * another. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "case.h"
#include "mem/memory_window.h"

#define PD 1
#define QPN 0x11
#define BYTES 4096
#define ALL                                                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |     \
		IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)
#define REMOTE                                                                           \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define VA UINT64_C(0x10000)

static struct key_table table;
static struct mw_list list;
static uint8_t memory[BYTES];
static uint32_t region; /* memory at VA, all rights */

static int
setup(void **state)
{
	key_table_init(&table, &(struct random_key){{0x55, 1}});
	LIST_INIT(&list);
	return key_alloc(&table, PD, VA, memory, BYTES, ALL, &region);
}

static int
teardown(void **state)
{
	assert_true(LIST_EMPTY(&list));
	assert_int_equal(key_free(&table, region), 0);
	key_table_fini(&table);
	return 0;
}

static struct mw *
mw_new(bool type2)
{
	struct mw *w;

	assert_int_equal(mw_create(&table, PD, type2, &w), 0);
	return w;
}

static struct mw_bind
whole_region(const struct mw *w)
{
	return (struct mw_bind){ibv_inc_rkey(w->rkey), region, VA, BYTES, REMOTE};
}

static int
bind_mw(const struct mw_bind *b)
{
	return mw_bind(&table, PD, QPN, &list, b);
}

static uint8_t *
lookup(uint32_t key, uint64_t va, uint64_t len, unsigned need)
{
	return key_check_remote(&table, key, PD, QPN, va, len, len, need);
}

TEST_WITH(type1_window_admits_qps_of_its_pd, setup, teardown)
{
	struct mw *w = mw_new(false);
	struct mw_bind b = whole_region(w);
	uint32_t first = w->rkey, second;

	assert_null(lookup(first, VA, 1, IBV_ACCESS_REMOTE_READ));
	b.va += 100;
	b.len = 50;
	b.access = IBV_ACCESS_REMOTE_READ;
	assert_int_equal(bind_mw(&b), 0);
	second = b.rkey;
	assert_null(lookup(first, VA + 100, 1, IBV_ACCESS_REMOTE_READ));
	assert_ptr_equal(
		lookup(second, VA + 100, 50, IBV_ACCESS_REMOTE_READ), memory + 100);
	assert_ptr_equal(
		lookup(second, VA + 149, 1, IBV_ACCESS_REMOTE_READ), memory + 149);
	assert_null(lookup(second, VA + 99, 1, IBV_ACCESS_REMOTE_READ));
	assert_null(lookup(second, VA + 149, 2, IBV_ACCESS_REMOTE_READ));
	assert_null(lookup(second, VA + 120, UINT64_MAX, IBV_ACCESS_REMOTE_READ));
	assert_null(lookup(second, VA + 120, UINT64_MAX - 119, IBV_ACCESS_REMOTE_READ));
	assert_null(lookup(second, VA + 100, 1, IBV_ACCESS_REMOTE_WRITE));
	/* A type 1 window admits any QP of its PD and no other; it is no lkey. */
	assert_non_null(key_check_remote(
		&table, second, PD, 77, VA + 100, 1, 1, IBV_ACCESS_REMOTE_READ));
	assert_null(key_check_remote(
		&table, second, PD + 1, QPN, VA + 100, 1, 1, IBV_ACCESS_REMOTE_READ));
	assert_null(key_check(&table, second, PD, VA + 100, 1, 0));
	assert_null(key_check(&table, second, KEY_PD_MW, VA + 100, 1, 0x80));
	/* The region is still valid; it cannot be freed while a window is bound to it. */
	assert_non_null(key_check(&table, region, PD, VA, BYTES, 0));
	assert_int_equal(key_free(&table, region), -EBUSY);
	assert_int_equal(key_free(&table, second), -EINVAL);
	/* Bound to another part, then unbound. */
	b.rkey = ibv_inc_rkey(second);
	b.va = VA;
	assert_int_equal(bind_mw(&b), 0);
	assert_null(lookup(second, VA + 100, 1, IBV_ACCESS_REMOTE_READ));
	assert_ptr_equal(lookup(b.rkey, VA, 50, IBV_ACCESS_REMOTE_READ), memory);
	b.rkey = ibv_inc_rkey(b.rkey);
	assert_int_equal(bind_mw(&(struct mw_bind){.rkey = b.rkey}), 0);
	assert_null(lookup(b.rkey, VA, 1, IBV_ACCESS_REMOTE_READ));
	assert_false(mw_may_invalidate(&table, QPN, b.rkey));
	assert_int_equal(*key_mw_count(&table, region), 0);
	/* Destroyed while bound. */
	b.rkey = ibv_inc_rkey(b.rkey);
	assert_int_equal(bind_mw(&b), 0);
	assert_int_equal(mw_invalidate(&table, QPN, b.rkey), -EINVAL);
	mw_destroy(&table, w);
	assert_null(lookup(b.rkey, VA, 1, IBV_ACCESS_REMOTE_READ));
	assert_int_equal(*key_mw_count(&table, region), 0);
	assert_int_equal(bind_mw(&b), -EINVAL);
}

TEST_WITH(type2_window_admits_its_qp, setup, teardown)
{
	struct mw *w = mw_new(true);
	struct mw_bind b = whole_region(w);

	assert_int_equal(bind_mw(&b), 0);
	assert_ptr_equal(lookup(b.rkey, VA, BYTES, REMOTE), memory);
	assert_null(key_check_remote(&table, b.rkey, PD, QPN + 1, VA, 1, 1, REMOTE));
	assert_null(key_check_remote(&table, b.rkey, PD + 1, QPN, VA, 1, 1, REMOTE));
	/* A bound type 2 window cannot be bound again before its own QP invalidates
	 * it. */
	assert_int_equal(bind_mw(&b), -EINVAL);
	b.rkey = ibv_inc_rkey(b.rkey);
	assert_int_equal(bind_mw(&b), -EINVAL);
	b.len = 0;
	assert_int_equal(bind_mw(&b), -EINVAL);
	assert_false(mw_may_invalidate(&table, QPN, b.rkey));
	assert_int_equal(mw_invalidate(&table, QPN, b.rkey), -EINVAL);
	assert_int_equal(mw_invalidate(&table, QPN + 1, w->rkey), -EINVAL);
	assert_non_null(lookup(w->rkey, VA, 1, REMOTE));
	assert_int_equal(mw_invalidate(&table, QPN, w->rkey), 0);
	assert_null(lookup(w->rkey, VA, 1, REMOTE));
	assert_int_equal(mw_invalidate(&table, QPN, w->rkey), -EINVAL);
	assert_true(LIST_EMPTY(&list));
	/* Any variant of the key can be bound, also the current one. */
	b = whole_region(w);
	b.rkey = w->rkey;
	assert_int_equal(bind_mw(&b), 0);
	mw_invalidate_all(&table, &list);
	assert_null(lookup(w->rkey, VA, 1, REMOTE));
	b.rkey = (w->rkey & ~0xFFu) | 0x42;
	assert_int_equal(bind_mw(&b), 0);
	assert_non_null(lookup(b.rkey, VA, 1, REMOTE));
	/* A region's key cannot be invalidated this way. */
	assert_int_equal(mw_invalidate(&table, QPN, region), -EINVAL);
	assert_int_equal(mw_invalidate(&table, QPN, 0), -EINVAL);
	assert_int_equal(mw_invalidate(&table, QPN, UINT32_MAX), -EINVAL);
	mw_destroy(&table, w);
}

/* IBV_ACCESS_LOCAL_WRITE is a right of the region. */
TEST_WITH(local_write_grants_nothing, setup, teardown)
{
	struct mw *w = mw_new(true);
	struct mw_bind b = whole_region(w);

	b.access = IBV_ACCESS_LOCAL_WRITE;
	assert_int_equal(bind_mw(&b), 0);
	assert_null(lookup(b.rkey, VA, 1, IBV_ACCESS_REMOTE_WRITE));
	assert_null(lookup(b.rkey, VA, 1, IBV_ACCESS_REMOTE_READ));
	assert_null(lookup(b.rkey, VA, 1, IBV_ACCESS_LOCAL_WRITE));
	mw_destroy(&table, w);
}

TEST_WITH(zero_based_window_starts_at_zero, setup, teardown)
{
	struct mw *w = mw_new(true);
	struct mw_bind b = whole_region(w);

	b.va += 64;
	b.len = 128;
	b.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED;
	assert_int_equal(bind_mw(&b), 0);
	assert_ptr_equal(lookup(b.rkey, 0, 128, IBV_ACCESS_REMOTE_WRITE), memory + 64);
	assert_null(lookup(b.rkey, 1, 128, IBV_ACCESS_REMOTE_WRITE));
	assert_null(lookup(b.rkey, VA + 64, 1, IBV_ACCESS_REMOTE_WRITE));
	mw_destroy(&table, w);
}

/* Each bind has one wrong argument. */
TEST_WITH(invalid_binds_are_refused, setup, teardown)
{
	struct mw *w = mw_new(true), *other;
	uint32_t plain, read_only, zero, elsewhere;
	struct mw_bind b;
	const struct {
		int rc;
		uint32_t parent;
		uint64_t va, len;
		unsigned access;
	} rows[] = {
		{0, region, VA, BYTES, REMOTE},
		{0, region, VA + BYTES - 1, 1, 0},
		{-EINVAL, region, VA - 1, BYTES, REMOTE},
		{-EINVAL, region, VA, BYTES + 1, REMOTE},
		{-EINVAL, region, VA + BYTES, 1, REMOTE},
		{-EINVAL, region, VA, UINT64_MAX, REMOTE},
		{-EINVAL, region, UINT64_MAX, 2, REMOTE},
		{0, region, VA, BYTES, REMOTE | IBV_ACCESS_LOCAL_WRITE},
		{-EINVAL, region, VA, BYTES, IBV_ACCESS_MW_BIND},
		{-EINVAL, region, VA, BYTES, 1u << 8},
		{-EINVAL, 0, VA, BYTES, REMOTE},
		{-EINVAL, region + 1, VA, BYTES, REMOTE},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		b = (struct mw_bind){ibv_inc_rkey(w->rkey), rows[i].parent, rows[i].va,
			rows[i].len, rows[i].access};
		assert_int_equal(bind_mw(&b), rows[i].rc);
		if (rows[i].rc == 0)
			assert_int_equal(mw_invalidate(&table, QPN, b.rkey), 0);
	}
	/* Regions without MW_BIND, without LOCAL_WRITE, zero-based, of another PD. */
	assert_int_equal(key_alloc(&table, PD, VA, memory, BYTES,
				 ALL & ~(unsigned)IBV_ACCESS_MW_BIND, &plain),
		0);
	assert_int_equal(key_alloc(&table, PD, VA, memory, BYTES,
				 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND, &read_only),
		0);
	assert_int_equal(key_alloc(&table, PD, 0, memory, BYTES,
				 ALL | IBV_ACCESS_ZERO_BASED, &zero),
		0);
	assert_int_equal(
		key_alloc(&table, PD + 1, VA, memory, BYTES, ALL, &elsewhere), 0);
	b = whole_region(w);
	b.parent = plain;
	assert_int_equal(bind_mw(&b), -EINVAL);
	b.parent = read_only;
	b.access = IBV_ACCESS_REMOTE_WRITE;
	assert_int_equal(bind_mw(&b), -EINVAL);
	b.access = IBV_ACCESS_REMOTE_ATOMIC;
	assert_int_equal(bind_mw(&b), -EINVAL);
	b.parent = zero;
	b.va = 0;
	assert_int_equal(bind_mw(&b), -EINVAL);
	b = whole_region(w);
	b.parent = elsewhere;
	assert_int_equal(bind_mw(&b), -EINVAL);
	/* A window of another PD, a window as the parent, keys that are no window's. */
	assert_int_equal(mw_bind(&table, PD + 1, QPN, &list, &b), -EINVAL);
	b = whole_region(w);
	assert_int_equal(bind_mw(&b), 0);
	other = mw_new(true);
	b = whole_region(other);
	b.parent = w->rkey;
	assert_int_equal(bind_mw(&b), -EINVAL);
	b = whole_region(other);
	b.rkey = region + 1;
	assert_int_equal(bind_mw(&b), -EINVAL);
	b.rkey = KEY_MAX << 8;
	assert_int_equal(bind_mw(&b), -EINVAL);
	/* A read-only region can be bound for remote reads. */
	b = whole_region(other);
	b.parent = read_only;
	b.access = IBV_ACCESS_REMOTE_READ;
	assert_int_equal(bind_mw(&b), 0);
	/* Invalidated memory is not accessible through windows either. */
	assert_non_null(lookup(b.rkey, VA, 1, IBV_ACCESS_REMOTE_READ));
	assert_true(key_invalidate_at(&table, memory + BYTES - 1));
	assert_null(lookup(b.rkey, VA, 1, IBV_ACCESS_REMOTE_READ));
	assert_null(key_check(&table, region, PD, VA, 1, 0));
	mw_destroy(&table, w);
	mw_destroy(&table, other);
	assert_int_equal(key_free(&table, plain), 0);
	assert_int_equal(key_free(&table, read_only), 0);
	assert_int_equal(key_free(&table, zero), 0);
	assert_int_equal(key_free(&table, elsewhere), 0);
}

/* ---- Two engines ---- */

#define BINDS 200000

static bool stop;

/* Binds even keys to the first half of the memory, odd ones to the second. */
static void *
binder(void *arg)
{
	struct mw *w = arg;

	for (unsigned i = 0; i < BINDS; i++) {
		struct mw_bind b = whole_region(w);

		b.len = BYTES / 2;
		b.va += b.rkey & 1 ? BYTES / 2 : 0;
		b.access = REMOTE | IBV_ACCESS_ZERO_BASED;
		if (bind_mw(&b) != 0)
			abort();
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	return NULL;
}

TEST_WITH(lookup_during_bind_is_consistent, setup, teardown)
{
	struct mw *w = mw_new(false);
	const struct key_entry *e = key_entry(&table, w->rkey);
	pthread_t thread;

	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, binder, w), 0);
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		uint32_t key =
			__atomic_load_n(&e->key, __ATOMIC_RELAXED); /* soon stale */
		uint8_t *host = lookup(key, 0, 1, IBV_ACCESS_REMOTE_READ);

		if (host != NULL)
			assert_ptr_equal(host, memory + (key & 1 ? BYTES / 2 : 0));
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	mw_destroy(&table, w);
}

/* While readers are waited for. */
static void
bind_is_refused(void *arg)
{
	struct mw *w = arg;
	struct mw_bind b = whole_region(w);

	assert_int_equal(bind_mw(&b), -EINVAL);
	assert_null(lookup(b.rkey, VA, 1, IBV_ACCESS_REMOTE_READ));
}

TEST_WITH(region_that_is_freed_or_changed_takes_no_window, setup, teardown)
{
	struct mw *w = mw_new(false);
	struct key_change to = {.access = ALL};
	struct mw_bind b = whole_region(w);

	table.readers = (struct key_readers){bind_is_refused, w};
	assert_int_equal(key_change(&table, &region, IBV_REREG_MR_CHANGE_ACCESS, &to), 0);
	assert_int_equal(bind_mw(&b), 0);
	assert_int_equal(*key_mw_count(&table, region), 1);
	b.rkey = ibv_inc_rkey(b.rkey);
	b.len = 0;
	assert_int_equal(bind_mw(&b), 0);
	assert_int_equal(key_free(&table, region), 0);
	assert_int_equal(*key_mw_count(&table, region), 0);
	assert_int_equal(key_alloc(&table, PD, VA, memory, BYTES, ALL, &region), 0);
	table.readers.await = NULL;
	mw_destroy(&table, w);
}
