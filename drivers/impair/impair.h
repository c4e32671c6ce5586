/* SPDX-License-Identifier: BSD-3-Clause */
/* Loss, duplication, reordering and corruption of received and sent frames, from a seed:
 * wraps a queue of any port. For tests and the command `set impair`. No cost while no
 * queue is wrapped. */
#ifndef ROCADE_IMPAIR_H
#define ROCADE_IMPAIR_H

#include "port/port.h"

struct impair_conf {
	uint32_t loss_ppm; /* frames per million, as the next three */
	uint32_t duplicate_ppm;
	/* held until 1 to 8 later frames have passed, or for some idle polls */
	uint32_t reorder_ppm;
	uint32_t corrupt_ppm; /* one bit flipped, behind the Ethernet header */
	uint64_t seed;
};

struct impair_stats {
	uint64_t lost, duplicated, reordered, corrupted;
};

enum impair_lane { IMPAIR_RX, IMPAIR_TX, IMPAIR_LANES };

struct impair;

/* Wraps a queue; has no effect before impair_set(). The caller holds the engine lock of
 * the queue in impair_wrap(), impair_set() and impair_unwrap(). Duplicates use transmit
 * buffers of the port, so packets may outlive the wrapper. A frame above max_frame, or
 * without a free buffer, is not duplicated. Returns 0 or -ENOMEM. */
int impair_wrap(const struct port_queue *inner, uint32_t max_frame, struct impair **out,
	struct port_queue *outer);
/* Another wrapper has been put around the queue below, or taken from it. */
void impair_set_inner(struct impair *im, const struct port_queue *inner);
/* Sets the rates, and restarts the sequence of the seed. -EINVAL: nothing has changed. */
int impair_set(struct impair *im, enum impair_lane which, const struct impair_conf *conf);
void impair_stats_get(
	const struct impair *im, enum impair_lane which, struct impair_stats *out);
/* Releases the held frames and frees the wrapper. */
void impair_unwrap(struct impair *im);

#endif
