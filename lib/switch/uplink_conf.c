/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's port: groups, addresses, creation with a queue for each thread. Control path. */
#include <errno.h>
#include <string.h>

#include "base/base_alloc.h"
#include "switch/uplink.h"

/* ---- Groups, addresses ---- */

static void
filter_set(struct uplink *u)
{
	uint8_t macs[NET_MAX_MACS][6];

	if (u->port.ops->set_addresses != NULL)
		u->port.ops->set_addresses(u->port.drv, net_conf(u->net));
	if (u->port.ops->set_groups != NULL)
		u->port.ops->set_groups(u->port.drv, (const uint8_t(*)[6])macs,
			net_group_macs(u->net, macs, NET_MAX_MACS));
}

int
uplink_join(struct uplink *u, const uint8_t gid[16])
{
	int rc = net_join(u->net, gid);

	if (rc == 0)
		filter_set(u);
	return rc;
}

void
uplink_leave(struct uplink *u, const uint8_t gid[16])
{
	if (net_leave(u->net, gid) == 0)
		filter_set(u);
}

int
uplink_set_net(struct uplink *u, const struct net_conf *net)
{
	int rc = net_set_conf(u->net, net);

	if (rc == 0)
		filter_set(u);
	return rc;
}

/* ---- Creation ---- */

/* Empties a ring between two threads, which have stopped. h may be NULL. */
static void
handed_frames_release(struct uplink *u, struct handover *h)
{
	uint32_t n = h != NULL ? handover_count(h) : 0;

	for (uint32_t i = 0; i < n; i++) {
		struct handed *slot = handover_at(h, i);

		if (slot->kind == HANDED_FRAME)
			u->port.ops->rx_release(u->port.queues[0], &slot->frame, 1);
	}
	if (n != 0)
		handover_release(h, n);
}

/* The first queue is thread 0's, the others are those of the other threads. */
static int
uplink_queues_create(struct uplink *u)
{
	struct sw *sw = u->sw;
	struct uplink_queue *q = NULL;

	if (sw->thread_count != u->port.queue_count)
		return -EINVAL;
	if (sw->thread_count > 1)
		q = u->queues = alloc_get(&alloc_plain, "uplink queues",
			(sw->thread_count - 1) * sizeof(*q));
	if (sw->thread_count > 1 && q == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < sw->thread_count; i++) {
		struct sw_thread *t = sw->threads[i];

		t->io = i == 0 ? &u->io : &q[i - 1].io;
		t->port_stats = i == 0 ? &u->stats : &q[i - 1].stats;
		port_io_init(t->io, &(struct port_queue){u->port.ops, u->port.queues[i]},
			u->net, t->port_stats, &u->link_up, UPLINK_STALL_NS);
	}
	return 0;
}

static void
uplink_queues_destroy(struct uplink *u)
{
	struct sw *sw = u->sw;

	for (uint32_t i = 0; i < sw->thread_count; i++) {
		struct sw_thread *t = sw->threads[i];

		for (uint32_t to = 0; to < sw->thread_count; to++)
			handed_frames_release(u, t->to[to]);
		port_io_fini(t->io);
		t->io = NULL;
		t->port_stats = NULL;
	}
	alloc_put(&alloc_plain, u->queues, (sw->thread_count - 1) * sizeof(*u->queues));
}

int
uplink_create(struct sw *sw, const struct port *port, const struct net_conf *net,
	uint32_t mtu, struct uplink **out)
{
	struct uplink *u = alloc_get(&alloc_plain, "uplink", sizeof(*u));
	int rc;

	if (u == NULL)
		return -ENOMEM;
	u->sw = sw;
	u->port = *port;
	u->vlan = net->vlan;
	u->mtu = mtu;
	u->link_up = port->ops->link_up(port->drv);
	rc = net_create_sized(net, sw->conf.neighs, &u->net);
	if (rc == 0) {
		rc = uplink_queues_create(u);
		if (rc != 0)
			net_destroy(u->net);
	}
	if (rc != 0) {
		alloc_put(&alloc_plain, u, sizeof(*u));
		return rc;
	}
	net_user_init(&u->cm, true);
	filter_set(u);
	sw->up = u;
	*out = u;
	return 0;
}

void
uplink_destroy(struct uplink *u)
{
	struct port port = u->port;
	struct sw_client *c;

	TAILQ_FOREACH (c, &u->sw->clients, link)
		net_user_fini(u->net, &c->user->neighs);
	u->sw->up = NULL;
	for (uint32_t i = 0; i < u->neigh_queue_count; i++)
		port_io_frame_put(&u->io, &u->neigh_queue[i].frame);
	uplink_queues_destroy(u);
	net_destroy(u->net);
	alloc_put(&alloc_plain, u, sizeof(*u));
	port.ops->close(port.drv);
}

void
uplink_stats_read(struct uplink *u, struct port_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	for (uint32_t i = 0; i < u->sw->thread_count; i++) {
		struct sw_thread *t = u->sw->threads[i];

		sw_thread_lock(t);
		port_stats_add(stats, t->port_stats);
		sw_thread_unlock(t);
	}
}
