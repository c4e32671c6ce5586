/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups of the switch. */
#ifndef ROCADE_SWITCH_SW_GROUP_H
#define ROCADE_SWITCH_SW_GROUP_H

#include "switch/handover.h"
#include "switch/sw.h"

/* Called by proto.c. */

/* Return 0, -ENOSPC or -EINVAL (not a group address, or not joined). Joining twice is
 * fine. */
int sw_group_join(struct sw *sw, uint32_t qpn, const uint8_t gid[16]);
int sw_group_leave(struct sw *sw, uint32_t qpn, const uint8_t gid[16]);
/* Removes the client's QP from all groups. */
void sw_group_forget(struct sw_client *client, uint32_t qpn);

/* Called by sw.c: as sw_group_forget(), for all QPs of a client that has ended, in one scan
 * of the groups, of which each call does a part. Returns whether it is done. */
bool sw_group_forget_some(struct sw *sw, struct sw_client *client);

/* Returns NULL if the group has no members. */
const struct sw_group *sw_group_find(const struct sw *sw, const uint8_t gid[16]);

/* Called by route.c and uplink_rx.c. */

/* Copies the packet to each client that has members of the group, except skip; for those of
 * other threads, once to each thread. A client whose ring is full loses it. Returns false if the
 * group has no members. */
bool sw_group_deliver(struct sw_thread *t, const uint8_t gid[16], struct sw_client *skip,
	const struct handed_bytes *bytes);

/* Called by sw_take.c: the same, to the clients of this thread. */
void sw_group_deliver_taken(
	struct sw_thread *t, const uint8_t gid[16], const struct handed_bytes *bytes);

#endif
