/* SPDX-License-Identifier: BSD-3-Clause */
/* Next hops that a thread remembers: thread 0, which has the neighbour table, tells it. */
#ifndef ROCADE_SWITCH_SW_HOP_H
#define ROCADE_SWITCH_SW_HOP_H

#include "switch/sw_thread.h"

/* Returns whether the thread knows the next hop. generation: of the neighbour table. */
bool sw_hop_find(const struct sw_thread *t, const uint8_t dgid[16], uint32_t generation,
	uint8_t mac[6]);
/* May replace another one. */
void sw_hop_set(struct sw_thread *t, const struct sw_hop *hop);

#endif
