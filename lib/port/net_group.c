/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast group memberships: when a report is due. A change is reported twice. A query
 * is answered after a random part of the time that it allows (RFC 3376 5.2, RFC 3810
 * 6.2), separately for each group. A query for all groups can cause as many reports as
 * there are groups, so they are sent at a limited rate. While an older querier is
 * present, reports use its version.
 */
#include <errno.h>
#include <string.h>

#include "port/net_state.h"

static bool
group_is_reported(const uint8_t gid[16])
{
	static const uint8_t all_systems[4] = {224, 0, 0, 1};
	static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};

	/* Never reported: the all-hosts groups, and groups of interface-local scope (RFC
	 * 3376 6, RFC 3810 6). */
	if (gid_is_ipv4(gid))
		return memcmp(gid + 12, all_systems, 4) != 0;
	return (gid[1] & 0xf) > 1 && memcmp(gid, all_nodes, 16) != 0;
}

/* xorshift32. The seed is derived from the MAC, so it differs from host to host. */
static uint64_t
random_below(struct net *net, uint64_t bound_ns)
{
	uint32_t x = net->rand;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	net->rand = x;
	return (bound_ns >> 16) * (x >> 16);
}

void
group_table_init(struct net *net)
{
	uint32_t low;

	TAILQ_INIT(&net->groups_due);
	rate_init(&net->report_rate, GROUP_RATE_NS, GROUP_RATE_BURST);
	rate_init(&net->query_rate, GROUP_RATE_NS, GROUP_RATE_BURST);
	memcpy(&low, net->conf.mac + 2, sizeof(low));
	net->rand = low * UINT32_C(2654435761) | 1;
	for (unsigned i = 0; i < NET_GROUPS; i++)
		wheel_timer_init(&net->groups[i].timer);
}

static struct net_group *
net_group_find(struct net *net, const uint8_t gid[16])
{
	for (unsigned i = 0; i < net->group_count; i++) {
		struct net_group *g = &net->groups[i];

		if (g->in_use && memcmp(g->gid, gid, 16) == 0)
			return g;
	}
	return NULL;
}

void
group_mark_due(struct net *net, struct net_group *g)
{
	wheel_cancel(&net->wheel, &g->timer);
	if (g->due && g->urgent)
		TAILQ_REMOVE(&net->groups_due, g, link);
	if (g->urgent)
		TAILQ_INSERT_HEAD(&net->groups_due, g, link);
	else if (!g->due)
		TAILQ_INSERT_TAIL(&net->groups_due, g, link);
	g->due = true;
}

struct net_group *
group_next_report(struct net *net, uint64_t now)
{
	struct net_group *g = TAILQ_FIRST(&net->groups_due);

	if (g == NULL || now < rate_ready_ns(&net->report_rate))
		return NULL;
	rate_take(&net->report_rate, now);
	return g;
}

static void
group_clear_due(struct net *net, struct net_group *g)
{
	if (g->due)
		TAILQ_REMOVE(&net->groups_due, g, link);
	g->due = g->urgent = false;
}

/* Returns a free slot, else that of a group that has been left: the one with the fewest leave
 * reports still to be sent. Without those the routers stop forwarding the group only when a
 * query gets no answer. */
static struct net_group *
group_slot(struct net *net)
{
	struct net_group *left = NULL;

	for (unsigned i = 0; i < net->group_count; i++) {
		struct net_group *g = &net->groups[i];

		if (!g->in_use)
			return g;
		if (g->users == 0 &&
			(left == NULL || g->reports_left < left->reports_left))
			left = g;
	}
	return net->group_count < NET_GROUPS ? &net->groups[net->group_count++] : left;
}

static struct net_group *
group_add(struct net *net, const uint8_t gid[16])
{
	struct net_group *g = group_slot(net);

	if (g == NULL)
		return NULL;
	wheel_cancel(&net->wheel, &g->timer);
	group_clear_due(net, g);
	memcpy(g->gid, gid, 16);
	g->in_use = true;
	g->users = 0;
	g->reports_left = 0;
	return g;
}

/* To be called after the first join or the last leave. Schedules the reports of the
 * change. */
static void
net_group_changed(struct net *net, struct net_group *g)
{
	if (net->conf.other_stack || !group_is_reported(g->gid)) {
		g->in_use = g->users != 0;
		return;
	}
	g->reports_left = GROUP_ROBUSTNESS;
	g->urgent = true;
	group_mark_due(net, g);
}

static int
group_join(struct net *net, const uint8_t gid[16])
{
	struct net_group *g = net_group_find(net, gid);

	if (g == NULL)
		g = group_add(net, gid);
	if (g == NULL || g->users == UINT16_MAX)
		return -ENOSPC;
	if (g->users++ == 0)
		net_group_changed(net, g);
	return 0;
}

static int
group_leave(struct net *net, const uint8_t gid[16])
{
	struct net_group *g = net_group_find(net, gid);

	if (g == NULL || g->users == 0)
		return -EINVAL;
	if (--g->users == 0)
		net_group_changed(net, g);
	return 0;
}

int
net_join(struct net *net, const uint8_t gid[16])
{
	int rc;

	if (!gid_is_multicast(gid))
		return -EINVAL;
	rte_ticketlock_lock(&net->lock);
	rc = group_join(net, gid);
	net_deadline_update(net);
	rte_ticketlock_unlock(&net->lock);
	return rc;
}

