/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <string.h>

#include <rte_byteorder.h>

#include "base/off.h"
#include "engine/clock.h"
#include "engine/dev_control.h"
#include "engine/dev_flight.h"
#include "engine/engine_state.h"
#include "engine/grace.h"
#include "engine/gsi.h"

#define RX_RING_DEFAULT 1024

/* Under AddressSanitizer each piece is an allocation: it then detects writes beyond a
 * piece. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define PIECE_MAX 0
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define PIECE_MAX 0
#endif
#ifndef PIECE_MAX
#define PIECE_MAX SLAB_PIECE_MAX
#endif

void
dev_engines_lock_of(struct dev *dev, uint32_t engines)
{
	for (unsigned i = 0; i < dev->engine_count; i++) {
		if (engines & 1u << i)
			engine_lock(dev->engines[i]);
	}
}

void
dev_engines_unlock_of(struct dev *dev, uint32_t engines)
{
	for (unsigned i = dev->engine_count; i-- > 0;) {
		if (engines & 1u << i)
			engine_unlock(dev->engines[i]);
	}
}

void
dev_engines_lock(struct dev *dev)
{
	dev_engines_lock_of(dev, ENGINES_ALL);
}

void
dev_engines_unlock(struct dev *dev)
{
	dev_engines_unlock_of(dev, ENGINES_ALL);
}

void
dev_lock_with(struct dev *dev, const struct app_locks *locks)
{
	for (;;) {
		pthread_mutex_lock(&dev->lock);
		if (app_locks_try(locks))
			return;
		pthread_mutex_unlock(&dev->lock);
		app_locks_wait(locks);
	}
}

void
dev_unlock_with(struct dev *dev, const struct app_locks *locks)
{
	app_locks_release(locks);
	pthread_mutex_unlock(&dev->lock);
}

/* Configured addresses come first, then the link-local one. Slot 3 repeats slot 0 for scripts that
 * take index 3 for "RoCE v2 over IPv4". */
void
dev_gids_fill(const struct net_conf *net, uint8_t gids[DEV_GIDS][16])
{
	unsigned n = 0;

	memset(gids, 0, sizeof(uint8_t[DEV_GIDS][16]));
	for (unsigned i = 0; i < net->addr_count && n < DEV_GIDS - 1; i++) {
		if (n == 3)
			n++;
		memcpy(gids[n++], net->addr[i].gid, 16);
	}
	memcpy(gids[3], gids[0], 16);
}

/* Adds the MAC and the link-local address to the configuration. With hooks no engine sends
 * for struct net: the daemon reports the groups. */
static int
net_conf_complete(const struct dev *dev, const struct net_conf *in, struct net_conf *out)
{
	*out = *in;
	memcpy(out->mac, dev->port.mac, 6);
	out->other_stack |= dev->conf.hooks != NULL;
	if (out->addr_count == 0 || out->addr_count >= NET_MAX_ADDRS)
		return -EINVAL;
	gid_link_local(out->mac, out->addr[out->addr_count].gid);
	out->addr[out->addr_count++].prefix_len = 64;
	return 0;
}

static uint64_t
guid_from_mac(const uint8_t mac[6])
{
	uint8_t gid[16];
	uint64_t guid;

	gid_link_local(mac, gid);
	memcpy(&guid, gid + 8, 8);
	return rte_be_to_cpu_64(guid);
}

static uint32_t
qpn_base_choose(const struct dev_conf *conf, const struct random_key *random)
{
	return conf->qpn_base != 0 ? conf->qpn_base
				   : qpn_pool_base(random_once(random, RANDOM_QPN_BASE),
					     rte_align32pow2(conf->max_qp));
}

/* Random, as QPNs are. */
static uint32_t
srqn_base_choose(const struct random_key *random)
{
	return 1 + (uint32_t)(random_once(random, RANDOM_SRQN_BASE) % SRQ_TABLE_BASE_MAX);
}

static int
dev_conf_check(const struct dev_conf *conf, const struct port *port)
{
	if (conf->max_qp == 0 || conf->max_qp > 1u << 17)
		return -EINVAL;
	if (conf->mtu < 576 || conf->mtu > 9000 || conf->net.vlan > 4094)
		return -EINVAL;
	if (port->queue_count == 0 || port->queue_count > DEV_MAX_ENGINES)
		return -EINVAL;
	return 0;
}

static int
parts_create(struct dev *dev, const struct random_key *random)
{
	struct net_conf net;
	int rc = net_conf_complete(dev, &dev->conf.net, &net);

	if (rc == 0)
		rc = net_create_sized(&net, dev->conf.neighs, &dev->net);
	if (rc == 0) {
		dev_gids_fill(&net, dev->gids);
		rc = qp_table_init(
			&dev->qps, qpn_base_choose(&dev->conf, random), dev->conf.max_qp);
	}
	if (rc == 0)
		rc = gsi_create(random, dev->conf.no_sack || is_off(OFF_SACK),
			RTE_MAX(dev->conf.neighs, (uint32_t)EXT_QUERY_HOSTS), &dev->gsi);
	if (rc == 0 && dev->conf.flight_recorder)
		rc = flight_printer_start(&dev->flight);
	if (rc == 0)
		rc = dev_answers_create(dev);
	for (unsigned i = 0; rc == 0 && i < dev->port.queue_count; i++) {
		dev->engines[i] = engine_create(dev, i);
		if (dev->engines[i] == NULL)
			rc = -ENOMEM;
		else
			dev->engine_count++;
	}
	return rc;
}

