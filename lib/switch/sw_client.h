/* SPDX-License-Identifier: BSD-3-Clause */
/* Delivery to clients and wake-ups, for lib/switch only, but for the next three. */
#ifndef ROCADE_SWITCH_SW_CLIENT_H
#define ROCADE_SWITCH_SW_CLIENT_H

#include "switch/handover.h"
#include "switch/sw.h"

static inline uint32_t
sw_corrupt_count(const struct sw *sw)
{
	return __atomic_load_n(&sw->corrupt_count, __ATOMIC_RELAXED);
}

/* For any thread. */
static inline bool
sw_client_is_corrupt(const struct sw_client *c)
{
	return __atomic_load_n(&c->corrupt, __ATOMIC_RELAXED);
}

/* Returns where the thread t counts what the client does. */
static inline struct sw_stats *
sw_client_stats(struct sw_client *c, const struct sw_thread *t)
{
	return likely(c->thread == t) ? &c->stats : &c->control_stats;
}

/* Called by route.c, sw_group.c and uplink_rx.c. */

/* Copies a packet into the client's ring; flags: RING_*. */
void sw_client_put(struct sw_client *to, const uint8_t *head, uint32_t head_len,
	const uint8_t *rest, uint32_t len, unsigned flags);

/* Puts a descriptor without a packet into the client's ring. Returns false if there is no room. */
bool sw_client_put_desc(struct sw_client *to, const struct ring_desc *desc);

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

/* Copies a packet into the client's ring, for the thread t: if the client is another thread's, it
 * is handed over. If there is no room, it is lost. */
void sw_client_deliver(
	struct sw_thread *t, struct sw_client *to, const struct handed_bytes *bytes);

/* Returns whether a packet for a client of another thread has to wait: that thread has found the
 * client's ring half full, and holds the senders for as long as sw_client_backpressure() would. */
static inline bool
sw_client_holds(const struct sw_client *to)
{
	return unlikely(__atomic_load_n(&to->holding, __ATOMIC_RELAXED));
}

/* Returns whether the two have the same rights. */
static inline bool
sw_clients_are_of_one_user(const struct sw_client *a, const struct sw_client *b)
{
	return a->uid == b->uid && (!a->shares_uid || a == b);
}

/* Called by sw_take.c: as sw_client_put(), for a packet of another thread. */
void sw_client_put_taken(struct sw_client *to, const uint8_t *bytes, uint32_t len);

/* Called by sw.c. */

/* Shows the clients their new packets, and wakes those that sleep. */
void sw_publish(struct sw_thread *t, uint64_t now);
/* A client that is awake takes its packets by itself as long as the application polls. If
 * it takes nothing for SW_LAG_NS, the application is busy elsewhere, and the client's
 * progress thread is woken to take over. */
void sw_lagging_check(struct sw_thread *t, uint64_t now);
/* Lets senders of other threads go on to clients that have taken packets, or whose time is over. */
void sw_holding_check(struct sw_thread *t);
void sw_client_mark_corrupt(struct sw_client *c);
/* Reads the counters that the client itself writes. */
void sw_client_said_read(const struct sw_client *c, struct sw_stats *stats);

#endif
