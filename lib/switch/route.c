/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks and routes the packets that clients send. */
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>

#include "port/net_addr.h"
#include "switch/route.h"
#include "switch/sw_ask.h"
#include "switch/sw_client.h"
#include "switch/sw_dump.h"
#include "switch/sw_ext.h"
#include "switch/sw_group.h"
#include "switch/sw_qp.h"
#include "switch/sw_wait.h"
#include "switch/uplink.h"
#include "wire/wire_gsi.h"

/* Writes the Ethernet header of a packet that stays on this host: both addresses are the
 * daemon's MAC. */
static void
ethernet_write(struct sw_packet *p, const uint8_t mac[6])
{
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)p->head;

	memcpy(&eth->dst_addr, mac, 6);
	memcpy(&eth->src_addr, mac, 6);
}

/* Delivers the packet to a client of this thread, or hands it over to the client's. */
static enum sw_sent
client_deliver(struct sw_packet *p, struct sw_client *to)
{
	const struct sw_thread *thread = to->thread;
	struct handed_bytes bytes;

	if (likely(thread == p->thread)) {
		if (sw_client_backpressure(to, p->from))
			return SW_RETRY;
		ethernet_write(p, to->sw->conf.net.mac);
		sw_client_put(to, p->head, p->head_len, p->rest, p->len, RING_CKSUM_OK);
		return SW_SENT;
	}
	ethernet_write(p, to->sw->conf.net.mac);
	bytes = sw_packet_bytes(p);
	if (likely((!sw_client_holds(to) || p->thread->final_flush) &&
		    handover_bytes(p->thread, thread, HANDED_DELIVER, to, &bytes)))
		return SW_SENT;
	p->thread->stats.handover_blocked++;
	return SW_RETRY;
}

/* Copies the packet for rocade-dump, if it was sent, or thread 0 sends it. */
static enum sw_sent
sent_note(const struct sw_packet *p, const struct sw_qp *qp, uint32_t direction,
	enum sw_sent sent)
{
	const struct handed_bytes bytes = sw_packet_bytes(p);

	if (sent == SW_SENT || sent == SW_HANDED)
		sw_dump(p->thread, qp->owner, qp->qpn, direction, &bytes);
	return sent;
}

static enum sw_sent
uplink_forward(struct sw_packet *p, struct sw_qp *qp)
{
	struct uplink *up = p->from->sw->up;

	return up != NULL ? uplink_send(up, p, qp) : sw_drop(&p->stats->drop_no_route);
}

/* The sending client's engine has already delivered the packet to the members that this
 * client has. A member whose ring is full loses the packet, as at a NIC: anybody may
 * join, so a slow member must not block the sender. The port comes first: a packet that is
 * offered again must not be delivered twice. */
static enum sw_sent
group_forward(struct sw_packet *p, struct sw_qp *qp)
{
	struct sw *sw = p->from->sw;
	enum sw_sent out = SW_SENT;
	struct handed_bytes bytes;

	if (sw->up != NULL)
		out = uplink_send(sw->up, p, qp);
	if (out == SW_RETRY)
		return out;
	ethernet_write(p, sw->conf.net.mac);
	bytes = sw_packet_bytes(p);
	if (!sw_group_deliver(p->thread, p->dgid, p->from, &bytes) && sw->up == NULL)
		return sw_drop(&p->stats->drop_no_group);
	return out;
}

