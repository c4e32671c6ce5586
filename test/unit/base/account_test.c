/* SPDX-License-Identifier: BSD-3-Clause */
/* Accounts of users: limits, parts that are reserved, and a model of both. */
#include <stdint.h>

#include "../rand.h"
#include "base/account.h"
#include "case.h"

TEST(nothing_is_limited_at_first)
{
	struct accounts all;
	struct account *a;

	accounts_init(&all);
	a = account_open(&all, 7, 0);
	assert_true(account_take(a, ACCOUNT_qps, 1000000));
	assert_int_equal(a->held[ACCOUNT_qps], 1000000);
	account_give(a, ACCOUNT_qps, 1000000);
	account_close(a);
	accounts_fini(&all);
	assert_true(TAILQ_EMPTY(&all.users));
	/* Without an account nothing is limited. */
	assert_true(account_take(NULL, ACCOUNT_qps, 1));
	account_give(NULL, ACCOUNT_qps, 1);
}

TEST(one_account_a_user)
{
	struct account *a, *b, *c;
	struct accounts all;

	accounts_init(&all);
	a = account_open(&all, 7, 0);
	b = account_open(&all, 3, 0);
	c = account_open(&all, 7, 0);
	assert_ptr_equal(a, c);
	assert_ptr_equal(accounts_from(&all, 0), b);
	assert_ptr_equal(accounts_from(&all, 4), a);
	assert_null(accounts_from(&all, 8));
	account_close(a);
	assert_ptr_equal(accounts_from(&all, 4), a);
	account_close(c);
	assert_null(accounts_from(&all, 4));
	account_close(b);
	accounts_fini(&all);
}

TEST(account_outlives_its_holders_until_its_bucket_is_full)
{
	struct account *a, *again;
	struct accounts all;

	accounts_init(&all);
	a = account_open(&all, 7, 1000);
	a->control_ns = 5000;
	account_close(a);
	assert_null(accounts_from(&all, 0)); /* no user now */
	again = account_open(&all, 7, 4999);
	assert_ptr_equal(again, a);
	assert_int_equal(again->control_ns, 5000);
	account_close(again);
	again = account_open(&all, 7, 5000);
	assert_int_equal(again->control_ns, 0);
	rate_take(&again->told, 5000);
	account_close(again);
	again = account_open(&all, 7, 5000 + ACCOUNT_TOLD_NS - 1);
	assert_int_equal(again->told.full_ns, 5000 + ACCOUNT_TOLD_NS);
	account_close(again);
	again = account_open(&all, 7, 5000 + ACCOUNT_TOLD_NS);
	assert_int_equal(again->told.full_ns, 0);
	account_close(again);
	accounts_fini(&all);
}

static unsigned
accounts_count(const struct accounts *all)
{
	const struct account *account;
	unsigned n = 0;

	TAILQ_FOREACH (account, &all->users, link)
		n++;
	return n;
}

/* Many users are told why they are refused, one after another, and have no connection then. */
TEST(accounts_that_are_kept_are_bounded)
{
	const uint64_t most = 1000 * NS_PER_SEC;
	struct account *account;
	struct accounts all;

	accounts_init(&all);
	for (uint32_t uid = 0; uid < 4 * ACCOUNT_KEPT; uid++) {
		account = account_open(&all, uid, 0);
		account->told.full_ns = uid == 0 ? most : NS_PER_SEC + uid;
		account_close(account);
		assert_true(accounts_count(&all) <= ACCOUNT_KEPT + 1);
	}
	assert_int_equal(accounts_count(&all), ACCOUNT_KEPT + 1);
	/* The one that would be kept for the longest time is there. */
	account = account_open(&all, 0, 0);
	assert_int_equal(account->told.full_ns, most);
	account_close(account);
	/* No user clears its own buckets, although its account would be the first to go. */
	account = account_open(&all, UINT32_MAX, 0);
	account->control_ns = 1;
	account_close(account);
	assert_int_equal(accounts_count(&all), ACCOUNT_KEPT + 1);
	account = account_open(&all, UINT32_MAX, 0);
	assert_int_equal(account->control_ns, 1);
	account_close(account);
	accounts_fini(&all);
}

