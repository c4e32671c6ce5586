/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups: the member QPs of each, and delivery to them. */
#include <errno.h>
#include <string.h>

#include "base/base_alloc.h"
#include "switch/sw_client.h"
#include "switch/sw_dump.h"
#include "switch/sw_group.h"
#include "switch/uplink.h"

#define SCANNED_MEMBERS 2048 /* of all groups, in one call */

/* Clients choose the groups, and a host on the link chooses by its packets which are looked up. The key of
 * the hash is secret, so neither can choose groups that share a bucket. */
static uint16_t *
sw_group_bucket(struct sw *sw, const uint8_t gid[16])
{
	return &sw->group_buckets[siphash24(&sw->group_key, gid, 16) % SW_GROUPS];
}

const struct sw_group *
sw_group_find(const struct sw *sw, const uint8_t gid[16])
{
	uint16_t i = *sw_group_bucket((struct sw *)sw, gid);

	while (i != 0 && memcmp(sw->groups[i - 1].gid, gid, 16) != 0)
		i = sw->groups[i - 1].chain;
	return i != 0 ? &sw->groups[i - 1] : NULL;
}

/* The group has its first member. */
static void
group_link(struct sw *sw, struct sw_group *g)
{
	uint16_t *bucket = sw_group_bucket(sw, g->gid);

	g->chain = *bucket;
	*bucket = (uint16_t)(g - sw->groups + 1);
}

/* It has none any more. */
static void
group_unlink(struct sw *sw, struct sw_group *g)
{
	uint16_t *at = sw_group_bucket(sw, g->gid);

	while (*at != g - sw->groups + 1)
		at = &sw->groups[*at - 1].chain;
	*at = g->chain;
}

/* Returns the account of a QP. */
static struct account *
qp_account(const struct sw *sw, uint32_t qpn)
{
	const struct sw_qp *qp = qpns_find(&sw->qpns, qpn);

	return qp != NULL ? qp->owner->account : NULL;
}

static void
memberships_add(const struct sw *sw, uint32_t qpn, uint32_t n)
{
	const struct sw_qp *qp = qpns_find(&sw->qpns, qpn);

	if (qp != NULL)
		qp->owner->memberships += n;
}

static struct sw_group *
sw_group_create(struct sw *sw, const uint8_t gid[16], const struct account *account)
{
	bool reserve = account != NULL &&
		       account->all->limits[ACCOUNT_group_members].reserve != 0;

	for (unsigned i = 0; i < SW_GROUPS; i++) {
		struct sw_group *g = &sw->groups[i];

		if (g->count != 0)
			continue;
		if (g->qpns == NULL)
			g->qpns = alloc_get(&alloc_plain, "group",
				SW_GROUP_MEMBERS * sizeof(uint32_t));
		if (g->qpns == NULL)
			return NULL;
		memcpy(g->gid, gid, 16);
		account_limit_set(&g->members, SW_GROUP_MEMBERS, reserve);
		return g;
	}
	return NULL;
}

/* Returns how many QPs of the user are members. */
static uint32_t
sw_group_held(
	const struct sw *sw, const struct sw_group *g, const struct account *account)
{
	uint32_t held = 0;

	for (uint32_t i = 0; i < g->count; i++)
		held += qp_account(sw, g->qpns[i]) == account;
	return held;
}

/* Charges a new member to its user: the group once, with the user's first member; and the
 * member, within the limit of this group and within that of all groups. held: how many
 * members of this group the user has already. */
static bool
sw_group_charge(struct sw_group *g, struct account *account, uint32_t held)
{
	if (held == 0 && !account_take(account, ACCOUNT_groups, 1))
		return false;
	if (account_take(account, ACCOUNT_group_members, 1)) {
		if (account_limit_take(&g->members, held, 1))
			return true;
		account_give(account, ACCOUNT_group_members, 1);
		if (account != NULL)
			account->refused[ACCOUNT_group_members]++;
	}
	if (held == 0)
		account_give(account, ACCOUNT_groups, 1);
	return false;
}

/* n of `held` members of the user go. */
static void
sw_group_discharge(struct sw_group *g, struct account *account, uint32_t held, uint32_t n)
{
	account_limit_give(&g->members, held, n);
	account_give(account, ACCOUNT_group_members, n);
	if (held == n)
		account_give(account, ACCOUNT_groups, 1);
}

/* Adds a member. Returns 0 or -ENOSPC. */
static int
sw_group_member_add(struct sw *sw, struct sw_group *g, uint32_t qpn)
{
	struct account *account = qp_account(sw, qpn);
	uint32_t held = sw_group_held(sw, g, account);

	if (!sw_group_charge(g, account, held))
		return -ENOSPC;
	if (g->count == 0 && sw->up != NULL && uplink_join(sw->up, g->gid) != 0) {
		sw_group_discharge(g, account, 1, 1);
		return -ENOSPC;
	}
	if (g->count == 0)
		group_link(sw, g);
	g->qpns[g->count++] = qpn;
	memberships_add(sw, qpn, 1);
	return 0;
}

