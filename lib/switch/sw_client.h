/* SPDX-License-Identifier: BSD-3-Clause */
/* Delivery to clients and wake-ups, for lib/switch only. */
#ifndef ROCADE_SWITCH_SW_CLIENT_H
#define ROCADE_SWITCH_SW_CLIENT_H

#include "switch/sw.h"

/* Called by route.c, sw_group.c and uplink_rx.c. */

/* Copies a packet into the client's ring; flags: RING_*. */
void sw_client_put(struct sw_client *to, const uint8_t *head, uint32_t head_len,
	const uint8_t *rest, uint32_t len, unsigned flags);

/*
 * Plays the part of link-level flow control. Senders wait for a receiver that is slow for
 * a moment, for example because its process is not scheduled, so that it loses nothing. A
 * receiver that takes less than half a ring in SW_BACKPRESSURE_NS is not waited for again
 * until it has taken that much. So a client that never drains delays its senders once,
 * and then loses packets. Senders of other users wait for less time, which is charged to
 * the receiver's user. Returns whether a packet for the client, whose ring looks full,
 * must wait.
 */
bool sw_client_ring_full(struct sw_client *to, const struct sw_client *from);

/* Returns whether the sender has to wait for room in the client's ring. */
static inline bool
sw_client_backpressure(struct sw_client *to, const struct sw_client *from)
{
	return unlikely(ring_room(&to->rx) == 0) && sw_client_ring_full(to, from);
}

/* Called by sw.c. */

/* Shows the clients their new packets, and wakes those that sleep. */
void sw_publish(struct sw *sw, uint64_t now);
/* A client that is awake takes its packets by itself as long as the application polls. If
 * it takes nothing for SW_LAG_NS, the application is busy elsewhere, and the client's
 * progress thread is woken to take over. */
void sw_lagging_check(struct sw *sw, uint64_t now);
void sw_client_mark_corrupt(struct sw_client *c);

#endif
