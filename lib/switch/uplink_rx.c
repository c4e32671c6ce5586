/* SPDX-License-Identifier: BSD-3-Clause */
/* Received packets: delivery to the client that owns their QPN. */
#include <string.h>

#include <rte_ether.h>

#include "port/net_addr.h"
#include "switch/sw_client.h"
#include "switch/sw_group.h"
#include "switch/uplink.h"

/* Delivers the packet behind a new Ethernet header, without the port's VLAN tag: clients
 * see no VLAN. */
static void
uplink_deliver(struct uplink *u, const struct pkt *pkt, const struct pkt_view *view,
	const uint8_t dgid[16])
{
	struct rte_ether_hdr eth = {
		.ether_type = view->ip_version == 4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4)
						    : RTE_BE16(RTE_ETHER_TYPE_IPV6)};
	uint32_t l3 = pkt->len - (uint32_t)(view->ip - pkt->data);
	const struct sw_qp *qp;

	memcpy(&eth.dst_addr, u->port.mac, 6);
	memcpy(&eth.src_addr, u->port.mac, 6);
	if (unlikely(view->dest_qpn == QPN_MULTICAST)) {
		if (!sw_group_deliver(u->sw, dgid, NULL, (uint8_t *)&eth, sizeof(eth),
			    view->ip, (uint32_t)sizeof(eth) + l3))
			u->stats.drop[DROP_group]++;
		return;
	}
	qp = qpns_find(&u->sw->qpns, view->dest_qpn);
	if (unlikely(qp == NULL)) {
		u->stats.drop[view->op->kind == OP_CNP ? DROP_cnp : DROP_qpn]++;
		return;
	}
	u->stats.rx_roce++;
	sw_client_put(qp->owner, (uint8_t *)&eth, sizeof(eth), view->ip,
		(uint32_t)sizeof(eth) + l3, RING_CKSUM_OK);
}

static void
uplink_packet_rx(struct uplink *u, const struct pkt *pkt, uint64_t now)
{
	uint8_t sgid[16], dgid[16];
	struct pkt_view view;
	unsigned why = pkt_parse_headers(pkt, u->vlan, &view);

	if (unlikely(why != DROP_none)) {
		if (why == PARSE_OTHER)
			port_io_net_rx(&u->io, pkt, now);
		else
			u->stats.drop[why]++;
		return;
	}
	view_gids(&view, sgid, dgid);
	/* Only packets to one of our addresses, or to a group address if they are
	 * multicast. None of them may claim one of our addresses as its source. */
	if (unlikely(net_is_ours(&u->sw->conf.net, sgid) ||
		     (view.dest_qpn == QPN_MULTICAST
				     ? !gid_is_multicast(dgid)
				     : !net_is_ours(&u->sw->conf.net, dgid)))) {
		u->stats.drop[DROP_address]++;
		return;
	}
	if (unlikely(view.dest_qpn <= 1))
		uplink_gsi_rx(u, pkt, &view, dgid, sgid, now);
	else
		uplink_deliver(u, pkt, &view, dgid);
}

unsigned
uplink_rx(struct uplink *u, uint64_t now)
{
	void *queue = u->port.queues[0];
	struct pkt pkts[PKT_BURST];
	unsigned n;

	u->sw->now = now;
	n = u->port.ops->rx_burst(queue, pkts, PKT_BURST);
	for (unsigned i = 0; i < n; i++) {
		if (i + 1 < n)
			__builtin_prefetch(pkts[i + 1].data);
		u->stats.rx_packets++;
		u->stats.rx_bytes += pkts[i].len;
		u->stats.rx_linearised += (pkts[i].flags & PKT_RX_LINEARISED) != 0;
		uplink_packet_rx(u, &pkts[i], now);
	}
	if (n != 0)
		u->port.ops->rx_release(queue, pkts, n);
	return n;
}