int
sw_group_join(struct sw *sw, uint32_t qpn, const uint8_t gid[16])
{
	struct sw_group *g;

	if (!gid_is_multicast(gid))
		return -EINVAL;
	g = (struct sw_group *)sw_group_find(sw, gid);
	if (g == NULL)
		g = sw_group_create(sw, gid, qp_account(sw, qpn));
	if (g == NULL)
		return -ENOSPC;
	for (uint32_t i = 0; i < g->count; i++) {
		if (g->qpns[i] == qpn)
			return 0;
	}
	if (g->count == SW_GROUP_MEMBERS)
		return -ENOSPC;
	return sw_group_member_add(sw, g, qpn);
}

/* To be called when n members of a user have been removed. */
static void
sw_group_settle(struct sw *sw, struct sw_group *g, struct account *account, uint32_t n)
{
	sw_group_discharge(g, account, sw_group_held(sw, g, account) + n, n);
	if (g->count != 0)
		return;
	group_unlink(sw, g);
	if (sw->up != NULL)
		uplink_leave(sw->up, g->gid);
}

static void
sw_group_member_remove(struct sw *sw, struct sw_group *g, uint32_t i)
{
	struct account *account = qp_account(sw, g->qpns[i]);

	memberships_add(sw, g->qpns[i], 0u - 1);
	g->qpns[i] = g->qpns[--g->count];
	sw_group_settle(sw, g, account, 1);
}

/* Returns the member's index, or count if the QP is no member. */
static uint32_t
sw_group_member_find(const struct sw_group *g, uint32_t qpn)
{
	uint32_t i = 0;

	while (i < g->count && g->qpns[i] != qpn)
		i++;
	return i;
}

int
sw_group_leave(struct sw *sw, uint32_t qpn, const uint8_t gid[16])
{
	struct sw_group *g = (struct sw_group *)sw_group_find(sw, gid);
	uint32_t i = g != NULL ? sw_group_member_find(g, qpn) : 0;

	if (g == NULL || i == g->count)
		return -EINVAL;
	sw_group_member_remove(sw, g, i);
	return 0;
}

void
sw_group_forget(struct sw_client *client, uint32_t qpn)
{
	struct sw *sw = client->sw;

	for (unsigned i = 0; i < SW_GROUPS && client->memberships != 0; i++) {
		struct sw_group *g = &sw->groups[i];
		uint32_t member = sw_group_member_find(g, qpn);

		if (member != g->count)
			sw_group_member_remove(sw, g, member);
	}
}

static void
sw_group_forget_client(struct sw *sw, struct sw_group *g, struct sw_client *client)
{
	uint32_t before = g->count;

	/* Downwards: the entry that fills the gap has been checked already. */
	for (uint32_t m = g->count; m-- > 0;) {
		const struct sw_qp *qp = qpns_find(&sw->qpns, g->qpns[m]);

		if (qp != NULL && qp->owner == client)
			g->qpns[m] = g->qpns[--g->count];
	}
	if (g->count == before)
		return;
	client->memberships -= before - g->count;
	sw_group_settle(sw, g, client->account, before - g->count);
}

bool
sw_group_forget_some(struct sw *sw, struct sw_client *client)
{
	uint32_t scanned = 0;

	while (client->memberships != 0 && scanned < SCANNED_MEMBERS) {
		struct sw_group *g = &sw->groups[client->next_group++];

		scanned += g->count;
		sw_group_forget_client(sw, g, client);
	}
	return client->memberships == 0;
}

/* One copy for each client of the thread. The client's engine delivers it to the client's
 * members. Returns the other threads that have members, a bit each. */
static uint32_t
deliver_here(struct sw_thread *t, const struct sw_group *g, struct sw_client *skip,
	const struct handed_bytes *bytes)
{
	uint32_t others = 0;

	t->stamp++;
	if (skip != NULL)
		skip->stamp = t->stamp;
	for (uint32_t i = 0; i < g->count; i++) {
		const struct sw_qp *qp = qpns_find(&t->sw->qpns, g->qpns[i]);

		if (qp == NULL)
			continue;
		if (qp->owner->thread != t) {
			others |= UINT32_C(1) << qp->owner->thread->index;
			continue;
		}
		if (qp->owner->stamp == t->stamp)
			continue;
		qp->owner->stamp = t->stamp;
		sw_dump(t, qp->owner, QPN_MULTICAST, SW_DUMP_IN, bytes);
		sw_client_put(qp->owner, bytes->head, bytes->head_len, bytes->rest,
			bytes->len, RING_CKSUM_OK);
	}
	return others;
}

bool
sw_group_deliver(struct sw_thread *t, const uint8_t gid[16], struct sw_client *skip,
	const struct handed_bytes *bytes)
{
	const struct sw_group *g = sw_group_find(t->sw, gid);
	uint32_t others;

	if (g == NULL)
		return false;
	others = deliver_here(t, g, skip, bytes);
	for (; others != 0; others &= others - 1) {
		const struct sw_thread *to = t->sw->threads[__builtin_ctz(others)];
		struct handed *slot = handover_slot(t, to);

		if (slot != NULL)
			memcpy(slot->gid, gid, 16);
		if (!handover_bytes(t, to, HANDED_GROUP, NULL, bytes))
			t->stats.drop_handover_full++;
	}
	return true;
}

void
sw_group_deliver_taken(
	struct sw_thread *t, const uint8_t gid[16], const struct handed_bytes *bytes)
{
	const struct sw_group *g = sw_group_find(t->sw, gid);

	if (g != NULL)
		(void)deliver_here(t, g, NULL, bytes);
}