int
net_leave(struct net *net, const uint8_t gid[16])
{
	int rc;

	rte_ticketlock_lock(&net->lock);
	rc = group_leave(net, gid);
	net_deadline_update(net);
	rte_ticketlock_unlock(&net->lock);
	return rc;
}

void
group_join_nodes(struct net *net, const struct net_conf *conf)
{
	uint8_t gid[16];

	for (unsigned i = 0; i < conf->addr_count; i++) {
		if (gid_is_ipv4(conf->addr[i].gid))
			continue;
		gid_solicited_node(conf->addr[i].gid, gid);
		(void)group_join(net, gid);
	}
}

void
group_leave_nodes(struct net *net, const struct net_conf *conf)
{
	uint8_t gid[16];

	for (unsigned i = 0; i < conf->addr_count; i++) {
		if (gid_is_ipv4(conf->addr[i].gid))
			continue;
		gid_solicited_node(conf->addr[i].gid, gid);
		(void)group_leave(net, gid);
	}
}

void
group_announce(struct net *net)
{
	for (unsigned i = 0; i < net->group_count; i++) {
		struct net_group *g = &net->groups[i];

		if (g->in_use && g->users != 0)
			net_group_changed(net, g);
	}
}

static uint8_t
querier_version(struct group_proto *p, uint64_t now)
{
	if (now >= p->until_ns)
		p->version = 0;
	return p->version;
}

enum group_report_type
group_report_due(struct net *net, struct net_group *g, uint8_t *version, uint64_t now)
{
	enum group_report_type type = g->users == 0          ? GROUP_LEAVES
				      : g->reports_left != 0 ? GROUP_JOINS
							     : GROUP_CURRENT_STATE;

	group_clear_due(net, g);
	*version = querier_version(gid_is_ipv4(g->gid) ? &net->igmp : &net->mld, now);
	g->reports_left -= g->reports_left != 0;
	/* The older protocols have a single kind of report, and send one leave
	 * message. */
	if (*version != 0 && type == GROUP_LEAVES)
		g->reports_left = 0;
	if (g->reports_left != 0)
		wheel_set(&net->wheel, &g->timer,
			now + random_below(net, GROUP_REPORT_INTERVAL_NS));
	else if (g->users == 0)
		g->in_use = false;
	return type;
}

enum drop_reason
group_query_rx(struct net *net, const uint8_t *gid, bool ipv4, uint8_t version,
	uint64_t max_ns, uint64_t now)
{
	struct group_proto *p = ipv4 ? &net->igmp : &net->mld;

	if (net->conf.other_stack)
		return DROP_none;
	if (now < rate_ready_ns(&net->query_rate))
		return DROP_membership_rate;
	rate_take(&net->query_rate, now);
	if (version != 0 && (querier_version(p, now) == 0 || version <= p->version)) {
		p->version = version;
		p->until_ns = now + GROUP_OLDER_QUERIER_NS;
	}
	for (unsigned i = 0; i < net->group_count; i++) {
		struct net_group *g = &net->groups[i];
		uint64_t when;

		if (!g->in_use || g->users == 0 || gid_is_ipv4(g->gid) != ipv4 ||
			!group_is_reported(g->gid) ||
			(gid != NULL && memcmp(g->gid, gid, 16) != 0))
			continue;
		/* The querier drops the group if its report is late. */
		g->urgent |= gid != NULL;
		if (g->due) {
			group_mark_due(net, g);
			continue;
		}
		when = now + random_below(net, max_ns);
		/* A report that is due earlier serves as the answer. */
		if (when < g->timer.when_ns)
			wheel_set(&net->wheel, &g->timer, when);
	}
	return DROP_none;
}

void
group_report_rx(struct net *net, const uint8_t gid[16], uint64_t now)
{
	struct net_group *g = net_group_find(net, gid);
	struct group_proto *p = gid_is_ipv4(gid) ? &net->igmp : &net->mld;

	/* With the older protocols one host's report is enough (RFC 2236 3). In the
	 * newest version every host reports. */
	if (g != NULL && querier_version(p, now) != 0 && g->reports_left == 0 &&
		g->users != 0 && !g->due)
		wheel_cancel(&net->wheel, &g->timer);
}

unsigned
net_group_macs(struct net *net, uint8_t (*macs)[6], unsigned n)
{
	static const uint8_t all[2][6] = {
		{0x01, 0x00, 0x5e, 0, 0, 1}, {0x33, 0x33, 0, 0, 0, 1}};
	unsigned count = 0;

	for (; count < 2 && count < n; count++)
		memcpy(macs[count], all[count], 6);
	rte_ticketlock_lock(&net->lock);
	for (unsigned i = 0; i < net->group_count && count < n; i++) {
		const struct net_group *g = &net->groups[i];
		unsigned same = 0;

		if (!g->in_use || g->users == 0)
			continue;
		gid_multicast_mac(g->gid, macs[count]);
		while (memcmp(macs[same], macs[count], 6) != 0)
			same++;
		count += same == count;
	}
	rte_ticketlock_unlock(&net->lock);
	return count;
}
