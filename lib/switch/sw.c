/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of the switch, the packet rate limit, and one pass over all clients. */
#include <errno.h>
#include <string.h>

#include "base/base_alloc.h"
#include "port/ext_query.h"
#include "port/net_addr.h"
#include "switch/route.h"
#include "switch/sw_client.h"
#include "switch/sw_group.h"
#include "switch/sw_qp.h"
#include "switch/uplink.h"

#define RATE_BURST_NS (10 * NS_PER_MS) /* the packet rate is averaged over this time */
#define ENDED_QPS 32 /* QPs of an ended client that are freed in one pass */

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

static int
sw_parts_create(struct sw *sw, const struct sw_conf *conf)
{
	int rc = qpns_init(&sw->qpns, conf->qpn_base, conf->qpn_count, &conf->random);

	if (rc != 0)
		return rc;
	rc = sw_users_init(&sw->users, &conf->random);
	if (rc == 0) {
		rc = ext_query_create(&conf->random, conf->no_sack, &sw->ext);
		if (rc == 0)
			return 0;
		sw_users_fini(&sw->users);
	}
	qpns_fini(&sw->qpns);
	return rc;
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
	rc = sw_parts_create(sw, conf);
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
	TAILQ_INIT(&sw->ended);
	*out = sw;
	return 0;
}

void
sw_destroy(struct sw *sw)
{
	assert(sw->client_count == 0 && sw->up == NULL);
	sw_ended_free(sw);
	for (unsigned i = 0; i < SW_GROUPS; i++)
		alloc_put(&alloc_plain, sw->groups[i].qpns,
			SW_GROUP_MEMBERS * sizeof(uint32_t));
	ext_query_destroy(sw->ext);
	sw_users_fini(&sw->users);
	qpns_fini(&sw->qpns);
	alloc_put(&alloc_plain, sw, sizeof(*sw));
}

int
sw_client_add(struct sw *sw, const struct region *region, uint32_t uid, void *owner,
	struct sw_client **out)
{
	struct sw_client *c;

	if (!region_geom_ok(&region->geom))
		return -EINVAL;
	if (sw->client_count == sw->conf.max_clients)
		return -ENOSPC;
	c = alloc_get(&alloc_plain, "client", sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->user = sw_user_get(&sw->users, uid, sw->now);
	if (c->user == NULL) {
		alloc_put(&alloc_plain, c, sizeof(*c));
		return -ENOMEM;
	}
	c->sw = sw;
	c->owner = owner;
	c->id = sw->next_id++;
	c->region = *region;
	region_daemon_rings(region, &c->tx, &c->rx);
	/* so that a ring that is full for the first time blocks senders */
	c->full_cons = 0u - c->region.geom.rx_slots / 2;
	c->region.daemon->link_down = sw->up != NULL && !sw->up->link_up;
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

/* Frees a part of what an ended client still has: some thousands of QPs at once would keep
 * packets waiting. Returns whether that was the rest. */
static bool
ended_client_shrink(struct sw_client *client)
{
	if (!sw_group_forget_some(client->sw, client))
		return false;
	for (unsigned i = 0; i < ENDED_QPS && !LIST_EMPTY(&client->qp_list); i++)
		sw_qp_destroy(LIST_FIRST(&client->qp_list));
	return LIST_EMPTY(&client->qp_list);
}

static void
ended_client_free(struct sw_client *client)
{
	struct sw *sw = client->sw;

	TAILQ_REMOVE(&sw->ended, client, link);
	if (sw->up != NULL && client->user->clients == 1)
		uplink_forget(sw->up, client->user);
	sw_user_put(&sw->users, client->user, sw->now);
	if (client->account != NULL)
		account_close(client->account);
	alloc_put(&alloc_plain, client, sizeof(*client));
}

static void
ended_serve(struct sw *sw)
{
	struct sw_client *client = TAILQ_FIRST(&sw->ended);

	if (client != NULL && ended_client_shrink(client))
		ended_client_free(client);
}

void
sw_ended_free(struct sw *sw)
{
	while (!TAILQ_EMPTY(&sw->ended))
		ended_serve(sw);
}

void
sw_client_remove(struct sw_client *client)
{
	struct sw *sw = client->sw;

	sw_client_flush(client);
	if (client->dirty)
		TAILQ_REMOVE(&sw->dirty, client, dirty_link);
	if (client->lagging)
		TAILQ_REMOVE(&sw->lagging, client, lagging_link);
	TAILQ_REMOVE(&sw->clients, client, link);
	sw->client_count--;
	stats_add(&sw->departed, &client->stats);
	client->dirty = client->lagging = false;
	client->corrupt = true;
	client->owner = NULL;
	if (client->account != NULL)
		client->account->holders++;
	TAILQ_INSERT_TAIL(&sw->ended, client, link);
	ended_serve(sw);
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
		/* At once, so that receivers work while the next client is served. Also
		 * what was delivered between passes. */
		if (!TAILQ_EMPTY(&sw->dirty))
			sw_publish(sw, now);
	}
	if (sw->up != NULL && unlikely(ext_query_deadline(sw->ext) <= now))
		uplink_ext_tx(sw->up, now);
	sw_lagging_check(sw, now);
	ended_serve(sw);
	return moved;
}

void
sw_set_net(struct sw *sw, const struct net_conf *net)
{
	struct sw_client *c;
	struct sw_qp *qp;

	sw->conf.net = *net;
	TAILQ_FOREACH (c, &sw->clients, link) {
		LIST_FOREACH(qp, &c->qp_list, link)
		{
			if (!net_is_ours(&sw->conf.net, qp->sgid) ||
				net_is_ours(&sw->conf.net, qp->dgid) != qp->peer_local)
				sw_qp_clear_peer(qp);
		}
	}
}

bool
sw_sleep(struct sw *sw)
{
	uint32_t corrupt = sw->corrupt_count;
	struct sw_client *c;

	if (!TAILQ_EMPTY(&sw->lagging) || !TAILQ_EMPTY(&sw->dirty) ||
		!TAILQ_EMPTY(&sw->ended))
		return false;
	sw->sleep = asleep_next(sw->sleep);
	TAILQ_FOREACH (c, &sw->clients, link) {
		if (c->corrupt)
			continue;
		__atomic_store_n(
			&c->region.daemon->tx_asleep, sw->sleep, __ATOMIC_RELAXED);
	}
	/* Pairs with the fence in asleep_wake_wanted() of the clients. As asleep_set(),
	 * with one fence for all clients. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	TAILQ_FOREACH (c, &sw->clients, link) {
		if (!c->corrupt && !ring_cons_refresh(&c->tx))
			sw_client_mark_corrupt(c);
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
		__atomic_store_n(&c->region.daemon->tx_asleep, 0, __ATOMIC_RELAXED);
}
