/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Control calls on multicast groups: which UD QPs are attached (IBA 10.5). Attaching also
 * joins the group on the port's link. */
#include <errno.h>
#include <string.h>

#include "engine/dev_control.h"
#include "engine/mcast_group.h"

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

/* With the lock of the device: what the daemon and the engines know of a group changes in one step, also if
 * two threads attach and detach the QP. */
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
	pthread_mutex_lock(&dev->lock);
	rc = dev_hook_group(dev, qp, gid, true);
	if (rc == 0) {
		dev_engines_lock(dev);
		rc = group_attach(dev, qp, gid);
		dev_engines_unlock(dev);
		dev_filter_set(dev);
		/* A QP that was attached before is not refused. */
		if (rc != 0)
			(void)dev_hook_group(dev, qp, gid, false);
	}
	pthread_mutex_unlock(&dev->lock);
	return rc == -ENOSPC ? -ENOMEM : rc;
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
	if (rc == 0)
		(void)dev_hook_group(dev, qp, gid, false);
	pthread_mutex_unlock(&dev->lock);
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
