/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of the switch, the packet rate limit, and one pass over all clients. */
#include <errno.h>
#include <string.h>

#include "base/base_alloc.h"
#include "switch/uplink.h"

#define RATE_BURST_NS (10 * NS_PER_MS) /* the packet rate is averaged over this time */

const struct sw_stat_row sw_stat_rows[SW_STAT_COUNT] = {
#define SW_STAT(name, text) {#name, text},
#define SW_DROP(name, text) {"drop_" #name, text},
#include "switch/sw_stats.def"
};

static bool
conf_ok(const struct sw_conf *conf)
{
	return conf->max_clients != 0 && conf->net.addr_count != 0 &&
	       conf->net.addr_count <= NET_MAX_ADDRS && conf->limits.qps != 0 &&
	       region_geom_ok(&conf->limits.geom);
}

int
sw_create(const struct sw_conf *conf, void (*wake)(void *owner), struct sw **out)
{
	struct sw *sw;
	int rc;

	if (!conf_ok(conf))
		return -EINVAL;
	sw = alloc_get(&alloc_plain, "switch", sizeof(*sw));
	if (sw == NULL)
		return -ENOMEM;
	rc = qpns_init(&sw->qpns, conf->qpn_base, conf->qpn_count);
	if (rc != 0) {
		alloc_put(&alloc_plain, sw, sizeof(*sw));
		return rc;
	}
	sw->conf = *conf;
	sw->wake = wake;
	sw->next_id = 1;
	TAILQ_INIT(&sw->clients);
	TAILQ_INIT(&sw->dirty);
	TAILQ_INIT(&sw->lagging);
	*out = sw;
	return 0;
}

void
sw_destroy(struct sw *sw)
{
	assert(sw->client_count == 0 && sw->up == NULL);
	for (unsigned i = 0; i < SW_GROUPS; i++)
		alloc_put(&alloc_plain, sw->groups[i].qpns,
			SW_GROUP_MEMBERS * sizeof(uint32_t));
	qpns_fini(&sw->qpns);
	alloc_put(&alloc_plain, sw, sizeof(*sw));
}

bool
sw_is_local(const struct sw *sw, const uint8_t gid[16])
{
	for (unsigned i = 0; i < sw->conf.net.addr_count; i++) {
		if (memcmp(sw->conf.net.addr[i].gid, gid, 16) == 0)
			return true;
	}
	return false;
}

int
sw_client_add(struct sw *sw, const struct region_geom *geom, void *mem, void *owner,
	struct sw_client **out)
{
	struct sw_client *c;

