/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface of lib/port: configuration, received frames, frames to send. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "port/net_proto.h"

#define IPV4_PROTO_AT 9
#define IPV6_NEXT_AT 6

/* Starts announcing the addresses that old did not have, or all if old is NULL. */
static void
net_announce_start(struct net *net, const struct net_conf *old)
{
	uint8_t left[NET_MAX_ADDRS] = {0};
	bool any = false;

	for (unsigned i = 0; i < net->conf.addr_count; i++) {
		if (old == NULL || !net_is_ours(old, net->conf.addr[i].gid))
			left[i] = NET_ANNOUNCEMENTS;
		for (unsigned j = 0; old != NULL && j < old->addr_count; j++)
			if (memcmp(old->addr[j].gid, net->conf.addr[i].gid, 16) == 0)
				left[i] = net->announce_left[j];
		any |= left[i] > 0;
	}
	if (net->conf.other_stack) {
		memset(left, 0, sizeof(left));
		any = false;
	}
	memcpy(net->announce_left, left, sizeof(left));
	wheel_cancel(&net->wheel, &net->announce_timer);
	net->announce_at = any ? 0 : net->conf.addr_count;
}

int
net_create(const struct net_conf *conf, struct net **out)
{
	return net_create_sized(conf, NET_NEIGHS, out);
}

int
net_create_sized(const struct net_conf *conf, uint32_t neighs, struct net **out)
{
	struct net *net;
	int ret;

	if (neighs == 0)
		neighs = NET_NEIGHS;
	if (conf == NULL || neighs < NET_NEIGHS_MIN || neighs > NET_NEIGHS_MAX ||
		!rte_is_power_of_2(neighs))
		return -EINVAL;
	ret = net_conf_check(conf);
	if (ret != 0)
		return ret;
	net = calloc(1, sizeof(*net));
	if (net == NULL)
		return -ENOMEM;
	ret = random_key_draw(&net->table_key);
	if (ret == 0)
		ret = neigh_table_init(net, neighs);
	if (ret != 0) {
		free(net);
		return ret;
	}
	rte_ticketlock_init(&net->lock);
	net->conf = *conf;
	wheel_init(&net->wheel, 0);
	wheel_timer_init(&net->announce_timer);
	group_table_init(net);
	group_join_nodes(net, conf);
	net_announce_start(net, NULL);
	net_deadline_update(net);
	*out = net;
	return 0;
}

void
net_destroy(struct net *net)
{
	neigh_table_fini(net);
	free(net);
}

const struct net_conf *
net_conf(const struct net *net)
{
	return &net->conf;
}

int
net_set_conf(struct net *net, const struct net_conf *conf)
{
	struct net_conf old;
	bool moved;
	int ret;

	if (conf == NULL)
		return -EINVAL;
	ret = net_conf_check(conf);
	if (ret != 0)
		return ret;
	rte_ticketlock_lock(&net->lock);
	old = net->conf;
	net->conf = *conf;
	/* A new segment or a new MAC: all neighbours have to be resolved again. */
	moved = old.vlan != conf->vlan || memcmp(old.mac, conf->mac, 6) != 0;
	neigh_flush(net, moved);
	/* Join the new groups first, so that a group in both configurations is not
	 * left. */
	group_join_nodes(net, conf);
	group_leave_nodes(net, &old);
	if (moved)
		group_announce(net);
	net_announce_start(net, moved ? NULL : &old);
	net_generation_bump(net);
	net_deadline_update(net);
	rte_ticketlock_unlock(&net->lock);
	return 0;
}

void
net_announce(struct net *net)
{
	rte_ticketlock_lock(&net->lock);
	net_announce_start(net, NULL);
	group_announce(net);
	neigh_retry_failed(net);
	net_deadline_update(net);
	rte_ticketlock_unlock(&net->lock);
}

static bool
net_dispatch(struct net *net, const struct rx_frame *frame, struct pkt *reply,
	enum drop_reason *why, uint64_t now)
{
	switch (frame->type) {
	case RTE_ETHER_TYPE_ARP:
		return arp_rx(net, frame, reply, now);
	case RTE_ETHER_TYPE_IPV4:
		if (frame->l3_len > IPV4_PROTO_AT &&
			frame->l3[IPV4_PROTO_AT] == IPPROTO_IGMP) {
			*why = igmp_rx(net, frame, now);
			return false;
		}
		return icmp4_rx(net, frame, reply);
	case RTE_ETHER_TYPE_IPV6:
		if (frame->l3_len > IPV6_NEXT_AT &&
			frame->l3[IPV6_NEXT_AT] == IPPROTO_HOPOPTS) {
			*why = mld_rx(net, frame, now);
			return false;
		}
		return icmp6_rx(net, frame, reply, now);
	default:
		return false;
	}
}

