/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups: the UD QPs attached to each, and delivery of their packets (IBA 10.5,
 * annex A17.9). Attaching also joins the group on the port's link. */
#include <errno.h>
#include <string.h>

#include "engine/engine_internal.h"

static struct group_list *
group_bucket(struct dev *dev, const uint8_t gid[16])
{
	/* Groups differ in the last bytes. */
	return &dev->groups[(gid[15] ^ gid[14] * 7u ^ gid[13] * 31u) % DEV_GROUP_BUCKETS];
}

static struct mcast_group *
dev_group_find(struct dev *dev, const uint8_t gid[16])
{
	struct mcast_group *group;

	LIST_FOREACH(group, group_bucket(dev, gid), link)
	{
		if (memcmp(group->gid, gid, 16) == 0)
			return group;
	}
	return NULL;
}

static struct mcast_member *
group_member_find(const struct mcast_group *group, const struct qp *qp)
{
	struct mcast_member *m;

	LIST_FOREACH(m, &group->members, link)
	{
		if (m->qp == qp)
			return m;
	}
	return NULL;
}

/* ---- Packets ---- */

/* Hands a copy in a buffer of its own to another engine, which releases it. */
static void
copy_hand_off(struct engine *e, struct engine *owner, const struct pkt *pkt)
{
	struct pkt copy;

	if (e->io.queue.ops->tx_alloc(e->io.queue.queue, &copy, 1) == 0) {
		e->stats.tx_no_buffer++;
		return;
	}
	if (copy.room >= pkt->len) {
		memcpy(copy.data, pkt->data, pkt->len);
		copy.len = pkt->len;
		copy.flags = pkt->flags | PKT_GROUP_COPY;
		if (engine_hand_off(e, owner, &copy))
			return;
	}
	e->io.queue.ops->tx_release(e->io.queue.queue, &copy, 1);
}

static void
group_deliver(struct engine *e, const struct mcast_group *group, const struct pkt *pkt,
	const struct pkt_view *view, const struct qp *sender, uint64_t now)
{
	struct mcast_member *m;
	uint32_t others = 0;

	static_assert(DEV_MAX_ENGINES <= 32, "a bit each");
	LIST_FOREACH(m, &group->members, link)
	{
		if (m->qp == sender)
			continue;
		if (m->qp->sched.engine != e) {
			others |= UINT32_C(1) << m->qp->sched.engine->index;
			continue;
		}
		qp_rx(m->qp, view, now);
		engine_schedule(e, m->qp);
	}
	if (pkt->flags & PKT_GROUP_COPY)
		return;
	for (; others != 0; others &= others - 1)
		copy_hand_off(e, e->dev->engines[__builtin_ctz(others)], pkt);
}

bool
engine_group_rx(struct engine *e, const struct pkt *pkt, const struct pkt_view *view,
	const struct qp *sender, uint64_t now)
{
	struct mcast_group *group;
	uint8_t gid[16], src[16];

	view_gids(view, src, gid);
	group = dev_group_find(e->dev, gid);
	if (group == NULL)
		return false;
	group_deliver(e, group, pkt, view, sender, now);
	return true;
}

void
engine_group_tx(struct engine *e, const struct qp *qp, const struct pkt *pkts, unsigned n,
	uint64_t now)
{
	struct mcast_group *group = dev_group_find(e->dev, qp->path.dgid);

	for (unsigned i = 0; group != NULL && i < n; i++) {
		struct pkt_view view;

		if (pkt_parse(&pkts[i], e->vlan, &view) == DROP_none &&
			view.dest_qpn == QPN_MULTICAST)
			group_deliver(e, group, &pkts[i], &view, qp, now);
	}
}

/* ---- Attaching ---- */