static void
dev_release(struct dev *dev)
{
	for (unsigned i = 0; i < dev->engine_count; i++)
		engine_destroy(dev->engines[i]);
	if (dev->flight != NULL)
		flight_printer_stop(dev->flight);
	gsi_destroy(dev->gsi);
	if (dev->qps.slots != NULL)
		qp_table_fini(&dev->qps);
	if (dev->net != NULL)
		net_destroy(dev->net);
	srq_table_fini(&dev->srqs);
	key_table_fini(&dev->keys);
	pthread_mutex_destroy(&dev->lock);
	pthread_mutex_destroy(&dev->link_lock);
	slab_fini(&dev->slab);
	dev_answers_destroy(dev);
	alloc_put(&alloc_plain, dev, sizeof(*dev));
}

void
dev_filter_set(struct dev *dev)
{
	uint8_t macs[NET_MAX_MACS][6];

	if (dev->port.ops->set_addresses != NULL)
		dev->port.ops->set_addresses(dev->port.drv, net_conf(dev->net));
	if (dev->port.ops->set_groups != NULL)
		dev->port.ops->set_groups(dev->port.drv, (const uint8_t(*)[6])macs,
			net_group_macs(dev->net, macs, NET_MAX_MACS));
}

static void
dev_readers_await(void *arg)
{
	dev_grace_wait(arg);
}

int
dev_create(const struct dev_conf *conf, const struct port *port, const struct alloc *mem,
	struct dev **out)
{
	struct random_key random;
	struct dev *dev;
	int rc = dev_conf_check(conf, port);

	if (rc == 0 && conf->random != NULL)
		random = *conf->random;
	else if (rc == 0)
		rc = random_key_draw(&random);
	if (rc != 0)
		return rc;
	dev = alloc_get(&alloc_plain, "dev", sizeof(*dev));
	if (dev == NULL)
		return -ENOMEM;
	dev->conf = *conf;
	dev->conf.random = NULL;
	dev->conf.flight_recorder |= flight_recorder_wanted();
	dev->port = *port;
	slab_init(&dev->slab, mem, PIECE_MAX);
	dev->mem = slab_alloc(&dev->slab);
	dev->guid = guid_from_mac(port->mac);
	dev->active_mtu = (enum ibv_mtu)mtu_code_fitting(conf->mtu);
	if (dev->conf.peer_window == 0)
		dev->conf.peer_window = RTE_MAX(
			(port->caps.rx_ring != 0 ? port->caps.rx_ring : RX_RING_DEFAULT) /
				2,
			1u);
	pthread_mutex_init(&dev->lock, NULL);
	pthread_mutex_init(&dev->link_lock, NULL);
	cq_moderator_init(&dev->cq_moderator);
	dev->link_up = port->ops->link_up(port->drv);
	key_table_init(&dev->keys, &random);
	dev->keys.readers = (struct key_readers){dev_readers_await, dev};
	if (conf->mrs_granted != 0)
		dev->keys.regions_max = RTE_MIN(conf->mrs_granted, KEY_MAX - 1);
	srq_table_init(&dev->srqs, srqn_base_choose(&random));
	rc = parts_create(dev, &random);
	if (rc != 0) {
		dev_release(dev);
		return rc;
	}
	dev_filter_set(dev);
	*out = dev;
	return 0;
}

void
dev_destroy(struct dev *dev)
{
	struct port port = dev->port;

	assert(dev->qps.count == 0 && dev->group_count == 0);
	dev_release(dev);
	port.ops->close(port.drv);
}

int
dev_key_free(struct dev *dev, uint32_t key)
{
	int rc;

	pthread_mutex_lock(&dev->lock);
	rc = key_free(&dev->keys, key);
	pthread_mutex_unlock(&dev->lock);
	return rc;
}

int
dev_key_change(struct dev *dev, uint32_t *key, int flags, const struct key_change *to)
{
	int rc;

	pthread_mutex_lock(&dev->lock);
	rc = key_change(&dev->keys, key, flags, to);
	pthread_mutex_unlock(&dev->lock);
	return rc;
}

static bool
srqn_is_free(const struct dev *dev, uint32_t srqn)
{
	const struct srq *srq;

	if (srqn == 0 || srqn == 0xFFFFFF || srq_table_covers(&dev->srqs, srqn))
		return false;
	/* No number was given twice yet. */
	if (dev->next_srqn <= 0xFFFFFF)
		return true;
	LIST_FOREACH(srq, &dev->srq_list, link)
	{
		if (srq->srqn == srqn)
			return false;
	}
	return true;
}

