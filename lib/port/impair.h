/* SPDX-License-Identifier: BSD-3-Clause */
/* Loss, duplication, reordering and corruption of received and sent frames, from a seed:
 * wraps a queue of any port. For tests, the command `set impair` and `rocaded --impair`. No cost
 * while no queue is wrapped. */
#ifndef ROCADE_PORT_IMPAIR_H
#define ROCADE_PORT_IMPAIR_H

#include "port/port.h"

struct impair_conf {
	uint32_t loss_ppm; /* frames per million, as the next three */
	uint32_t duplicate_ppm;
	/* held until 1 to 8 later frames have passed, for some idle polls, or until a QP ends */
	uint32_t reorder_ppm;
	uint32_t corrupt_ppm; /* one bit flipped, behind the Ethernet header */
	uint64_t seed;
};

struct impair_stats {
	uint64_t lost, duplicated, reordered, corrupted;
};

static inline bool
impair_is_on(const struct impair_conf *conf)
{
	return (conf->loss_ppm | conf->duplicate_ppm | conf->reorder_ppm |
		       conf->corrupt_ppm) != 0;
}

static inline void
impair_stats_add(struct impair_stats *to, const struct impair_stats *from)
{
	to->lost += from->lost;
	to->duplicated += from->duplicated;
	to->reordered += from->reordered;
	to->corrupted += from->corrupted;
}

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
/* Effects on a frame. choose() sets what it wants, and clears nothing. */
struct impair_effect {
	bool lose, duplicate, hold, corrupt;
	unsigned behind; /* hold: how many frames overtake it, from 1 */
};
typedef void impair_choose_fn(
	void *arg, const struct pkt *pkt, struct impair_effect *effect);
/* Asks for each frame what happens to it, besides what the rates make of it. It lasts as long as the
 * wrapper. */
void impair_choose(
	struct impair *im, enum impair_lane which, impair_choose_fn *choose, void *arg);
/* Cuts the link: frames that are sent or received are lost, those that the wrapper holds, too, and counted in *lost. NULL:
 * the link is whole again; what has come until then is lost. choose() is asked all the same, without an effect. With the
 * engine lock held. */
void impair_cut(struct impair *im, uint64_t *lost);
/* Called for a sent frame that is held back: an engine that sleeps has to poll, for it to leave. */
void impair_on_hold(struct impair *im, void (*held)(void *arg), void *arg);
/* Counts there from now on, in place of the wrapper's own counters. */
void impair_count_in(
	struct impair *im, enum impair_lane which, struct impair_stats *stats);
void impair_stats_get(
	const struct impair *im, enum impair_lane which, struct impair_stats *out);
/* Sends the held frames that are to be sent, releases the others and frees the wrapper. */
void impair_unwrap(struct impair *im);

#endif
