/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loss, duplication, reordering and corruption of what is received and of what is sent,
 * seeded: wraps a queue of any port. For tests and for `set impair`; costs nothing while
 * no queue is wrapped.
 */
#ifndef ROCADE_IMPAIR_H
#define ROCADE_IMPAIR_H

#include "port/port.h"

struct impair_conf {
	uint32_t loss_ppm; /* of a million frames; each up to 1,000,000 */
	uint32_t duplicate_ppm;
	uint32_t
		reorder_ppm; /* held back behind 1 to 8 later ones, or a few idle polls */
	uint32_t corrupt_ppm; /* one bit flipped behind the Ethernet header */
	uint64_t seed;
};

struct impair_stats {
	uint64_t lost, duplicated, reordered, corrupted;
};

enum impair_lane { IMPAIR_RX, IMPAIR_TX, IMPAIR_LANES };

struct impair;

/* Disturbs nothing before impair_set(). The caller excludes the queue's engine around
 * wrap, unwrap and reconfigure (its gate). Duplicates stand in transmit buffers of the
 * port (frames above max_frame, or without a free buffer, are not duplicated), so packets
 * may outlive the wrapping. -ENOMEM.
 */
int
impair_wrap(const struct port_queue *inner, uint32_t max_frame, struct impair **out,
	struct port_queue *outer);
/* Starts the sequence of the seed anew. -EINVAL, and nothing changes. */
int
impair_set(struct impair *im, enum impair_lane which, const struct impair_conf *conf);
void
impair_stats_get(
	const struct impair *im, enum impair_lane which, struct impair_stats *out);
/* Releases what is held back. */
void
impair_unwrap(struct impair *im);

#endif
