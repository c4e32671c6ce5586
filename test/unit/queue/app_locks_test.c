/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>

#include "case.h"
#include "queue/app_locks.h"

static rte_spinlock_t locks[APP_LOCKS_MAX];

/* If one lock is taken, whichever it is, the others are free afterwards. */
TEST(all_are_taken_or_none)
{
	struct app_locks set = {.count = 0};

	for (unsigned i = 0; i < APP_LOCKS_MAX; i++)
		app_locks_add(&set, &locks[i]);
	for (unsigned taken = 0; taken < APP_LOCKS_MAX; taken++) {
		rte_spinlock_lock(&locks[taken]);
		assert_false(app_locks_try(&set));
		for (unsigned i = 0; i < APP_LOCKS_MAX; i++)
			assert_int_equal(rte_spinlock_is_locked(&locks[i]), i == taken);
		rte_spinlock_unlock(&locks[taken]);
	}
	assert_true(app_locks_try(&set));
	for (unsigned i = 0; i < APP_LOCKS_MAX; i++)
		assert_true(rte_spinlock_is_locked(&locks[i]));
	app_locks_release(&set);
	for (unsigned i = 0; i < APP_LOCKS_MAX; i++)
		assert_false(rte_spinlock_is_locked(&locks[i]));
	app_locks_wait(&set);
}

/* One CQ for sends and receives. */
TEST(lock_is_taken_once)
{
	struct app_locks set = {.count = 0};

	assert_true(app_locks_try(&set)); /* an unlocked QP has none */
	app_locks_add(&set, &locks[0]);
	app_locks_add(&set, &locks[1]);
	app_locks_add(&set, &locks[0]);
	assert_int_equal(set.count, 2);
	assert_true(app_locks_try(&set));
	app_locks_release(&set);
}
