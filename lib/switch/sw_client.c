/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of the switch: delivery into their rings, back-pressure, wake-ups. */
#include <string.h>

#include "switch/sw_client.h"

void
sw_client_mark_corrupt(struct sw_client *c)
{
	c->corrupt = true;
	c->sw->corrupt_count++;
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
	if (unlikely(ring_room(&to->rx) == 0)) {
		if (!ring_prod_refresh(&to->rx))
			sw_client_mark_corrupt(to);
		if (to->corrupt || ring_room(&to->rx) == 0) {
			to->stats.rx_full++;
			return;
		}
	}
	memcpy(buf, head, head_len);
	memcpy(buf + head_len, rest, len - head_len);
	ring_put(&to->rx, &desc);
	to->stats.rx_packets++;
	to->stats.rx_bytes += len;
	if (!to->dirty) {
		to->dirty = true;
		TAILQ_INSERT_TAIL(&to->sw->dirty, to, dirty_link);
	}
}

/* Returns whether a sender of another user has to wait; if not, its packet is lost. */
static bool
other_user_may_wait(struct sw_client *to, uint64_t waited, uint64_t now)
{
	uint32_t taken = to->rx.cons_seen - to->held_cons;
	bool may;

	to->held_cons = to->rx.cons_seen;
	may = waited < SW_BACKPRESSURE_OTHERS_NS && sw_user_hold(to->user, taken, now);
	to->stats.rx_unheld += !may;
	return may;
}

bool
sw_client_ring_full(struct sw_client *to, const struct sw_client *from)
{
	const struct sw *sw = to->sw;
	uint64_t waited;

	if (!to->corrupt && !ring_prod_refresh(&to->rx))
		sw_client_mark_corrupt(to);
	if (to->corrupt || ring_room(&to->rx) != 0)
		return false;
	if (to->rx.cons_seen - to->full_cons >= to->region.geom.rx_slots / 2) {
		to->full_cons = to->rx.cons_seen;
		to->full_ns = sw->now;
	}
	waited = sw->now - to->full_ns;
	if (sw->final_flush)
		return false;
	return to->user == from->user ? waited < SW_BACKPRESSURE_NS
				      : other_user_may_wait(to, waited, sw->now);
}

static void
client_wake(struct sw_client *c)
{
	c->stats.wakeups++;
	c->sw->wake(c->owner);
}

void
sw_publish(struct sw *sw, uint64_t now)
{
	struct sw_client *c;

	while ((c = TAILQ_FIRST(&sw->dirty)) != NULL) {
		TAILQ_REMOVE(&sw->dirty, c, dirty_link);
		c->dirty = false;
		ring_publish(&c->rx);
		if (asleep_wake_wanted(&c->region.client->rx_asleep, &c->woken)) {
			client_wake(c);
		} else if (!c->lagging) {
			c->lagging = true;
			c->seen_cons = c->rx.cons_seen;
			c->seen_ns = now;
			TAILQ_INSERT_TAIL(&sw->lagging, c, lagging_link);
		}
	}
}

void
sw_lagging_check(struct sw *sw, uint64_t now)
{
	struct sw_client *c, *next;

	if (TAILQ_EMPTY(&sw->lagging) || now < sw->lagging_check_ns)
		return;
	sw->lagging_check_ns = now + SW_LAG_NS / 2;
	for (c = TAILQ_FIRST(&sw->lagging); c != NULL; c = next) {
		bool done;

		next = TAILQ_NEXT(c, lagging_link);
		if (!c->corrupt && !ring_prod_refresh(&c->rx))
			sw_client_mark_corrupt(c);
		done = c->corrupt || c->rx.cons_seen == c->rx.published;
		if (!done && c->seen_cons != c->rx.cons_seen) {
			c->seen_cons = c->rx.cons_seen;
			c->seen_ns = now;
		} else if (!done && now - c->seen_ns >= SW_LAG_NS) {
			client_wake(c);
			done = true;
		}
		if (done) {
			c->lagging = false;
			TAILQ_REMOVE(&sw->lagging, c, lagging_link);
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
		client_wake(c);
	}
}
