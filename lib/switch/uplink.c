/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's port: transmitted packets (next hop, Ethernet header), link state. */
#include <errno.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>

#include "port/ext_query.h"
#include "switch/sw_hop.h"
#include "switch/uplink.h"

/* ---- Next hops ---- */

/* Stands for a user without clients, as the user of their queued packets. */
static const struct net_user departed;

static void
neigh_queue_drop(struct uplink *u, struct uplink_neigh_entry *h)
{
	u->stats.tx_no_neighbour++;
	port_io_frame_put(&u->io, &h->frame);
}

/* Drops the queued frames that are too old. Most have left long before: their next hop
 * answers, or its resolution fails. */
static void
neigh_queue_expire(struct uplink *u)
{
	uint32_t n = 0;

	while (n < u->neigh_queue_count && u->neigh_queue[n].until_ns <= u->sw->now)
		neigh_queue_drop(u, &u->neigh_queue[n++]);
	if (n == 0)
		return;
	u->neigh_queue_count -= n;
	memmove(u->neigh_queue, u->neigh_queue + n,
		u->neigh_queue_count * sizeof(u->neigh_queue[0]));
}

/* Sends the queued frames whose next hop is resolved by now, and drops those whose
 * resolution failed. */
static void
neigh_queue_retry(struct uplink *u)
{
	uint32_t generation = net_generation(u->net), kept = 0;
	bool all_sent = true;

	for (uint32_t i = 0; i < u->neigh_queue_count; i++) {
		struct uplink_neigh_entry *h = &u->neigh_queue[i];
		int rc = net_lookup(u->net, h->dgid, h->frame.data);

		if (rc == 0 && port_io_has_room(&u->io, u->sw->now)) {
			port_io_queue(&u->io, &h->frame, u->sw->now);
		} else if (rc == 0 || rc == -EAGAIN) {
			all_sent &= rc != 0;
			u->neigh_queue[kept++] = *h;
		} else {
			neigh_queue_drop(u, h);
		}
	}
	u->neigh_queue_count = kept;
	if (all_sent)
		u->neigh_queue_generation = generation;
}

/* Returns whether another packet may be queued. client 0: it is the connection
 * manager's, a request (user &u->cm) or an answer (NULL). Clients leave
 * UPLINK_NEIGH_QUEUE_CM entries to it, of which its requests and its answers may take
 * UPLINK_NEIGH_QUEUE_EACH each. So if there is no room for a request, older requests are
 * queued: neigh_queue_evict() relies on that. */
static bool
neigh_queue_room(const struct uplink *u, const struct net_user *user, uint32_t client)
{
	uint32_t same_user = 0, same_client = 0, clients = 0;

	for (uint32_t i = 0; i < u->neigh_queue_count; i++) {
		const struct uplink_neigh_entry *h = &u->neigh_queue[i];

		same_user += h->user == user;
		same_client += h->user == user && h->client == client;
		clients += h->client != 0;
	}
	return same_client < UPLINK_NEIGH_QUEUE_EACH &&
	       same_user < UPLINK_NEIGH_QUEUE_USER &&
	       (client == 0 || clients < UPLINK_NEIGH_QUEUE - UPLINK_NEIGH_QUEUE_CM);
}

/* The oldest request of the connection manager makes room for a new one: it is lost, and
 * sent again later. So the requests of a user to hosts that do not answer do not keep those
 * of others from waiting, for as long as a host needs to answer. */
static void
neigh_queue_evict(struct uplink *u)
{
	uint32_t i = 0;

	while (u->neigh_queue[i].user != &u->cm)
		i++;
	neigh_queue_drop(u, &u->neigh_queue[i]);
	u->neigh_queue_count--;
	memmove(&u->neigh_queue[i], &u->neigh_queue[i + 1],
		(u->neigh_queue_count - i) * sizeof(u->neigh_queue[0]));
}

static void
neigh_queue_add(struct uplink *u, const uint8_t dgid[16], const struct net_user *user,
	uint32_t client, const struct pkt *frame)
{
	struct uplink_neigh_entry *h = &u->neigh_queue[u->neigh_queue_count];

	/* A retry is due only when the generation changes. */
	if (u->neigh_queue_count++ == 0)
		u->neigh_queue_generation = net_generation(u->net);
	h->frame = *frame;
	h->user = user;
	h->client = client;
	h->until_ns = u->sw->now + UPLINK_NEIGH_QUEUE_NS;
	memcpy(h->dgid, dgid, 16);
}

uint32_t
uplink_queued(const struct uplink *u, const struct net_user *user)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < u->neigh_queue_count; i++)
		count += u->neigh_queue[i].user == user;
	return count;
}

