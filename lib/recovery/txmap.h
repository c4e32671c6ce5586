/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * The record that a requester keeps once a packet is missing: it tells which have arrived
 * behind it, which are lost, and which were sent again, when and in which order. The
 * missing ones are SENDs and WRITEs (qp/sack.c) or responses of READs (qp/read_gap.c),
 * never both: the first missing one is una_psn, and a record of SENDs and WRITEs ends at
 * the first READ. So a QP has at most one. It knows PSNs and times, and neither packets
 * nor a QP.
 *
 * While nothing is missing nothing is recorded: a requester sends new packets in the
 * order of their PSNs. A packet that is sent again notes which packets were new after
 * that, so the order of any two transmissions is known.
 */
#ifndef ROCADE_RECOVERY_TXMAP_H
#define ROCADE_RECOVERY_TXMAP_H

#include <sys/queue.h>

#include "wire/psn.h"

#define TXMAPS 128 /* of an engine; the index of one has 8 bits */

/* The last time at which a packet was sent again. */
struct txmap_again {
	uint32_t psn;
	uint32_t next_psn; /* packets from here on were sent after it */
	/* counts up with each time; equal: one READ request for several */
	uint32_t number;
	uint32_t ns; /* low 32 bits of the time */
};

struct txmap {
	SLIST_ENTRY(txmap) link; /* among the free ones */
	/* A bit for each packet from una_psn up to end: */
	struct psn_bits arrived; /* it has arrived, or the peer has said so once */
	struct psn_bits lost;    /* it is lost, and to be sent again */
	uint32_t end;            /* after the last one that is known of */
	bool reads;              /* responses of READs are missing */
	/* READs: end of one during which a repeat of a later one was in vain */
	uint32_t vain;
	/* of the last entry of again; it goes on when another QP takes the record */
	uint32_t number;
	uint32_t number_before;             /* of the last one of the QP before */
	struct txmap_again again[PSN_BITS]; /* by PSN */
};

/* The records of an engine. */
struct txmaps {
	struct txmap *all;
	uint32_t touched; /* the records before this index were used already */
	SLIST_HEAD(, txmap) free;
};

/* Returns 0 or -ENOMEM. */
int txmaps_init(struct txmaps *maps);
/* All records have been given back (asserted). */
void txmaps_fini(struct txmaps *maps);

/* Takes a record: packet una_psn is missing. Returns NULL if none is free. */
struct txmap *txmap_get(struct txmaps *maps, uint32_t una_psn, bool reads);
void txmap_put(struct txmaps *maps, struct txmap *map);

/* The calls below are for packets from una_psn on, unless they say otherwise. */

/* The packet has arrived. Returns false if that was known. */
bool txmap_set_arrived(struct txmap *map, uint32_t psn);
/* The packet is lost, unless it has arrived. */
void txmap_set_lost(struct txmap *map, uint32_t psn);
/* una_psn has advanced by this number of packets, but not to the end. */
void txmap_advanced(struct txmap *map, uint32_t before, uint32_t packets);
/* These packets are sent again, together. next_psn: the next new packet. */
void txmap_sent_again(struct txmap *map, uint32_t psn, uint32_t packets,
	uint32_t next_psn, uint64_t now);

/* True if the packet lies before the end, has not arrived, and is not known to be
 * lost. */
static inline bool
txmap_is_missing(const struct txmap *map, uint32_t psn)
{
	return psn_diff(psn, map->end) < 0 && !psn_bit(&map->arrived, psn) &&
	       !psn_bit(&map->lost, psn);
}

/* Returns a bit for each packet that has not arrived and is not known to be lost; those
 * from the end on have none that means anything. */
static inline struct psn_bits
txmap_missing(const struct txmap *map)
{
	struct psn_bits missing;

	for (unsigned i = 0; i < PSN_BITS / 64; i++)
		missing.word[i] = ~(map->arrived.word[i] | map->lost.word[i]);
	return missing;
}

/* Returns the last time at which the packet was sent again; NULL: it was sent once. Also
 * of packets before una_psn, up to PSN_BITS before the last packet that was sent
 * again. */
static inline const struct txmap_again *
txmap_again_of(const struct txmap *map, uint32_t psn)
{
	const struct txmap_again *again = &map->again[psn % PSN_BITS];

	return again->psn == psn && (int32_t)(again->number - map->number_before) > 0
		       ? again
		       : NULL;
}

/* True if one READ request asked again for both packets. */
static inline bool
txmap_sent_together(const struct txmap *map, uint32_t a, uint32_t b)
{
	const struct txmap_again *again_a = txmap_again_of(map, a),
				 *again_b = txmap_again_of(map, b);

	return again_a != NULL && again_b != NULL && again_a->number == again_b->number;
}

/* True if packet a was sent, the last time, when packet b was new, or before that. */
static inline bool
txmap_sent_by(const struct txmap *map, uint32_t a, uint32_t b)
{
	const struct txmap_again *again = txmap_again_of(map, a);

	return again != NULL ? psn_diff(again->next_psn, b) <= 0 : psn_diff(a, b) <= 0;
}

/* True if packet a was sent, the last time, before packet b was. If the network keeps the
 * order, and b has arrived, a is lost. */
bool txmap_sent_before(const struct txmap *map, uint32_t a, uint32_t b);

#endif
