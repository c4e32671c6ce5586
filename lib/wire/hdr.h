/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Header layouts of RoCEv2 (IBA 9.2 to 9.3, annex A17). Multi-byte fields are big-endian.
 * The L2 to L4 headers are DPDK's (rte_ether.h, rte_ip.h, rte_udp.h, rte_arp.h,
 * rte_icmp.h). */
#ifndef ROCADE_WIRE_HDR_H
#define ROCADE_WIRE_HDR_H

#include <rte_byteorder.h>

#include "base/common.h"

#define ROCE_UDP_PORT 4791
#define ICRC_LEN 4
#define MSG_MAX (UINT32_C(1) << 31) /* bytes of the longest message (IBA 9.4.1) */
#define PKEY_DEFAULT 0xFFFF
/* The partition; the other bit is full membership (IBA 10.9). */
#define PKEY_NUMBER 0x7FFF
#define QKEY_CONTROLLED 0x80000000u /* only for privileged users (IBA 10.2.5) */
#define QPN_MULTICAST 0xFFFFFF      /* DestQP of multicast packets */
#define IPV6_MULTICAST 0xFF         /* first byte of an IPv6 group (RFC 4291 2.7) */

/* True unless the QPN is 0 or 1, which are for management, or that of multicast (IBA
 * 3.5.3, 3.5.8). */
static inline bool
qpn_is_ordinary(uint32_t qpn)
{
	return qpn > 1 && qpn < QPN_MULTICAST;
}

/* True for the GID of an IPv4 address, ::ffff:a.b.c.d. */
static inline bool
gid_is_mapped(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};

	return __builtin_memcmp(gid, mapped, sizeof(mapped)) == 0;
}

struct bth {
	uint8_t opcode;
	uint8_t flags; /* BTH_* and pad count, TVer */
	uint16_t pkey;
	uint8_t ecn; /* FECN, BECN, reserved: not covered by the ICRC */
	uint8_t dest_qpn[3];
	uint8_t ack; /* BTH_ACKREQ */
	uint8_t psn[3];
} PACKED;
static_assert(sizeof(struct bth) == 12, "IBA 9.2");

#define BTH_SE 0x80
#define BTH_MIGREQ 0x40
#define BTH_PAD_SHIFT 4
#define BTH_TVER_MASK 0x0F
#define BTH_FECN 0x80
#define BTH_BECN 0x40
#define BTH_ACKREQ 0x80

/* Congestion notifications (annex A17), as hardware sends them by default: DSCP 48 and not
 * ECT; priority 6 in a VLAN tag; 16 zeros after the BTH. */
#define CNP_TCLASS (48 << 2)
#define CNP_PRIORITY 6
#define CNP_PAYLOAD 16
#define VLAN_PRIORITY_SHIFT 13

struct reth {
	uint64_t va;
	uint32_t rkey;
	uint32_t len;
} PACKED;
static_assert(sizeof(struct reth) == 16, "IBA 9.3.3");

struct aeth {
	uint8_t syndrome;
	uint8_t msn[3];
} PACKED;
static_assert(sizeof(struct aeth) == 4, "IBA 9.3.5");

/* Writes a struct aeth. */
static inline void
aeth_put(uint8_t *to, uint8_t syndrome, uint32_t msn)
{
	uint32_t word = rte_cpu_to_be_32((uint32_t)syndrome << 24 | (msn & 0xFFFFFF));

	__builtin_memcpy(to, &word, sizeof(word));
}

struct atomic_eth {
	uint64_t va;
	uint32_t rkey;
	uint64_t swap_add;
	uint64_t compare;
} PACKED;
static_assert(sizeof(struct atomic_eth) == 28, "IBA 9.3.4");

struct xrceth {
	uint8_t reserved;
	uint8_t srqn[3];
} PACKED;
static_assert(sizeof(struct xrceth) == 4, "IBA annex A14");

struct deth {
	uint32_t qkey;
	uint8_t reserved;
	uint8_t src_qpn[3];
} PACKED;
static_assert(sizeof(struct deth) == 8, "IBA 9.3.2");

/* Selective acknowledgement (docs/protocol.md 20.4). */
struct seth {
	uint8_t version; /* SETH_VERSION << 4 */
	uint8_t echo[3]; /* PSN of the packet that caused it */
	/* bit i of byte n: the packet with the PSN in the BTH + 1 + 8 * n + i is held */
	uint8_t map[16];
} PACKED;
static_assert(sizeof(struct seth) == 20, "a multiple of 4");

#define SETH_VERSION 1

/* AETH syndromes (IBA 9.7.5.2.1). */
#define AETH_ACK 0x1F     /* ACK, credits not limited */
#define AETH_RNR_NAK 0x20 /* | timer code */
#define AETH_NAK_SEQ 0x60
#define AETH_NAK_INV_REQ 0x61
#define AETH_NAK_ACCESS 0x62
#define AETH_NAK_REM_OP 0x63
#define AETH_TYPE_MASK 0xE0
#define AETH_TYPE_ACK 0x00
#define AETH_TYPE_RNR 0x20
#define AETH_TYPE_NAK 0x60
#define AETH_VALUE_MASK 0x1F

static inline uint32_t
be24_get(const uint8_t b[3])
{
	return (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
}

static inline void
be24_put(uint8_t b[3], uint32_t v)
{
	b[0] = (uint8_t)(v >> 16);
	b[1] = (uint8_t)(v >> 8);
	b[2] = (uint8_t)v;
}

/* RNR timer code (5 bits) -> nanoseconds (IBA 9.7.5.2.8, table 45). */
extern const uint32_t rnr_timer_ns[32];

/* Path MTU code 1..5 -> 256..4096 bytes. */
static inline uint32_t
mtu_bytes(unsigned code)
{
	return 128u << code;
}

/* The most that a packet with payload has beside it: a WRITE ONLY with immediate data to an
 * XRC SRQ over IPv6 (A14, A17): 40 IPv6, 8 UDP, and the headers of the transport. */
#define HEADERS_MAX                                                                      \
	(40 + 8 + sizeof(struct bth) + sizeof(struct xrceth) + sizeof(struct reth) + 4 + \
		ICRC_LEN)
static_assert(HEADERS_MAX == 88, "docs/protocol.md 1");

/* Returns the code of the largest path MTU whose packets fit the IP MTU. */
static inline unsigned
mtu_code_fitting(uint32_t ip_mtu)
{
	unsigned code = 5;

	while (code > 1 && mtu_bytes(code) + HEADERS_MAX > ip_mtu)
		code--;
	return code;
}

#endif