static void
hop_keep(struct sw_qp *qp, const uint8_t dgid[16], const uint8_t mac[6], int rc,
	uint32_t generation)
{
	qp->hop_known = rc == 0;
	qp->hop_generation = generation;
	memcpy(qp->hop_dgid, dgid, 16);
	memcpy(qp->hop_mac, mac, 6);
}

/* As net_resolve_for(), with the QP's last result cached in the QP. -EREMOTE: the thread does not
 * know the next hop. qp: NULL if it is another thread's. */
static int
uplink_next_hop(
	struct uplink *u, const struct sw_packet *p, struct sw_qp *qp, uint8_t mac[6])
{
	uint32_t generation = net_generation(u->net);
	int rc;

	if (likely(qp != NULL && qp->hop_known && qp->hop_generation == generation &&
		    memcmp(qp->hop_dgid, p->dgid, 16) == 0)) {
		memcpy(mac, qp->hop_mac, 6);
		return 0;
	}
	if (p->thread->index != 0) {
		if (!sw_hop_find(p->thread, p->dgid, generation, mac))
			return -EREMOTE;
		hop_keep(qp, p->dgid, mac, 0, generation);
		return 0;
	}
	/* Older queued packets go first, to keep the order. */
	if (u->neigh_queue_count != 0 && u->neigh_queue_generation != generation)
		neigh_queue_retry(u);
	rc = net_resolve_for(u->net, &p->from->user->neighs, p->dgid, mac, u->sw->now);
	if (qp != NULL)
		hop_keep(qp, p->dgid, mac, rc, generation);
	return rc;
}

/* Thread 0 looks up the next hop, and sends the packet. */
static enum sw_sent
uplink_hand_over(const struct sw_packet *p)
{
	struct sw_thread *t = p->thread, *to = t->sw->threads[0];
	const struct handed_bytes bytes = sw_packet_bytes(p);
	struct handed *slot = handover_slot(t, to);

	if (slot != NULL)
		memcpy(slot->gid, p->dgid, 16);
	if (handover_bytes(t, to, HANDED_SEND, p->from, &bytes))
		return SW_HANDED;
	t->stats.handover_blocked++;
	return SW_RETRY;
}

void
uplink_hop_tell(struct uplink *u, const struct sw_thread *to, const uint8_t dgid[16])
{
	struct sw_thread *from = u->sw->threads[0];
	struct sw_hop hop = {.known = true, .generation = net_generation(u->net)};
	struct handed *slot = handover_slot(from, to);

	/* Without room the next packet comes this way, too. */
	if (slot == NULL || net_lookup(u->net, dgid, hop.mac) != 0)
		return;
	memcpy(hop.dgid, dgid, 16);
	slot->kind = HANDED_HOP;
	slot->client = NULL;
	slot->hop = hop;
	handover_put(from, to);
}

void
uplink_resolve(struct uplink *u, struct sw_client *client, const uint8_t dgid[16])
{
	uint8_t mac[6];

	(void)net_resolve_for(u->net, &client->user->neighs, dgid, mac, u->sw->now);
}

void
uplink_forget(struct uplink *u, struct sw_user *user)
{
	net_user_fini(u->net, &user->neighs);
	for (uint32_t i = 0; i < u->neigh_queue_count; i++)
		if (u->neigh_queue[i].user == &user->neighs)
			u->neigh_queue[i].user = &departed;
}

/* ---- Sending ---- */

static void
uplink_cksum_set(const struct uplink *u, struct pkt *frame, struct rte_ipv4_hdr *ip)
{
	ip->hdr_checksum = 0;
	if (u->port.caps.tx_ipv4_cksum)
		frame->flags |= PKT_TX_IPV4_CKSUM;
	else
		ip->hdr_checksum = rte_ipv4_cksum(ip);
}

static uint16_t
vlan_tci(const struct uplink *u, const struct pkt_view *v)
{
	unsigned priority = unlikely(v->op->kind == OP_CNP) ? CNP_PRIORITY : 0;

	return (uint16_t)(u->vlan | priority << VLAN_PRIORITY_SHIFT);
}

/* Writes the Ethernet header and the VLAN tag. From the IP header on the bytes are the
 * client's, except the IPv4 header checksum. */
