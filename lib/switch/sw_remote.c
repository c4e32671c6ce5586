/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "base/base_alloc.h"
#include "switch/sw_remote.h"

#define BUCKETS 16384

int
sw_remotes_init(struct sw_remotes *t, const struct random_key *random)
{
	*t = (struct sw_remotes){.key = random_key_derive(random, RANDOM_SWITCH_TABLES)};
	t->buckets = alloc_get(&alloc_plain, "remote QPs", BUCKETS * sizeof(*t->buckets));
	return t->buckets != NULL ? 0 : -ENOMEM;
}

void
sw_remotes_fini(struct sw_remotes *t)
{
	assert(LIST_EMPTY(&t->owners));
	alloc_put(&alloc_plain, t->buckets, BUCKETS * sizeof(*t->buckets));
	t->buckets = NULL;
}

static struct sw_remote_list *
remote_bucket(const struct sw_remotes *t, const uint8_t gid[16], uint32_t qpn)
{
	uint8_t name[20];

	memcpy(name, gid, 16);
	memcpy(name + 16, &qpn, 4);
	return &t->buckets[siphash24(&t->key, name, sizeof(name)) % BUCKETS];
}

static struct sw_remote *
remote_find(const struct sw_remotes *t, const uint8_t gid[16], uint32_t qpn)
{
	struct sw_remote *remote;

	LIST_FOREACH(remote, remote_bucket(t, gid, qpn), link)
	{
		if (remote->qpn == qpn && memcmp(remote->gid, gid, 16) == 0)
			return remote;
	}
	return NULL;
}

static void
waiting_remove(struct sw_remotes *t, struct sw_remote *remote)
{
	struct sw_remote_owner *owner = remote->owner;

	TAILQ_REMOVE(&owner->waiting, remote, wait_link);
	if (--owner->waiting_count == 0)
		LIST_REMOVE(owner, link);
	t->waiting_count--;
}

static void
waiting_insert(struct sw_remotes *t, struct sw_remote *remote)
{
	struct sw_remote_owner *owner = remote->owner;

	TAILQ_INSERT_TAIL(&owner->waiting, remote, wait_link);
	if (owner->waiting_count++ == 0)
		LIST_INSERT_HEAD(&t->owners, owner, link);
	t->waiting_count++;
}

/* Frees a remote QP that waits. */
static void
remote_free(struct sw_remotes *t, struct sw_remote *remote)
{
	waiting_remove(t, remote);
	LIST_REMOVE(remote, link);
	alloc_put(&alloc_plain, remote, sizeof(*remote));
}

void
sw_remote_owner_init(struct sw_remote_owner *owner)
{
	owner->waiting_count = 0;
	TAILQ_INIT(&owner->waiting);
}

void
sw_remote_owner_fini(struct sw_remotes *t, struct sw_remote_owner *owner)
{
	while (!TAILQ_EMPTY(&owner->waiting))
		remote_free(t, TAILQ_FIRST(&owner->waiting));
}

static bool
wait_is_over(const struct sw_remote *remote, uint64_t now)
{
	return remote->qps == 0 && now - remote->free_ns >= SW_REMOTE_WAIT_NS;
}

int
sw_remote_get(struct sw_remotes *t, struct sw_remote_owner *owner, uint32_t holder,
	const uint8_t gid[16], uint32_t qpn, uint64_t now, struct sw_remote **out)
{
	struct sw_remote *remote = remote_find(t, gid, qpn);

	if (remote != NULL && (remote->owner != owner || remote->holder != holder) &&
		!wait_is_over(remote, now))
		return -EADDRINUSE;
	if (remote == NULL) {
		remote = alloc_get(&alloc_plain, "remote QP", sizeof(*remote));
		if (remote == NULL)
			return -ENOMEM;
		memcpy(remote->gid, gid, 16);
		remote->qpn = qpn;
		LIST_INSERT_HEAD(remote_bucket(t, gid, qpn), remote, link);
	} else if (remote->qps == 0) {
		waiting_remove(t, remote);
	}
	remote->owner = owner;
	remote->holder = holder;
	remote->qps++;
	*out = remote;
	return 0;
}

/* Returns the owner with the most remote QPs that wait. At least one waits. */
static struct sw_remote_owner *
owner_of_most(const struct sw_remotes *t)
{
	struct sw_remote_owner *owner, *most = LIST_FIRST(&t->owners);

	LIST_FOREACH(owner, &t->owners, link)
	{
		if (owner->waiting_count > most->waiting_count)
			most = owner;
	}
	return most;
}

void
sw_remote_put(struct sw_remotes *t, struct sw_remote *remote, uint64_t now)
{
	struct sw_remote_owner *owner = remote->owner, *most;

	if (--remote->qps != 0)
		return;
	remote->free_ns = now;
	waiting_insert(t, remote);
	while (wait_is_over(TAILQ_FIRST(&owner->waiting), now))
		remote_free(t, TAILQ_FIRST(&owner->waiting));
	if (t->waiting_count <= SW_REMOTES_WAITING)
		return;
	most = owner_of_most(t);
	/* Of several users with one uid the one that makes the room needed pays for it. */
	remote_free(t, most == owner && remote->holder != 0
			       ? remote
			       : TAILQ_FIRST(&most->waiting));
}
