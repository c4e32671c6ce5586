/* SPDX-License-Identifier: BSD-3-Clause */
/* A policer as clouds have: each flow, a pair of hosts and a UDP source port, has a token
 * bucket. A frame for which it has no tokens is dropped. There is no queue. */
#ifndef ROCADE_FABRIC_POLICER_H
#define ROCADE_FABRIC_POLICER_H

#include "frame.h"

#define POLICER_FLOWS 4096

struct policer {
	double bytes_per_ps; /* 0: off */
	double burst;        /* bytes */
	struct policed_flow {
		uint64_t key; /* 0: unused */
		uint64_t since;
		double tokens; /* at that time */
	} flows[POLICER_FLOWS];
	uint32_t count;
	uint64_t dropped;
};

void policer_init(struct policer *p, uint64_t mbit_per_s, uint32_t burst);
/* Takes the frame's bytes from its flow's bucket. False: there are too few. */
bool policer_pass(struct policer *p, const struct frame *frame, uint64_t now);

#endif
