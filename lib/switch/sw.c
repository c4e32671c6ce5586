/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation of the switch, its clients, and one pass of a thread. */
#include <errno.h>
#include <string.h>

#include "base/base_alloc.h"
#include "port/ext_query.h"
#include "port/net_addr.h"
#include "switch/handover.h"
#include "switch/sw_client.h"
#include "switch/sw_dump.h"
#include "switch/sw_group.h"
#include "switch/sw_pair.h"
#include "switch/sw_qp.h"
#include "switch/sw_take.h"
#include "switch/sw_tx.h"
#include "switch/sw_wait.h"
#include "switch/uplink.h"

#define ENDED_QPS 32 /* QPs of an ended client that are freed in one pass */

const struct sw_stat_row sw_stat_rows[SW_STAT_COUNT] = {
#define SW_STAT(name, text) {#name, text, false},
#define SW_ERROR(name, text) {#name, text, true},
#define SW_DROP(name, text) {"drop_" #name, text, true},
#include "switch/sw_stats.def"
};

const struct sw_stat_row sw_thread_stat_rows[SW_THREAD_STAT_COUNT] = {
#define SW_THREAD_STAT(name, text) {#name, text, false},
#define SW_THREAD_ERROR(name, text) {#name, text, true},
#include "switch/sw_stats.def"
};

static bool
conf_ok(const struct sw_conf *conf)
{
	return conf->max_clients != 0 && conf->threads <= SW_THREADS_MAX &&
	       conf->net.addr_count != 0 && conf->net.addr_count <= NET_MAX_ADDRS &&
	       conf->limits.qps != 0 && region_geom_ok(&conf->limits.geom);
}

static int
sw_parts_create(struct sw *sw, const struct sw_conf *conf)
{
	int rc = qpns_init(&sw->qpns, conf->qpn_base, conf->qpn_count, &conf->random);

	if (rc != 0)
		return rc;
	rc = sw_users_init(&sw->users, &conf->random);
	sw->group_key = random_key_derive(&conf->random, RANDOM_SWITCH_TABLES);
	if (rc == 0) {
		rc = ext_query_create_sized(&conf->random, conf->no_sack,
			RTE_MAX(conf->neighs, (uint32_t)EXT_QUERY_HOSTS), &sw->ext);
		if (rc == 0)
			rc = sw_threads_create(sw, RTE_MAX(conf->threads, 1u),
				conf->limits.geom.buf_size);
		if (rc == 0)
			rc = sw_wait_create(sw, conf->limits.geom.buf_size);
		if (rc == 0)
			return 0;
		sw_wait_destroy(sw);
		sw_threads_destroy(sw);
		ext_query_destroy(sw->ext);
		sw_users_fini(&sw->users);
	}
	qpns_fini(&sw->qpns);
	return rc;
}

int
sw_create(const struct sw_conf *conf, sw_wake *wake, struct sw **out)
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
	sw_wait_destroy(sw);
	sw_threads_destroy(sw);
	ext_query_destroy(sw->ext);
	sw_users_fini(&sw->users);
	qpns_fini(&sw->qpns);
	alloc_put(&alloc_plain, sw, sizeof(*sw));
}

