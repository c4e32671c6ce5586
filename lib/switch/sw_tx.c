/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The packets that clients send, and the packet rate limit. */
#include "switch/route.h"
#include "switch/sw_client.h"
#include "switch/sw_tx.h"
#include "switch/sw_wait.h"

#define RATE_BURST_NS (10 * NS_PER_MS) /* the packet rate is averaged over this time */

/* Time per packet at the client's rate limit; 0: it has none. */
static uint64_t
packet_share_ns(const struct sw_client *c)
{
	uint32_t rate = c->sw->conf.limits.packets_per_s;

	return likely(rate == 0) ? 0 : RTE_MAX(NS_PER_SEC / rate, UINT64_C(1));
}

/* Bounds what a client may send at once after it was idle: the packets of
 * RATE_BURST_NS, and one at least. each: the time of one. */
static void
rate_credit_bound(struct sw_client *c, uint64_t each, uint64_t now)
{
	uint64_t most = RTE_MAX(RATE_BURST_NS, each);
	uint64_t from = now - RTE_MIN(now, most);

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
	rate_credit_bound(c, each, now);
	may = c->rate_ns >= now ? 0 : (now - c->rate_ns) / each;
	if (may < want)
		c->stats.throttled++;
	return (uint32_t)RTE_MIN(may, (uint64_t)want);
}

void
sw_tx_flush(struct sw_client *client, bool final)
{
	struct sw_thread *t = client->thread;
	uint64_t each = packet_share_ns(client);
	uint32_t n, sent;

	/* Of thread 0, or the time of the last pass of another thread, if that is later. */
	t->now = RTE_MAX(t->now, t->sw->now);
	/* The flush may exceed the packet rate. The next one is refused until the rate
	 * has made up for the excess. */
	if (client->corrupt || (each != 0 && client->rate_ns > t->now) ||
		!ring_cons_refresh(&client->tx))
		return;
	sw_wait_serve(t);
	n = ring_count(&client->tx);
	rate_credit_bound(client, each, t->now);
	t->final_flush = final;
	for (sent = 0; sent < n; sent++) {
		struct ring_desc desc = ring_peek(&client->tx, sent);

		if (sw_forward(client, &desc))
			continue;
		if (!final)
			break;
		/* The packet is not offered again. */
		client->stats.drop_port_full++;
	}
	t->final_flush = false;
	client->rate_ns += sent * each;
	ring_release(&client->tx, sent);
	handover_publish(t);
}

static unsigned
client_tx_serve(struct sw_client *c, uint64_t now)
{
	uint32_t n, sent;

	if (unlikely(c->corrupt))
		return 0;
	if (ring_count(&c->tx) == 0) {
		if (unlikely(!ring_cons_refresh(&c->tx)))
			sw_client_mark_corrupt(c);
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
	return sent;
}

unsigned
sw_tx_serve(struct sw_thread *t, uint64_t now)
{
	unsigned moved = 0;
	struct sw_client *c;

	/* Packets that have waited go before those that the clients send now. */
	sw_wait_serve(t);
	TAILQ_FOREACH (c, &t->clients, served_link) {
		unsigned sent = client_tx_serve(c, now);

		/* At once, so that receivers work while the next client is served. Also
		 * what was delivered between passes. */
		if (!TAILQ_EMPTY(&t->dirty))
			sw_publish(t, now);
		if (t->unpublished != 0)
			handover_publish(t);
		/* Only now: a client whose ring is empty knows that the receivers can see its
		 * packets (drivers/shm/shm_pairs.h). */
		if (sent != 0)
			ring_release(&c->tx, sent);
		moved += sent;
	}
	/* The first client takes what room there is in a full ring to another thread. So
	 * each is the first one in turn. */
	c = TAILQ_FIRST(&t->clients);
	if (c != NULL && t->sw->thread_count != 1) {
		TAILQ_REMOVE(&t->clients, c, served_link);
		TAILQ_INSERT_TAIL(&t->clients, c, served_link);
	}
	t->stats.tx_packets += moved;
	return moved;
}
