/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Headers -> bytes. What is constant for a path is built once (struct path_hdr), with the
 * ICRC over it for the last payload length used. A packet is then built in three steps:
 *
 *   ext = frame_begin(hdr, pkt, &fields, payload_len);  // L2 .. BTH; pkt->len is final
 *   ... write the extended headers at ext, the payload at frame_payload() ...
 *   frame_end(hdr, pkt, payload_len);                   // pad and ICRC
 *
 * or, where the payload may be long, with frame_sum() behind the first step and frame_end_sum() in
 * the end: what is copied with the sum is summed as it is copied.
 */
#ifndef ROCADE_WIRE_BUILD_H
#define ROCADE_WIRE_BUILD_H

#include <string.h>

#include <rte_byteorder.h>
#include <rte_udp.h>

#include "wire/hdr.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"

#define PATH_HDR_MAX (14 + 4 + 40 + 8)

/* The part of a path's bytes that is copied for every frame; longer ones copy the rest
 * too. The shortest frame has this room. */
#define FRAME_COPY 48
static_assert(FRAME_COPY <= 14 + 20 + 8 + sizeof(struct bth) + ICRC_LEN, "room");

/* Of the UDP header: length and checksum, behind what icrc_path() covers. */
#define FRAME_UDP_TAIL 4

/* What is loaded again as 16 bytes, by the ICRC or by the port, is stored as 16 bytes: a load over
 * several stores waits until they have reached the cache. */
typedef uint32_t frame_words __attribute__((vector_size(16)));
typedef uint64_t frame_block __attribute__((vector_size(16)));

/* What a path's headers are made from; addresses as GIDs (IPv4 as ::ffff:a.b.c.d). */
struct path_addr {
	uint8_t src_gid[16];
	uint8_t dst_gid[16];
	uint8_t src_mac[6];
	uint8_t dst_mac[6];
	uint16_t vlan; /* the tag: VLAN id, priority in bits 15-13; 0: untagged */
	uint16_t udp_sport;
	uint32_t flow_label; /* IPv6, 20 bits */
	uint8_t tclass;
	uint8_t hop_limit;
	uint32_t src_qpn;   /* for ports that want to know: PKT_TX_QPN() */
	bool cksum_offload; /* leave the IPv4 header checksum to the port */
};

struct path_hdr {
	uint8_t bytes[PATH_HDR_MAX];
	uint8_t len;	       /* of bytes: up to the end of the UDP header */
	uint8_t ip_version : 3; /* 4 or 6 */
	uint8_t l3_off : 5;    /* of the IP header */
	uint32_t crc;	       /* icrc_path() for udp_len */
	uint32_t pkt_flags;    /* PKT_TX_*, and the QPN that PKT_TX_QPN() tells */
	uint16_t udp_len; /* what bytes and crc are for; 0: not computed yet */
	/* Of the length before that: a QP often sends messages and acknowledgements in turn. */
	uint16_t other_udp_len;
	uint16_t other_cksum;
	uint32_t other_crc;
};

struct bth_fields {
	uint32_t dest_qpn;
	uint32_t psn;
	uint16_t pkey;
	uint8_t opcode;
	bool solicited;
	bool ack_req;
};

/* The IBA's flow label -> UDP source port, 0xC000-0xFFFF; flow_label 0 is derived from the
 * QPNs, the same in both directions (what Linux's RDMA core does). */
uint16_t roce_udp_sport(uint32_t flow_label, uint32_t qpn, uint32_t dest_qpn);

/* IPv4 when dst_gid is IPv4-mapped. The destination MAC may be changed later with
 * path_hdr_set_dst(). */
void path_hdr_init(struct path_hdr *hdr, const struct path_addr *addr);
void path_hdr_set_dst(struct path_hdr *hdr, const uint8_t dst_mac[6]);

/* For a path whose frames no port finishes: the IPv4 checksum is filled in here. */
void path_hdr_no_offload(struct path_hdr *hdr);

/* Brings the lengths, the IPv4 checksum and the ICRC state up to date. */
void path_hdr_set_len(struct path_hdr *hdr, uint32_t udp_len);

/* pkt->room must hold frame_len(). Sets pkt->len and the transmit flags; returns the place of
 * the extended headers (op_rows[opcode].ext_len bytes). */