int
sw_client_add(struct sw *sw, const struct region *region, uint32_t uid, uint32_t payer,
	void *owner, struct sw_client **out)
{
	struct sw_client *c;

	if (!region_geom_ok(&region->geom))
		return -EINVAL;
	if (sw->client_count == sw->conf.max_clients)
		return -ENOSPC;
	c = alloc_get(&alloc_plain, "client", sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->user = sw_user_get(&sw->users, payer, sw->now);
	if (c->user == NULL) {
		alloc_put(&alloc_plain, c, sizeof(*c));
		return -ENOMEM;
	}
	c->sw = sw;
	c->owner = owner;
	c->uid = uid;
	c->id = sw->next_id++;
	c->region = *region;
	region_daemon_rings(region, &c->tx, &c->rx);
	TAILQ_INIT(&c->pairs);
	/* so that a ring that is full for the first time blocks senders */
	c->full_cons = 0u - c->region.geom.rx_slots / 2;
	c->region.daemon->link_down = sw->up != NULL && !sw->up->link_up;
	c->thread = sw_thread_choose(sw);
	c->thread->client_count++;
	sw_thread_lock(c->thread);
	TAILQ_INSERT_TAIL(&c->thread->clients, c, served_link);
	sw_thread_unlock(c->thread);
	TAILQ_INSERT_TAIL(&sw->clients, c, link);
	sw->client_count++;
	sw_pair_dumps_changed(sw);
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
	handover_forget(sw, client);
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

	if (likely(client == NULL))
		return;
	sw_lock(sw);
	if (ended_client_shrink(client))
		ended_client_free(client);
	sw_unlock(sw);
}

void
sw_ended_free(struct sw *sw)
{
	while (!TAILQ_EMPTY(&sw->ended))
		ended_serve(sw);
}

/* As the thread: takes all that was handed over to it, in as many turns as empty a full ring, and
 * shows its clients what they got. */
static void
thread_show(struct sw_thread *t)
{
	sw_thread_lock(t);
	t->now = RTE_MAX(t->now, t->sw->now);
	for (unsigned i = 0; i < HANDOVER_SLOTS / SW_TAKE_BURST; i++)
		if (sw_take(t, t->now) == 0)
			break;
	sw_publish(t, t->now);
	sw_thread_unlock(t);
}

/* The client's packets are in rings to clients of its thread, or handed over to other threads. */
static void
sent_show(const struct sw_client *client)
{
	struct sw_thread *t = client->thread;

	sw_thread_lock(t);
	sw_publish(t, t->now);
	/* Of thread 0, all packets and messages leave in order. */
	if (t->index != 0 && t->io != NULL)
		(void)port_io_flush(t->io, t->now);
	sw_thread_unlock(t);
	for (uint32_t i = 0; i < t->sw->thread_count; i++)
		if (i != t->index)
			thread_show(t->sw->threads[i]);
}

static void
sent_flush(struct sw_client *client, bool final)
{
	sw_thread_lock(client->thread);
	sw_tx_flush(client, final);
	sw_thread_unlock(client->thread);
	sent_show(client);
}

void
sw_client_flush(struct sw_client *client)
{
	sent_flush(client, true);
}

void
sw_client_show_sent(struct sw_client *client)
{
	sent_flush(client, false);
}

void
sw_client_show_received(struct sw_client *client)
{
	struct sw_thread *zero = client->sw->threads[0];

	handover_publish(zero);
	if (client->thread == zero)
		sw_publish(zero, zero->now);
	else
		thread_show(client->thread);
}

/* Its thread does not touch its rings any more. */
static void
client_stop(struct sw_client *client)
{
	struct sw_thread *t = client->thread;

	sw_thread_lock(t);
	sw_tx_flush(client, true);
	sw_wait_forget(client);
	if (client->dirty)
		TAILQ_REMOVE(&t->dirty, client, dirty_link);
	if (client->lagging)
		TAILQ_REMOVE(&t->lagging, client, lagging_link);
	if (client->holding)
		TAILQ_REMOVE(&t->holding, client, holding_link);
	TAILQ_REMOVE(&t->clients, client, served_link);
	sw_client_said_read(client, &client->stats);
	client->dirty = client->lagging = false;
	__atomic_store_n(&client->holding, false, __ATOMIC_RELAXED);
	__atomic_store_n(&client->corrupt, true, __ATOMIC_RELAXED);
	sw_thread_unlock(t);
}

void
sw_client_remove(struct sw_client *client)
{
	struct sw *sw = client->sw;

	client_stop(client);
	sw_lock(sw);
	sw_dump_forget(client);
	sw_pair_forget(client);
	client->owner = NULL; /* with the locks of all threads: any may wake the client */
	sw_unlock(sw);
	sent_show(client); /* its last packets, which may be in rings to other threads */
	TAILQ_REMOVE(&sw->clients, client, link);
	sw->client_count--;
	client->thread->client_count--;
	stats_add(&sw->departed, &client->stats);
	stats_add(&sw->departed, &client->control_stats);
	latencies_add(&sw->departed_latencies, &client->region.client->latencies);
	if (client->account != NULL)
		client->account->holders++;
	TAILQ_INSERT_TAIL(&sw->ended, client, link);
	ended_serve(sw);
}

unsigned
sw_run(struct sw *sw, uint64_t now)
{
	struct sw_thread *t = sw->threads[0];
	bool others = unlikely(sw->thread_count != 1);
	unsigned moved = 0;

	sw->now = t->now = now;
	if (others)
		moved = sw_take(t, now);
	moved += sw_tx_serve(t, now);
	if (sw->up != NULL && unlikely(ext_query_deadline(sw->ext) <= now))
		uplink_ext_tx(sw->up, now);
	sw_lagging_check(t, now);
	if (others) {
		sw_holding_check(t);
		handover_publish(t);
	}
	ended_serve(sw);
	return moved;
}

unsigned
sw_thread_run(struct sw_thread *t, uint64_t now)
{
	unsigned moved;

	sw_thread_lock(t);
	t->now = now = RTE_MAX(t->now, now);
	moved = uplink_queue_rx(t->sw->up, t, now);
	moved += sw_take(t, now);
	moved += sw_tx_serve(t, now);
	sw_lagging_check(t, now);
	sw_holding_check(t);
	handover_publish(t);
	(void)port_io_flush(t->io, now);
	sw_thread_unlock(t);
	return moved;
}

void
sw_client_stats_read(struct sw_client *c, struct sw_stats *stats)
{
	sw_thread_lock(c->thread);
	*stats = c->stats;
	sw_thread_unlock(c->thread);
	sw_client_said_read(c, stats);
	stats_add(stats, &c->control_stats);
}

void
sw_thread_stats_read(struct sw_thread *t, struct sw_thread_stats *stats)
{
	sw_thread_lock(t);
	*stats = t->stats;
	sw_thread_unlock(t);
}

uint32_t
sw_client_rx_waiting(struct sw_client *c)
{
	struct ring_prod rx;

	sw_thread_lock(c->thread);
	rx = c->rx;
	sw_thread_unlock(c->thread);
	(void)ring_prod_refresh(&rx); /* reads the client's current index */
	return rx.prod - rx.cons_seen;
}

void
sw_set_net(struct sw *sw, const struct net_conf *net)
{
	struct sw_client *c;
	struct sw_qp *qp;

	sw_lock(sw);
	sw->conf.net = *net;
	TAILQ_FOREACH (c, &sw->clients, link) {
		LIST_FOREACH(qp, &c->qp_list, link)
		{
			if (!net_is_ours(&sw->conf.net, qp->sgid) ||
				net_is_ours(&sw->conf.net, qp->dgid) != qp->peer_local)
				sw_qp_clear_peer(qp);
		}
	}
	sw_unlock(sw);
}

static void
clients_awake(struct sw_thread *t)
{
	struct sw_client *c;

	__atomic_store_n(&t->asleep, 0, __ATOMIC_RELAXED);
	TAILQ_FOREACH (c, &t->clients, served_link)
		__atomic_store_n(&c->region.daemon->tx_asleep, 0, __ATOMIC_RELAXED);
}

/* Called with the thread's lock. */
static bool
clients_sleep(struct sw_thread *t)
{
	const struct sw *sw = t->sw;
	uint32_t corrupt = sw_corrupt_count(sw);
	struct sw_client *c;

	if (!TAILQ_EMPTY(&t->lagging) || !TAILQ_EMPTY(&t->dirty) ||
		!TAILQ_EMPTY(&t->holding) || sw_wait_pending(t))
		return false;
	t->sleep = asleep_next(t->sleep, 0);
	__atomic_store_n(&t->asleep, t->sleep, __ATOMIC_RELAXED);
	TAILQ_FOREACH (c, &t->clients, served_link) {
		if (c->corrupt)
			continue;
		__atomic_store_n(
			&c->region.daemon->tx_asleep, t->sleep, __ATOMIC_RELAXED);
	}
	/* Pairs with the fence in asleep_wake_wanted() of the clients and of other threads. As
	 * asleep_set(), with one fence for all. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (sw_take_pending(t)) {
		clients_awake(t);
		return false;
	}
	TAILQ_FOREACH (c, &t->clients, served_link) {
		if (!c->corrupt && !ring_cons_refresh(&c->tx))
			sw_client_mark_corrupt(c);
		if (sw_corrupt_count(sw) != corrupt ||
			(!c->corrupt && ring_count(&c->tx) != 0)) {
			clients_awake(t);
			return false;
		}
	}
	return true;
}

bool
sw_thread_sleep(struct sw_thread *t)
{
	bool sleep;

	sw_thread_lock(t);
	sleep = t->io->backlog_count == 0 && clients_sleep(t);
	sw_thread_unlock(t);
	return sleep;
}

void
sw_thread_awake(struct sw_thread *t)
{
	sw_thread_lock(t);
	clients_awake(t);
	sw_thread_unlock(t);
}

bool
sw_sleep(struct sw *sw)
{
	return TAILQ_EMPTY(&sw->ended) && clients_sleep(sw->threads[0]);
}

void
sw_awake(struct sw *sw)
{
	clients_awake(sw->threads[0]);
}
