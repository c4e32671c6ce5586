/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a pair: two clients of a daemon, which have QPs that are connected with each
 * other, exchange the packets of these QPs without the daemon. Each client is the only writer of
 * one part and can only read the other part. A part has the slots of the packets that its writer
 * sends, and the index of those that its writer has taken from the other part.
 *
 * The daemon creates both parts, and accesses neither. The writer seals its part, and allocates all
 * pages, so that they are charged to it. The two clients do not trust each other: whatever is checked of
 * the other part is copied first, and the copy is what is checked. The payload of a long packet is not
 * checked but by its ICRC.
 *
 * A slot is valid when its stamp is the number of the packet, counted from 1. So the reader looks
 * at one cache line to find out whether there is a packet, which often has the packet, too.
 */
#ifndef ROCADE_SWITCH_PAIR_H
#define ROCADE_SWITCH_PAIR_H

#include "base/asleep.h"
#include "switch/region.h"

#define PAIRS_MAX 64   /* of a client */
#define PAIR_SLOTS 256 /* of a part, unless the daemon's rings are smaller */

struct pair_geom {
	uint32_t slots;    /* of a part: a power of two */
	uint32_t buf_size; /* bytes of the longest packet, a multiple of LINE_SIZE */
};

/* Bytes that a client writes to its partner by their connection. */
enum pair_wake {
	PAIR_WAKE, /* there are packets for one that sleeps */
	PAIR_LAGS, /* the reader does not take packets, although it is awake */
};

enum pair_slot_kind {
	PAIR_PACKET = 1,
	/* No packet: the writer has connected the QP qpn of the reader with one of its own, and
	 * accepts what that QP sends. */
	PAIR_CONNECTED,
};

struct pair_slot {
	uint32_t stamp; /* number of the packet, written last */
	uint16_t len;   /* bytes of the packet */
	uint16_t kind;  /* enum pair_slot_kind */
	uint32_t qpn;   /* PAIR_CONNECTED */
	uint32_t reserved;
	uint8_t bytes[];
};
static_assert(
	sizeof(struct pair_slot) == 16, "the packet's headers in the same cache line");

struct pair_part {
	uint32_t cons
		LINE_ALIGNED; /* packets that the writer has taken from the other part */
	uint32_t answered;    /* of these it has sent the answers, if there are any */
	uint32_t asleep LINE_ALIGNED; /* the writer sleeps (base/asleep.h) */
	uint32_t
		reads; /* the writer has mapped the other part, and takes packets from it */
	/* The reader sleeps on it, if it has said so in its own part: it changes to wake it. */
	uint32_t wakes LINE_ALIGNED;
	uint8_t slots[] LINE_ALIGNED;
};

/* Returns the geometry for clients whose memory has this one. */
static inline struct pair_geom
pair_geom_of(const struct region_geom *geom)
{
	return (struct pair_geom){.slots = RTE_MIN(geom->rx_slots, PAIR_SLOTS + 0u),
		.buf_size = geom->buf_size};
}

/* Returns whether the geometry is valid. */
static inline bool
pair_geom_ok(const struct pair_geom *geom)
{
	return geom->slots >= 2 && geom->slots <= REGION_MAX_SLOTS &&
	       rte_is_power_of_2(geom->slots) && geom->buf_size >= 256 &&
	       geom->buf_size <= REGION_MAX_BUF && geom->buf_size % LINE_SIZE == 0;
}

/* Returns the distance from one slot to the next in bytes. */
static inline size_t
pair_slot_size(const struct pair_geom *geom)
{
	return RTE_ALIGN_CEIL(
		sizeof(struct pair_slot) + geom->buf_size, (size_t)LINE_SIZE);
}

/* Returns the size of a part in bytes, a multiple of the page size. */
static inline size_t
pair_part_size(const struct pair_geom *geom)
{
	return RTE_ALIGN_CEIL(
		sizeof(struct pair_part) + geom->slots * pair_slot_size(geom),
		(size_t)4096);
}

#endif