uint32_t
dev_srq_number(struct dev *dev)
{
	uint32_t srqn;

	pthread_mutex_lock(&dev->lock);
	do
		srqn = (uint32_t)(++dev->next_srqn & 0xFFFFFF);
	while (!srqn_is_free(dev, srqn));
	pthread_mutex_unlock(&dev->lock);
	return srqn;
}

void
dev_srq_add(struct dev *dev, struct srq *srq)
{
	pthread_mutex_lock(&dev->lock);
	LIST_INSERT_HEAD(&dev->srq_list, srq, link);
	pthread_mutex_unlock(&dev->lock);
}

void
dev_srq_remove(struct dev *dev, struct srq *srq)
{
	pthread_mutex_lock(&dev->lock);
	LIST_REMOVE(srq, link);
	pthread_mutex_unlock(&dev->lock);
}

int
dev_srq_modify(struct dev *dev, struct srq *srq, struct srq_attr *attr, int mask)
{
	uint32_t engines;
	int rc;

	if (mask == IBV_SRQ_LIMIT)
		return srq_modify(srq, attr, mask); /* beside running engines */
	/* For calls that read the size. */
	pthread_mutex_lock(&dev->lock);
	engines = srq_engines(srq);
	dev_engines_lock_of(dev, engines);
	rc = srq_modify(srq, attr, mask);
	dev_engines_unlock_of(dev, engines);
	pthread_mutex_unlock(&dev->lock);
	return rc;
}

int
dev_srq_set_mbufs(struct dev *dev, struct srq *srq, const struct srq_mbufs *mbufs)
{
	int rc;

	pthread_mutex_lock(&dev->lock);
	rc = srq_set_mbufs(srq, mbufs);
	/* Relaxed: a QP with this SRQ is attached later, with the lock of its engine. */
	for (unsigned i = 0; rc == 0 && i < dev->engine_count; i++)
		__atomic_store_n(
			&dev->engines[i]->shared.burst.wanted, true, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&dev->lock);
	return rc;
}

void
dev_stats(struct dev *dev, struct port_stats *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < dev->engine_count; i++)
		port_stats_add(out, engine_stats(dev->engines[i]));
}

void
dev_latencies(struct dev *dev, struct latencies *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < dev->engine_count; i++)
		latencies_add(out, dev->engines[i]->times.latencies);
}

uint64_t
dev_slowest_begin(struct dev *dev)
{
	uint64_t now = clock_now(), wall_ns = clock_wall();

	for (unsigned i = 0; i < dev->engine_count; i++)
		slowest_clock_set(dev->engines[i]->times.slowest, now, wall_ns);
	return wall_ns;
}

unsigned
dev_slowest(const struct dev *dev, unsigned engine, enum latency_type type,
	enum latency_op op, uint64_t wall_ns, struct slow_request copy[SLOWEST_KEPT])
{
	return slowest_copy(dev->engines[engine]->times.slowest, type, op, wall_ns, copy);
}

/* Passes up to max peers of an engine to fn. Returns how many it has passed. */
static unsigned
engine_peers_each(const struct engine *e, unsigned max, dev_peer_fn fn, void *arg)
{
	const struct peer *peer;
	struct peer_info info;
	unsigned n = 0;

	for (uint32_t i = 0; i <= e->peers.mask; i++) {
		LIST_FOREACH(peer, &e->peers.buckets[i], link)
		{
			if (n == max)
				return n;
			peer_info_fill(&info, peer, e->index);
			fn(&info, arg);
			n++;
		}
	}
	return n;
}

unsigned
dev_peers_each(struct dev *dev, unsigned max, dev_peer_fn fn, void *arg)
{
	unsigned count = 0, passed = 0;

	for (unsigned i = 0; i < dev->engine_count; i++) {
		struct engine *e = dev->engines[i];

		engine_lock(e);
		count += e->peers.count;
		passed += engine_peers_each(e, max - passed, fn, arg);
		engine_unlock(e);
	}
	return count;
}

int
dev_set_net(struct dev *dev, const struct net_conf *net)
{
	struct net_conf full;
	int rc = net_conf_complete(dev, net, &full);

	if (rc != 0)
		return rc;
	pthread_mutex_lock(&dev->lock);
	dev_engines_lock(dev);
	rc = net_set_conf(dev->net, &full);
	if (rc == 0) {
		uint8_t before[DEV_GIDS][16];

		memcpy(before, dev->gids, sizeof(before));
		dev->conf.net = *net;
		dev_gids_fill(&full, dev->gids);
		if (memcmp(before, dev->gids, sizeof(before)) != 0)
			dev_event(dev, IBV_EVENT_GID_CHANGE);
	}
	dev_engines_unlock(dev);
	dev_filter_set(dev);
	pthread_mutex_unlock(&dev->lock);
	return rc;
}
