/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent that finds out which extensions other hosts understand (wire/extensions.h), by
 * queries on QP 1, and answers their queries (docs/protocol.md 20.3). It caches answers by own
 * and other address. It does no I/O and reads no clock. The caller excludes other threads.
 *
 * Its work for others is bounded: another host gets an answer as long as its query,
 * and all hosts together at most one per EXT_QUERY_ANSWER_NS. Queries leave at most one per
 * EXT_QUERY_SEND_NS, and EXT_QUERY_OPEN addresses are asked at a time.
 */
#ifndef ROCADE_PORT_EXT_QUERY_H
#define ROCADE_PORT_EXT_QUERY_H

#include "base/base_stats.h"
#include "base/random.h"
#include "wire/wire_gsi.h"

/* Pairs of addresses that are asked or known, unless ext_query_create_sized() is told another
 * number. */
#define EXT_QUERY_HOSTS 1024
#define EXT_QUERY_OPEN 128 /* of these: asked, and not answered yet */
/* the age of an answer, or of silence, after which the host is asked again */
#define EXT_QUERY_KEPT_NS (60 * NS_PER_SEC)
#define EXT_QUERY_TRIES 4
/* since the first query; silence until then counts as an answer: none */
#define EXT_QUERY_SILENCE_NS (2 * NS_PER_SEC)
/* from one try to the next to send a first query while its next hop is being resolved */
#define EXT_QUERY_RESOLVE_NS NS_PER_MS
#define EXT_QUERY_SEND_NS NS_PER_MS
#define EXT_QUERY_SEND_BURST 64
#define EXT_QUERY_ANSWER_NS NS_PER_MS
#define EXT_QUERY_ANSWER_BURST 64 /* also the number of answers that may wait */

enum ext_known {
	EXT_KNOWN_NOT,   /* and not asked */
	EXT_KNOWN_ASKED, /* a query is open */
	EXT_KNOWN,
};

struct ext_query;

/* off: the agent sends no query, knows no extension of any host, and its answers name none.
 * Returns 0 or -ENOMEM. */
int ext_query_create(const struct random_key *random, bool off, struct ext_query **out);
/* The same for this many pairs of addresses, a power of two that is larger than EXT_QUERY_OPEN. */
int ext_query_create_sized(const struct random_key *random, bool off, uint32_t hosts,
	struct ext_query **out);
void ext_query_destroy(struct ext_query *q);

/* Returns what is known of the host theirs as seen from our address ours. *extensions: those
 * (EXT_*) that both ends understand; 0 unless EXT_KNOWN is returned. */
enum ext_known ext_query_find(struct ext_query *q, const uint8_t ours[16],
	const uint8_t theirs[16], uint64_t now, uint32_t *extensions);
/* As ext_query_find(), and opens a query if nothing is known. EXT_KNOWN_NOT: too many
 * queries are open. */
enum ext_known ext_query_ask(struct ext_query *q, const uint8_t ours[16],
	const uint8_t theirs[16], uint64_t now, uint32_t *extensions);
/* Returns the extensions that this host understands: 0 if the agent is off. */
uint32_t ext_query_own(const struct ext_query *q);

/* Handles a received message of class EXT_MAD_CLASS. Counts a drop. */
void ext_query_rx(struct ext_query *q, const struct gsi_msg *msg,
	struct port_stats *stats, uint64_t now);
/* Fills in the next message to be sent now. False: there is none. */
bool ext_query_tx(
	struct ext_query *q, struct gsi_msg *msg, struct port_stats *stats, uint64_t now);
/* To be called for each message from ext_query_tx(), which is counted if it was sent. sent is
 * false if its next hop is being resolved: a first query is then sent EXT_QUERY_RESOLVE_NS
 * later, as if it had not been tried, for at most EXT_QUERY_SILENCE_NS. Other messages are
 * lost: queries are repeated, by the other host too. */
void ext_query_tx_done(struct ext_query *q, const struct gsi_msg *msg, bool sent,
	struct port_stats *stats, uint64_t now);
/* Returns when ext_query_tx() is to be called: 0 now, TIME_NEVER if nothing is due. */
uint64_t ext_query_deadline(const struct ext_query *q);

/* Changes whenever a query has ended: by an answer, or by silence. */
uint32_t ext_query_generation(const struct ext_query *q);

#endif
