/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Headers to bytes. The constant part of a path's headers is built once (struct
 * path_hdr), with the ICRC over it for each of the last two UDP lengths. A packet is then
 * built in three steps:
 *
 *   ext = frame_begin(hdr, pkt, &fields, payload_len);  // L2 .. BTH; pkt->len is final
 *   ... write the extended headers at ext, the payload at frame_payload() ...
 *   frame_end(hdr, pkt, payload_len);                   // pad and ICRC
 *
 * For a payload that may be long, use frame_sum() after the first step, icrc_sum_copy()
 * for the payload, and frame_end_sum() at the end. The payload is then copied and added
 * to the ICRC in one pass. */
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

/* Bytes of a path's headers that are copied for every frame, even if the headers are
 * shorter: the shortest frame has room for them. The rest of longer headers is copied
 * too. */
#define FRAME_COPY 48
static_assert(FRAME_COPY <= 14 + 20 + 8 + sizeof(struct bth) + ICRC_LEN, "room");

/* the UDP length and checksum, which follow what icrc_path() covers */
#define FRAME_UDP_TAIL 4

/* Data that the ICRC or the port loads as 16 bytes is stored as 16 bytes: a load that
 * spans several stores stalls until they have reached the cache (no store forwarding). */
typedef uint32_t frame_words __attribute__((vector_size(16)));
typedef uint64_t frame_block __attribute__((vector_size(16)));

/* The values that a path's headers are built from. Addresses are GIDs (IPv4 as
 * ::ffff:a.b.c.d). */
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
	uint32_t src_qpn;   /* for ports that use PKT_TX_QPN() */
	bool cksum_offload; /* leave the IPv4 header checksum to the port */
};

struct path_hdr {
	uint8_t bytes[PATH_HDR_MAX];
	uint8_t len;            /* bytes used: up to the end of the UDP header */
	uint8_t ip_version : 3; /* 4 or 6 */
	uint8_t l3_off : 5;     /* offset of the IP header */
	uint32_t crc;           /* icrc_path() for udp_len */
	uint32_t pkt_flags;     /* PKT_TX_*, and the QPN for PKT_TX_QPN() */
	uint16_t udp_len;       /* the length that bytes and crc are for; 0: none yet */
	/* The values for the UDP length used before: a QP often sends messages and
	 * acknowledgements alternately. */
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

/* IBA's mapping of the flow label to the UDP source port, 0xC000-0xFFFF. Flow label 0 is
 * derived from the QPNs, the same in both directions (as Linux's RDMA core does). */
uint16_t roce_udp_sport(uint32_t flow_label, uint32_t qpn, uint32_t dest_qpn);

/* Uses IPv4 if dst_gid is IPv4-mapped. The destination MAC may be changed later with
 * path_hdr_set_dst(). */
void path_hdr_init(struct path_hdr *hdr, const struct path_addr *addr);
void path_hdr_set_dst(struct path_hdr *hdr, const uint8_t dst_mac[6]);

/* Makes the frames of this path carry the IPv4 header checksum, because no port fills it
 * in. */
void path_hdr_no_offload(struct path_hdr *hdr);

/* Sets the traffic class, and the priority of the VLAN tag if there is one. */
void path_hdr_set_class(struct path_hdr *hdr, uint8_t tclass, uint8_t priority);

/* Bits of the UDP source port to be inverted, and what that inverts of icrc_path(). */
struct port_flip {
	uint16_t port;
	uint32_t crc;
};
struct port_flip port_flip_make(uint16_t port);
/* Changes the port of the path, or only that of the frame, after frame_begin(). */
void path_hdr_flip_port(struct path_hdr *hdr, const struct port_flip *flip);
void frame_flip_port(const struct path_hdr *hdr, struct pkt *pkt, struct icrc_sum *sum,
	const struct port_flip *flip);

/* Updates the lengths, the IPv4 checksum and the ICRC state. */
void path_hdr_set_len(struct path_hdr *hdr, uint32_t udp_len);

/* pkt->room must be at least frame_len(). Sets pkt->len and the transmit flags. Returns
 * where the extended headers go (op_rows[opcode].ext_len bytes). */
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

	/* UDP length, checksum and BTH are one store, because the ICRC loads them as 16
	 * bytes. The ICRC takes the checksum and byte 4 of the BTH as ones; frame_end()
	 * makes them 0. MigReq: the path migration state is Migrated, as channel adapters
	 * send it. */
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

/* After frame_begin(): returns the ICRC over the path's headers, to be continued behind
 * them. */
static inline struct icrc_sum
frame_sum(const struct path_hdr *hdr, const struct pkt *pkt)
{
	return (struct icrc_sum){
		.from = pkt->data + hdr->len - FRAME_UDP_TAIL, .crc = hdr->crc};
}

/* Clears the UDP checksum and byte 4 of the BTH, which the ICRC takes as ones. */
static inline void
frame_tail_clear(uint8_t *at)
{
	frame_words tail;

	__builtin_memcpy(&tail, at, sizeof(tail));
	tail &= (frame_words){rte_cpu_to_be_32(0xFFFF0000), UINT32_MAX,
		rte_cpu_to_be_32(0x00FFFFFF), UINT32_MAX};
	__builtin_memcpy(at, &tail, sizeof(tail));
}

/* Pads the payload and appends the ICRC. hdr is that of frame_begin(), not used for
 * another frame since. The ICRC covers what the frame holds now, hence what is sent, even
 * if the application writes to its buffer meanwhile. */
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

/* As frame_end_sum(), for a payload that was copied without icrc_sum_copy(). */
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

/* Returns where the payload goes. After frame_begin(). */
static inline uint8_t *
frame_payload(const struct path_hdr *hdr, const struct pkt *pkt, uint8_t opcode)
{
	return pkt->data + hdr->len + sizeof(struct bth) + op_rows[opcode].ext_len;
}

#endif
