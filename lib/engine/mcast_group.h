/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Lookup of a multicast group, for delivery (engine_mcast.c) and attachment
 * (dev_mcast.c). With an engine lock held. */
#ifndef ROCADE_ENGINE_MCAST_GROUP_H
#define ROCADE_ENGINE_MCAST_GROUP_H

#include "engine/dev.h"

static inline struct group_list *
group_bucket(struct dev *dev, const uint8_t gid[16])
{
	/* Groups differ in the last bytes. */
	return &dev->groups[(gid[15] ^ gid[14] * 7u ^ gid[13] * 31u) % DEV_GROUP_BUCKETS];
}

static inline struct mcast_group *
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

#endif