	if (!region_geom_ok(geom))
		return -EINVAL;
	if (sw->client_count == sw->conf.max_clients)
		return -ENOSPC;
	c = alloc_get(&alloc_plain, "client", sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->sw = sw;
	c->owner = owner;
	c->id = sw->next_id++;
	region_init(&c->region, mem, geom);
	ring_cons_init(
		&c->tx, &c->region.head->tx, c->region.tx_desc, c->region.geom.tx_slots);
	ring_prod_init(
		&c->rx, &c->region.head->rx, c->region.rx_desc, c->region.geom.rx_slots);
	/* so that a ring that is full for the first time blocks senders */
	c->full_cons = 0u - c->region.geom.rx_slots / 2;
	c->region.head->link_down = sw->up != NULL && !sw->up->link_up;
	TAILQ_INSERT_TAIL(&sw->clients, c, link);
	sw->client_count++;
	*out = c;
	return 0;
}

static void
stats_add(struct sw_stats *to, const struct sw_stats *from)
{
	uint64_t *sum = (uint64_t *)to;
	const uint64_t *more = (const uint64_t *)from;

	for (size_t i = 0; i < SW_STAT_COUNT; i++)
		sum[i] += more[i];
}

static __attribute__((cold)) void
client_mark_corrupt(struct sw_client *c)
{
	c->corrupt = true;
	c->sw->corrupt_count++;
}

/* Time per packet at the client's rate limit; 0: it has none. */
static uint64_t
packet_share_ns(const struct sw_client *c)
{
	uint32_t rate = c->sw->conf.limits.packets_per_s;

	return likely(rate == 0) ? 0 : RTE_MAX(NS_PER_SEC / rate, UINT64_C(1));
}

/* Bounds what a client may send at once after it was idle: the packets of
 * RATE_BURST_NS. */
static void
rate_credit_bound(struct sw_client *c, uint64_t now)
{
	uint64_t from = now - RTE_MIN(now, RATE_BURST_NS);

	if (c->rate_ns < from)
		c->rate_ns = from;
}

/* Returns how many packets the client may send now. */
static uint32_t
packets_allowed(struct sw_client *c, uint32_t want, uint64_t now)
{
	uint64_t each = packet_share_ns(c);
	uint64_t may;

	if (likely(each == 0))
		return want;
	rate_credit_bound(c, now);
	may = c->rate_ns >= now ? 0 : (now - c->rate_ns) / each;
	if (may < want)
		c->stats.throttled++;
	return (uint32_t)RTE_MIN(may, (uint64_t)want);
}

void
sw_client_flush(struct sw_client *client)
{
	uint64_t now = client->sw->now, each = packet_share_ns(client);
	uint32_t n;

	/* The flush may exceed the packet rate. The next one is refused until the rate
	 * has made up for the excess. */
	if (client->corrupt || (each != 0 && client->rate_ns > now) ||
		!ring_cons_refresh(&client->tx))
		return;
	n = ring_count(&client->tx);
	rate_credit_bound(client, now);
	client->rate_ns += n * each;
	client->sw->final_flush = true;
	for (uint32_t i = 0; i < n; i++) {
		struct ring_desc desc = ring_peek(&client->tx, i);

		/* The packet is not offered again. */
		if (!sw_forward(client, &desc))
			client->stats.drop_port_full++;
	}
	client->sw->final_flush = false;
	ring_release(&client->tx, n);
}

void
sw_client_remove(struct sw_client *client)
{
	struct sw *sw = client->sw;
	struct qpns *t = &sw->qpns;

	sw_client_flush(client);
	sw_group_forget_all(sw, client);
	for (uint32_t i = 0; i <= t->mask && client->qps != 0; i++) {
		if (t->qps[i].owner != client)
			continue;
		qpns_give(t, t->base + i);
		client->qps--;
	}
	if (client->dirty)
		TAILQ_REMOVE(&sw->dirty, client, dirty_link);
	if (client->lagging)
		TAILQ_REMOVE(&sw->lagging, client, lagging_link);
	TAILQ_REMOVE(&sw->clients, client, link);
	sw->client_count--;
	stats_add(&sw->departed, &client->stats);
	alloc_put(&alloc_plain, client, sizeof(*client));
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
			client_mark_corrupt(to);
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

/*
 * Plays the part of link-level flow control. Senders wait for a receiver that is slow for
 * a moment, for example because its process is not scheduled, so that it loses nothing. A
 * receiver that takes less than half a ring in SW_BACKPRESSURE_NS is not waited for again
 * until it has taken that much. So a client that never drains delays its senders once,
 * and then loses packets.
 */
bool
sw_client_backpressure(struct sw_client *to)
{
	const struct sw *sw = to->sw;

	if (!to->corrupt && !ring_prod_refresh(&to->rx))
		client_mark_corrupt(to);
	if (to->corrupt || ring_room(&to->rx) != 0)
		return false;
	if (to->rx.cons_seen - to->full_cons >= to->region.geom.rx_slots / 2) {
		to->full_cons = to->rx.cons_seen;
		to->full_ns = sw->now;
	}
	return !sw->final_flush && sw->now - to->full_ns < SW_BACKPRESSURE_NS;
}

static void
client_wake(struct sw_client *c)
{
	c->stats.wakeups++;
	c->notified = true;
	c->sw->wake(c->owner);
}

/* Shows the clients their new packets, and wakes those that sleep. */
static void
publish_all(struct sw *sw, uint64_t now)
{
	struct sw_client *c;

	while ((c = TAILQ_FIRST(&sw->dirty)) != NULL) {
		TAILQ_REMOVE(&sw->dirty, c, dirty_link);
		c->dirty = false;
		ring_publish(&c->rx);
		if (ring_wake_wanted(&c->region.head->rx_asleep)) {
			client_wake(c);
		} else if (!c->lagging) {
			c->lagging = true;
			c->notified = false;
			c->seen_cons = c->rx.cons_seen;
			c->seen_ns = now;
			TAILQ_INSERT_TAIL(&sw->lagging, c, lagging_link);
		}
	}
}

/*
 * A client that is awake takes its packets by itself as long as the application polls. If
 * it takes nothing for SW_LAG_NS, the application is busy elsewhere, and the client's
 * progress thread is woken to take over.
 */
static void
lagging_check(struct sw *sw, uint64_t now)
{
	struct sw_client *c, *next;

	if (TAILQ_EMPTY(&sw->lagging) || now < sw->lagging_check_ns)
		return;
	sw->lagging_check_ns = now + SW_LAG_NS / 2;
	for (c = TAILQ_FIRST(&sw->lagging); c != NULL; c = next) {
		bool done;

		next = TAILQ_NEXT(c, lagging_link);
		if (!c->corrupt && !ring_prod_refresh(&c->rx))
			client_mark_corrupt(c);
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

static unsigned
client_tx_serve(struct sw_client *c, uint64_t now)
{
	uint32_t n, sent;

	if (unlikely(c->corrupt))
		return 0;
	if (ring_count(&c->tx) == 0) {
		if (unlikely(!ring_cons_refresh(&c->tx)))
			client_mark_corrupt(c);
		if (unlikely(c->corrupt) || ring_count(&c->tx) == 0)
			return 0;
	}
	n = packets_allowed(c, RTE_MIN(ring_count(&c->tx), SW_BURST + 0u), now);
	for (sent = 0; sent < n; sent++) {
		struct ring_desc desc = ring_peek(&c->tx, sent);

		if (sent + 1 < n) {
			uint32_t buf =
				c->tx.desc[(c->tx.cons + sent + 1) & c->tx.mask].buf;

			if (buf < c->region.geom.tx_bufs)
				__builtin_prefetch(region_tx_buf(&c->region, buf));
		}
		if (unlikely(!sw_forward(c, &desc)))
			break;
	}
	c->rate_ns += sent * packet_share_ns(c);
	if (sent != 0)
		ring_release(&c->tx, sent);
	return sent;
}

unsigned
sw_run(struct sw *sw, uint64_t now)
{
	unsigned moved = 0;
	struct sw_client *c;

	sw->now = now;
	TAILQ_FOREACH (c, &sw->clients, link) {
		moved += client_tx_serve(c, now);
		/* At once, so that receivers work while the next client is served. */
		if (!TAILQ_EMPTY(&sw->dirty))
			publish_all(sw, now);
	}
	if (!TAILQ_EMPTY(&sw->dirty)) /* marked by a flush between passes */
		publish_all(sw, now);
	lagging_check(sw, now);
	return moved;
}

void
sw_changed(struct sw *sw, bool link_up)
{
	struct sw_client *c;

	TAILQ_FOREACH (c, &sw->clients, link) {
		struct region_head *head = c->region.head;

		__atomic_store_n(&head->link_down, !link_up, __ATOMIC_RELAXED);
		/* Pairs with the acquire in device_changed() of the client's progress
		 * thread. */
		__atomic_store_n(&head->changes, ++c->changes, __ATOMIC_RELEASE);
		client_wake(c);
	}
}

void
sw_set_net(struct sw *sw, const struct net_conf *net)
{
	sw->conf.net = *net;
	for (uint32_t i = 0; i <= sw->qpns.mask; i++) {
		struct sw_qp *qp = &sw->qpns.qps[i];

		if (qp->owner == NULL || !qp->peer)
			continue;
		qp->peer = sw_is_local(sw, qp->sgid);
		qp->peer_local = sw_is_local(sw, qp->dgid);
	}
}

bool
sw_sleep(struct sw *sw)
{
	uint32_t corrupt = sw->corrupt_count;
	struct sw_client *c;

	if (!TAILQ_EMPTY(&sw->lagging) || !TAILQ_EMPTY(&sw->dirty))
		return false;
	TAILQ_FOREACH (c, &sw->clients, link) {
		if (c->corrupt)
			continue;
		__atomic_store_n(&c->region.head->tx_asleep, 1, __ATOMIC_RELAXED);
	}
	/* Pairs with the fence in ring_wake_wanted() of the clients. As
	 * ring_asleep_set(), with one fence for all clients. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	TAILQ_FOREACH (c, &sw->clients, link) {
		if (!c->corrupt && !ring_cons_refresh(&c->tx))
			client_mark_corrupt(c);
		if (sw->corrupt_count != corrupt ||
			(!c->corrupt && ring_count(&c->tx) != 0)) {
			sw_awake(sw);
			return false;
		}
	}
	return true;
}

void
sw_awake(struct sw *sw)
{
	struct sw_client *c;

	TAILQ_FOREACH (c, &sw->clients, link)
		ring_asleep_clear(&c->region.head->tx_asleep);
}
