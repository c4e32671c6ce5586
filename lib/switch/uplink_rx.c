/* SPDX-License-Identifier: BSD-3-Clause */
/* Received packets: delivery to the client that owns their QPN. */
#include <string.h>

#include <rte_ether.h>

#include "port/net_addr.h"
#include "switch/sw_client.h"
#include "switch/sw_dump.h"
#include "switch/sw_group.h"
#include "switch/uplink.h"

/* Hands a frame over to another thread. Returns false if there is no room: it is lost. */
static bool
frame_hand_over(struct sw_thread *t, const struct sw_thread *to, const struct pkt *pkt)
{
	struct handed *slot = handover_slot(t, to);

	if (unlikely(slot == NULL)) {
		t->stats.drop_handover_full++;
		return false;
	}
	slot->kind = HANDED_FRAME;
	slot->client = NULL;
	slot->frame = *pkt;
	handover_put(t, to);
	return true;
}

/* Delivers the packet behind a new Ethernet header, without the port's VLAN tag: clients
 * see no VLAN. Returns whether the frame was handed over. */
static inline bool
uplink_deliver(struct uplink *u, struct sw_thread *t, const struct pkt *pkt,
	const struct pkt_view *view, const uint8_t dgid[16])
{
	struct rte_ether_hdr eth = {
		.ether_type = view->ip_version == 4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4)
						    : RTE_BE16(RTE_ETHER_TYPE_IPV6)};
	uint32_t l3 = pkt->len - (uint32_t)(view->ip - pkt->data);
	const struct handed_bytes bytes = {
		(uint8_t *)&eth, sizeof(eth), view->ip, (uint32_t)sizeof(eth) + l3};
	const struct sw_qp *qp;

	memcpy(&eth.dst_addr, u->port.mac, 6);
	memcpy(&eth.src_addr, u->port.mac, 6);
	if (unlikely(view->dest_qpn == QPN_MULTICAST)) {
		if (!sw_group_deliver(t, dgid, NULL, &bytes))
			t->port_stats->drop[DROP_group]++;
		return false;
	}
	qp = qpns_find(&u->sw->qpns, view->dest_qpn);
	if (unlikely(qp == NULL)) {
		t->port_stats->drop[view->op->kind == OP_CNP ? DROP_cnp : DROP_qpn]++;
		return false;
	}
	if (qp->owner->thread != t)
		return frame_hand_over(t, qp->owner->thread, pkt);
	t->port_stats->rx_roce++;
	sw_dump(t, qp->owner, view->dest_qpn, SW_DUMP_IN, &bytes);
	sw_client_put(qp->owner, bytes.head, bytes.head_len, bytes.rest, bytes.len,
		RING_CKSUM_OK);
	return false;
}

/* Thread 0 has the neighbour table and the connection manager. Returns whether the frame was
 * handed over to it. */
static bool
control_frame_rx(
	struct uplink *u, struct sw_thread *t, const struct pkt *pkt, uint64_t now)
{
	if (t->index != 0)
		return frame_hand_over(t, t->sw->threads[0], pkt);
	port_io_net_rx(&u->io, pkt, now);
	return false;
}

/* Returns whether the frame was handed over to another thread, which gives it back then. */
static inline bool
uplink_packet_rx(
	struct uplink *u, struct sw_thread *t, const struct pkt *pkt, uint64_t now)
{
	uint8_t sgid[16], dgid[16];
	struct pkt_view view;
	unsigned why = pkt_parse_headers(pkt, u->vlan, &view);

	if (unlikely(why != DROP_none)) {
		if (why == PARSE_OTHER)
			return control_frame_rx(u, t, pkt, now);
		t->port_stats->drop[why]++;
		return false;
	}
	view_gids(&view, sgid, dgid);
	/* Only packets to one of our addresses, or to a group address if they are
	 * multicast. None of them may claim one of our addresses as its source. */
	if (unlikely(net_is_ours(&u->sw->conf.net, sgid) ||
		     (view.dest_qpn == QPN_MULTICAST
				     ? !gid_is_multicast(dgid)
				     : !net_is_ours(&u->sw->conf.net, dgid)))) {
		t->port_stats->drop[DROP_address]++;
		return false;
	}
	if (likely(view.dest_qpn > 1))
		return uplink_deliver(u, t, pkt, &view, dgid);
	if (t->index != 0)
		return frame_hand_over(t, t->sw->threads[0], pkt);
	uplink_gsi_rx(u, pkt, &view, dgid, sgid, now);
	return false;
}

unsigned
uplink_queue_rx(struct uplink *u, struct sw_thread *t, uint64_t now)
{
	const struct port_queue *q = &t->io->queue;
	struct pkt pkts[PKT_BURST];
	unsigned n, kept = 0;

	n = q->ops->rx_burst(q->queue, pkts, PKT_BURST);
	for (unsigned i = 0; i < n; i++) {
		if (i + 1 < n)
			__builtin_prefetch(pkts[i + 1].data);
		t->port_stats->rx_packets++;
		t->port_stats->rx_bytes += pkts[i].len;
		t->port_stats->rx_linearised += (pkts[i].flags & PKT_RX_LINEARISED) != 0;
		if (likely(!uplink_packet_rx(u, t, &pkts[i], now)))
			pkts[kept++] = pkts[i];
	}
	if (kept != 0)
		q->ops->rx_release(q->queue, pkts, kept);
	t->stats.rx_packets += n;
	return n;
}

unsigned
uplink_rx(struct uplink *u, uint64_t now)
{
	struct sw_thread *t = u->sw->threads[0];

	u->sw->now = t->now = now;
	return uplink_queue_rx(u, t, now);
}

void
uplink_frame_taken(struct uplink *u, struct sw_thread *t, struct pkt *frame, uint64_t now)
{
	const struct port_queue *q = &t->io->queue;

	if (!uplink_packet_rx(u, t, frame, now))
		q->ops->rx_release(q->queue, frame, 1);
}