/* Returns the group, which is created if need be; NULL: no memory, or too many groups. */
static struct mcast_group *
group_get(struct dev *dev, const uint8_t gid[16])
{
	struct mcast_group *group = dev_group_find(dev, gid);

	if (group != NULL || dev->group_count == DEV_MAX_GROUPS)
		return group;
	group = alloc_get(&alloc_plain, "group", sizeof(*group));
	if (group == NULL)
		return NULL;
	if (net_join(dev->net, gid) != 0) {
		alloc_put(&alloc_plain, group, sizeof(*group));
		return NULL;
	}
	memcpy(group->gid, gid, 16);
	LIST_INSERT_HEAD(group_bucket(dev, gid), group, link);
	dev->group_count++;
	return group;
}

static void
group_put(struct dev *dev, struct mcast_group *group)
{
	if (group->count != 0)
		return;
	(void)net_leave(dev->net, group->gid);
	LIST_REMOVE(group, link);
	dev->group_count--;
	alloc_put(&alloc_plain, group, sizeof(*group));
}

/* With all engine locks held. */
static int
group_attach(struct dev *dev, struct qp *qp, const uint8_t gid[16])
{
	struct mcast_group *group = group_get(dev, gid);
	struct mcast_member *m;

	if (group == NULL)
		return -ENOMEM;
	if (group_member_find(group, qp) != NULL)
		return 0;
	m = group->count < DEV_MAX_MEMBERS && dev->attached_count < DEV_MAX_ATTACHED
		    ? alloc_get(&alloc_plain, "member", sizeof(*m))
		    : NULL;
	if (m == NULL) {
		group_put(dev, group);
		return -ENOMEM;
	}
	m->qp = qp;
	LIST_INSERT_HEAD(&group->members, m, link);
	group->count++;
	dev->attached_count++;
	qp->groups++;
	return 0;
}

static int
group_detach(struct dev *dev, struct qp *qp, const uint8_t gid[16])
{
	struct mcast_group *group = dev_group_find(dev, gid);
	struct mcast_member *m = group != NULL ? group_member_find(group, qp) : NULL;

	if (m == NULL)
		return -EINVAL;
	LIST_REMOVE(m, link);
	alloc_put(&alloc_plain, m, sizeof(*m));
	group->count--;
	dev->attached_count--;
	qp->groups--;
	group_put(dev, group);
	return 0;
}

void
dev_filter_set(struct dev *dev)
{
	uint8_t macs[NET_MAX_MACS][6];

	if (dev->port.ops->set_groups != NULL)
		dev->port.ops->set_groups(dev->port.drv, (const uint8_t(*)[6])macs,
			net_group_macs(dev->net, macs, NET_MAX_MACS));
}

static int
dev_hook_group(struct dev *dev, const struct qp *qp, const uint8_t gid[16], bool join)
{
	const struct dev_hooks *hooks = dev->conf.hooks;

	return hooks == NULL ? 0 : hooks->group(dev->conf.hooks_arg, qp->qpn, gid, join);
}

int
dev_qp_attach(struct dev *dev, struct qp *qp, const uint8_t gid[16])
{
	int rc;

	if (qp->type != IBV_QPT_UD || !gid_is_multicast(gid))
		return -EINVAL;
	rc = dev_hook_group(dev, qp, gid, true);
	if (rc != 0)
		return rc;
	pthread_mutex_lock(&dev->lock);
	dev_engines_lock(dev);
	rc = group_attach(dev, qp, gid);
	dev_engines_unlock(dev);
	dev_filter_set(dev);
	pthread_mutex_unlock(&dev->lock);
	return rc;
}

int
dev_qp_detach(struct dev *dev, struct qp *qp, const uint8_t gid[16])
{
	int rc;

	pthread_mutex_lock(&dev->lock);
	dev_engines_lock(dev);
	rc = group_detach(dev, qp, gid);
	dev_engines_unlock(dev);
	dev_filter_set(dev);
	pthread_mutex_unlock(&dev->lock);
	if (rc == 0)
		(void)dev_hook_group(dev, qp, gid, false);
	return rc;
}

bool
dev_qp_attached(struct dev *dev, const struct qp *qp)
{
	bool attached;

	pthread_mutex_lock(&dev->lock);
	attached = qp->groups != 0;
	pthread_mutex_unlock(&dev->lock);
	return attached;
}