bool
net_rx(struct net *net, const struct pkt *pkt, struct pkt *reply, enum drop_reason *why,
	uint64_t now)
{
	struct rx_frame frame;
	bool answer;

	*why = DROP_none;
	rte_ticketlock_lock(&net->lock);
	answer = frame_split(&net->conf, pkt, &frame) &&
		 net_dispatch(net, &frame, reply, why, now) && !net->conf.other_stack;
	net_deadline_update(net);
	rte_ticketlock_unlock(&net->lock);
	return answer;
}

static void
net_fire(struct wheel_timer *timer, uint64_t now, void *arg)
{
	struct net *net = arg;

	if (timer == &net->announce_timer)
		net->announce_at = 0;
	else if ((uint8_t *)timer >= (uint8_t *)net->groups &&
		 (uint8_t *)timer < (uint8_t *)(net->groups + NET_GROUPS))
		group_mark_due(net, (struct net_group *)timer);
	else
		neigh_timer_fired(net, (struct neigh *)timer, now);
}
static_assert(
	offsetof(struct neigh, timer) == 0 && offsetof(struct net_group, timer) == 0,
	"net_fire() casts the timer to its object");

/* Writes one round of announcements, as far as frames are available, and sets the timer
 * of the next round. */
static unsigned
net_tx_announce(struct net *net, struct pkt *frames, unsigned n, uint64_t now)
{
	bool again = false;
	unsigned done = 0;

	for (; net->announce_at < net->conf.addr_count && done < n; net->announce_at++) {
		const uint8_t *gid = net->conf.addr[net->announce_at].gid;

		if (net->announce_left[net->announce_at] == 0)
			continue;
		net->announce_left[net->announce_at]--;
		if (gid_is_ipv4(gid) ? arp_announce(&net->conf, gid, &frames[done])
				     : nd_announce(&net->conf, gid, &frames[done]))
			done++;
	}
	for (unsigned i = 0; i < net->conf.addr_count; i++)
		again |= net->announce_left[i] > 0;
	if (again && net->announce_at == net->conf.addr_count &&
		!wheel_timer_armed(&net->announce_timer))
		wheel_set(&net->wheel, &net->announce_timer, now + NET_ANNOUNCE_NS);
	return done;
}

static bool
net_tx_request(const struct net *net, const struct neigh *e, const uint8_t *mac,
	struct pkt *frame)
{
	return gid_is_ipv4(e->gid) ? arp_request(&net->conf, e->gid, mac, frame)
				   : nd_solicit(&net->conf, e->gid, mac, frame);
}

static bool
net_tx_report(struct net *net, struct net_group *g, struct pkt *frame, uint64_t now)
{
	uint8_t version;
	enum group_report_type type = group_report_due(net, g, &version, now);

	return gid_is_ipv4(g->gid) ? igmp_write(&net->conf, g->gid, type, version, frame)
				   : mld_write(&net->conf, g->gid, type, version, frame);
}

unsigned
net_tx(struct net *net, struct pkt *frames, unsigned n, uint64_t now)
{
	static const struct wheel_budget budget = {NEIGH_TIMER_MOVES, NEIGH_TIMERS_BATCH};
	const uint8_t *mac;
	struct net_group *g;
	struct neigh *e;
	unsigned done;

	if (n == 0 || frames[0].room < NET_ROOM)
		return 0;
	rte_ticketlock_lock(&net->lock);
	neigh_sweep(net);
	(void)wheel_advance_some(&net->wheel, now, &budget, net_fire, net);
	done = net_tx_announce(net, frames, n, now);
	while (done < n && (e = neigh_next_request(net, &mac, now)) != NULL)
		done += net_tx_request(net, e, mac, &frames[done]);
	while (done < n && (g = group_next_report(net, now)) != NULL)
		done += net_tx_report(net, g, &frames[done], now);
	net_deadline_update(net);
	rte_ticketlock_unlock(&net->lock);
	return done;
}
