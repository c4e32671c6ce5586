/* SPDX-License-Identifier: BSD-3-Clause */
/* A packet that a client sends, between route.c and uplink.c. */
#ifndef ROCADE_SWITCH_SW_PACKET_H
#define ROCADE_SWITCH_SW_PACKET_H

#include "switch/handover.h"
#include "switch/sw.h"
#include "wire/pkt_parse.h"

/* Result of forwarding a packet. */
enum sw_sent {
	SW_SENT,
	/* the port or the receiver is full: the packet stays in its client's ring and is
	 * offered again */
	SW_RETRY,
	SW_DROPPED,
	SW_HANDED,  /* to thread 0, which sends and counts it */
	SW_WAITING, /* kept, and counted once it is delivered (sw_wait.h) */
};

/* A client's packet: a private copy of its headers, and where the rest of it is. The copy
 * is what is checked and sent. */
struct sw_packet {
	struct sw_client *from;
	struct sw_thread *thread; /* that forwards it */
	struct sw_stats *stats;   /* where that thread counts it */
	uint8_t head[PARSE_HEADERS];
	uint32_t head_len;
	const uint8_t *rest;
	uint32_t len;
	struct pkt_view view;
	uint8_t sgid[16];
	uint8_t dgid[16];
};

static inline struct handed_bytes
sw_packet_bytes(const struct sw_packet *p)
{
	return (struct handed_bytes){p->head, p->head_len, p->rest, p->len};
}

static inline enum sw_sent
sw_drop(uint64_t *why)
{
	(*why)++;
	return SW_DROPPED;
}

#endif