static bool
frame_write(const struct uplink *u, const struct sw_packet *p, const uint8_t mac[6],
	struct pkt *frame)
{
	uint32_t l2 = (uint32_t)(p->view.ip - p->head), head = p->head_len - l2;
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)frame->data;
	struct rte_vlan_hdr *tag = (struct rte_vlan_hdr *)(eth + 1);
	uint16_t type = p->view.ip_version == 4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4)
						: RTE_BE16(RTE_ETHER_TYPE_IPV6);
	uint32_t at = sizeof(*eth) + (u->vlan != 0 ? sizeof(*tag) : 0);

	if (unlikely(at + p->len - l2 > frame->room))
		return false;
	memcpy(&eth->dst_addr, mac, 6);
	memcpy(&eth->src_addr, u->port.mac, 6);
	eth->ether_type = type;
	if (u->vlan != 0) {
		eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_VLAN);
		tag->vlan_tci = rte_cpu_to_be_16(vlan_tci(u, &p->view));
		tag->eth_proto = type;
	}
	memcpy(frame->data + at, p->head + l2, head);
	memcpy(frame->data + at + head, p->rest, p->len - p->head_len);
	frame->len = (uint16_t)(at + p->len - l2);
	frame->flags = 0;
	if (p->view.ip_version == 4)
		uplink_cksum_set(u, frame, (struct rte_ipv4_hdr *)(frame->data + at));
	return true;
}

enum sw_sent
uplink_send(struct uplink *u, const struct sw_packet *p, struct sw_qp *qp)
{
	struct sw_thread *t = p->thread;
	struct sw_stats *stats = p->stats;
	uint8_t mac[6] = {0};
	struct pkt frame;
	int rc;

	if (unlikely(!__atomic_load_n(&u->link_up, __ATOMIC_RELAXED)))
		return sw_drop(&stats->drop_no_link);
	if (unlikely(p->len - (uint32_t)(p->view.ip - p->head) > u->mtu))
		return sw_drop(&stats->drop_too_long);
	rc = uplink_next_hop(u, p, qp, mac);
	if (unlikely(rc == -EREMOTE))
		return uplink_hand_over(p);
	if (unlikely(rc != 0 && rc != -EAGAIN && rc != -EDQUOT))
		return sw_drop(&stats->drop_no_route);
	if (unlikely(rc == -EDQUOT ||
		     (rc == -EAGAIN &&
			     !neigh_queue_room(u, &p->from->user->neighs, p->from->id))))
		return sw_drop(&stats->drop_unresolved);
	if (unlikely(!port_io_has_room(t->io, t->now) ||
		     !port_io_frame_get(t->io, &frame)))
		return SW_RETRY;
	if (unlikely(!frame_write(u, p, mac, &frame))) {
		port_io_frame_put(t->io, &frame);
		return sw_drop(&stats->drop_too_long);
	}
	if (likely(rc == 0))
		port_io_queue(t->io, &frame, t->now);
	else
		neigh_queue_add(u, p->dgid, &p->from->user->neighs, p->from->id, &frame);
	return SW_SENT;
}

bool
uplink_frame_send(
	struct uplink *u, const struct pkt *frame, const uint8_t dgid[16], bool answer)
{
	const struct net_user *user = answer ? NULL : &u->cm;
	uint64_t now = u->sw->now;
	int rc = answer ? net_resolve_answer(u->net, dgid, frame->data, now)
			: net_resolve_for(u->net, &u->cm, dgid, frame->data, now);

	if (rc == 0 && port_io_has_room(&u->io, now)) {
		port_io_queue(&u->io, frame, now);
		return true;
	}
	if (rc == -EAGAIN && !answer && !neigh_queue_room(u, user, 0))
		neigh_queue_evict(u);
	if (rc == -EAGAIN && neigh_queue_room(u, user, 0)) {
		neigh_queue_add(u, dgid, user, 0, frame);
		return true;
	}
	if (rc == 0 || rc == -EAGAIN)
		u->stats.tx_no_buffer++;
	else
		u->stats.tx_no_neighbour++;
	port_io_frame_put(&u->io, frame);
	return false;
}

bool
uplink_tx(struct uplink *u, uint64_t now)
{
	u->sw->now = u->sw->threads[0]->now = now;
	if (port_io_link_due(&u->io, now) &&
		port_link_update(&u->port, u->net, &u->link_up))
		sw_changed(u->sw, u->link_up);
	if (unlikely(u->neigh_queue_count != 0)) {
		if (u->neigh_queue_generation != net_generation(u->net))
			neigh_queue_retry(u);
		neigh_queue_expire(u);
	}
	port_io_net_tx(&u->io, now);
	return port_io_flush(&u->io, now);
}

uint64_t
uplink_deadline(const struct uplink *u)
{
	uint64_t next_ns = TIME_NEVER;

	if (u->io.backlog_count != 0 || port_queue_holds(&u->io.queue))
		return 0;
	if (u->neigh_queue_count != 0)
		next_ns = u->neigh_queue[0].until_ns;
	next_ns = RTE_MIN(next_ns, ext_query_deadline(u->sw->ext));
	return RTE_MIN(RTE_MIN(next_ns, u->io.link_poll_ns), net_deadline(u->net));
}