TEST(one_user_cannot_take_the_parts_of_others)
{
	struct account *greedy, *late[ACCOUNT_USERS];
	struct accounts all;
	uint32_t n = 0;

	accounts_init(&all);
	accounts_limit(&all, ACCOUNT_qps, 160, true);
	greedy = account_open(&all, 1, 0);
	while (account_take(greedy, ACCOUNT_qps, 1))
		n++;
	assert_int_equal(n, 90); /* the shared half, and the user's part of 10 */
	assert_int_equal(n, accounts_most(&all, ACCOUNT_qps));
	assert_int_equal(greedy->refused[ACCOUNT_qps], 1);
	for (unsigned i = 0; i < ACCOUNT_USERS - 1; i++) {
		late[i] = account_open(&all, 10 + i, 0);
		for (unsigned k = 0; k < 10; k++)
			assert_true(account_take(late[i], ACCOUNT_qps, 1));
		assert_false(account_take(late[i], ACCOUNT_qps, 1));
	}
	assert_int_equal(all.limits[ACCOUNT_qps].used, 160);
	/* One more user finds nothing. */
	late[7] = account_open(&all, 99, 0);
	assert_false(account_take(late[7], ACCOUNT_qps, 1));
	/* The greedy user gives some back, for everyone. */
	account_give(greedy, ACCOUNT_qps, 30);
	assert_true(account_take(late[0], ACCOUNT_qps, 30));
	assert_false(account_take(greedy, ACCOUNT_qps, 1));
	account_give(greedy, ACCOUNT_qps, 60);
	account_close(greedy);
	for (unsigned i = 0; i < ACCOUNT_USERS; i++) {
		account_give(late[i], ACCOUNT_qps, late[i]->held[ACCOUNT_qps]);
		account_close(late[i]);
	}
	accounts_fini(&all);
}

TEST(alone_a_user_may_take_everything)
{
	struct accounts all;
	struct account *a;

	accounts_init(&all);
	accounts_limit(&all, ACCOUNT_clients, 160, false);
	a = account_open(&all, 1, 0);
	assert_false(account_take(a, ACCOUNT_clients, 161));
	assert_true(account_take(a, ACCOUNT_clients, 160));
	assert_false(account_take(a, ACCOUNT_clients, 1));
	/* A lower limit takes nothing away. */
	accounts_limit(&all, ACCOUNT_clients, 16, true);
	assert_false(account_take(a, ACCOUNT_clients, 1));
	account_give(a, ACCOUNT_clients, 150);
	assert_false(account_take(a, ACCOUNT_clients, 1));
	account_give(a, ACCOUNT_clients, 2);
	assert_true(account_take(a, ACCOUNT_clients, 1));
	account_give(a, ACCOUNT_clients, 9);
	account_close(a);
	accounts_fini(&all);
}

TEST(random_users_against_a_model)
{
	struct account *users[12];
	struct accounts all;
	uint64_t rnd = 1;

	accounts_init(&all);
	accounts_limit(&all, ACCOUNT_cm_ids, 320, true); /* a part is 20 */
	for (unsigned i = 0; i < RTE_DIM(users); i++)
		users[i] = account_open(&all, i, 0);
	for (unsigned round = 0; round < 100000; round++) {
		struct account *a = users[rand_below(&rnd, RTE_DIM(users))];
		uint32_t n = 1 + (uint32_t)rand_below(&rnd, 30), sum = 0, shared = 0, own;

		for (unsigned i = 0; i < RTE_DIM(users); i++) {
			uint32_t held = users[i]->held[ACCOUNT_cm_ids];

			if (users[i] == a)
				held += n;
			sum += held;
			shared += held > 20 ? held - 20 : 0;
		}
		own = a->held[ACCOUNT_cm_ids];
		if (rand_below(&rnd, 3) == 0) {
			account_give(a, ACCOUNT_cm_ids, own < n ? own : n);
			continue;
		}
		assert_int_equal(account_take(a, ACCOUNT_cm_ids, n),
			sum <= 320 && (own + n <= 20 || shared <= 160));
	}
	for (unsigned i = 0; i < RTE_DIM(users); i++) {
		account_give(users[i], ACCOUNT_cm_ids, users[i]->held[ACCOUNT_cm_ids]);
		account_close(users[i]);
	}
	accounts_fini(&all);
	assert_int_equal(all.limits[ACCOUNT_cm_ids].used, 0);
	assert_int_equal(all.limits[ACCOUNT_cm_ids].shared_used, 0);
}
