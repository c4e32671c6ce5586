/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Bytes to packet view or drop reason: rows 1 and 2 of docs/protocol.md 8.2
 * (IBA 9.6.1). It knows lengths and codes, but no QPs. */
#ifndef ROCADE_WIRE_PARSE_H
#define ROCADE_WIRE_PARSE_H

#include "base/base_stats.h"
#include "wire/hdr.h"
#include "wire/opcode.h"
#include "wire/pkt.h"

/* Points into the packet's frame, and is valid as long as that. */
struct pkt_view {
	const struct op_row *op;
	const uint8_t *ext; /* the extended headers, behind the BTH */
	/* Behind the extended headers, or, with PKT_RX_HEADERS, where the sender can still write it:
	 * what depends on its bytes reads them once. */
	const uint8_t *payload;
	uint32_t payload_len; /* without the pad */
	uint32_t dest_qpn;
	uint32_t psn;
	uint16_t pkey;
	uint8_t opcode;
	uint8_t pad;
	bool solicited;
	bool ack_req;
	uint8_t ip_version;  /* 4 or 6 */
	uint8_t tclass;      /* TOS or traffic class: DSCP and ECN */
	bool payload_placed; /* direct placement has copied it: see qp_icrc_check() */
	bool payload_apart;  /* it does not follow the headers: PKT_RX_HEADERS */
	const uint8_t *ip;   /* the IP header */
	const struct bth *bth;
};

/* Returned by pkt_parse() besides the values of enum drop_reason: not a RoCEv2 packet but
 * a frame for the port itself (ARP, ICMP, ICMPv6, IGMP), for net_rx(). */
#define PARSE_OTHER DROP_COUNT

/*
 * Returns DROP_none and a filled view for a well-formed RoCEv2 packet whose ICRC is
 * right, PARSE_OTHER for a frame that lib/port answers, and a drop reason for all others.
 * The view is undefined unless DROP_none is returned. For PARSE_OTHER the IP header has
 * been checked (lengths, IPv4 checksum, not a fragment) unless it has options, and
 * nothing after it. vlan: the port's VLAN id, 0 for none. A port with a VLAN takes no
 * untagged frames, and none with a priority tag (VLAN 0), which count as untagged. The
 * UDP checksum is ignored: the ICRC covers more. The packet ends where the UDP length
 * says; the frame may be longer.
 */
unsigned pkt_parse(const struct pkt *pkt, uint16_t vlan, struct pkt_view *view);

/* As pkt_parse(), without the check of the ICRC. Reads the headers up to the BTH and
 * nothing behind it. So pkt->data may be a copy of the frame's first PARSE_HEADERS bytes,
 * which also contain the extended headers for the caller; pkt->len is that of the
 * frame. */
#define PARSE_HEADERS (14 + 4 + 40 + 8 + 12 + EXT_LEN_MAX)
unsigned pkt_parse_headers(const struct pkt *pkt, uint16_t vlan, struct pkt_view *view);

/* Of a packet with PKT_RX_HEADERS. Its headers are parsed as this copy; its payload is in the frame. */
struct pkt_headers {
	uint8_t bytes[PARSE_HEADERS];
	const uint8_t *frame;
};

/* Fills in the source and destination addresses as GIDs. */
void view_gids(const struct pkt_view *v, uint8_t src[16], uint8_t dst[16]);

static inline const struct aeth *
view_aeth(const struct pkt_view *v)
{
	return (const struct aeth *)(v->ext + v->op->main_off);
}

static inline const struct reth *
view_reth(const struct pkt_view *v)
{
	return (const struct reth *)(v->ext + v->op->main_off);
}

/* XRC requests: the XRCETH is the first extended header. */
static inline uint32_t
view_srqn(const struct pkt_view *v)
{
	return be24_get(((const struct xrceth *)v->ext)->srqn);
}

static inline const struct seth *
view_seth(const struct pkt_view *v)
{
	return (const struct seth *)v->ext;
}

static inline const struct deth *
view_deth(const struct pkt_view *v)
{
	return (const struct deth *)(v->ext + v->op->main_off);
}

/* Immediate data or IETH, the last extended header. As on the wire (big-endian). */
static inline uint32_t
view_imm_be(const struct pkt_view *v)
{
	uint32_t imm;

	__builtin_memcpy(&imm, v->ext + v->op->ext_len - 4, sizeof(imm));
	return imm;
}

#endif
