/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "port/ext_query.h"
#include "port/net_addr.h"
#include "switch/sw_client.h"
#include "switch/sw_ext.h"
#include "wire/ext_mad.h"

/* the longest frame with a query: IPv6, no VLAN tag */
#define FRAME_MAX                                                                        \
	(14 + 40 + 8 + sizeof(struct bth) + sizeof(struct deth) + GSI_LEN + ICRC_LEN)

/* A client's query, checked. */
struct query {
	struct ext_mad mad;
	uint8_t ours[16];
	uint8_t theirs[16];
};

/* Returns the counter of the reason to drop the packet, or NULL for a query. The daemon is the
 * receiver here, so the ICRC is checked, too. */
static uint64_t *
query_read(struct sw_client *from, const uint8_t *buf, uint32_t len, struct query *query)
{
	const struct net_conf *net = &from->sw->conf.net;
	struct sw_stats *stats = sw_client_stats(from, from->sw->threads[0]);
	uint8_t frame[FRAME_MAX];
	struct pkt pkt = {.data = frame,
		.len = (uint16_t)len,
		.room = sizeof(frame),
		.flags = PKT_RX_IPV4_CKSUM_OK}; /* clients may leave the checksum empty */
	struct pkt_view view;

	if (len > sizeof(frame))
		return &stats->drop_malformed;
	memcpy(frame, buf, len);
	if (pkt_parse(&pkt, 0, &view) != DROP_none)
		return &stats->drop_malformed;
	if (view.dest_qpn != GSI_QPN || gsi_admit(&view) != DROP_none ||
		ext_mad_read(view.payload, &query->mad) != EXT_MAD_QUERY)
		return &stats->drop_special_qpn;
	view_gids(&view, query->ours, query->theirs);
	if (!net_is_ours(net, query->ours))
		return &stats->drop_source_address;
	return gid_is_multicast(query->theirs) ? &stats->drop_special_qpn : NULL;
}

/* Delivers the answer, from the QP 1 of the other host. */
static void
answer_deliver(struct sw_client *to, const struct query *query, uint32_t extensions)
{
	const struct ext_mad mad = {.tid = query->mad.tid, .extensions = extensions};
	uint8_t frame[FRAME_MAX + LINE_SIZE], bytes[GSI_LEN];
	struct pkt pkt = {.data = frame, .room = sizeof(frame)};
	struct path_addr addr = {0};
	struct handed_bytes whole;

	memcpy(addr.src_gid, query->theirs, 16);
	memcpy(addr.dst_gid, query->ours, 16);
	memcpy(addr.src_mac, to->sw->conf.net.mac, 6);
	memcpy(addr.dst_mac, to->sw->conf.net.mac, 6);
	ext_mad_write(bytes, EXT_MAD_ANSWER, &mad);
	gsi_frame_build(&pkt, &addr, 0, bytes);
	whole = (struct handed_bytes){frame, pkt.len, frame + pkt.len, pkt.len};
	sw_client_deliver(to->sw->threads[0], to, &whole);
}

/* As ext_query_ask(), for a host that no user's queries reach too often. Returns the counter
 * of the reason to drop the query, or NULL. */
static uint64_t *
host_ask(struct sw_client *from, const struct query *query, enum ext_known *known,
	uint32_t *extensions)
{
	struct rate *rate = &from->user->ext_rate;
	struct sw *sw = from->sw;
	struct sw_stats *stats = sw_client_stats(from, sw->threads[0]);

	*known = ext_query_find(sw->ext, query->ours, query->theirs, sw->now, extensions);
	if (*known != EXT_KNOWN_NOT)
		return NULL;
	if (sw->up == NULL)
		return &stats->drop_no_route;
	if (rate_ready_ns(rate) > sw->now)
		return &stats->drop_ext_limit;
	*known = ext_query_ask(sw->ext, query->ours, query->theirs, sw->now, extensions);
	if (*known == EXT_KNOWN_NOT)
		return &stats->drop_ext_limit;
	rate_take(rate, sw->now);
	return NULL;
}

void
sw_ext_query(struct sw_client *from, const uint8_t *buf, uint32_t len)
{
	enum ext_known known = EXT_KNOWN;
	struct query query;
	uint32_t extensions = ext_query_own(from->sw->ext);
	struct sw_stats *stats = sw_client_stats(from, from->sw->threads[0]);
	uint64_t *why = query_read(from, buf, len, &query);

	/* The other clients understand what the daemon does. */
	if (why == NULL && !net_is_ours(&from->sw->conf.net, query.theirs))
		why = host_ask(from, &query, &known, &extensions);
	if (why != NULL) {
		(*why)++;
		return;
	}
	stats->ext_queries++;
	if (known == EXT_KNOWN)
		answer_deliver(from, &query, extensions);
}
