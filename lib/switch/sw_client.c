/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of the switch: delivery into their rings, back-pressure, wake-ups. */
#include <string.h>

#include "switch/sw_client.h"

void
sw_client_mark_corrupt(struct sw_client *c)
{
	__atomic_store_n(&c->corrupt, true, __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->sw->corrupt_count, 1, __ATOMIC_RELAXED);
}

/* Returns whether there is room in the client's ring. */
static bool
rx_has_room(struct sw_client *to)
{
	if (likely(ring_room(&to->rx) != 0))
		return true;
	if (!ring_prod_refresh(&to->rx))
		sw_client_mark_corrupt(to);
	return !to->corrupt && ring_room(&to->rx) != 0;
}

/* To be published. */
static void
mark_dirty(struct sw_client *to)
{
	if (to->dirty)
		return;
	to->dirty = true;
	TAILQ_INSERT_TAIL(&to->thread->dirty, to, dirty_link);
}

bool
sw_client_put_desc(struct sw_client *to, const struct ring_desc *desc)
{
	if (to->corrupt || !rx_has_room(to))
		return false;
	ring_put(&to->rx, desc);
	mark_dirty(to);
	return true;
}

void
sw_client_put(struct sw_client *to, const uint8_t *head, uint32_t head_len,
	const uint8_t *rest, uint32_t len, unsigned flags)
{
	struct ring_desc desc = {.buf = to->rx.prod & to->rx.mask,
		.len = (uint16_t)len,
		.flags = (uint16_t)flags};
	uint8_t *buf = region_rx_buf(&to->region, desc.buf);

	if (unlikely(to->corrupt || len > to->region.geom.buf_size))
		return;
	if (unlikely(!rx_has_room(to))) {
		to->stats.rx_full++;
		return;
	}
	memcpy(buf, head, head_len);
	memcpy(buf + head_len, rest, len - head_len);
	ring_put(&to->rx, &desc);
	to->stats.rx_packets++;
	to->stats.rx_bytes += len;
	mark_dirty(to);
}

/* Returns whether a sender of another user has to wait. */
static bool
other_user_may_wait(struct sw_client *to, uint64_t waited, uint64_t now)
{
	struct sw_hold *hold = &to->user->holds[to->thread->index];
	uint32_t taken = to->rx.cons_seen - to->held_cons;

	to->held_cons = to->rx.cons_seen;
	return waited < SW_BACKPRESSURE_OTHERS_NS && sw_user_hold(hold, taken, now);
}

/* Returns for how long the client's ring has blocked senders. */
static uint64_t
full_for(struct sw_client *to, uint64_t now)
{
	if (to->rx.cons_seen - to->full_cons >= to->region.geom.rx_slots / 2) {
		to->full_cons = to->rx.cons_seen;
		to->full_ns = now;
	}
	return now - to->full_ns;
}

bool
sw_client_ring_full(struct sw_client *to, const struct sw_client *from)
{
	const struct sw_thread *t = to->thread;
	uint64_t waited;
	bool may;

	if (!to->corrupt && !ring_prod_refresh(&to->rx))
		sw_client_mark_corrupt(to);
	if (to->corrupt || ring_room(&to->rx) != 0)
		return false;
	waited = full_for(to, t->now);
	if (t->final_flush)
		return false;
	if (to == from || (to->user == from->user && !to->shares_uid))
		return waited < SW_BACKPRESSURE_NS;
	may = other_user_may_wait(to, waited, t->now);
	to->stats.rx_unheld += !may;
	return may;
}

/* ---- Senders of other threads ---- */

/* Returns whether the client's ring is half full. The other half is for what is on its way. */
static bool
is_half_full(const struct sw_client *c)
{
	return ring_room(&c->rx) < c->region.geom.rx_slots / 2;
}

/* Returns whether senders of other threads have to wait. Which users they are of is not known:
 * they wait like those of other users. */
static bool
may_hold(struct sw_client *c)
{
	uint64_t now = c->thread->now;

	if (!c->corrupt && !ring_prod_refresh(&c->rx))
		sw_client_mark_corrupt(c);
	return !c->corrupt && is_half_full(c) &&
	       other_user_may_wait(c, full_for(c, now), now);
}

void
sw_client_put_taken(struct sw_client *to, const uint8_t *bytes, uint32_t len)
{
	sw_client_put(to, bytes, len, bytes + len, len, RING_CKSUM_OK);
	/* No sender waits for a client that dumps (sw_dump.h). */
	if (likely(to->holding || !is_half_full(to)) || to->dumps || !may_hold(to))
		return;
	TAILQ_INSERT_TAIL(&to->thread->holding, to, holding_link);
	__atomic_store_n(&to->holding, true, __ATOMIC_RELAXED);
}

