/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a client's packet goes, and whether it may. */
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>

#include "switch/sw.h"
#include "wire/parse.h"

#define QPN_MULTICAST 0xFFFFFF

struct route {
	struct sw_client *from;
	uint8_t head[PARSE_HEADERS]; /* our copy: what is checked is what is sent */
	uint32_t head_len;
	const uint8_t *rest;
	uint32_t len;
	struct pkt_view view;
	uint8_t sgid[16];
	uint8_t dgid[16];
};

static void
addresses_read(struct route *r)
{
	if (r->view.ip_version == 4) {
		const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)r->view.ip;

		memset(r->sgid, 0, 10);
		memset(r->dgid, 0, 10);
		memset(r->sgid + 10, 0xff, 2);
		memset(r->dgid + 10, 0xff, 2);
		memcpy(r->sgid + 12, &ip->src_addr, 4);
		memcpy(r->dgid + 12, &ip->dst_addr, 4);
	} else {
		const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)r->view.ip;

		memcpy(r->sgid, ip->src_addr, 16);
		memcpy(r->dgid, ip->dst_addr, 16);
	}
}

/* Both Ethernet addresses are ours until the packet leaves the machine. */
static void
ethernet_write(struct route *r, const uint8_t mac[6])
{
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)r->head;

	memcpy(&eth->dst_addr, mac, 6);
	memcpy(&eth->src_addr, mac, 6);
}

/* Whether the packet has to wait for who owns the QP. */
static bool
must_wait(const struct sw_qp *qp)
{
	return unlikely(ring_room(&qp->owner->rx) == 0) && sw_client_hold(qp->owner);
}

static void
to_qp(struct route *r, const struct sw_qp *qp)
{
	sw_client_put(qp->owner, r->head, r->head_len, r->rest, r->len, RING_CKSUM_OK);
}

static bool
to_uplink(struct route *r)
{
	struct sw *sw = r->from->sw;

	return sw->uplink != NULL && sw->uplink(sw->uplink_arg, r->from, r->head,
					     r->head_len, r->rest, r->len, r->dgid);
}

static bool
is_multicast(const uint8_t gid[16])
{
	return gid_is_ipv4(gid) ? gid[12] >> 4 == 0xe : gid[0] == 0xff;
}

static bool
group_must_wait(const struct sw *sw, const struct sw_group *g)
{
	for (uint32_t i = 0; g != NULL && i < g->count; i++) {
		const struct sw_qp *qp = qpns_find(&sw->qpns, g->qpns[i]);

		if (qp != NULL && must_wait(qp))
			return true;
	}
	return false;
}

/* One copy to each client that has members, whose engine gives it to all of them; the
 * sender's own has done so already. */
static uint64_t *
to_group(struct route *r)
{
	struct sw *sw = r->from->sw;
	const struct sw_group *g = sw_group_find(sw, r->dgid);
	bool any = false;

	if (group_must_wait(sw, g))
		return &r->from->stats.tx_held;

	r->from->stamp = ++sw->stamp;
	for (uint32_t i = 0; g != NULL && i < g->count; i++) {
		const struct sw_qp *qp = qpns_find(&sw->qpns, g->qpns[i]);

		any = true;
		if (qp == NULL || qp->owner->stamp == sw->stamp)
			continue;
		qp->owner->stamp = sw->stamp;
		to_qp(r, qp);
	}
	return to_uplink(r) || any ? NULL : &r->from->stats.drop_no_group;
}