/* Returns the counter of the reason to drop the packet, or NULL if it may be sent. */
static uint64_t *
packet_check(struct sw_packet *p, const struct sw_qp *qp, uint32_t qpn)
{
	struct sw_stats *stats = p->stats;
	uint32_t dest = p->view.dest_qpn;

	/* QP 1 belongs to the daemon: clients use RDMA-CM commands instead. */
	if (unlikely(dest <= 1))
		return &stats->drop_special_qpn;
	if (unlikely((p->view.pkey & PKEY_NUMBER) != (PKEY_DEFAULT & PKEY_NUMBER)))
		return &stats->drop_pkey;
	if (p->view.op->service == SERVICE_UD) {
		if (unlikely(rte_be_to_cpu_32(view_deth(&p->view)->qkey) &
			     QKEY_CONTROLLED) &&
			!p->from->privileged)
			return &stats->drop_qkey;
		if (unlikely(be24_get(view_deth(&p->view)->src_qpn) != qpn))
			return &stats->drop_deth;
		if (unlikely(!net_is_ours(&p->from->sw->conf.net, p->sgid)))
			return &stats->drop_source_address;
		return NULL;
	}
	if (unlikely(!qp->peer))
		return &stats->drop_peer;
	/* peer_set() and sw_set_net() made sure that qp->sgid is one of the daemon's
	 * addresses. */
	if (unlikely(memcmp(p->sgid, qp->sgid, 16) != 0))
		return &stats->drop_source_address;
	if (unlikely(dest != qp->dest_qpn || memcmp(p->dgid, qp->dgid, 16) != 0))
		return &stats->drop_peer;
	return NULL;
}

static inline bool
packet_is_request(const struct op_row *op)
{
	return op->kind >= OP_SEND && op->kind <= OP_ATOMIC_WRITE;
}

/* A connected QP accepts packets from its peer only. Each has to have registered this QP, not an
 * earlier one of the same QPN. The two have not, or earlier packets of qp have to go first. */
static enum sw_sent
packet_wait(struct sw_packet *p, struct sw_qp *qp, struct sw_qp *dest)
{
	if (qp->dest_serial != dest->serial ||
		(dest->peer ? dest->dest_serial != qp->serial
			    : !packet_is_request(p->view.op)))
		return sw_drop(&p->stats->drop_not_connected);
	/* Connected, but its client's ring is full. */
	if (dest->peer)
		return SW_RETRY;
	ethernet_write(p, p->from->sw->conf.net.mac);
	return sw_wait_add(p, qp, dest);
}

static enum sw_sent
packet_forward(struct sw_packet *p, struct sw_qp *qp)
{
	struct sw_stats *stats = p->stats;
	struct sw *sw = p->from->sw;
	bool ud = p->view.op->service == SERVICE_UD;

	if (ud ? net_is_ours(&sw->conf.net, p->dgid) : qp->peer_local) {
		struct sw_qp *dest = qpns_find(&sw->qpns, p->view.dest_qpn);
		enum sw_sent sent;

		if (unlikely(dest == NULL))
			return sw_drop(&stats->drop_no_qp);
		if (unlikely(!ud && ((dest->dest_serial ^ qp->serial) |
					    (qp->dest_serial ^ dest->serial) |
					    qp->waiting) != 0))
			return packet_wait(p, qp, dest);
		sent = client_deliver(p, dest->owner);
		(void)sent_note(p, qp, SW_DUMP_OUT, sent);
		return sent_note(p, dest, SW_DUMP_IN, sent);
	}
	if (unlikely(gid_is_multicast(p->dgid))) {
		if (!ud || p->view.dest_qpn != QPN_MULTICAST)
			return sw_drop(&stats->drop_special_qpn);
		return sent_note(p, qp, SW_DUMP_OUT, group_forward(p, qp));
	}
	if (unlikely(p->view.dest_qpn == QPN_MULTICAST))
		return sw_drop(&stats->drop_special_qpn);
	return sent_note(p, qp, SW_DUMP_OUT, uplink_forward(p, qp));
}

static uint8_t
hop_limit(const struct pkt_view *v)
{
	return v->ip[v->ip_version == 4 ? offsetof(struct rte_ipv4_hdr, time_to_live)
					: offsetof(struct rte_ipv6_hdr, hop_limits)];
}

/* Copies and parses the headers. Returns the counter of the reason to drop the packet, or
 * NULL for a whole RoCEv2 packet. */