void
sw_holding_check(struct sw_thread *t)
{
	struct sw_client *c, *next;

	for (c = TAILQ_FIRST(&t->holding); c != NULL; c = next) {
		next = TAILQ_NEXT(c, holding_link);
		if (may_hold(c))
			continue;
		TAILQ_REMOVE(&t->holding, c, holding_link);
		__atomic_store_n(&c->holding, false, __ATOMIC_RELAXED);
	}
}

void
sw_client_deliver(
	struct sw_thread *t, struct sw_client *to, const struct handed_bytes *bytes)
{
	if (likely(to->thread == t))
		sw_client_put(to, bytes->head, bytes->head_len, bytes->rest, bytes->len,
			RING_CKSUM_OK);
	else if (!handover_bytes(t, to->thread, HANDED_DELIVER, to, bytes))
		t->stats.drop_handover_full++;
}

/* ---- Wake-ups ---- */

static void
client_wake(struct sw_client *c, const struct sw_thread *t, const uint32_t *futex)
{
	sw_client_stats(c, t)->wakeups++;
	c->sw->wake(c->owner, futex);
}

void
sw_publish(struct sw_thread *t, uint64_t now)
{
	struct sw_client *c;

	while ((c = TAILQ_FIRST(&t->dirty)) != NULL) {
		TAILQ_REMOVE(&t->dirty, c, dirty_link);
		c->dirty = false;
		ring_publish(&c->rx);
		if (asleep_wake_wanted(&c->region.client->rx_asleep, &c->woken)) {
			client_wake(c, t,
				asleep_by_futex(c->woken) ? &c->region.daemon->rx_prod
							  : NULL);
		} else if (!c->lagging) {
			c->lagging = true;
			c->seen_cons = c->rx.cons_seen;
			c->seen_ns = now;
			TAILQ_INSERT_TAIL(&t->lagging, c, lagging_link);
		}
	}
}

void
sw_lagging_check(struct sw_thread *t, uint64_t now)
{
	struct sw_client *c, *next;

	if (TAILQ_EMPTY(&t->lagging) || now < t->lagging_check_ns)
		return;
	t->lagging_check_ns = now + SW_LAG_NS / 2;
	for (c = TAILQ_FIRST(&t->lagging); c != NULL; c = next) {
		bool done;

		next = TAILQ_NEXT(c, lagging_link);
		if (!c->corrupt && !ring_prod_refresh(&c->rx))
			sw_client_mark_corrupt(c);
		done = c->corrupt || c->rx.cons_seen == c->rx.published;
		if (!done && c->seen_cons != c->rx.cons_seen) {
			c->seen_cons = c->rx.cons_seen;
			c->seen_ns = now;
		} else if (!done && now - c->seen_ns >= SW_LAG_NS) {
			client_wake(c, t, NULL);
			done = true;
		}
		if (done) {
			c->lagging = false;
			TAILQ_REMOVE(&t->lagging, c, lagging_link);
		}
	}
}

void
sw_changed(struct sw *sw, bool link_up)
{
	struct sw_client *c;

	TAILQ_FOREACH (c, &sw->clients, link) {
		struct region_daemon *head = c->region.daemon;

		__atomic_store_n(&head->link_down, !link_up, __ATOMIC_RELAXED);
		/* Pairs with the acquire in device_changed() of the client's progress
		 * thread. */
		__atomic_store_n(&head->changes, ++c->changes, __ATOMIC_RELEASE);
		client_wake(c, sw->threads[0], NULL);
	}
}

void
sw_client_said_read(const struct sw_client *c, struct sw_stats *stats)
{
	const struct region_client *head = c->region.client;
	const struct impair_stats *impaired = &head->impaired;

	stats->pair_packets = __atomic_load_n(&head->pair_packets, __ATOMIC_RELAXED);
	stats->pair_bytes = __atomic_load_n(&head->pair_bytes, __ATOMIC_RELAXED);
	stats->impair_lost = __atomic_load_n(&impaired->lost, __ATOMIC_RELAXED);
	stats->impair_duplicated =
		__atomic_load_n(&impaired->duplicated, __ATOMIC_RELAXED);
	stats->impair_reordered = __atomic_load_n(&impaired->reordered, __ATOMIC_RELAXED);
	stats->impair_corrupted = __atomic_load_n(&impaired->corrupted, __ATOMIC_RELAXED);
}
