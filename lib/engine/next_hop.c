/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <errno.h>
#include <string.h>

#include "engine/next_hop.h"

void
engine_headers_build(const struct dev *dev, struct qp *qp)
{
	struct path_addr addr = {
		.vlan = dev->conf.net.vlan,
		.udp_sport = roce_udp_sport(qp->path.flow_label, qp->qpn, qp->dest_qpn),
		.flow_label = qp->path.flow_label,
		.tclass = qp->path.tclass,
		.hop_limit = qp->path.hop_limit != 0 ? qp->path.hop_limit : 64,
		.src_qpn = qp->qpn,
		.cksum_offload = dev->port.caps.tx_ipv4_cksum,
	};

	memcpy(addr.src_gid, qp->path.sgid, 16);
	memcpy(addr.dst_gid, qp->path.dgid, 16);
	memcpy(addr.src_mac, dev->port.mac, 6);
	path_hdr_init(&qp->hdr, &addr);
}

bool
next_hop_ud_path(struct engine *e, struct qp *qp)
{
	const struct ud_dest *dest = qp_next_dest(qp);
	struct qp_path path;

	if (dest == NULL)
		return qp->state != IBV_QPS_RTS;
	path = (struct qp_path){
		.flow_label = dest->flow_label,
		.sgid_index = dest->sgid_index,
		.hop_limit = dest->hop_limit,
		.tclass = dest->tclass,
		.sl = dest->sl,
	};
	memcpy(path.sgid, e->dev->gids[dest->sgid_index], sizeof(path.sgid));
	memcpy(path.dgid, dest->dgid, sizeof(path.dgid));
	if (likely(memcmp(&path, &qp->path, sizeof(path)) == 0))
		return true;
	qp->path = path;
	qp->sched.resolved = false;
	engine_headers_build(e->dev, qp);
	return true;
}

/* Chooses the route by the MAC: the port's own, a group's, or another host's. */
static int
route_set(const struct engine *e, struct qp *qp, const uint8_t mac[6])
{
	if (memcmp(mac, e->dev->port.mac, 6) == 0)
		qp->sched.route = ROUTE_SELF;
	else
		qp->sched.route = mac[0] & 1 ? ROUTE_GROUP : ROUTE_PEER;
	/* The engine itself parses the packets of the other routes, those of ROUTE_GROUP
	 * before the port sends them. No NIC has filled in the checksum by then. */
	if (qp->sched.route != ROUTE_PEER)
		path_hdr_no_offload(&qp->hdr);
	return qp->sched.route;
}

static int
next_hop_mac(struct engine *e, const struct qp *qp, uint8_t mac[6], uint64_t now)
{
	if (likely(e->dev->conf.hooks == NULL || gid_is_multicast(qp->path.dgid)))
		return net_resolve(e->dev->net, qp->path.dgid, mac, now);
	/* With hooks the daemon writes the Ethernet header. It may deliver to other
	 * clients even if the address is one of this port. */
	memset(mac, 0, 6);
	return 0;
}

/* An address handle names its source by the index of a GID, whose address may have been
 * replaced, or removed, since the handle was made. Then no packet may leave: it would have a
 * source address that no host has. */
static bool
path_has_source(const struct qp_path *p)
{
	return gid_reaches(p->sgid, p->dgid);
}

int
next_hop_lookup(struct engine *e, struct qp *qp, uint64_t now)
{
	uint8_t mac[6];
	int rc = likely(path_has_source(&qp->path)) ? next_hop_mac(e, qp, mac, now)
						    : -EHOSTUNREACH;

	if (rc == 0) {
		path_hdr_set_dst(&qp->hdr, mac);
		qp->sched.resolved = true;
		qp->sched.net_generation = e->net_generation;
		return route_set(e, qp, mac);
	}
	/* The old MAC serves until another is known. */
	return qp->sched.resolved && rc == -EAGAIN ? qp->sched.route : rc;
}
