/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/base_alloc.h"
#include "switch/sw_user.h"

#define CREDIT_MAX (SW_HOLD_MAX_NS * SW_HOLD_SHARE)

int
sw_users_init(struct sw_users *users, const struct random_key *random)
{
	memset(users, 0, sizeof(*users));
	TAILQ_INIT(&users->kept);
	return sw_remotes_init(&users->remotes, random);
}

static void
kept_remove(struct sw_users *users, struct sw_user *user)
{
	TAILQ_REMOVE(&users->kept, user, kept_link);
	users->kept_count--;
}

static void
kept_free(struct sw_users *users, struct sw_user *user)
{
	kept_remove(users, user);
	LIST_REMOVE(user, link);
	sw_remote_owner_fini(&users->remotes, &user->remotes);
	alloc_put(&alloc_plain, user, sizeof(*user));
}

void
sw_users_fini(struct sw_users *users)
{
	while (!TAILQ_EMPTY(&users->kept))
		kept_free(users, TAILQ_FIRST(&users->kept));
	for (unsigned i = 0; i < SW_USER_BUCKETS; i++)
		assert(LIST_EMPTY(&users->buckets[i]));
	sw_remotes_fini(&users->remotes);
}

static void
kept_expire(struct sw_users *users, uint64_t now)
{
	struct sw_user *user;

	while ((user = TAILQ_FIRST(&users->kept)) != NULL &&
		(now - user->kept_ns >= SW_USER_KEPT_NS ||
			users->kept_count > SW_USERS_KEPT))
		kept_free(users, user);
}

const struct sw_user *
sw_user_find(const struct sw_users *users, uint32_t uid)
{
	struct sw_user *user;

	LIST_FOREACH(user, &users->buckets[uid % SW_USER_BUCKETS], link)
	{
		if (user->uid == uid)
			return user;
	}
	return NULL;
}

static struct sw_user *
user_create(struct sw_users *users, uint32_t uid, uint64_t now)
{
	struct sw_user *user = alloc_get(&alloc_plain, "user", sizeof(*user));

	if (user == NULL)
		return NULL;
	user->uid = uid;
	for (unsigned i = 0; i < SW_THREADS_MAX; i++)
		user->holds[i] = (struct sw_hold){CREDIT_MAX, now};
	sw_remote_owner_init(&user->remotes);
	net_user_init(&user->neighs, false);
	rate_init(&user->ext_rate, SW_EXT_QUERY_NS, SW_EXT_QUERY_BURST);
	LIST_INSERT_HEAD(&users->buckets[uid % SW_USER_BUCKETS], user, link);
	return user;
}

struct sw_user *
sw_user_get(struct sw_users *users, uint32_t uid, uint64_t now)
{
	struct sw_user *user;

	kept_expire(users, now);
	user = (struct sw_user *)sw_user_find(users, uid);
	if (user == NULL)
		user = user_create(users, uid, now);
	else if (user->clients == 0)
		kept_remove(users, user);
	if (user != NULL)
		user->clients++;
	return user;
}

void
sw_user_put(struct sw_users *users, struct sw_user *user, uint64_t now)
{
	if (--user->clients != 0)
		return;
	user->kept_ns = now;
	TAILQ_INSERT_TAIL(&users->kept, user, kept_link);
	users->kept_count++;
	kept_expire(users, now);
}

bool
sw_user_hold(struct sw_hold *hold, uint32_t taken, uint64_t now)
{
	uint64_t elapsed = RTE_MIN(now - hold->changed_ns, CREDIT_MAX);
	uint64_t earned = elapsed + taken * SW_HOLD_PACKET_NS * SW_HOLD_SHARE;

	hold->changed_ns = now;
	hold->credit = RTE_MIN(hold->credit + earned, CREDIT_MAX);
	/* Not compared with elapsed, which is 0 if several senders are blocked in one
	 * pass. */
	if (hold->credit < SW_HOLD_STEP_NS * SW_HOLD_SHARE)
		return false;
	hold->credit -= RTE_MIN(elapsed, SW_HOLD_STEP_NS) * SW_HOLD_SHARE;
	return true;
}