static uint64_t *
headers_read(struct sw_packet *p, const uint8_t *buf, const struct ring_desc *desc)
{
	struct pkt pkt = {.data = p->head, .len = desc->len, .room = desc->len};
	struct sw_stats *stats = p->stats;
	unsigned why;

	p->len = desc->len;
	p->head_len = RTE_MIN(p->len, (uint32_t)sizeof(p->head));
	memcpy(p->head, buf, p->head_len);
	p->rest = buf + p->head_len;
	pkt.flags = PKT_RX_IPV4_CKSUM_OK; /* clients may leave the checksum empty */
	why = pkt_parse_headers(&pkt, 0, &p->view);
	if (unlikely(why != DROP_none))
		return why == DROP_mapped_address ? &stats->drop_mapped_address
						  : &stats->drop_malformed;
	/* No bytes may follow the ICRC. No host sends a hop limit of 0 (RFC 1122
	 * 3.2.1.7). */
	if (unlikely((uint32_t)(p->view.ext - p->head) + p->view.op->ext_len +
				     p->view.payload_len + p->view.pad + ICRC_LEN !=
			     p->len ||
		     hop_limit(&p->view) == 0))
		return &stats->drop_malformed;
	view_gids(&p->view, p->sgid, p->dgid);
	return NULL;
}

/* A client's query for extensions, which thread 0 handles. The client repeats one that is lost. */
static void
query_forward(struct sw_client *from, const uint8_t *buf, uint32_t len)
{
	const struct handed_bytes bytes = {.head = buf, .rest = buf, .len = len};
	struct sw_thread *t = from->thread;

	if (t->index == 0)
		sw_ext_query(from, buf, len);
	else if (!handover_bytes(t, t->sw->threads[0], HANDED_QUERY, from, &bytes))
		t->stats.drop_handover_full++;
}

enum sw_sent
sw_send_for(struct sw_client *from, const uint8_t *bytes, uint32_t len)
{
	struct ring_desc desc = {.len = (uint16_t)len};
	struct sw_packet p = {.from = from,
		.thread = from->sw->threads[0],
		.stats = &from->control_stats};
	enum sw_sent sent;

	if (headers_read(&p, bytes, &desc) != NULL)
		return SW_DROPPED; /* the client's thread has read them before */
	sent = uplink_forward(&p, NULL);
	if (sent == SW_SENT) {
		p.stats->tx_packets++;
		p.stats->tx_bytes += p.len;
	}
	p.stats->drop_port_full += sent == SW_RETRY;
	return sent;
}

bool
sw_forward(struct sw_client *from, const struct ring_desc *desc)
{
	const struct region *region = &from->region;
	struct sw_packet p;
	enum sw_sent sent;
	struct sw_qp *qp;
	uint64_t *why;

	if (unlikely(desc->flags & RING_ASK))
		return sw_ask(from, desc);
	if (unlikely(desc->buf >= region->geom.tx_bufs ||
		     desc->len > region->geom.buf_size)) {
		from->stats.drop_descriptor++;
		return true;
	}
	qp = qpns_find(&from->sw->qpns, desc->qpn);
	if (unlikely(qp == NULL || qp->owner != from)) {
		if (desc->qpn == GSI_QPN)
			query_forward(from, region_tx_buf(region, desc->buf), desc->len);
		else
			from->stats.drop_not_owner++;
		return true;
	}
	p.from = from;
	p.thread = from->thread;
	p.stats = &from->stats;
	why = headers_read(&p, region_tx_buf(region, desc->buf), desc);
	if (likely(why == NULL))
		why = packet_check(&p, qp, desc->qpn);
	sent = likely(why == NULL) ? packet_forward(&p, qp) : sw_drop(why);
	if (likely(sent == SW_SENT)) {
		from->stats.tx_packets++;
		from->stats.tx_bytes += p.len;
	}
	from->stats.tx_blocked += sent == SW_RETRY;
	return sent != SW_RETRY;
}