static inline uint8_t *
frame_begin(struct path_hdr *hdr, struct pkt *pkt, const struct bth_fields *bth,
	uint32_t payload_len)
{
	uint32_t ext_len = op_rows[bth->opcode].ext_len;
	uint32_t pad = -payload_len & 3;
	uint32_t udp_len = (uint32_t)(sizeof(struct rte_udp_hdr) + sizeof(struct bth)) +
			   ext_len + payload_len + pad + ICRC_LEN;
	uint32_t flags =
		BTH_MIGREQ | pad << BTH_PAD_SHIFT | (bth->solicited ? BTH_SE : 0);
	uint8_t *data = pkt->data;
	frame_words tail;

	if (unlikely(udp_len != hdr->udp_len))
		path_hdr_set_len(hdr, udp_len);
	__builtin_memcpy(data, hdr->bytes, FRAME_COPY);
	if (hdr->len > FRAME_COPY)
		__builtin_memcpy(data + FRAME_COPY, hdr->bytes + FRAME_COPY,
			PATH_HDR_MAX - FRAME_COPY);

	/* UDP length and checksum, then the BTH, in one store: the ICRC loads it whole,
	 * and takes checksum and byte 4 of the BTH as ones; frame_end() makes them 0.
	 * MigReq: path migration is in its Migrated state, as hardware says. */
	tail = (frame_words){
		rte_cpu_to_be_32(udp_len << 16 | 0xFFFF),
		rte_cpu_to_be_32((uint32_t)bth->opcode << 24 | flags << 16 | bth->pkey),
		rte_cpu_to_be_32(bth->dest_qpn | UINT32_C(0xFF) << 24),
		rte_cpu_to_be_32((uint32_t)bth->ack_req << 31 | (bth->psn & PSN_MASK)),
	};
	__builtin_memcpy(data + hdr->len - FRAME_UDP_TAIL, &tail, sizeof(tail));

	pkt->len = (uint16_t)(hdr->len - sizeof(struct rte_udp_hdr) + udp_len);
	pkt->flags = hdr->pkt_flags;
	return data + hdr->len + sizeof(struct bth);
}

/* After frame_begin(): what is summed is the path's. */
static inline struct icrc_sum
frame_sum(const struct path_hdr *hdr, const struct pkt *pkt)
{
	return (struct icrc_sum){
		.from = pkt->data + hdr->len - FRAME_UDP_TAIL, .crc = hdr->crc};
}

/* UDP checksum and byte 4 of the BTH, which the ICRC takes as ones, as they are sent. */
static inline void
frame_tail_clear(uint8_t *at)
{
	frame_words tail;

	__builtin_memcpy(&tail, at, sizeof(tail));
	tail &= (frame_words){rte_cpu_to_be_32(0xFFFF0000), UINT32_MAX,
		rte_cpu_to_be_32(0x00FFFFFF), UINT32_MAX};
	__builtin_memcpy(at, &tail, sizeof(tail));
}

/* The same hdr, with no frame_begin() in between. The ICRC is of what the frame holds
 * now: of what is sent, whatever the application does to its buffer meanwhile. */
static inline void
frame_end_sum(const struct path_hdr *hdr, struct pkt *pkt, uint32_t payload_len,
	struct icrc_sum sum)
{
	uint8_t *tail_at = pkt->data + hdr->len - FRAME_UDP_TAIL;
	uint8_t *end = pkt->data + pkt->len - ICRC_LEN;
	uint32_t pad = -payload_len & 3, crc = sum.crc;

	if (unlikely(pad != 0))
		memset(end - pad, 0, pad);
	if (likely(sum.from != end))
		crc = icrc_update(crc, sum.from, (size_t)(end - sum.from));
	crc = rte_cpu_to_le_32(crc);
	frame_tail_clear(tail_at);
	__builtin_memcpy(end, &crc, sizeof(crc));
}

/* Or, where the payload comes later, and no extended headers: after frame_begin() the ICRC over
 * all before it, and, when it is there, pad and ICRC. */
static inline uint32_t
frame_head_end(const struct path_hdr *hdr, struct pkt *pkt)
{
	uint8_t *tail_at = pkt->data + hdr->len - FRAME_UDP_TAIL;
	uint32_t crc = icrc_update(hdr->crc, tail_at, sizeof(frame_words));

	frame_tail_clear(tail_at);
	return crc;
}

static inline void
frame_payload_end(struct pkt *pkt, uint32_t payload_len, uint32_t crc)
{
	uint8_t *end = pkt->data + pkt->len - ICRC_LEN;
	uint32_t pad = -payload_len & 3;

	if (unlikely(pad != 0))
		memset(end - pad, 0, pad);
	crc = rte_cpu_to_le_32(
		icrc_update(crc, end - pad - payload_len, payload_len + pad));
	__builtin_memcpy(end, &crc, sizeof(crc));
}

/* The same where nothing was copied with a sum. */
static inline void
frame_end(const struct path_hdr *hdr, struct pkt *pkt, uint32_t payload_len)
{
	frame_end_sum(hdr, pkt, payload_len, frame_sum(hdr, pkt));
}

static inline uint32_t
frame_len(const struct path_hdr *hdr, uint8_t opcode, uint32_t payload_len)
{
	return hdr->len + (uint32_t)sizeof(struct bth) + op_rows[opcode].ext_len +
	       ((payload_len + 3) & ~3u) + ICRC_LEN;
}

/* Bytes of the payload, with its pad, of the frame that hdr was used for last, if that had no
 * extended headers; 0: none yet. */
static inline uint32_t
frame_plain_len(const struct path_hdr *hdr)
{
	uint32_t fixed = sizeof(struct rte_udp_hdr) + sizeof(struct bth) + ICRC_LEN;

	return hdr->udp_len > fixed ? hdr->udp_len - fixed : 0;
}

/* Where the payload stands, after frame_begin(). */
static inline uint8_t *
frame_payload(const struct path_hdr *hdr, const struct pkt *pkt, uint8_t opcode)
{
	return pkt->data + hdr->len + sizeof(struct bth) + op_rows[opcode].ext_len;
}

#endif