/* The place of the counter that says why not; NULL: it may go. */
static uint64_t *
check(struct route *r, const struct sw_qp *qp, uint32_t qpn)
{
	struct sw_stats *stats = &r->from->stats;
	uint32_t dest = r->view.dest_qpn;

	if (unlikely(dest <= 1))
		return &stats->drop_special_qpn;
	if (r->view.op->service == SERVICE_UD) {
		if (unlikely(be24_get(view_deth(&r->view)->src_qpn) != qpn))
			return &stats->drop_deth;
		if (unlikely(!sw_is_ours(r->from->sw, r->sgid)))
			return &stats->drop_source_address;
		return NULL;
	}
	if (unlikely(!qp->peer))
		return &stats->drop_peer;
	/* What was registered was one of our addresses. */
	if (unlikely(memcmp(r->sgid, qp->sgid, 16) != 0))
		return &stats->drop_source_address;
	if (unlikely(dest != qp->dest_qpn || memcmp(r->dgid, qp->dgid, 16) != 0))
		return &stats->drop_peer;
	return NULL;
}

static uint64_t *
send_on(struct route *r, const struct sw_qp *qp, uint32_t qpn)
{
	struct sw_stats *stats = &r->from->stats;
	struct sw *sw = r->from->sw;
	bool ud = r->view.op->service == SERVICE_UD;

	if (ud ? sw_is_ours(sw, r->dgid) : qp->peer_local) {
		const struct sw_qp *dest = qpns_find(&sw->qpns, r->view.dest_qpn);

		if (unlikely(dest == NULL))
			return &stats->drop_no_qp;
		/* A connection has two ends: nobody else speaks to it. */
		if (unlikely(!ud && (dest->dest_qpn != qpn || !dest->peer_local)))
			return &stats->drop_stranger;
		if (must_wait(dest))
			return &stats->tx_held;
		ethernet_write(r, sw->conf.net.mac);
		to_qp(r, dest);
		return NULL;
	}
	if (unlikely(is_multicast(r->dgid))) {
		if (!ud || r->view.dest_qpn != QPN_MULTICAST)
			return &stats->drop_special_qpn;
		ethernet_write(r, sw->conf.net.mac);
		return to_group(r);
	}
	return to_uplink(r) ? NULL : &stats->drop_no_route;
}

/* Our copy of the headers, taken apart; false: it is no packet. */
static bool
headers_read(struct route *r, const uint8_t *buf, const struct ring_desc *desc)
{
	struct pkt pkt = {.data = r->head, .len = desc->len, .room = desc->len};

	r->len = desc->len;
	r->head_len = RTE_MIN(r->len, (uint32_t)sizeof(r->head));
	memcpy(r->head, buf, r->head_len);
	r->rest = buf + r->head_len;
	pkt.flags = PKT_RX_IPV4_CKSUM_OK; /* a client need not compute it */
	if (unlikely(parse_headers(&pkt, 0, &r->view) != DROP_none))
		return false;
	/* Nothing travels behind the packet. */
	if (unlikely((uint32_t)(r->view.ext - r->head) + r->view.op->ext_len +
			     r->view.payload_len + r->view.pad + ICRC_LEN !=
		     r->len))
		return false;
	addresses_read(r);
	return true;
}

bool
sw_forward(struct sw_client *from, const struct ring_desc *desc)
{
	const struct region *region = &from->region;
	const struct sw_qp *qp;
	struct route r;
	uint64_t *why;

	if (unlikely(desc->buf >= region->geom.tx_bufs ||
		     desc->len > region->geom.buf_size)) {
		from->stats.drop_descriptor++;
		return true;
	}
	qp = qpns_find(&from->sw->qpns, desc->qpn);
	if (unlikely(qp == NULL || qp->owner != from)) {
		from->stats.drop_foreign_qpn++;
		return true;
	}
	r.from = from;
	if (unlikely(!headers_read(&r, region_tx_buf(region, desc->buf), desc))) {
		from->stats.drop_malformed++;
		return true;
	}
	why = check(&r, qp, desc->qpn);
	if (likely(why == NULL))
		why = send_on(&r, qp, desc->qpn);
	if (unlikely(why != NULL)) {
		(*why)++;
		return why != &from->stats.tx_held;
	}
	from->stats.tx_packets++;
	from->stats.tx_bytes += r.len;
	return true;
}
