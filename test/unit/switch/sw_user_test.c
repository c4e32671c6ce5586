/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_fixture.h"

static const struct random_key key = {{1, 2}};

TEST(clients_share_their_user)
{
	struct sw_users users;
	struct sw_user *alice, *bob;

	assert_int_equal(sw_users_init(&users, &key), 0);
	alice = sw_user_get(&users, 1000, 0);
	bob = sw_user_get(&users, 1001, 0);
	assert_ptr_not_equal(alice, bob);
	assert_ptr_equal(sw_user_get(&users, 1000, 0), alice);
	sw_user_put(&users, alice, 0);
	assert_int_equal(users.kept_count, 0);
	sw_user_put(&users, alice, 0);
	sw_user_put(&users, bob, 0);
	assert_int_equal(users.kept_count, 2);
	sw_users_fini(&users);
}

/* A user without clients is remembered, but not for ever. */
TEST(users_without_clients_are_forgotten)
{
	struct sw_users users;
	struct sw_user *user;

	assert_int_equal(sw_users_init(&users, &key), 0);
	user = sw_user_get(&users, 1000, 0);
	user->holds[0].credit = 7;
	sw_user_put(&users, user, 0);
	user = sw_user_get(&users, 1000, SW_USER_KEPT_NS - 1);
	assert_int_equal(user->holds[0].credit, 7);
	sw_user_put(&users, user, 0);
	user = sw_user_get(&users, 1000, SW_USER_KEPT_NS);
	assert_int_not_equal(user->holds[0].credit, 7);
	sw_user_put(&users, user, SW_USER_KEPT_NS);
	sw_users_fini(&users);
}

TEST(remembered_users_are_limited)
{
	struct sw_users users;

	assert_int_equal(sw_users_init(&users, &key), 0);
	for (uint32_t uid = 0; uid < SW_USERS_KEPT + 9; uid++)
		sw_user_put(&users, sw_user_get(&users, uid, 0), 0);
	assert_int_equal(users.kept_count, SW_USERS_KEPT);
	assert_int_equal(TAILQ_FIRST(&users.kept)->uid, 9);
	sw_users_fini(&users);
}
