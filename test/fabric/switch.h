/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch: output queues, and routes to hosts over one or several of them. Among several
 * the UDP source port and the addresses choose (ECMP). */
#ifndef ROCADE_FABRIC_SWITCH_H
#define ROCADE_FABRIC_SWITCH_H

#include "outq.h"
#include "policer.h"

struct route {
	uint16_t first, count; /* queues */
};

struct sw {
	struct outq *queues;
	uint16_t queue_count;
	struct route *routes;   /* one for each host */
	uint32_t salt;          /* of the hash: switches choose differently */
	uint32_t loss;          /* frames from hosts lost at random, per million */
	struct buffer buffer;   /* size 0: each queue has its own limit */
	struct policer policer; /* of frames from hosts */
	uint64_t lost;          /* frames with payload, by `loss` and the policer */
};

void sw_init(struct sw *s, uint16_t queues, unsigned hosts, uint32_t salt);
void sw_fini(struct sw *s);
/* Takes in a frame; the deliver() of links that end at a switch. */
void sw_rx(void *sw, struct frame *frame);

/* Returns which of n paths the frame takes. */
unsigned ecmp_choose(const struct frame *frame, unsigned n, uint32_t salt);

#endif
