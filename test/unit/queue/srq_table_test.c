/* SPDX-License-Identifier: BSD-3-Clause */
/* SRQ numbers: found while they exist, not reused soon, all of them usable. */
#include <errno.h>
#include <stdlib.h>

#include "case.h"
#include "queue/srq_table.h"

static struct srq_table t;

TEST(released_number_is_not_reused_at_once)
{
	struct srq a = {.srqn = 0}, b = {.srqn = 0}, c = {.srqn = 0};

	srq_table_init(&t, 0x1000);
	assert_null(srq_table_get(&t, 0x1000));
	assert_int_equal(srq_table_put(&t, &a), 0);
	assert_int_equal(srq_table_put(&t, &b), 0);
	assert_int_equal(a.srqn, 0x1000);
	assert_int_equal(b.srqn, 0x1001);
	assert_ptr_equal(srq_table_get(&t, 0x1000), &a);
	assert_ptr_equal(srq_table_get(&t, 0x1001), &b);
	assert_null(srq_table_get(&t, 0x0FFF));
	assert_null(srq_table_get(&t, 0x1002));
	assert_null(srq_table_get(&t, 0x1000 + SRQ_TABLE_MAX));
	assert_null(srq_table_get(&t, 0));
	assert_null(srq_table_get(&t, 0xFFFFFF));
	/* A released number is not reused at once. */
	srq_table_remove(&t, &a);
	assert_null(srq_table_get(&t, 0x1000));
	assert_int_equal(srq_table_put(&t, &c), 0);
	assert_int_equal(c.srqn, 0x1002);
	srq_table_remove(&t, &b);
	srq_table_remove(&t, &c);
	srq_table_fini(&t);
}

TEST(full_table_reuses_the_free_number)
{
	struct srq *all = calloc(SRQ_TABLE_MAX, sizeof(*all)), extra = {.srqn = 7};

	assert_non_null(all);
	srq_table_init(&t, SRQ_TABLE_BASE_MAX);
	for (uint32_t i = 0; i < SRQ_TABLE_MAX; i++)
		assert_int_equal(srq_table_put(&t, &all[i]), 0);
	assert_int_equal(all[SRQ_TABLE_MAX - 1].srqn, 0xFFFFFE);
	assert_int_equal(srq_table_put(&t, &extra), -ENOSPC);
	assert_int_equal(extra.srqn, 7);
	/* The one free number is found wherever it is, also past the end. */
	for (uint32_t i = 5; i < SRQ_TABLE_MAX; i += SRQ_TABLE_MAX / 7) {
		srq_table_remove(&t, &all[i]);
		assert_int_equal(srq_table_put(&t, &extra), 0);
		assert_int_equal(extra.srqn, SRQ_TABLE_BASE_MAX + i);
		srq_table_remove(&t, &extra);
		assert_int_equal(srq_table_put(&t, &all[i]), 0);
	}
	for (uint32_t i = 0; i < SRQ_TABLE_MAX; i++) {
		assert_ptr_equal(srq_table_get(&t, all[i].srqn), &all[i]);
		srq_table_remove(&t, &all[i]);
	}
	srq_table_fini(&t);
	free(all);
}
